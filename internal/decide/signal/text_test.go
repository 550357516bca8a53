package signal

import (
	"strings"
	"testing"
)

func TestFinalOfTextCarriesOutTheTerminal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ output, want string }{
		"plain":                     {"a\nb\n", "a\nb\n"},
		"colour":                    {"\x1b[1;32m<promise>COMPLETE</promise>\x1b[0m\n", "<promise>COMPLETE</promise>\n"},
		"colour inside":             {"<promise>\x1b[1mCOMPLETE\x1b[m</promise>", "<promise>COMPLETE</promise>"},
		"title closed by a bell":    {"\x1b]0;my title\aa", "a"},
		"title closed by ST":        {"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"},
		"title never closed":        {"\x1b]0;title\nnext", "\nnext"},
		"8-bit control":             {"\u009b31ma\u009d0;t\u009cb", "ab"},
		"device control":            {"\x1bPq#0\x1b\\a", "a"},
		"character set":             {"\x1b(Ba\x1b=b\x1b7c", "abc"},
		"progress":                  {"10%\r50%\rdone\n", "done\n"},
		"progress that ends a line": {"10%\r50%\r\nnext\n", "50%\nnext\n"},
		"progress and erase":        {"10%\r\x1b[Kdone\n", "done\n"},
		"progress at the end":       {"10%\r50%\r", "50%"},
		"CRLF":                      {"a\r\nb\r\n", "a\nb\n"},
		"spinner":                   {"|\b/\b-\bok\n", "ok\n"},
		"backspace at the start":    {"a\n\b\bb", "a\nb"},
		"backspace over a rune":     {"é\be", "e"},
		"bell":                      {"a\ab", "ab"},
		"escape at the end":         {"a\x1b", "a"},
		"broken control":            {"a\x1b[31", "a"},
		"control broken by a line":  {"a\x1b[31\nb", "a\nb"},
		"escape before a line":      {"a\x1b\nb", "a\nb"},
		"two escapes":               {"\x1b\x1b[1ma", "a"},
		"no control":                {"©\u00a0é\u0085", "©\u00a0é\u0085"},
		"NUL stays":                 {"<promise>COM\x00PLETE</promise>", "<promise>COM\x00PLETE</promise>"},
		"invalid stays":             {"\xff\x9b\a", "\xff\x9b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := FinalOfText(test.output); got != test.want {
				t.Errorf("FinalOfText(%q) = %q, want %q", test.output, got, test.want)
			}
		})
	}
}

func TestFinalOfTextKeepsTheEnd(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcde\n", maxFinal/16)
	got := FinalOfText("I will not output" + long + "<promise>COMPLETE</promise>\n")
	if len(got) > maxFinal || !strings.HasPrefix(got, "0123456789abcde\n") || !strings.HasSuffix(got, "</promise>\n") {
		t.Errorf("%d bytes, %.40q … %q", len(got), got, got[len(got)-40:])
	}
	if got := FinalOfText(long); got != long {
		t.Error("a message of just the limit is cut")
	}
	if got := FinalOfText("x\n" + long); got != long {
		t.Errorf("a cut at a line break loses a line: %.40q", got)
	}
}

// The end of a sentence must not become a line of its own.
func TestFinalOfTextNeverMakesASignalByCutting(t *testing.T) {
	t.Parallel()
	tail := "<promise>COMPLETE</promise>"
	for _, gap := range []int{maxFinal - len(tail), maxFinal - len(tail) - 2, maxFinal, 2 * maxFinal} {
		got := FinalOfText("I will not output" + strings.Repeat(" ", gap) + tail)
		if len(got) > maxFinal || Read(got).Signal.Kind != None {
			t.Errorf("gap of %d: %d bytes, %.20q", gap, len(got), got)
		}
	}
	if got := FinalOfText(strings.Repeat("é", maxFinal) + "\n"); !strings.HasPrefix(got, "… é") || len(got) > maxFinal {
		t.Errorf("one long line: %d bytes, %.20q", len(got), got)
	}
}

func BenchmarkFinalOfText(b *testing.B) {
	output := strings.Repeat("\x1b[32m+ the agent changed a line of the parser\x1b[0m\r\n", 10000)
	b.SetBytes(int64(len(output)))
	for b.Loop() {
		if FinalOfText(output) == "" {
			b.Fatal("empty")
		}
	}
}

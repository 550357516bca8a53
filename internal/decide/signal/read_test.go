package signal

import (
	"reflect"
	"strings"
	"testing"
)

func TestReadFindsSignals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, message string
		want          Signal
		progress      int
	}{
		{"nothing", "", Signal{}, -1},
		{"prose", "All done.\n", Signal{}, -1},
		{"complete", "<promise>COMPLETE</promise>", Signal{Kind: Complete}, -1},
		{"success", "done\n\n<promise>SUCCESS</promise>\n", Signal{Kind: Complete}, -1},
		{"pawl tag", "<pawl>COMPLETE</pawl>\n", Signal{Kind: Complete}, -1},
		{"CRLF", "done\r\n<promise>COMPLETE</promise>\r\n", Signal{Kind: Complete}, -1},
		{"space around", "  <promise>COMPLETE</promise> \t\n", Signal{Kind: Complete}, -1},
		{"blocked", "<promise>BLOCKED: no key</promise>", Signal{Blocked, "no key"}, -1},
		{"no space behind the colon", "<promise>BLOCKED:no key</promise>", Signal{Blocked, "no key"}, -1},
		{"colon in the payload", "<promise>BLOCKED: a: b</promise>", Signal{Blocked, "a: b"}, -1},
		{"pending", "<promise>PENDING: which one?</promise>", Signal{Pending, "which one?"}, -1},
		{"escalate", "<pawl>ESCALATE: which one?</pawl>", Signal{Pending, "which one?"}, -1},
		{"failure", "<promise>FAILURE</promise>", Signal{Kind: Failure}, -1},
		{"failure with a reason", "<promise>FAILURE: red</promise>", Signal{Failure, "red"}, -1},
		{"approve", "<promise>APPROVE</promise>", Signal{Kind: Approve}, -1},
		{"reject", "<promise>REJECT: no test</promise>", Signal{Reject, "no test"}, -1},
		{"progress", "<promise>PROGRESS: 10</promise>\n<promise>PROGRESS: 40</promise>", Signal{}, 40},
		{"progress at its ends", "<promise>PROGRESS: 100</promise>\n<promise>PROGRESS:0</promise>", Signal{}, 0},
		{"progress and complete", "<promise>COMPLETE</promise>\n<promise>PROGRESS: 100</promise>", Signal{Kind: Complete}, 100},
		{"control characters in a payload", "<promise>BLOCKED: a\x1b[31m\x00b\u200b\xff</promise>", Signal{Blocked, "a[31mb\uFFFD"}, -1},

		{"the last counts", "<promise>COMPLETE</promise>\n<promise>PENDING: a?</promise>", Signal{Pending, "a?"}, -1},
		{"the last counts, complete", "<promise>PENDING: a?</promise>\n<promise>COMPLETE</promise>", Signal{Kind: Complete}, -1},
		{"blocked beats complete", "<promise>BLOCKED: x</promise>\ntext\n<promise>COMPLETE</promise>", Signal{Blocked, "x"}, -1},
		{"failure beats complete", "<promise>FAILURE</promise>\n<promise>COMPLETE</promise>", Signal{Kind: Failure}, -1},
		{"the last denial", "<promise>FAILURE</promise>\n<promise>BLOCKED: x</promise>\n<promise>COMPLETE</promise>", Signal{Blocked, "x"}, -1},
		{"reject beats approve", "<promise>REJECT: x</promise>\n<promise>APPROVE</promise>", Signal{Reject, "x"}, -1},
		{"blocked beats approve", "<promise>BLOCKED: x</promise>\n<promise>APPROVE</promise>", Signal{Blocked, "x"}, -1},

		{"behind a closed fence", "```sh\nls\n```\n<promise>COMPLETE</promise>", Signal{Kind: Complete}, -1},
		{"behind a list's fence", "1. run\n\n    ```sh\n    ls\n    ```\n\n<promise>COMPLETE</promise>", Signal{Kind: Complete}, -1},
		{"behind three backticks within a line", "Use ```x``` here.\n\n<promise>COMPLETE</promise>", Signal{Kind: Complete}, -1},
		{"behind a comment", "<!-- a\nb -->\n<promise>COMPLETE</promise>", Signal{Kind: Complete}, -1},
		{"behind a comment's name in code", "I removed the `<!--` mark.\n<promise>COMPLETE</promise>", Signal{Kind: Complete}, -1},
		{"behind a closed quotation", "It says \"a\" and `b`.\n<promise>COMPLETE</promise>", Signal{Kind: Complete}, -1},
		{"stray quote in an earlier paragraph", "The gap is 5\" wide.\n\n<promise>COMPLETE</promise>", Signal{Kind: Complete}, -1},
		{"stray quote and blocked", "The gap is 5\" wide.\n<promise>BLOCKED: x</promise>\n\n<promise>COMPLETE</promise>", Signal{Blocked, "x"}, -1},
		{"blocked before an unclosed fence", "<promise>BLOCKED: x</promise>\n```\n", Signal{Blocked, "x"}, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := Read(test.message)
			if got.Signal != test.want || got.Progress != test.progress {
				t.Errorf("Read(%q) = %+v, progress %d, want %+v, progress %d", test.message, got.Signal, got.Progress, test.want, test.progress)
			}
			if len(got.Malformed) > 0 {
				t.Errorf("Read(%q) complains: %q", test.message, got.Malformed)
			}
		})
	}
}

// TestReadRefuses has what other loops took for a completion. tells is part
// of the first sentence for the agent; "" wants none.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, message, tells string }{
		{"refused in a sentence", "I will not output <promise>COMPLETE</promise> because tests fail.", "within a sentence"},
		{"refused with a short not", "I can't print <promise>COMPLETE</promise> yet.", "within a sentence"},
		{"planned in a sentence", "Once the tests pass I print <promise>COMPLETE</promise>.", "within a sentence"},
		{"in inline code in a sentence", "The protocol has `<promise>COMPLETE</promise>` for this.", "within a sentence"},
		{"in quotes in a sentence", `It asks for "<promise>COMPLETE</promise>" here.`, "within a sentence"},
		{"meant, in a sentence", "All done: <promise>COMPLETE</promise>", "within a sentence"},
		{"before a sentence", "<promise>COMPLETE</promise> All tests pass.", "within a sentence"},
		{"bold", "**<promise>COMPLETE</promise>**", "bare and alone"},
		{"list item", "- <promise>COMPLETE</promise>", "bare and alone"},
		{"numbered", "3. <promise>COMPLETE</promise>", "bare and alone"},
		{"inline code", "`<promise>COMPLETE</promise>`", "bare and alone"},
		{"quotes", `"<promise>COMPLETE</promise>"`, "bare and alone"},
		{"heading", "## <promise>COMPLETE</promise>", "bare and alone"},
		{"byte order mark", "\ufeff<promise>COMPLETE</promise>", "bare and alone"},
		{"no-break space", "\u00a0<promise>COMPLETE</promise>", "bare and alone"},
		{"full stop", "<promise>COMPLETE</promise>.", "bare and alone"},

		{"fence", "```\n<promise>COMPLETE</promise>\n```", "inside a code fence"},
		{"tildes", "~~~text\n<promise>COMPLETE</promise>\n~~~", "inside a code fence"},
		{"longer fence", "````\n```\n<promise>COMPLETE</promise>\n````", "inside a code fence"},
		{"tildes in backticks", "```\n~~~\n```\n~~~\n<promise>COMPLETE</promise>\n~~~", "inside a code fence"},
		{"nested fences", "```md\n```go\nx\n```\n<promise>COMPLETE</promise>\n```", "inside a code fence"},
		{"nested fences, balanced", "```md\n```go\n```\n<promise>COMPLETE</promise>\n```\n\n```sh\nls\n```", "inside a code fence"},
		{"fence never closed", "```\nls\n\n<promise>COMPLETE</promise>", "inside a code fence"},
		{"fence never closed behind it", "<promise>COMPLETE</promise>\n```\nls", "never closed"},
		{"message cut within a fence", "ls\n<promise>COMPLETE</promise>\n```\nNot done.", "never closed"},
		{"fence in a list", "- ```\n<promise>COMPLETE</promise>\n```", "nothing counted"},
		{"closing fence with text", "```\na\n``` no\n<promise>COMPLETE</promise>\n```", "inside a code fence"},
		{"shorter closing fence", "````\na\n```\n<promise>COMPLETE</promise>\n````", "inside a code fence"},

		{"indented", "    <promise>COMPLETE</promise>", "indented"},
		{"tab", "\t<promise>COMPLETE</promise>", "indented"},
		{"space and tab", "  \t<promise>COMPLETE</promise>", "indented"},
		{"block quote", "> <promise>COMPLETE</promise>", "inside a quotation"},
		{"comment", "<!--\n<promise>COMPLETE</promise>\n-->", "inside a comment"},
		{"comment never closed", "<!-- note\n\n<promise>COMPLETE</promise>", "inside a comment"},
		{"comment within a paragraph", "text <!-- note\n<promise>COMPLETE</promise>\n-->", "inside a comment"},
		{"element", "<pre>\n<promise>COMPLETE</promise>\n</pre>", "inside a comment or an HTML"},
		{"quotation over lines", "The task says \"print\n<promise>COMPLETE</promise>\nwhen done\", but it is not.", "inside a quotation"},
		{"curly quotation", "It says “print\n<promise>COMPLETE</promise>\nthen”.", "inside a quotation"},
		{"inline code over lines", "It says `print\n<promise>COMPLETE</promise>\nthen`.", "inside a quotation"},
		{"triple quotes", "\"\"\"\n<promise>COMPLETE</promise>\n\"\"\"", "inside a quotation"},

		{"bare and alone", "<promise>complete</promise>", "bare and alone"},
		{"tag in another case", "<Promise>COMPLETE</Promise>", "bare and alone"},
		{"spaces in the tag", "< promise >COMPLETE</promise>", "bare and alone"},
		{"spaces around the word", "<promise> COMPLETE </promise>", "bare and alone"},
		{"different tags", "<promise>COMPLETE</pawl>", "bare and alone"},
		{"never closed", "<promise>COMPLETE", "bare and alone"},
		{"closed on another line", "<promise>COMPLETE\n</promise>", "bare and alone"},
		{"unknown word", "<promise>DONE</promise>", "no signal word"},
		{"homoglyph", "<promise>СOMPLETE</promise>", "no signal word"},
		{"payload where none goes", "<promise>COMPLETE: yes</promise>", "takes nothing"},
		{"blocked without a reason", "<promise>BLOCKED</promise>", "needs a colon and a reason"},
		{"blocked with blanks", "<promise>BLOCKED: \u200b </promise>", "needs a colon and a reason"},
		{"reject without a reason", "<promise>REJECT:</promise>", "needs a colon and a reason"},
		{"progress too high", "<promise>PROGRESS: 101</promise>", "from 0 to 100"},
		{"progress below", "<promise>PROGRESS: -1</promise>", "from 0 to 100"},
		{"progress in per cent", "<promise>PROGRESS: 50%</promise>", "from 0 to 100"},
		{"two on a line", "<promise>PROGRESS: 50</promise> <promise>COMPLETE</promise>", "within a sentence"},
		{"tag in a payload", "<promise>BLOCKED: use </promise> here</promise>", "within a sentence"},
		{"zero width in the word", "<promise>COM\u200bPLETE</promise>", "bare and alone"},
		{"zero width in the tag", "<pro\u200bmise>COMPLETE</promise>", "bare and alone"},
		{"NUL in the tag", "<pro\x00mise>COMPLETE</promise>", "bare and alone"},

		{"an unknown word in prose", "The <promise> of <pawl>things</pawl> to come", ""},
		{"the tags alone", "It starts with `<promise>` and ends with `</promise>`.", ""},
		{"another tag", "<done>COMPLETE</done>", ""},
		{"words without tags", "COMPLETE", "without its tags"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := Read(test.message)
			if got.Signal.Kind != None || len(got.All) > 0 || got.Progress != -1 {
				t.Errorf("Read(%q) = %+v, want no signal", test.message, got)
			}
			if test.tells == "" {
				if len(got.Malformed) > 0 {
					t.Errorf("Read(%q) complains: %q", test.message, got.Malformed)
				}
				return
			}
			if len(got.Malformed) == 0 || !strings.Contains(got.Malformed[0], test.tells) {
				t.Errorf("Read(%q) tells %q, want a sentence with %q first", test.message, got.Malformed, test.tells)
			}
		})
	}
}

func TestReadKeepsAllInOrder(t *testing.T) {
	t.Parallel()
	got := Read("<promise>COMPLETE</promise>\n<promise>BLOCKED: a</promise>\n<promise>PROGRESS: 3</promise>\n<promise>REJECT: b</promise>\n")
	want := []Signal{{Kind: Complete}, {Blocked, "a"}, {Reject, "b"}}
	if !reflect.DeepEqual(got.All, want) {
		t.Errorf("All = %v, want %v", got.All, want)
	}
}

// A sentence about a mention is for a message that says nothing else.
func TestReadIsSilentAboutMentionsBesidesASignal(t *testing.T) {
	t.Parallel()
	got := Read("I will not print <promise>BLOCKED: x</promise> now.\n```\n<promise>COMPLETE</promise>\n```\n<promise>COMPLETE</promise>")
	if got.Signal.Kind != Complete || len(got.Malformed) != 0 {
		t.Errorf("got %+v, want complete and no sentence", got)
	}
}

func TestReadBoundsWhatItReturns(t *testing.T) {
	t.Parallel()
	got := Read(strings.Repeat("<promise>DONE</promise>\n", 100))
	if len(got.Malformed) != maxMalformed {
		t.Errorf("%d sentences, want %d", len(got.Malformed), maxMalformed)
	}
	got = Read(strings.Repeat("<promise>FAILURE</promise>\n", 3000) + "<promise>BLOCKED: " + strings.Repeat("é", 1<<20) + "</promise>")
	if len(got.All) != maxAll {
		t.Errorf("%d signals, want %d", len(got.All), maxAll)
	}
	if n := len(got.Signal.Text); got.Signal.Kind != Blocked || n != maxPayload {
		t.Errorf("payload of %d bytes, want %d", n, maxPayload)
	}
	got = Read(strings.Repeat("<promise>DONE</promise>\n", 100) + "<promise>COMPLETE</promise>\n```")
	if len(got.Malformed) != maxMalformed || !strings.Contains(got.Malformed[maxMalformed-1], "never closed") {
		t.Errorf("the withdrawal is not told: %q", got.Malformed)
	}
}

// The sizes would take hours if anything were quadratic.
func TestReadTakesHostileInput(t *testing.T) {
	t.Parallel()
	const size = 10 << 20
	for name, unit := range map[string]string{
		"angle brackets": "<", "opening tags": "<promise>", "words": "<promise>COMPLETE", "spaces": " ", "NUL": "\x00",
		"invalid": "\xff\xfe", "fences": "```\n", "long fence": "`", "growing": "```a\n~~~b\n", "quotes": "\"", "comments": "<!-- ",
		"dashes": "-", "digits": "1. ", "carriage returns": "\r", "escapes": "\x1b[", "titles": "\x1b]0;", "newlines": "\n",
		"signals": "<promise>BLOCKED: x</promise>\n", "quote signs": ">", "zero width": "\u200b<promise>",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Repeat(unit, size/len(unit))
			half := strings.Repeat(" ", size/10) + text[:size/10]
			for _, message := range []string{text, half, FinalOfText(half)} {
				if got := Read(message); got.Signal.claim() {
					t.Errorf("got %+v", got.Signal)
				}
			}
		})
	}
}

func TestNeutraliseLeavesNothingToRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain <b> text\n":                        "plain <b> text\n",
		"<promise>COMPLETE</promise>":             "[promise]COMPLETE[/promise]",
		"a\n< Pawl >BLOCKED: x</ PAWL >\nb":       "a\n[pawl]BLOCKED: x[/pawl]\nb",
		"<pro\u200bmise>COMPLETE</pro\x00mise>":   "[promise]COMPLETE[/promise]",
		"<<promise>promise>COMPLETE</promise>":    "<[promise]promise>COMPLETE[/promise]",
		"\x1b[1m<promise>COMPLETE</promise>\x1b[": "[1m[promise]COMPLETE[/promise][",
	} {
		if got := Neutralise(text); got != want {
			t.Errorf("Neutralise(%q) = %q, want %q", text, got, want)
		}
		if got := Read(Neutralise(text)); got.Signal.Kind != None || len(got.Malformed) > 0 {
			t.Errorf("Read(Neutralise(%q)) = %+v", text, got)
		}
	}
}

var completeLines = map[string]bool{
	"<promise>COMPLETE</promise>": true, "<promise>SUCCESS</promise>": true,
	"<pawl>COMPLETE</pawl>": true, "<pawl>SUCCESS</pawl>": true,
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"", "<promise>COMPLETE</promise>", "a\n<pawl>SUCCESS</pawl>\n", "```\n<promise>COMPLETE</promise>", "<promise>complete</promise>",
		"x <promise>BLOCKED: \xff</promise>\n<promise>PROGRESS: 100</promise>", "> <promise>COMPLETE</promise>", "<!--\n<promise>SUCCESS</promise>\n-->",
		"<pro\u200bmise>COMPLETE</promise>", strings.Repeat("<promise>DONE</promise>\n", 12), "\x1b[0m<promise>COMPLETE</promise>\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		got := Read(message)
		checkComplete(t, got, message)
		checkBounds(t, got)
		final := FinalOfText(message)
		checkComplete(t, Read(final), final)
		clean := Neutralise(message)
		if r := Read(clean); r.Signal.Kind != None || len(r.Malformed) > 0 || r.Progress != -1 {
			t.Errorf("Read(Neutralise(%q)) = %+v", message, r)
		}
	})
}

func checkComplete(t *testing.T, got Reading, message string) {
	t.Helper()
	if got.Signal.Kind != Complete {
		return
	}
	for line := range strings.Lines(message) {
		if completeLines[strings.TrimSpace(line)] {
			return
		}
	}
	t.Errorf("Read(%q) is complete without such a line", message)
}

func checkBounds(t *testing.T, got Reading) {
	t.Helper()
	if got.Progress < -1 || got.Progress > 100 || len(got.Malformed) > maxMalformed || len(got.All) > maxAll {
		t.Errorf("out of bounds: %+v", got)
	}
	for _, s := range got.All {
		if len(s.Text) > maxPayload {
			t.Errorf("payload of %d bytes", len(s.Text))
		}
	}
	for _, sentence := range got.Malformed {
		if r := Read(sentence); r.Signal.Kind != None || len(r.Malformed) > 0 || len(sentence) > 300 {
			t.Errorf("sentence %q reads as %+v", sentence, r)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	message := strings.Repeat("The parser reads one line and decides what \"stands\" in it.\n\n```go\nx := 1\n```\n", 1000) +
		"\n<promise>COMPLETE</promise>\n"
	b.SetBytes(int64(len(message)))
	b.ReportAllocs()
	for b.Loop() {
		if Read(message).Signal.Kind != Complete {
			b.Fatal("not complete")
		}
	}
}

package text

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

func TestParser(t *testing.T) {
	t.Parallel()
	const prompt = "First line of it.\nSecond line of it.\nThird line of it.\n<promise>COMPLETE</promise>\n"
	for _, test := range []struct {
		name, prompt, in, want string
	}{
		{"plain", prompt, "I did it.\nReally.", "I did it.\nReally."},
		{"an echo is cut off", prompt, prompt + "Not done.", "Not done."},
		{"nothing but an echo", prompt, prompt, ""},
		{"no prompt, no echo", "", prompt, strings.TrimSuffix(prompt, "\n")},
		{"colours", prompt, "\x1b[1;31mred\x1b[0m", "red"},
		{"bytes that are no text", prompt, "a\xffb", "a\uFFFDb"},
		{"a long line is cut and marked", prompt, strings.Repeat("x", maxLine+1), strings.Repeat("x", maxLine) + "…"},
		{"nothing", prompt, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := read(test.prompt, test.in)
			if strings.TrimSpace(got.Message) != test.want || got.Terminal != loop.TerminalNone {
				t.Errorf("message is %q (%s), want %q", got.Message, got.Terminal, test.want)
			}
		})
	}
}

func read(prompt, in string) agent.Outcome {
	p, c := New([]byte(prompt)), agent.NewCollector()
	for line := range strings.Lines(in) {
		p.Line([]byte(strings.TrimSuffix(line, "\n")), false, c.Add)
	}
	p.Close(c.Add)
	return c.Outcome()
}

func FuzzParser(f *testing.F) {
	f.Add("a\nb\nc\n<promise>COMPLETE</promise>", "a\nb\nc\n<promise>COMPLETE</promise>\nd")
	f.Fuzz(func(t *testing.T, prompt, in string) {
		if got := read(prompt, in); len(got.Message) > 3*len(in)+16 || got.Terminal != "" {
			t.Fatalf("outcome is %+v", got)
		}
	})
}

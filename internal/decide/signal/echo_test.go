package signal

import (
	"strings"
	"testing"
)

// A user's own prompt names a signal, which nobody can forbid.
const prompt = `# OODA Loop Iteration

## OBSERVE
Look at the plan.

## ACT
Do one thing. When the plan has nothing left, and only then, print exactly
<promise>COMPLETE</promise>
Then stop.

## COMPLETION
Commit your work.
`

func TestStripEcho(t *testing.T) {
	t.Parallel()
	const done = "<promise>COMPLETE</promise>\n"
	for _, test := range []struct{ name, output, want string }{
		{"no echo", "I looked.\n" + done, "I looked.\n" + done},
		{"empty", "", ""},
		{"exact", prompt + "I looked.\n", "I looked.\n"},
		{"own line behind it", prompt + "I looked.\n" + done, "I looked.\n" + done},
		{"own line right behind it", prompt + done, done},
		{"something before it", "agent v1\n\n" + prompt + "I looked.\n", "agent v1\n\nI looked.\n"},
		{"twice", prompt + "\n" + prompt + done, done},
		{"white space", strings.ReplaceAll(prompt, "\n", "  \r\n") + "I looked.\n", "I looked.\n"},
		{"quoted", "> " + strings.ReplaceAll(prompt, "\n", "\n> ") + "\nI looked.\n", "> \nI looked.\n"},
		{"boxed", "│ " + strings.ReplaceAll(prompt, "\n", "\n│ ") + "\nI looked.\n", "│ \nI looked.\n"},
		{"coloured", "\x1b[2m" + strings.ReplaceAll(prompt, "\n", "\x1b[0m\n\x1b[2m") + "\x1b[0m\nI looked.\n", "\x1b[2m\x1b[0m\nI looked.\n"},
		{"without blank lines", strings.ReplaceAll(prompt, "\n\n", "\n") + "I looked.\n", "I looked.\n"},
		{"a label on its first line", "user: " + prompt + "I looked.\n", "user: # OODA Loop Iteration\n\nI looked.\n"},
		{"its end only", "print exactly\n" + done + "Then stop.\n\n## COMPLETION\nI looked.\n", "print exactly\nI looked.\n"},
		{"two lines of it", "You say:\n" + done + "Then stop.\nI looked.\n", "You say:\nThen stop.\nI looked.\n"},
		{
			"wrapped",
			"Do one thing. When the plan has nothing left,\nand only then, print exactly\n" + done + "Then\nstop.\n",
			"Do one thing. When the plan has nothing left,\nand only then, print exactly\nThen\nstop.\n",
		},
		{"two lines without a signal", "## ACT\nLook at the plan.\n\n## ACT\nI looked.\n", "## ACT\nLook at the plan.\n\n## ACT\nI looked.\n"},
		{"another signal among its lines", "## ACT\n<promise>BLOCKED: x</promise>\nThen stop.\n", "## ACT\n<promise>BLOCKED: x</promise>\nThen stop.\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := StripEcho(test.output, prompt); got != test.want {
				t.Errorf("StripEcho(%q)\n got %q\nwant %q", test.output, got, test.want)
			}
		})
	}
}

func TestStripEchoOfAShortPrompt(t *testing.T) {
	t.Parallel()
	const line = "<promise>COMPLETE</promise>\n"
	for _, test := range []struct{ name, output, prompt, want string }{
		{"one line", line + line, line, line},
		{"one line, not there", "a\nb\n", "c\n", "a\nb\n"},
		{"two lines", "Do it:\n" + line + line, "Do it:\n" + line, line},
		{"no prompt", line, "", line},
		{"a blank prompt", line, " \n\n", line},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := StripEcho(test.output, test.prompt); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestStripEchoTakesHostileInput(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	for name, unit := range map[string]string{
		"one line": "x", "same lines": "a\n", "signals": "<promise>COMPLETE</promise>\n", "words": "a ", "blank": "\n", "quotes": ">", "invalid": "\xff\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Repeat(unit, size/len(unit))
			if got := StripEcho(text, text); strings.Trim(got, ">\n") != "" {
				t.Errorf("%d bytes are left of a whole echo", len(got))
			}
			if got := StripEcho(text, prompt); got != text {
				t.Errorf("%d bytes are left of %d", len(got), len(text))
			}
		})
	}
}

// FuzzStripEcho: an echo alone never leaves a signal, whatever is around it
// is kept in order, and the agent's own claim behind it stays.
func FuzzStripEcho(f *testing.F) {
	f.Add(prompt, "I looked.")
	f.Add("a\n<promise>COMPLETE</promise>\nb", "<promise>COMPLETE</promise>")
	f.Add("<promise>COMPLETE</promise>", "")
	f.Add("> a\n\x1b[1m\n|\n", "x\ny\nz")
	f.Fuzz(func(t *testing.T, prompt, own string) {
		if got := StripEcho(prompt, prompt); Read(got).Signal.claim() {
			t.Errorf("the echo of %q leaves %q", prompt, got)
		}
		got := StripEcho(own, prompt)
		rest := own
		for line := range strings.Lines(got) {
			_, after, ok := strings.Cut(rest, strings.TrimSuffix(line, "\n"))
			if !ok {
				t.Fatalf("StripEcho(%q, %q) = %q is no part of it", own, prompt, got)
			}
			rest = after
		}
	})
}

func BenchmarkStripEcho(b *testing.B) {
	long := strings.Repeat(prompt, 1000)
	output := long + strings.Repeat("The agent changes a line.\n", 20000)
	b.SetBytes(int64(len(output)))
	for b.Loop() {
		if StripEcho(output, long) == output {
			b.Fatal("no echo")
		}
	}
}

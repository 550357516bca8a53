package failure

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHostileOutputs: whatever stands in front of it, what a tool says at the
// end is found, and none of the noise alone is a reason to try again.
func TestHostileOutputs(t *testing.T) {
	t.Parallel()
	const size = 10 << 20
	every := make([]byte, 0, 256)
	for i := range 256 {
		every = append(every, byte(i))
	}
	for name, pattern := range map[string]string{
		"one line":             "lorem ipsum ",
		"one word":             "a",
		"one line of numbers":  "401 429 503 137 ",
		"control characters":   "\x00\x01\x02\x07\b\v\f\x1a\x7f",
		"every byte":           string(every),
		"no UTF-8":             "\xff\xfe\xc0\x80\xed\xa0\x80",
		"half a rune":          "\xe2\x80",
		"colors":               "\x1b[38;5;246m\x1b[1;4;7m.\x1b[0m",
		"unfinished sequences": "\x1b[",
		"unfinished strings":   "\x1b]8;;\x1bP",
		"carriage returns":     "10 %\r",
		"names of files":       "src/timeout/rate_limit/permission-denied/out-of-memory.c connection-refused/errTooManyRequests.go\n",
		"settings":             "rate_limit = 429\nRATE_LIMIT=503\n  --timeout duration   give up: request timed out\n",
		"passing tests":        "--- PASS: TestRateLimit (0.00s)\nok 1 - connection refused\n✔ permission denied\n",
		"brackets":             "{[(<",
		"half an event":        `{"type":"result","result":"`,
		"nested events":        `{"type":"result","is_error":true,"result":{"a":`,
		"blank lines":          "\n",
		"places":               "a.b:1:1 ",
		"blocks of code":       "```\nrate limit exceeded\n```\n",
		"a difference":         "@@ -1 +1 @@\n-permission denied\n+connection refused\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			noise := strings.Repeat(pattern, size/len(pattern))
			alone := Analyse(Evidence{Source: "gate", Name: "step", ExitCode: 1, Output: noise, Now: labelledAt})
			check(t, alone)
			if alone.Transient {
				t.Errorf("alone it is tried again: %s, %q", alone.Class, alone.Summary)
			}
			said := "\n--- FAIL: TestTotal (0.00s)\n    cart_test.go:9: total = 3, want 4\nFAIL\n"
			a := Analyse(Evidence{Source: "gate", Name: "step", ExitCode: 1, Output: noise + said, Now: labelledAt})
			check(t, a)
			if a.Class != TestFailure || a.Transient {
				t.Errorf("before a failed test it is %s: %q", a.Class, a.Summary)
			}
			if s := InformativeLines(noise+said, 2000); !strings.Contains(s, "total = 3, want 4") || len(s) > 2000 {
				t.Errorf("telling leaves the failed test out: %q", s[:min(len(s), 200)])
			}
			if utf8.ValidString(noise) && !utf8.ValidString(a.Summary) {
				t.Errorf("the summary is cut within a rune: %q", a.Summary)
			}
		})
	}
}

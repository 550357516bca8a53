package failure

import (
	"strings"
	"testing"
)

// An agent is told what to do where the lines of the output do not say it; what is a
// person's to do is not said to it.
func TestAdviceForAgents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ output, want string }{
		{"> blog@1.0.0 lint\n> eslint .\n\nsh: 1: eslint: not found\n", "npm ci"},
		{"error: externally-managed-environment\n\n× This environment is externally managed\n", "python3 -m venv"},
		{"sh: 1: cargo: not found\n", ""},
		{"a_test.go:9: got 4, want 3\n--- FAIL: TestA (0.00s)\nFAIL\n", ""},
	} {
		a := Analyse(Evidence{Source: "gate", Name: "lint", ExitCode: 1, Output: c.output})
		if got := a.Advice(); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%q: %q, want %q", c.output, got, c.want)
		}
	}
}

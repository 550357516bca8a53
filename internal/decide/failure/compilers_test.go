package failure_test

import (
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

// What a compiler or a linter says over several lines is one item, with its place.
func TestProblemsOfSeveralLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, output string
		class        failure.Class
		want         string // place and message of the first item
	}{
		{"rustc", "error[E0425]: cannot find value `door` in this scope\n --> src/main.rs:3:5\n  |\n3 |     door;\n  |     ^^^^ not found in this scope\n\n" +
			"error: could not compile `house` (bin \"house\") due to 1 previous error\n",
			failure.CompileError, "src/main.rs:3:5 error[E0425]: cannot find value `door` in this scope"},
		{"eslint", "\n/repo/src/a.js\n  3:7  error  'door' is assigned a value but never used  no-unused-vars\n\n✖ 1 problem (1 error, 0 warnings)\n",
			failure.Lint, "/repo/src/a.js:3:7 error 'door' is assigned a value but never used no-unused-vars"},
	} {
		a := failure.Analyse(failure.Evidence{Source: "gate", Name: "build", ExitCode: 1, Output: c.output})
		if a.Class != c.class || len(a.Items) != 1 {
			t.Errorf("%s: %s, %+v", c.name, a.Class, a.Items)
			continue
		}
		i := a.Items[0]
		if got := fmt.Sprintf("%s:%d:%d %s", i.File, i.Line, i.Column, i.Message); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

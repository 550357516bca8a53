package failure_test

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

// What people paste has no summary: the file, what was expected and what came are read all the same.
func TestExcerpt(t *testing.T) {
	a := failure.Analyse(failure.Evidence{Source: "gate", Name: "tests", ExitCode: 1,
		Output: "FAIL src/auth/login.test.ts\nExpected: token to contain userId\nReceived: undefined\n"})
	if a.Class != failure.TestFailure || len(a.Items) == 0 {
		t.Fatalf("%s %+v", a.Class, a.Items)
	}
	i := a.Items[0]
	if i.File != "src/auth/login.test.ts" || i.Expected != "token to contain userId" || i.Received != "undefined" {
		t.Errorf("%+v", i)
	}
}

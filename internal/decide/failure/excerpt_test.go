package failure_test

import (
	"reflect"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

// What people paste has no summary: the file, what was expected and what came
// are read all the same.
func TestExcerpts(t *testing.T) {
	for _, c := range []struct {
		name, output string
		want         []failure.Item
	}{
		{"the document's", "FAIL src/auth/login.test.ts\nExpected: token to contain userId\nReceived: undefined\n", []failure.Item{{
			File: "src/auth/login.test.ts", Expected: "token to contain userId", Received: "undefined",
			Message: "Expected: token to contain userId\nReceived: undefined",
		}}},
		{"two of one file", "FAIL a.test.ts\n  ● adds\n    Expected: 3\n    Received: 4\n  ● divides\n    Expected: 1\n    Received: 0\n", []failure.Item{
			{File: "a.test.ts", Test: "adds", Expected: "3", Received: "4", Message: "Expected: 3\nReceived: 4"},
			{File: "a.test.ts", Test: "divides", Expected: "1", Received: "0", Message: "Expected: 1\nReceived: 0"},
		}},
		{"pytest", "FAILED tests/test_add.py::test_add\nexpected: 3\nactual: 4\n", []failure.Item{{
			File: "tests/test_add.py", Test: "test_add", Expected: "3", Received: "4", Message: "expected: 3\nactual: 4",
		}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := failure.Analyse(failure.Evidence{Source: "gate", Name: "tests", ExitCode: 1, Output: c.output})
			if a.Class != failure.TestFailure || !reflect.DeepEqual(a.Items, c.want) {
				t.Errorf("%s %+v\nwant %+v", a.Class, a.Items, c.want)
			}
		})
	}
}

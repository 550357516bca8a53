package gate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/do/gate"
)

// The summary of a report is one line: what is red, else how far it came.
func TestSummaries(t *testing.T) {
	t.Parallel()
	red := gate.Exec{ExitCode: 1, Output: "a.go:3:1: undefined: b"}
	for _, c := range []struct {
		name string
		does []gate.Exec
		err  error // of the one after them
		want string
	}{
		{"all pass", []gate.Exec{{}, {}}, nil, "2 of 2 gates passed"},
		{"stopped", []gate.Exec{{}, {Stopped: true}}, nil, "1 of 2 gates passed, then stopped"},
		{"not to be run", []gate.Exec{{}}, errors.New("no such folder"), "second: no such folder"},
		{"red", []gate.Exec{{}, red}, nil, "second: compile error: a.go:3: undefined: b"},
	} {
		specs := []gate.Spec{{Name: "first", Command: "true", Required: true}, {Name: "second", Command: "true", Required: true}}
		r, err := gate.Verify(t.Context(), specs, func(_ context.Context, n int, _ gate.Spec) (gate.Exec, error) {
			if n == len(c.does) {
				return gate.Exec{}, c.err
			}
			return c.does[n], nil
		}, time.Now)
		if r.Summary != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v; want %q", c.name, r.Summary, err, c.want)
		}
	}
}

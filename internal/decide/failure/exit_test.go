package failure_test

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

// Where nothing was printed, the exit status or the signal says what happened,
// and only what a kill from outside did is worth another try.
func TestSilentEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal    string
		exit      int
		class     failure.Class
		transient bool
	}{
		{"", 1, failure.Unknown, false},
		{"", 124, failure.Timeout, true},
		{"", 126, failure.Permission, false},
		{"", 127, failure.MissingCommand, false},
		{"", 137, failure.Crash, true},
		{"", 247, failure.Crash, true},
		{"", 132, failure.Crash, false},
		{"", 134, failure.Crash, false},
		{"", 135, failure.Crash, false},
		{"", 136, failure.Crash, false},
		{"", 138, failure.Crash, false},
		{"", 139, failure.Crash, false},
		{"killed", -1, failure.Crash, true},
		{"segmentation fault", -1, failure.Crash, false},
		{"terminated", -1, failure.Unknown, false},
		{"interrupt", -1, failure.Unknown, false},
		{"hangup", -1, failure.Unknown, false},
	} {
		a := failure.Analyse(failure.Evidence{Source: "gate", Name: "tests", ExitCode: c.exit, Signal: c.signal})
		if a.Class != c.class || a.Transient != c.transient {
			t.Errorf("exit %d %q: %s, transient %v; want %s, %v", c.exit, c.signal, a.Class, a.Transient, c.class, c.transient)
		}
	}
}

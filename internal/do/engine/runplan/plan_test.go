package runplan

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// A limit of time that no strategy can raise is told as pawl's own.
func TestTimeUp(t *testing.T) {
	t.Parallel()
	plan := Plan{Safety: "normal", Policy: loop.Policy{Timeouts: loop.Timeouts{IterationTimeout: time.Minute}, IterationCeiling: time.Minute}}
	for _, c := range []struct {
		wall, ceiling time.Duration
		want          string
	}{
		{time.Minute, time.Minute, "the safety level normal allows an iteration 1m0s"},
		{15 * time.Millisecond, time.Hour, "the rest of the run's time, 15ms"},
		{time.Minute, time.Hour, ""},
		{2 * time.Minute, time.Hour, ""},
	} {
		plan.Policy.IterationCeiling = c.ceiling
		f := plan.FailureOfTime(c.wall)
		switch {
		case f == nil && c.want != "", f != nil && c.want == "":
			t.Errorf("%v: %+v", c.wall, f)
		case f == nil:
		case f.Class != failure.LimitExceeded || f.Transient || !strings.Contains(f.Summary, c.want):
			t.Errorf("%v: %s %q", c.wall, f.Class, f.Summary)
		}
	}
}

// The first gate that the safety level forbids is named, by its command where it has no
// name.
func TestRefusedGate(t *testing.T) {
	t.Parallel()
	good, bad := gate.Spec{Name: "tests", Command: "go test ./..."}, gate.Spec{Name: "wipe", Command: "rm -rf /"}
	unnamed := gate.Spec{Command: bad.Command}
	for _, c := range []struct {
		gates []gate.Spec
		want  string
	}{
		{nil, ""}, {[]gate.Spec{good}, ""}, {[]gate.Spec{good, bad, unnamed}, "wipe"}, {[]gate.Spec{unnamed, bad}, "rm -rf /"},
	} {
		name, f, refused := Plan{Safety: sandbox.Normal, Judging: Judging{Gates: c.gates}}.RefusedGate()
		if name != c.want || refused != (c.want != "") || refused && f.Pattern == "" {
			t.Errorf("of %v the gate %q is refused (%v) by %+v, want %q", c.gates, name, refused, f, c.want)
		}
	}
}

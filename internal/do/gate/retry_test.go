package gate

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// A gate that could not judge runs again, three times at most; one that did judge
// does not, and what passes after that is known to be flaky.
func TestAGateThatCouldNotJudgeRunsAgain(t *testing.T) {
	t.Parallel()
	refused := Exec{ExitCode: 1, Output: "dial tcp 127.0.0.1:5432: connect: connection refused"}
	killed, red, green := Exec{ExitCode: -1, Signal: "killed"}, Exec{ExitCode: 1, Output: "a.go:3: undefined: x"}, Exec{}
	for name, c := range map[string]struct {
		ends    []Exec
		retries int
		runs    int
		passes  bool
	}{
		"refused twice":       {[]Exec{refused, refused, green}, 2, 3, true},
		"killed once":         {[]Exec{killed, green}, 2, 2, true},
		"refused all along":   {[]Exec{refused, refused, refused, green}, 2, 3, false},
		"no retries":          {[]Exec{refused, green}, 0, 1, false},
		"red":                 {[]Exec{red, green}, 2, 1, false},
		"its time was over":   {[]Exec{{ExitCode: -1, Signal: "killed", TimedOut: true}, green}, 2, 1, false},
		"refused, then red":   {[]Exec{refused, red, green}, 2, 2, false},
		"stopped by a person": {[]Exec{{ExitCode: -1, Signal: "killed", Stopped: true}, green}, 2, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				rep, err := Verify(t.Context(), []Spec{{Name: "db", Required: true, Retries: c.retries}}, func(context.Context, int, Spec) (Exec, error) {
					runs++
					return c.ends[runs-1], nil
				}, time.Now)
				if err != nil || runs != c.runs || rep.Passed() != c.passes {
					t.Fatalf("it ran %d times and is %s: %v", runs, rep.Gates[0].Status, err)
				}
				flaky := strings.Contains(strings.Join(rep.Warnings, ""), "gate db is flaky")
				if want := runs > 1 && rep.Gates[0].Status == loop.GatePassed; flaky != want || rep.Gates[0].Flaky() != want {
					t.Errorf("told %q, %+v", rep.Warnings, rep.Gates[0])
				}
			})
		})
	}
}

// A gate that runs for long is named.
func TestSlowText(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 26, 23, 58, 1, 0, time.Local)
	got := SlowText(Spec{Name: "all", Timeout: 5 * time.Minute}, since)
	if want := "gate all has run since 23:58:01, and has time until 00:03:01"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

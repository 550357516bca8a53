package gate

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/process"
)

// A required gate that could not judge runs again before anybody is blamed or
// paid: one that a signal ended, or that is red with a class that passes by
// itself, such as a connection that was refused.

// Retries is how often a command runs again that nobody set a number for.
const Retries = 2

const firstWait = time.Second // doubles twice with each

// runAgain runs a command until it could judge, and says how often it ran.
func runAgain(ctx context.Context, i int, s Spec, run Run, now func() time.Time) (e Exec, tries int, err error) {
	for wait := firstWait; ; wait *= 4 {
		e, err = run(ctx, i, s)
		tries++
		if err != nil || tries > s.Retries || !shaky(s, e, now()) || !process.Sleep(ctx, wait) {
			return e, tries, err
		}
	}
}

// shaky is true for a required gate that could not judge.
func shaky(s Spec, e Exec, now time.Time) bool {
	ended := e.Stopped || e.TimedOut || e.NotStarted != "" || len(e.Tampered) > 0
	if !s.Required || ended {
		return false
	}
	var g loop.Gate
	judge(&g, s, e)
	return g.Status != loop.GatePassed && (e.Signal != "" || analyse(&g, s, e, now).Transient)
}

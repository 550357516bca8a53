package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// What an agent reports counts for the day once, what the gateway counted not
// again; an agent that the day's rest ended waits for the next day.
func TestDayOfAgents(t *testing.T) {
	t.Parallel()
	limit := loop.MicroUSD(1_000_000)
	s := &session{plan: runplan.Plan{Bounds: runplan.Bounds{Day: loop.DayLimits{Cost: &limit}}}}
	s.o.Accounts = ratelimit.NewStore(t.TempDir())
	w := newWorker(s)
	through := runplan.Agent{Routes: []agent.Route{{Name: "anthropic"}}}
	within := func(a runplan.Agent, cost, want loop.MicroUSD) {
		t.Helper()
		l := supervisor.Limits{Cost: cost}
		if w.LowerToDay(a, &l); l.Cost != want {
			t.Errorf("of %d an agent may cost %d, want %d", cost, l.Cost, want)
		}
	}
	ended := func(job supervisor.Job, cost loop.MicroUSD) loop.Exit {
		res := supervisor.Result{Exit: loop.Exit{Ended: loop.EndedCost}, Agent: agent.Outcome{Cost: cost}}
		w.Spend(job, &res)
		return res.Exit
	}
	within(runplan.Agent{}, 0, 1_000_000)
	within(runplan.Agent{}, 300_000, 300_000)
	if got := ended(supervisor.Job{Parser: "json"}, 900_000); got.Ended != loop.EndedCost {
		t.Errorf("with room in the day it ended %+v", got)
	}
	within(runplan.Agent{}, 300_000, 100_000)
	within(through, 300_000, 300_000)
	within(through, 0, 0)
	ended(supervisor.Job{Parser: "json", Gateway: &agent.Gateway{}}, 900_000)
	within(runplan.Agent{}, 300_000, 100_000)
	got := ended(supervisor.Job{Parser: "json"}, 150_000)
	if got.Ended != loop.EndedDay || !strings.Contains(got.Why, "limits.per_day of $1.00 is reached (all runs have spent $1.05 today)") {
		t.Errorf("with the day over it ended %+v", got)
	}
	f := ending.FailureOfDay(got.Why, time.Now())
	r := loop.Record{Exit: got, Failure: f}
	if r.Judge() != loop.Waited || !f.WaitUntil.Equal(ratelimit.NextDay(time.Now())) {
		t.Errorf("it is judged %s, and waits until %v", r.Judge(), f.WaitUntil)
	}
}

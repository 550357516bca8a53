package engine

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/ratelimit"
	"github.com/pawl-dev/pawl/internal/supervisor"
)

// This file holds limits.per_day for agents that do not go through the gateway,
// and waits for the next day where it is reached. Who counts is the gateway for
// its calls, and [worker.spent] for all others.

// dayPrint is the fingerprint of a failure by limits.per_day.
const dayPrint = "limit-day"

// today is what all runs of the user have spent; over says in words that
// limits.per_day has no room, "" while it has.
func (w *worker) today(now time.Time) (spent loop.MicroUSD, over string) {
	l := w.plan.PerDay
	if l == nil || w.o.Accounts.Dir() == "" {
		return 0, ""
	}
	spent, err := ratelimit.Spend(w.o.Accounts.Dir(), 0, now)
	if err != nil {
		return 0, "limits.per_day cannot be held: " + err.Error()
	}
	if spent >= *l {
		return spent, fmt.Sprintf("limits.per_day of %s is reached (all runs have spent %s today)", l, spent)
	}
	return spent, ""
}

// withinDay is the limit of an agent's cost, or less when the day has no room for
// it. The gateway itself holds the day.
func (w *worker) withinDay(a Agent, cost loop.MicroUSD) loop.MicroUSD {
	if w.plan.PerDay == nil || len(a.Routes) > 0 {
		return cost
	}
	spent, _ := w.today(time.Now())
	left := max(1, *w.plan.PerDay-spent) // 0 is no limit
	if cost == 0 {
		return left
	}
	return min(cost, left)
}

// spent books what a job cost that the gateway did not count. One that the day's
// rest ended has reached the day's limit.
func (w *worker) spent(job supervisor.Job, res *supervisor.Result) {
	if job.Parser == "" || job.Gateway != nil || w.o.Accounts.Dir() == "" {
		return
	}
	if cost := res.Agent.Cost; cost > 0 {
		_, err := ratelimit.Spend(w.o.Accounts.Dir(), cost, time.Now())
		w.logLimit(err)
	}
	if res.Exit.Ended != loop.EndedCost {
		return
	}
	if _, day := w.today(time.Now()); day != "" {
		res.Exit.Ended, res.Exit.Why = loop.EndedDay, day
	}
}

// dayFailure is the failure of an agent that limits.per_day ended. It waits like
// one of a provider.
func dayFailure(why string, now time.Time) *failure.Analysis {
	return &failure.Analysis{
		Class: failure.QuotaExhausted, Kind: failure.Transient, Provider: true, Severity: failure.Medium,
		Summary: line(why), Fingerprint: dayPrint, WaitUntil: ratelimit.NextDay(now),
		Actions: []string{"Wait for the next day, or raise limits.per_day."},
	}
}

// Package providerlimit holds the agents of one run to the limits of their providers and of
// the day, which all runs of a user share: what is known of them goes to the kernel with each
// event, and what a call showed of them is kept. All of it may fail; then the run goes on as
// if it were the only one.
package providerlimit

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// Limits are those of a run's agents. Several goroutines may call Refusal and Record; one at a
// time calls the rest.
type Limits struct {
	Plan     *runplan.Plan
	Accounts *ratelimit.Store // nil shares none
	Run      string
	Self     process.Identity
	Log      *slog.Logger

	known   map[string]ratelimit.Limit // by agent, as the kernel has them
	probe   probe
	longest time.Duration // what the wait that it began in was to last, at most; 0 is any time
}

// limitEvery is how soon a waiting run notices that another one's try succeeded.
const limitEvery = 250 * time.Millisecond

// probe is a try that other runs wait for.
type probe struct {
	key   string
	began time.Time
}

// Known are the limits that are known of the plan's agents, by name.
func (w *Limits) Known(now time.Time) []loop.Limited {
	var list []loop.Limited
	w.known = map[string]ratelimit.Limit{}
	_, day := w.UseToday(now)
	for name := range w.Plan.Agents {
		if day != "" {
			list = append(list, loop.Limited{
				Agent: name, Day: day, Class: failure.QuotaExhausted, Until: ratelimit.NextDay(now), Named: true,
			})
			continue
		}
		l, ok := w.Accounts.Look(w.accountOfAgent(name), now)
		if !ok {
			continue
		}
		w.known[name] = l
		list = append(list, w.limitForKernel(name, l, now))
	}
	slices.SortFunc(list, func(a, b loop.Limited) int { return strings.Compare(a.Agent, b.Agent) })
	return list
}

// limitForKernel is a limit of an agent as the kernel sees it.
func (w *Limits) limitForKernel(name string, l ratelimit.Limit, now time.Time) loop.Limited {
	one := loop.Limited{Agent: name, Class: l.Class, Until: l.Until, Named: l.Named, Times: l.Times, Day: l.Why}
	if l.Run != w.Run {
		one.Run = l.Run
	}
	if until, other := l.BlockedUntil(w.Run, now); other != "" {
		one.Until, one.Probe = until, other
	}
	return one
}

// Acquire asks whether the agent of c may be called now. After a limit it may
// be this run's call that shows whether that is over.
func (w *Limits) Acquire(ctx context.Context, c loop.Command) bool {
	key := w.accountOfAgent(c.Agent)
	began := time.Now()
	if _, day := w.UseToday(began); day != "" {
		return false
	}
	try, throttled := w.Accounts.Acquire(ctx, key, w.Run, w.Self, c.Insist)
	if try {
		w.probe = probe{key, began}
	}
	return !throttled
}

// stillBlocked is true while the limit is as it was.
func (w *Limits) stillBlocked(key string, began ratelimit.Limit) bool {
	now := time.Now()
	l, ok := w.Accounts.Look(key, now)
	until, _ := l.BlockedUntil(w.Run, now)
	return ok && l.Same(&began) && !until.IsZero()
}

// RecordEnd keeps what an attempt, or a review, showed of its provider's limits.
func (w *Limits) RecordEnd(ctx context.Context, e loop.Event, c loop.Command) {
	var m ratelimit.Meeting
	var ended loop.Ended
	var f *failure.Analysis
	var name string
	r, v := e.Record, e.Review
	switch {
	case r != nil && r.Steps != nil:
		// The limit of a step's agent, where only the kernel has said how long it is
		// waited for. The others were recorded when their step ended.
		f, name = r.Failure, r.Steps.Limited
		if f != nil && name != "" && f.WaitUntil.IsZero() && !strings.HasPrefix(f.Fingerprint, knownLimit) {
			m.Began = r.StartedAt
			if c.Kind == loop.Wait {
				m.Until = c.Until
			}
			w.Record(ctx, name, m, r.Exit.Ended, f)
		}
		w.GiveUp(ctx)
		return
	case r != nil:
		name, m.Began, ended, f = r.Agent, r.StartedAt, r.Exit.Ended, r.Failure
	case v != nil:
		name, m.Began, ended, f = v.Agent, e.At.Add(-v.Elapsed), v.Ended, v.Failure
	default:
		return
	}
	if c.Kind == loop.Wait && c.Agent == name {
		m.Until = c.Until
	}
	w.Record(ctx, name, m, ended, f)
	w.probe = probe{}
	delete(w.known, name)
	if l, ok := w.Accounts.Look(w.accountOfAgent(name), time.Now()); ok {
		w.known[name] = l
	}
}

// knownLimit begins the fingerprint of a step whose agent was not called.
const knownLimit = "known-limit-"

// Record keeps what a call of an agent showed of a limit. m.Until is how
// long one is waited for of which the provider did not say when it is over.
func (w *Limits) Record(ctx context.Context, name string, m ratelimit.Meeting, ended loop.Ended,
	f *failure.Analysis) {
	key := w.accountOfAgent(name)
	cut := ended == loop.EndedStop || ended == loop.EndedLost || ended == loop.EndedLease
	notBegun := f != nil && f.Fingerprint == ending.CannotStart
	ownLimit := f != nil && f.Fingerprint == ending.DayFingerprint
	switch {
	case ownLimit: // no provider's
		w.logLimit(w.Accounts.Release(ctx, key, w.Run))
	case f != nil && f.Provider && f.Kind == failure.Transient && stopsEveryRun(f.Class):
		m.Run, m.Class = w.Run, f.Class
		if m.Named = f.WaitUntil.After(time.Now()); m.Named {
			m.Until = f.WaitUntil
		}
		w.logLimit(w.Accounts.Record(ctx, key, m))
	case cut || notBegun:
		w.logLimit(w.Accounts.Release(ctx, key, w.Run))
	default:
		w.logLimit(w.Accounts.Clear(ctx, key, m.Began))
	}
}

// stopsEveryRun reports whether limits of a class stop every run alike.
func stopsEveryRun(c failure.Class) bool {
	return slices.Contains([]failure.Class{
		failure.RateLimit, failure.QuotaExhausted, failure.ServiceUnavailable, failure.Network, failure.Timeout,
	}, c)
}

// GiveUp lets others try when this run does not come to it.
func (w *Limits) GiveUp(ctx context.Context) {
	if w.probe.key != "" {
		w.logLimit(w.Accounts.Release(ctx, w.probe.key, w.Run))
		w.probe = probe{}
	}
}

// The limits of a day: the gateway counts its own calls and refuses them. For all other
// agents [Limits.Spend] counts, and the run waits for the next day.

// UseToday adds up what all runs of the user have used today. over names, in words, the
// limit of the day that has no room; "" while all have.
func (w *Limits) UseToday(now time.Time) (used loop.Use, over string) {
	if w.Plan.Day.None() || w.Accounts.Dir() == "" {
		return used, ""
	}
	used, err := ratelimit.Spend(w.Accounts.Dir(), loop.Use{}, now)
	if err != nil {
		return used, "cannot check limits.per_day: " + err.Error()
	}
	if limit, words := w.Plan.Day.Over(used, loop.Use{}); limit != "" {
		return used, limit + " is reached (" + words + ")"
	}
	return used, ""
}

// LowerToDay lowers the limits of an agent to what the day has room for. The gateway
// itself holds the day.
func (w *Limits) LowerToDay(a runplan.Agent, l *supervisor.Limits) {
	day := w.Plan.Day
	if day.None() || len(a.Routes) > 0 {
		return
	}
	used, _ := w.UseToday(time.Now())
	if day.Cost != nil {
		l.Cost = lowerLimit(l.Cost, *day.Cost-used.Cost)
	}
	if day.Tokens != nil {
		l.Tokens = lowerLimit(l.Tokens, *day.Tokens-used.Tokens)
	}
	if day.Calls != nil {
		l.Calls = lowerLimit(l.Calls, int(*day.Calls-used.Calls))
	}
}

// lowerLimit is a limit, of which 0 is none, or what is left of another one where that is less.
func lowerLimit[N int | int64 | loop.MicroUSD](limit, left N) N {
	left = max(1, left)
	if limit == 0 {
		return left
	}
	return min(limit, left)
}

// Spend books what a job used that the gateway did not count. One that the day's
// rest ended has reached the day's limit.
func (w *Limits) Spend(job supervisor.Job, res *supervisor.Result) {
	if job.Parser == "" || job.Gateway != nil || w.Accounts.Dir() == "" {
		return
	}
	a := &res.Agent
	used := loop.Use{Cost: a.Cost, Tokens: a.Usage.Tokens(), Calls: int64(a.Calls)}
	if used != (loop.Use{}) {
		_, err := ratelimit.Spend(w.Accounts.Dir(), used, time.Now())
		w.logLimit(err)
	}
	switch res.Exit.Ended {
	case loop.EndedCost, loop.EndedTokens, loop.EndedCalls:
	default:
		return
	}
	if _, day := w.UseToday(time.Now()); day != "" {
		res.Exit.Ended, res.Exit.Why = loop.EndedDay, day
	}
}

func (w *Limits) accountOfAgent(name string) string { return w.Plan.Agents[name].Account }

// Answered lets the other runs go on as soon as a model answered: the rest of the iteration
// may take an hour.
func (w *Limits) Answered(ctx context.Context, e agent.Event) {
	counted := e.Kind == agent.UsageSeen && !e.Estimate && e.Usage.Output > 0
	answered := e.Kind == agent.ToolStart || counted
	if answered && w.probe.key != "" {
		w.logLimit(w.Accounts.Clear(ctx, w.probe.key, w.probe.began))
		w.probe = probe{}
	}
}

// WaitAtMost bounds the next wait, which an earlier pawl began.
func (w *Limits) WaitAtMost(longest time.Duration) { w.longest = longest }

// SavePlan keeps what an agent said of its subscription.
func (w *Limits) SavePlan(name string, res supervisor.Result) {
	w.logLimit(w.Accounts.SavePlan(w.accountOfAgent(name), name, res.Agent.Plan, ending.EndOf(res)))
}

// Await carries out a wait. It ends early when what is known of the limit
// changes; then the kernel decides anew.
func (w *Limits) Await(ctx context.Context, c loop.Command) {
	left := time.Until(c.Until)
	if w.longest > 0 {
		left, w.longest = min(left, w.longest), 0
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	key := w.accountOfAgent(c.Agent)
	// A change is told from what the kernel saw, not from what is there by now.
	began, shared := w.known[c.Agent]
	waits := true
	if !shared {
		began, shared = w.Accounts.Look(key, time.Now())
		// It was over while nothing drove the run, whose wait is of an earlier pawl.
		waits = shared || w.known != nil || !c.Limited || key == ""
	}
	look := time.NewTicker(limitEvery)
	defer look.Stop()
	for waits {
		select {
		case <-timer.C:
			waits = false
		case <-ctx.Done():
			return
		case now := <-look.C:
			// A timer does not know of a clock that was set past the hour that a provider named.
			changed := shared && !w.stillBlocked(key, began)
			waits = now.Before(c.Until) && !changed
		}
	}
	// Who may try is settled before the kernel is asked, so that of many runs
	// that wait for the same moment one goes on and the others never begin.
	w.Acquire(ctx, c)
}

// Refusal is why an agent is not to be called now: a limit of its provider that is
// known, whoever met it; nil for none.
func (w *Limits) Refusal(ctx context.Context, name string, insist bool) *failure.Analysis {
	key := w.accountOfAgent(name)
	if _, day := w.UseToday(time.Now()); day != "" {
		a := ending.FailureOfDay(day, time.Now())
		a.Fingerprint = knownLimit + "day"
		return a
	}
	if _, barred := w.Accounts.Acquire(ctx, key, w.Run, w.Self, insist); !barred {
		return nil
	}
	now := time.Now()
	known, _ := w.Accounts.Look(key, now)
	until, _ := known.BlockedUntil(w.Run, now)
	if until.IsZero() {
		return nil // it is over by now
	}
	l := w.limitForKernel(name, known, now)
	return &failure.Analysis{
		Class: known.Class, Kind: failure.Transient, Transient: true,
		Provider: true, Severity: failure.Medium, WaitUntil: until,
		Summary:     l.Reason() + "; it is not called before " + until.Local().Format("15:04:05"),
		Fingerprint: knownLimit + string(known.Class),
	}
}

// logLimit logs that limits are not shared; the run itself misses nothing.
func (w *Limits) logLimit(err error) {
	if err != nil {
		w.Log.Warn(err.Error(), "run", w.Run)
	}
}

package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// This file shares limits of providers with the other runs of the user: what
// is known of them goes to the kernel with each event, and what a command
// showed of them is kept. All of it may fail; then the run goes on as if it
// were the only one.

// limitEvery is how soon a waiting run notices that another one's try succeeded.
const limitEvery = 250 * time.Millisecond

// probe is a try that other runs wait for.
type probe struct {
	key   string
	began time.Time
}

func (s *session) account(name string) string { return s.plan.Agents[name].Account }

// limited are the limits that are known of the plan's agents, by name.
func (w *limitedJobs) limited(now time.Time) []loop.Limited {
	var list []loop.Limited
	w.known = map[string]ratelimit.Limit{}
	_, day := w.useToday(now)
	for name := range w.plan.Agents {
		if day != "" {
			list = append(list, loop.Limited{
				Agent: name, Day: day, Class: failure.QuotaExhausted, Until: ratelimit.NextDay(now), Named: true,
			})
			continue
		}
		l, ok := w.o.Accounts.Look(w.account(name), now)
		if !ok {
			continue
		}
		w.known[name] = l
		list = append(list, w.limitOf(name, l, now))
	}
	slices.SortFunc(list, func(a, b loop.Limited) int { return strings.Compare(a.Agent, b.Agent) })
	return list
}

// limitOf is a limit of an agent as the kernel sees it.
func (w *limitedJobs) limitOf(name string, l ratelimit.Limit, now time.Time) loop.Limited {
	one := loop.Limited{Agent: name, Class: l.Class, Until: l.Until, Named: l.Named, Times: l.Times, Day: l.Why}
	if l.Run != w.id {
		one.Run = l.Run
	}
	if until, other := l.BlockedUntil(w.id, now); other != "" {
		one.Until, one.Probe = until, other
	}
	return one
}

// acquire asks whether the agent of c may be called now. After a limit it may
// be this run's call that shows whether that is over.
func (w *limitedJobs) acquire(ctx context.Context, c loop.Command) bool {
	key := w.account(c.Agent)
	began := time.Now()
	if _, day := w.useToday(began); day != "" {
		return false
	}
	try, throttled := w.o.Accounts.Acquire(ctx, key, w.id, w.self, c.Insist)
	if try {
		w.probe = probe{key, began}
	}
	return !throttled
}

// throttled is the event of a command that was not begun: its agent may not be called
// yet, or the run is stopped before that.
func (w *limitedJobs) throttled(c loop.Command) input {
	return input{event: w.event(loop.Event{Kind: loop.Throttled, For: c.Seq})}
}

// onEvent shows an event of the agent. As soon as a model answered, the other
// runs go on: the rest of the iteration may take an hour.
func (w *limitedJobs) onEvent(ctx context.Context, e agent.Event) {
	counted := e.Kind == agent.UsageSeen && !e.Estimate && e.Usage.Output > 0
	answered := e.Kind == agent.ToolStart || counted
	if answered && w.probe.key != "" {
		w.logLimit(w.o.Accounts.Clear(ctx, w.probe.key, w.probe.began))
		w.probe = probe{}
	}
	n := Notice{Kind: AgentEvent, Event: e}
	if e.Kind == agent.NearLimit && w.near != nil {
		n = Notice{Kind: Warning}
		n.Text, n.NearCost = w.near.state.NearUse(e.Cost, e.Calls)
		w.near.cost = w.near.cost || n.NearCost
	}
	w.notify(n)
}

// wait carries out a wait. It ends early when what is known of the limit
// changes; then the kernel decides anew.
func (w *limitedJobs) wait(ctx context.Context, c loop.Command) loop.Event {
	left := time.Until(c.Until)
	if w.longest > 0 {
		left, w.longest = min(left, w.longest), 0
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	key := w.account(c.Agent)
	// A change is told from what the kernel saw, not from what is there by now.
	began, shared := w.known[c.Agent]
	waits := true
	if !shared {
		began, shared = w.o.Accounts.Look(key, time.Now())
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
			return w.event(loop.Event{Kind: loop.WaitOver, For: c.Seq})
		case now := <-look.C:
			// A timer does not know of a clock that was set past the hour that a provider named.
			changed := shared && !w.stillBlocked(key, began)
			waits = now.Before(c.Until) && !changed
		}
	}
	// Who may try is settled before the kernel is asked, so that of many runs
	// that wait for the same moment one goes on and the others never begin.
	w.acquire(ctx, c)
	return w.event(loop.Event{Kind: loop.WaitOver, For: c.Seq})
}

// stillBlocked is true while the limit is as it was.
func (w *limitedJobs) stillBlocked(key string, began ratelimit.Limit) bool {
	now := time.Now()
	l, ok := w.o.Accounts.Look(key, now)
	until, _ := l.BlockedUntil(w.id, now)
	return ok && l.Same(&began) && !until.IsZero()
}

// recordLimits keeps what an attempt, or a review, showed of its provider's limits.
func (w *limitedJobs) recordLimits(ctx context.Context, e loop.Event, c loop.Command) {
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
			w.recordLimit(ctx, name, m, r.Exit.Ended, f)
		}
		w.giveUp(ctx)
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
	w.recordLimit(ctx, name, m, ended, f)
	w.probe = probe{}
	delete(w.known, name)
	if l, ok := w.o.Accounts.Look(w.account(name), time.Now()); ok {
		w.known[name] = l
	}
}

// knownLimit begins the fingerprint of a step whose agent was not called.
const knownLimit = "known-limit-"

// recordLimit keeps what a call of an agent showed of a limit. m.Until is how
// long one is waited for of which the provider did not say when it is over.
func (w *limitedJobs) recordLimit(ctx context.Context, name string, m ratelimit.Meeting, ended loop.Ended,
	f *failure.Analysis) {
	key := w.account(name)
	cut := ended == loop.EndedStop || ended == loop.EndedLost || ended == loop.EndedLease
	notBegun := f != nil && f.Fingerprint == ending.CannotStart
	ownLimit := f != nil && f.Fingerprint == ending.DayFingerprint
	switch {
	case ownLimit: // no provider's
		w.logLimit(w.o.Accounts.Release(ctx, key, w.id))
	case f != nil && f.Provider && f.Kind == failure.Transient && stopsEveryRun(f.Class):
		m.Run, m.Class = w.id, f.Class
		if m.Named = f.WaitUntil.After(time.Now()); m.Named {
			m.Until = f.WaitUntil
		}
		w.logLimit(w.o.Accounts.Record(ctx, key, m))
	case cut || notBegun:
		w.logLimit(w.o.Accounts.Release(ctx, key, w.id))
	default:
		w.logLimit(w.o.Accounts.Clear(ctx, key, m.Began))
	}
}

// stopsEveryRun reports whether limits of a class stop every run alike.
func stopsEveryRun(c failure.Class) bool {
	return slices.Contains([]failure.Class{
		failure.RateLimit, failure.QuotaExhausted, failure.ServiceUnavailable, failure.Network, failure.Timeout,
	}, c)
}

// giveUp lets others try when this run does not come to it.
func (w *limitedJobs) giveUp(ctx context.Context) {
	if w.probe.key != "" {
		w.logLimit(w.o.Accounts.Release(ctx, w.probe.key, w.id))
		w.probe = probe{}
	}
}

// logLimit logs that limits are not shared; the run itself misses nothing.
func (s *session) logLimit(err error) {
	if err != nil {
		s.o.Log.Warn(err.Error(), "run", s.id)
	}
}

// nearTime is what a person was told of limits on time while an iteration runs: an
// agent may work for hours, and the kernel warns at its end only.
type nearTime struct {
	mu               sync.Mutex
	over             bool
	own, ofRun, cost bool       // what was warned of
	state            loop.State // as the iteration began
}

// watchTime tells a person when 80 % of a limit on time is used, from an iteration's
// beginning on until the function that it returns is called.
func (w *limitedJobs) watchTime(s loop.State, since time.Time) (stop func()) {
	if s.Command.Kind != loop.Run {
		return func() {}
	}
	told := &nearTime{state: s}
	w.near = told
	var timers []*time.Timer
	for _, near := range s.TimesNear() {
		timers = append(timers, time.AfterFunc(max(0, near.After-time.Since(since)), func() {
			if told.tell(near.OfRun) {
				w.o.Log.Warn(near.Text, "run", w.id)
				w.notify(Notice{Kind: Warning, Text: near.Text, NearTime: near.OfRun})
			}
		}))
	}
	return func() {
		told.mu.Lock()
		told.over = true
		told.mu.Unlock()
		for _, t := range timers {
			t.Stop()
		}
	}
}

// tell is false after the end.
func (n *nearTime) tell(ofRun bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return false
	}
	n.own, n.ofRun = n.own || !ofRun, n.ofRun || ofRun
	return true
}

// The limits of a day: the gateway counts its own calls and refuses them. For all other
// agents [worker.spent] counts, and the run waits for the next day.

// useToday adds up what all runs of the user have used today. over names, in words, the
// limit of the day that has no room; "" while all have.
func (w *limitedJobs) useToday(now time.Time) (used loop.Use, over string) {
	if w.plan.Day.None() || w.o.Accounts.Dir() == "" {
		return used, ""
	}
	used, err := ratelimit.Spend(w.o.Accounts.Dir(), loop.Use{}, now)
	if err != nil {
		return used, "cannot check limits.per_day: " + err.Error()
	}
	if limit, words := w.plan.Day.Over(used, loop.Use{}); limit != "" {
		return used, limit + " is reached (" + words + ")"
	}
	return used, ""
}

// withinDay lowers the limits of an agent to what the day has room for. The gateway
// itself holds the day.
func (w *limitedJobs) withinDay(a runplan.Agent, l *supervisor.Limits) {
	day := w.plan.Day
	if day.None() || len(a.Routes) > 0 {
		return
	}
	used, _ := w.useToday(time.Now())
	if day.Cost != nil {
		l.Cost = lower(l.Cost, *day.Cost-used.Cost)
	}
	if day.Tokens != nil {
		l.Tokens = lower(l.Tokens, *day.Tokens-used.Tokens)
	}
	if day.Calls != nil {
		l.Calls = lower(l.Calls, int(*day.Calls-used.Calls))
	}
}

// lower is a limit, of which 0 is none, or what is left of another one where that is less.
func lower[N int | int64 | loop.MicroUSD](limit, left N) N {
	left = max(1, left)
	if limit == 0 {
		return left
	}
	return min(limit, left)
}

// spent books what a job used that the gateway did not count. One that the day's
// rest ended has reached the day's limit.
func (w *limitedJobs) spent(job supervisor.Job, res *supervisor.Result) {
	if job.Parser == "" || job.Gateway != nil || w.o.Accounts.Dir() == "" {
		return
	}
	a := &res.Agent
	used := loop.Use{Cost: a.Cost, Tokens: a.Usage.Tokens(), Calls: int64(a.Calls)}
	if used != (loop.Use{}) {
		_, err := ratelimit.Spend(w.o.Accounts.Dir(), used, time.Now())
		w.logLimit(err)
	}
	switch res.Exit.Ended {
	case loop.EndedCost, loop.EndedTokens, loop.EndedCalls:
	default:
		return
	}
	if _, day := w.useToday(time.Now()); day != "" {
		res.Exit.Ended, res.Exit.Why = loop.EndedDay, day
	}
}

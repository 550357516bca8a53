package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/ratelimit"
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

// limited are the limits that are known of the plan's agents.
func (w *worker) limited(now time.Time) []loop.Limited {
	if w.o.Accounts == nil {
		return nil
	}
	var list []loop.Limited
	w.known = map[string]ratelimit.Limit{}
	for name, a := range w.plan.Agents {
		l, ok := w.o.Accounts.Look(a.Account, now)
		if !ok {
			continue
		}
		w.known[name] = l
		one := loop.Limited{Agent: name, Class: l.Class, Until: l.Until, Named: l.Named, Times: l.Times}
		if l.Run != w.id {
			one.Run = l.Run
		}
		if until, other := l.Bars(w.id, now); other != "" {
			one.Until, one.Probe = until, other
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b loop.Limited) int {
		if a.Agent < b.Agent {
			return -1
		}
		return 1
	})
	return list
}

// acquire asks whether the agent of c may be called now. After a limit it may be
// this run's call that shows whether that is over.
func (w *worker) acquire(ctx context.Context, c loop.Command) bool {
	key := w.account(c.Agent)
	began := time.Now()
	try, barred := w.o.Accounts.Enter(ctx, key, w.id, w.self, c.Insist)
	if try {
		w.probe = probe{key, began}
	}
	return !barred
}

// throttled is the event of a command whose agent may not be called yet.
func (w *worker) throttled(c loop.Command) input {
	return input{event: w.event(loop.Event{Kind: loop.Barred, For: c.Seq})}
}

// watchAlive lets the others go on as soon as a model answered: the rest of
// the iteration may take an hour.
func (w *worker) watchAlive(ctx context.Context, e agent.Event) {
	if w.probe.key == "" || e.Kind != agent.ToolStart && (e.Kind != agent.UsageSeen || e.Estimate || e.Usage.Output == 0) {
		return
	}
	w.logLimit(w.o.Accounts.Clear(ctx, w.probe.key, w.probe.began))
	w.probe = probe{}
}

// wait carries out a wait. It ends early when what is known of the limit
// changes; then the kernel decides anew.
func (w *worker) wait(ctx context.Context, c loop.Command) loop.Event {
	left := time.Until(c.Until)
	if w.longest > 0 {
		left, w.longest = min(left, w.longest), 0
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	key := w.account(c.Agent)
	// What the kernel saw, not what is there by now, is what a change is told from.
	began, shared := w.known[c.Agent]
	if !shared {
		began, shared = w.o.Accounts.Look(key, time.Now())
	}
	look := time.NewTicker(limitEvery)
	defer look.Stop()
	for waits := true; waits; {
		select {
		case <-timer.C:
			waits = false
		case <-ctx.Done():
			return w.event(loop.Event{Kind: loop.WaitOver, For: c.Seq})
		case now := <-look.C:
			// A timer does not know of a clock that was set past the hour that a provider named.
			waits = now.Before(c.Until) && (!shared || w.stillBarred(key, began))
		}
	}
	// Who may try is settled before the kernel is asked, so that of many runs
	// that wait for the same moment one goes on and the others never begin.
	w.acquire(ctx, c)
	return w.event(loop.Event{Kind: loop.WaitOver, For: c.Seq})
}

// stillBarred is true while the limit is as it was.
func (w *worker) stillBarred(key string, began ratelimit.Limit) bool {
	now := time.Now()
	l, ok := w.o.Accounts.Look(key, now)
	if !ok || !l.Same(&began) {
		return false
	}
	until, _ := l.Bars(w.id, now)
	return !until.IsZero()
}

// recordLimits keeps what an attempt, or a review, showed of its provider's limits.
func (w *worker) recordLimits(ctx context.Context, e loop.Event, c loop.Command) {
	var m ratelimit.Meeting
	var f *failure.Analysis
	var ended loop.Ended
	name := ""
	switch {
	case e.Record != nil && e.Record.Steps != nil:
		w.recordStepLimits(ctx, e.Record, c)
		return
	case e.Record != nil:
		name, f, ended, m.Began = e.Record.Agent, e.Record.Failure, e.Record.Exit.Ended, e.Record.StartedAt
	case e.Review != nil && e.Kind == loop.Reviewed:
		name, f, ended, m.Began = e.Review.Agent, e.Review.Failure, e.Review.Ended, e.At.Add(-e.Review.Elapsed)
	default:
		return
	}
	key := w.account(name)
	defer func() {
		w.probe = probe{}
		delete(w.known, name)
		if l, ok := w.o.Accounts.Look(key, time.Now()); ok {
			w.known[name] = l
		}
	}()
	if c.Kind == loop.Wait && c.Agent == name {
		m.Until = c.Until
	}
	w.meet(ctx, key, m, ended, f, e.At)
}

// recordStepLimits keeps a limit that the agent of a step met, where only the kernel
// has said how long it is waited for. The others were told when their step ended.
func (w *worker) recordStepLimits(ctx context.Context, r *loop.Record, c loop.Command) {
	if f := r.Failure; f != nil && r.Steps.Met != "" && !strings.HasPrefix(f.Fingerprint, knownLimit) && f.WaitUntil.IsZero() {
		m := ratelimit.Meeting{Began: r.StartedAt}
		if c.Kind == loop.Wait {
			m.Until = c.Until
		}
		w.meet(ctx, w.account(r.Steps.Met), m, r.Exit.Ended, f, time.Now())
	}
	w.giveUp(ctx)
}

// knownLimit begins the fingerprint of a step whose agent was not called.
const knownLimit = "known-limit-"

// meet keeps what a call of an agent showed of a limit. m.Until is how long one
// is waited for of which the provider did not say when it is over.
func (w *worker) meet(ctx context.Context, key string, m ratelimit.Meeting, ended loop.Ended, f *failure.Analysis, now time.Time) {
	switch {
	case f != nil && f.Provider && f.Kind == failure.Transient && shareable(f.Class):
		m.Run, m.Class = w.id, f.Class
		if m.Named = f.WaitUntil.After(now); m.Named {
			m.Until = f.WaitUntil
		}
		w.logLimit(w.o.Accounts.Meet(ctx, key, m))
	case ended == loop.EndedStop || ended == loop.EndedLost || ended == loop.EndedLease || f != nil && f.Fingerprint == CannotStart:
		w.logLimit(w.o.Accounts.Release(ctx, key, w.id))
	default:
		w.logLimit(w.o.Accounts.Clear(ctx, key, m.Began))
	}
}

// shareable is true for limits that stop every run alike.
func shareable(c failure.Class) bool {
	return c == failure.RateLimit || c == failure.QuotaExhausted || c == failure.ServiceUnavailable
}

// giveUp lets others try when this run does not come to it.
func (w *worker) giveUp(ctx context.Context) {
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

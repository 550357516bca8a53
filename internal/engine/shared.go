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

// lookEvery is how soon a waiting run notices that another one's try succeeded.
const lookEvery = 250 * time.Millisecond

// probe is a try that other runs wait for.
type probe struct {
	key   string
	began time.Time
}

func (d *Driver) account(name string) string { return d.plan.Agents[name].Account }

// limited are the limits that are known of the plan's agents.
func (d *Driver) limited(now time.Time) []loop.Limited {
	if d.o.Accounts == nil {
		return nil
	}
	var list []loop.Limited
	d.known = map[string]ratelimit.Limit{}
	for name, a := range d.plan.Agents {
		l, ok := d.o.Accounts.Look(a.Account, now)
		if !ok {
			continue
		}
		d.known[name] = l
		one := loop.Limited{Agent: name, Class: l.Class, Until: l.Until, Named: l.Named, Times: l.Times}
		if l.Run != d.id {
			one.Run = l.Run
		}
		if until, other := l.Bars(d.id, now); other != "" {
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

// enter asks whether the agent of c may be called now. After a limit it may be
// this run's call that shows whether that is over.
func (d *Driver) enter(ctx context.Context, c loop.Command) bool {
	key := d.account(c.Agent)
	began := time.Now()
	try, barred := d.o.Accounts.Enter(ctx, key, d.id, d.self, c.Insist)
	if try {
		d.probe = probe{key, began}
	}
	return !barred
}

// barred is the event of a command whose agent may not be called yet.
func (d *Driver) barred(c loop.Command) done {
	return done{event: d.event(loop.Event{Kind: loop.Barred, For: c.Seq})}
}

// watchAlive lets the others go on as soon as a model answered: the rest of
// the iteration may take an hour.
func (d *Driver) watchAlive(ctx context.Context, e agent.Event) {
	if d.probe.key == "" || e.Kind != agent.ToolStart && (e.Kind != agent.UsageSeen || e.Estimate || e.Usage.Output == 0) {
		return
	}
	d.noteLimit(d.o.Accounts.Clear(ctx, d.probe.key, d.probe.began))
	d.probe = probe{}
}

// wait carries out a wait. It ends early when what is known of the limit
// changes; then the kernel decides anew.
func (d *Driver) wait(ctx context.Context, c loop.Command) loop.Event {
	left := time.Until(c.Until)
	if d.longest > 0 {
		left, d.longest = min(left, d.longest), 0
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	key := d.account(c.Agent)
	// What the kernel saw, not what is there by now, is what a change is told from.
	began, shared := d.known[c.Agent]
	if !shared {
		began, shared = d.o.Accounts.Look(key, time.Now())
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for waits := true; waits; {
		select {
		case <-timer.C:
			waits = false
		case <-ctx.Done():
			return d.event(loop.Event{Kind: loop.WaitOver, For: c.Seq})
		case now := <-look.C:
			// A timer does not know of a clock that was set past the hour that a provider named.
			waits = now.Before(c.Until) && (!shared || d.stillBarred(key, began))
		}
	}
	// Who may try is settled before the kernel is asked, so that of many runs
	// that wait for the same moment one goes on and the others never begin.
	d.enter(ctx, c)
	return d.event(loop.Event{Kind: loop.WaitOver, For: c.Seq})
}

// stillBarred is true while the limit is as it was.
func (d *Driver) stillBarred(key string, began ratelimit.Limit) bool {
	now := time.Now()
	l, ok := d.o.Accounts.Look(key, now)
	if !ok || !l.Same(&began) {
		return false
	}
	until, _ := l.Bars(d.id, now)
	return !until.IsZero()
}

// report keeps what an attempt, or a review, showed of its provider's limits.
func (d *Driver) report(ctx context.Context, e loop.Event, c loop.Command) {
	var m ratelimit.Meeting
	var f *failure.Analysis
	var ended loop.Ended
	name := ""
	switch {
	case e.Record != nil && e.Record.Steps != nil:
		d.reportSteps(ctx, e.Record, c)
		return
	case e.Record != nil:
		name, f, ended, m.Began = e.Record.Agent, e.Record.Failure, e.Record.Exit.Ended, e.Record.StartedAt
	case e.Review != nil && e.Kind == loop.Reviewed:
		name, f, ended, m.Began = e.Review.Agent, e.Review.Failure, e.Review.Ended, e.At.Add(-e.Review.Elapsed)
	default:
		return
	}
	key := d.account(name)
	defer func() {
		d.probe = probe{}
		delete(d.known, name)
		if l, ok := d.o.Accounts.Look(key, time.Now()); ok {
			d.known[name] = l
		}
	}()
	if c.Kind == loop.Wait && c.Agent == name {
		m.Until = c.Until
	}
	d.meet(ctx, key, m, ended, f, e.At)
}

// reportSteps keeps a limit that the agent of a step met, where only the kernel
// has said how long it is waited for. The others were told when their step ended.
func (d *Driver) reportSteps(ctx context.Context, r *loop.Record, c loop.Command) {
	if f := r.Failure; f != nil && r.Steps.Met != "" && !strings.HasPrefix(f.Fingerprint, knownLimit) && f.WaitUntil.IsZero() {
		m := ratelimit.Meeting{Began: r.StartedAt}
		if c.Kind == loop.Wait {
			m.Until = c.Until
		}
		d.meet(ctx, d.account(r.Steps.Met), m, r.Exit.Ended, f, time.Now())
	}
	d.giveUp(ctx)
}

// knownLimit begins the fingerprint of a step whose agent was not called.
const knownLimit = "known-limit-"

// meet keeps what a call of an agent showed of a limit. m.Until is how long one
// is waited for of which the provider did not say when it is over.
func (d *Driver) meet(ctx context.Context, key string, m ratelimit.Meeting, ended loop.Ended, f *failure.Analysis, now time.Time) {
	switch {
	case f != nil && f.Provider && f.Kind == failure.Transient && shareable(f.Class):
		m.Run, m.Class = d.id, f.Class
		if m.Named = f.WaitUntil.After(now); m.Named {
			m.Until = f.WaitUntil
		}
		d.noteLimit(d.o.Accounts.Meet(ctx, key, m))
	case ended == loop.EndedStop || ended == loop.EndedLost || ended == loop.EndedLease || f != nil && f.Fingerprint == CannotStart:
		d.noteLimit(d.o.Accounts.Release(ctx, key, d.id))
	default:
		d.noteLimit(d.o.Accounts.Clear(ctx, key, m.Began))
	}
}

// shareable is true for limits that stop every run alike.
func shareable(c failure.Class) bool {
	return c == failure.RateLimit || c == failure.QuotaExhausted || c == failure.ServiceUnavailable
}

// giveUp lets others try when this run does not come to it.
func (d *Driver) giveUp(ctx context.Context) {
	if d.probe.key != "" {
		d.noteLimit(d.o.Accounts.Release(ctx, d.probe.key, d.id))
		d.probe = probe{}
	}
}

// noteLimit logs that limits are not shared; the run itself misses nothing.
func (d *Driver) noteLimit(err error) {
	if err != nil {
		d.o.Log.Warn(err.Error(), "run", d.id)
	}
}

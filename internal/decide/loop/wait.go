package loop

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/strategy"
)

// The bounds of the backoff for a wait that the provider did not name.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// wait answers a limit of the model provider that the run met: wait until the
// named time, else back off; see [State.limit] for when the next agent takes over.
func (s *State) wait(e *Event, r *Record) {
	s.Waits++
	if s.PauseAsked {
		s.finish(&Command{Status: Paused, Why: "paused at the end of the attempt"})
		return
	}
	l := s.met(e, r)
	s.limit(e, &l)
}

// met is the limit that an attempt met. If the limit has no known end, the wait
// depends on how often all runs met it in a row.
func (s *State) met(e *Event, r *Record) Limited {
	l := Limited{Agent: r.Agent, Class: r.Failure.Class, Until: r.Failure.WaitUntil, Times: s.Waits}
	if known, ok := e.known(r.Agent); ok {
		l.Times, l.Day = max(l.Times, known.Times+1), known.Day
	}
	if t := r.Steps; t != nil && t.Limited != r.Agent {
		l.Who = t.Limited
	}
	l.Named = l.Until.After(e.At)
	if !l.Named {
		l.Until = e.At.Add(backoff(strategy.Exponential, l.Times, e.Seed))
	}
	return l
}

// until is the end of a wait of d, at the latest the end of the run's time.
func (s *State) until(e *Event, d time.Duration) time.Time {
	return e.At.Add(least(d, remaining(s.Policy.Timeout, s.Spent.Wall)))
}

// nextAgent gives the iteration to the agent whose turn it is now.
func (s *State) nextAgent(why string) {
	c := &s.Command
	s.issue(&Command{
		Kind: Run, Why: why, Iteration: c.Iteration, Attempt: s.Attempts + 1, Agent: s.agent(), Strategy: s.Strategy,
		StrategyWhy: "the next agent of agents.fallback, because " + why, Feedback: c.Feedback, Limits: s.bounds(),
		SkipOptional: c.SkipOptional, GateFactor: c.GateFactor, Parallelism: c.Parallelism,
		StepTimeout: c.StepTimeout, Fresh: c.Fresh,
	})
}

// backoff is the n-th wait, from one second to five minutes; the seed shortens
// it by up to a half, so that many loops do not come back at once.
func backoff(kind strategy.Backoff, n int, seed uint64) time.Duration {
	d := maxBackoff
	switch {
	case kind == strategy.NoBackoff || kind == "":
		return 0
	case kind == strategy.Linear:
		d = min(minBackoff*time.Duration(min(n, 1000)), maxBackoff)
	case n < 10:
		d = min(minBackoff<<(n-1), maxBackoff)
	}
	half := d / 2
	return max(d-time.Duration(mix(seed)%uint64(half+1)), minBackoff)
}

// mix spreads the bits of a seed (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// atMaximum ends a run that has used up its iterations. A procedure is completed
// only when its last iteration succeeded.
func (s *State) atMaximum(r *Record) *Command {
	why := fmt.Sprintf("Reached max iterations: %d", s.Limit)
	switch {
	case s.Policy.Kind == Procedure:
		if s.Wrong != "" {
			return &Command{Status: Exhausted, Why: why + "; " + s.Wrong}
		}
		return &Command{Status: Completed, Why: why}
	case s.controlled():
		if r == nil {
			r = &Record{}
		}
		return s.askControl(r, why)
	}
	return &Command{Status: TimedOut, Why: why}
}

// wrong says what keeps an iteration from being a success that a procedure may end
// with; "" when nothing does.
func (r *Record) wrong() string {
	what := ""
	if r.Failure != nil && r.Failure.Summary != "" {
		what = ": " + r.Failure.Summary
	}
	switch {
	case len(r.Tampered) > 0:
		return "a protected file was changed: " + r.Tampered[0]
	case r.rejected():
		return "the review rejects the last iteration" + what
	case r.RedGate():
		return r.redGates() + what
	case r.Exit.Ended != NotEnded:
		return "the last iteration was ended (" + string(r.Exit.Ended) + ")" + what
	case r.Outcome == Failed:
		return "the last iteration failed" + what
	}
	return ""
}

// redGates names the required gates that did not pass.
func (r *Record) redGates() string {
	var red []string
	for _, g := range r.Gates {
		if !g.Required || g.Status == GatePassed || g.Status == GateNotRun {
			continue
		}
		how := ""
		if g.Status != GateFailed {
			how = " (" + string(g.Status) + ")"
		}
		red = append(red, "gate "+g.Name+" is red"+how)
	}
	return strings.Join(red, ", ")
}

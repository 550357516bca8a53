package loop

import (
	"cmp"
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

// waitForProvider answers a limit of the model provider that the run met: wait until the
// named time, else back off; see [turn.answerLimit] for when the next agent takes over.
func (s turn) waitForProvider(e *Event, r *Record) {
	s.Waits++
	if s.PauseAsked {
		s.finishSession(&Command{Status: Paused, Why: "paused at the end of the attempt"})
		return
	}
	l := s.limitMet(e, r)
	s.answerLimit(e, &l)
}

// limitMet is the limit that an attempt met. If the limit has no known end, the wait
// depends on how often all runs met it in a row.
func (s *State) limitMet(e *Event, r *Record) Limited {
	l := Limited{Agent: r.Agent, Class: r.Failure.Class, Until: r.Failure.WaitUntil, Times: s.Waits}
	if known, ok := e.knownLimit(r.Agent); ok {
		l.Times, l.Day = max(l.Times, known.Times+1), known.Day
	}
	if t := r.Steps; t != nil && t.Limited != r.Agent {
		l.Who = t.Limited
	}
	l.Named = l.Until.After(e.At)
	if !l.Named {
		l.Until = e.At.Add(backoffTime(strategy.Exponential, l.Times, e.Seed))
	}
	return l
}

// waitEnd is the end of a wait of d, at the latest the end of the run's time.
func (s *State) waitEnd(e *Event, d time.Duration) time.Time {
	return e.At.Add(leastTime(d, remainingTime(s.Policy.Timeout, s.Spent.Wall)))
}

// nextAgent gives the iteration to the agent whose turn it is now.
func (s turn) nextAgent(why string) {
	c := &s.Command
	s.issueCommand(&Command{
		Kind: Run, Why: why, Iteration: c.Iteration, Attempt: s.Attempts + 1, Agent: s.chosenAgent(),
		Strategy: s.Strategy, StrategyWhy: "the next agent of agents.fallback, because " + why, Feedback: c.Feedback,
		Limits: s.iterationLimits(), SkipOptional: c.SkipOptional, GateFactor: c.GateFactor, Parallelism: c.Parallelism,
		StepTimeout: c.StepTimeout, Fresh: c.Fresh,
	})
}

// backoffTime returns the n-th wait, from one second to five minutes; the seed shortens it by up to
// a half, so that many loops do not come back at once.
func backoffTime(kind strategy.Backoff, n int, seed uint64) time.Duration {
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
	return max(d-time.Duration(mixBits(seed)%uint64(half+1)), minBackoff)
}

// mixBits spreads the bits of a seed (splitmix64).
func mixBits(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// atMaximum ends a run that has used up its iterations. A procedure is completed
// only when its last iteration succeeded.
func (s turn) atMaximum(r *Record) *Command {
	why := fmt.Sprintf("Reached max iterations: %d", s.Limit)
	switch {
	case s.Policy.Kind == Procedure:
		switch {
		case s.Wrong != "":
			return &Command{Status: Exhausted, Why: why + "; " + s.Wrong}
		case s.Policy.InWords:
			return &Command{Status: Exhausted, Why: why + "; the agent has not said that the task is complete"}
		}
		return &Command{Status: Completed, Why: why}
	case s.isControlled():
		return s.askControl(cmp.Or(r, &Record{}), why)
	}
	return &Command{Status: TimedOut, Why: why}
}

// reasonNotSuccess keeps a procedure from ending with this iteration; "" when there is none.
func (r *Record) reasonNotSuccess() string {
	what := ""
	if r.Failure != nil && r.Failure.Summary != "" {
		what = ": " + r.Failure.Summary
	}
	switch {
	case len(r.Tampered) > 0:
		return "a protected file was changed: " + r.Tampered[0]
	case r.isRejected():
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

package loop

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/strategy"
)

// waitForProvider answers a limit of the model provider that the run met: wait until the
// named time, else back off; see [turn.answerLimit] for when the next agent takes over.
func (s turn) waitForProvider(e *Event, r *Record) {
	s.Waits++
	if s.PauseAsked {
		s.finishSession(&Command{Status: Paused, Why: "paused at the end of the attempt"})
		return
	}
	l := s.limitMetBy(e, r)
	s.answerLimit(e, &l)
}

// limitMetBy is the limit that an attempt met. If the limit has no known end, the wait
// depends on how often all runs met it in a row.
func (s *State) limitMetBy(e *Event, r *Record) Limited {
	l := Limited{Agent: r.Agent, Class: r.Failure.Class, Until: r.Failure.WaitUntil, Times: s.Waits}
	if known, ok := e.knownLimit(r.Agent); ok {
		l.Times, l.Day = max(l.Times, known.Times+1), known.Day
	}
	if t := r.Steps; t != nil && t.Limited != r.Agent {
		l.Who = t.Limited
	}
	l.Named = l.Until.After(e.At)
	if !l.Named {
		l.Until = e.At.Add(strategy.Exponential.Wait(l.Times, e.Seed))
	}
	return l
}

// endOfWait is the end of a wait of d, at the latest the end of the run's time.
func (s *State) endOfWait(e *Event, d time.Duration) time.Time {
	return e.At.Add(leastTime(d, remainingTime(s.Policy.Timeout, s.Spent.Wall)))
}

// nextAgent gives the iteration to the agent whose turn it is now.
func (s turn) nextAgent(why string) {
	c := &s.Command
	s.issueCommand(&Command{
		Kind: Run, Why: why, Iteration: c.Iteration, Attempt: s.Attempts + 1, Agent: s.chosenAgent(),
		Strategy: s.Strategy, StrategyWhy: "the next agent of agents.fallback, because " + why, Feedback: c.Feedback,
		Limits: s.iterationLimits(), SkipOptional: c.SkipOptional, Measures: Measures{GateFactor: c.GateFactor, Parallelism: c.Parallelism,
			StepTimeout: c.StepTimeout, Fresh: c.Fresh},
	})
}

// atMaximum ends a run that has used up its iterations. A procedure is completed
// only when its last iteration succeeded.
func (s turn) atMaximum(r *Record) *Command {
	why := fmt.Sprintf("Reached max iterations: %d", s.Limit)
	switch {
	case s.Policy.Kind == Procedure:
		switch {
		case s.Wrong != "":
			return &Command{Status: Exhausted, Why: causeFirst(s.Wrong, why)}
		case s.Policy.InWords:
			return &Command{Status: Exhausted, Why: why + "; the agent has not said that the task is complete"}
		}
		if r != nil {
			why = causeFirst(r.resultText(), why)
		}
		return &Command{Status: Completed, Why: why}
	case s.isControlled():
		return s.askControl(cmp.Or(r, &Record{}), why)
	}
	return &Command{Status: TimedOut, Why: why}
}

// cutOff begins the reason where a limit ended the iteration itself: that limit says more.
const cutOff = "the last iteration was ended"

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
		return cutOff + " (" + string(r.Exit.Ended) + ")" + what
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

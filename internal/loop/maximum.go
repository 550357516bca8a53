package loop

import (
	"fmt"
	"strings"
)

// atMaximum ends a run that has used up its iterations. A procedure is completed
// only when its last iteration succeeded.
func (s *State) atMaximum(r *Record) *Command {
	why := fmt.Sprintf("Reached max iterations: %d", s.Limit)
	switch s.Policy.Kind {
	case Procedure:
		if s.Wrong != "" {
			return &Command{Status: Exhausted, Why: why + "; " + s.Wrong}
		}
		return &Command{Status: Completed, Why: why}
	case Controlled:
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

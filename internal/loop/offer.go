package loop

import (
	"fmt"
	"maps"
	"time"

	"github.com/pawl-dev/pawl/internal/control"
)

// hints say what a person may look at first, by the guard that stopped the loop.
var hints = map[string]string{
	GuardBreaker: "What often helps: run the red gate yourself. If the task is too large, split it; if the gate expects " +
		"something else than the task says, tell which is right.",
	GuardRegression: "What often helps: each attempt made it worse, so go back to the best one and name another approach.",
	GuardThrashing: "What often helps: the same file is changed again and again, so its design may stand in the way. Say " +
		"where the code belongs, or have it split first.",
	GuardOscillation: "What often helps: two approaches undo each other. Decide for one of them.",
	GuardRepeated: "What often helps: nothing that was tried reaches the cause. It may be outside of the code: the " +
		"environment, a fixture, a protected file, or what the test expects.",
	GuardStuck: "What often helps: the work may be done, or the goal unclear. Say what is missing.",
}

// offer is what helps where the loop stands; guard is the one that stopped it, "" none.
func (s *State) offer(guard string) control.Offer {
	o := control.Offer{}
	if n := len(s.Recent); n > 0 && s.Policy.Kind != Workflow {
		last := s.Recent[n-1]
		if s.Best.Snapshot != "" && s.Best.Number < last.Number && s.Best.Score > last.Score {
			o.Best = s.Best.Number
		}
		o.Kept = s.Green
	}
	if at := s.threshold(guard); at != nil {
		o.Limit = fmt.Sprintf("%s from %d to %d", guard, *at, 2**at)
	}
	return o
}

// saved says what the iterations that are left would have taken, by those before; "" for
// none.
func (s *State) saved() string {
	left := s.Limit - s.Iteration
	if left <= 0 || s.Iteration == 0 {
		return ""
	}
	took := s.Spent.Active / time.Duration(s.Iteration) * time.Duration(left)
	text := fmt.Sprintf("\n\nEnded with %d of %d iterations left: as the ones before went, that saves %s", left, s.Limit,
		Duration(took))
	if s.Spent.Cost > 0 {
		text += " and " + (s.Spent.Cost / MicroUSD(s.Iteration) * MicroUSD(left)).String()
	}
	return text + "."
}

// threshold is that of a guard; nil for one that has none.
func (s *State) threshold(guard string) *int {
	switch guard {
	case GuardBreaker:
		return &s.Policy.FailureThreshold
	case GuardThrashing:
		return &s.Policy.Thrashing
	case GuardRepeated:
		return &s.Policy.Repeated
	case GuardStuck:
		return &s.Policy.Stuck
	}
	return nil
}

// raiseGuard lets the guard that stopped the run count to twice as many, also when
// the run is resumed later.
func (s *State) raiseGuard(guard string) {
	if at := s.threshold(guard); at != nil {
		*at *= 2
		s.Raised = maps.Clone(s.Raised)
		if s.Raised == nil {
			s.Raised = map[string]int{}
		}
		s.Raised[guard] = *at
	}
}

// keepRaised holds what a person raised against the configuration as it is now, but
// for a guard that is off there.
func (s *State) keepRaised() {
	for guard, to := range s.Raised { // order does not show: each has a threshold of its own
		if at := s.threshold(guard); *at > 0 {
			*at = max(*at, to)
		}
	}
}

package loop

import "fmt"

// Tripped is what became of the runs of a repository that a guard ended.
type Tripped struct {
	Guard           string
	Runs, Completed int // all, and those that continued and completed without help
}

// The runs from which something is learned of a guard.
const (
	enoughToRaise = 5
	enoughToLower = 10
	lowestAdapted = 2
)

// Adapt changes the thresholds of a policy by what its guards came to, and says how: by one, up where a guard
// was wrong in at least half of its runs, down where it was always right. No guard is turned on or off.
func Adapt(p *Policy, seen []Tripped) (changes []string) {
	s := State{Policy: *p}
	for _, t := range seen {
		at := s.thresholdOf(t.Guard)
		if at == nil || *at == 0 {
			continue
		}
		was := *at
		switch {
		case t.Runs >= enoughToRaise && 2*t.Completed >= t.Runs:
			*at++
		case t.Runs >= enoughToLower && t.Completed == 0:
			*at = min(was, max(was-1, lowestAdapted))
		}
		if *at != was {
			changes = append(changes, fmt.Sprintf("guard %s stops at %d instead of %d: of %d runs that it ended, %d "+
				"completed later without any help", t.Guard, *at, was, t.Runs, t.Completed))
		}
	}
	*p = s.Policy
	return changes
}

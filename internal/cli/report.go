package cli

import (
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/loop"
)

// report tells after a failed iteration what failed, whether it may pass by
// itself, how bad it is, and how the next iteration differs and why. The words
// are the first document's; the lines with a time above them are not its.
func (s *screen) report(n engine.Notice) {
	r, c := n.Record, &n.Command
	f := r.Failure
	if r.Outcome != loop.Failed || f == nil {
		return
	}
	s.print("🔄 Iteration %d failed: %s", r.Number, clean(f.Summary, 300))
	s.print("   Error type: %s, transient: %s, severity: %s", f.Class, yesNo(f.Transient), f.Severity)
	if c.Kind != loop.Run && c.Kind != loop.Wait {
		return // nothing comes next
	}
	if c.Strategy == r.Strategy {
		s.print("   Retrying with same strategy: %s", c.Strategy)
	} else {
		s.print("   New strategy: %s", c.Strategy)
	}
	if c.StrategyWhy != "" {
		s.print("   Why: %s", clean(c.StrategyWhy, 500))
	}
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

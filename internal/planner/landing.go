package planner

import (
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
)

// Landing is the plan of what the merge queue runs: the level, the gates, what
// is protected, and what gates inherit. No agent is in it.
func (pl *Planner) Landing() (engine.Plan, error) {
	d := draft{pl, "queue", config.Procedure{}}
	plan, err := d.base("queue")
	if err != nil {
		return plan, err
	}
	err = d.safe(&plan)
	return plan, err
}

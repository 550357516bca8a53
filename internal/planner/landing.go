package planner

import (
	"github.com/pawl-dev/pawl/internal/board"
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

// Shell is the plan of a command that a person runs in the workspace of a task.
func (pl *Planner) Shell(task board.Case) (engine.Plan, error) {
	p, name, err := pl.taskProcedure()
	if err != nil {
		return engine.Plan{}, err
	}
	own := *pl
	own.Config = pl.withSafety(pl.levelOf(draft{pl, name, p}, task))
	return own.Landing()
}

// levelOf is the safety level of a task. One from outside has the stricter of two.
func (pl *Planner) levelOf(d draft, task board.Case) string {
	if task.IsOutside() {
		return stricter(d.safety(), pl.Config.Forge.Issues.Safety)
	}
	return d.safety()
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// works is true for a run that a process drives now.
func works(r sqlite.Run) bool {
	return loop.Status(r.Status).Active() && r.Owner.PID != 0 && engine.Alive(r.Owner)
}

// raise gives a run that works higher limits. Its process takes them, and the
// run's stored flags with them.
func (a *app) raise(ctx context.Context, st *sqlite.Store, r sqlite.Run, f planner.Flags) error {
	if f.Agent != "" || f.Strategy != "" || f.Safety != "" || f.Checkpoint != "" || f.AgentCmd != "" || f.Iterate || f.Unsandboxed || len(f.Context) > 0 {
		return usage("run %s works: only --max-iterations, --max-cost and --timeout can change while it does", r.ID).
			Hint("For the others, pause it first: pawl pause %s", r.Name)
	}
	pol, err := a.policyOf(r, f)
	if err != nil {
		return err
	}
	to := journal.Limits{}
	if f.Max != "" {
		if err := roomFor(r, pol.MaxIterations); err != nil {
			return err
		}
		to.MaxIterations = &pol.MaxIterations
	}
	if f.MaxCost != "" {
		to.MaxCost = &pol.MaxCost
	}
	if f.Timeout != "" {
		to.Timeout = pol.Timeout
	}
	flags, err := json.Marshal(f.Limits())
	if err != nil {
		return fault.Of(fault.Failed, err)
	}
	if err := a.askRaise(ctx, st, r, to, flags); err != nil {
		return err
	}
	a.say("Run %s has its new limits; its next iterations are held to them.", r.ID)
	return nil
}

// roomFor refuses a maximum that leaves no iteration; the one under way is one.
func roomFor(r sqlite.Run, iterations int) error {
	used := r.Iteration
	if loop.Status(r.Status).Active() {
		used--
	}
	if iterations > 0 && iterations <= used {
		return usage("%s has used %d iterations already: allow more than that", r.Name, used)
	}
	return nil
}

// policyOf is the policy that the run would be resumed with.
func (a *app) policyOf(r sqlite.Run, newer planner.Flags) (loop.Policy, error) {
	f, err := storedFlags(r, newer)
	if err != nil {
		return loop.Policy{}, err
	}
	a.dir = r.Root
	c, err := a.load(f.Paths())
	if err != nil {
		return loop.Policy{}, err
	}
	if r.Kind != "workflow" {
		plan, err := a.planner(c, f).Procedure(r.Name)
		return plan.Policy, err
	}
	w, err := config.LoadWorkflow(a.dir, f.File)
	if err != nil {
		return loop.Policy{}, fault.Of(fault.Refused, err)
	}
	w.Plan.Name = r.Name
	plan, err := a.planner(c, f).Workflow(w)
	return plan.Policy, err
}

// raiseWait is how long the process of a run may take to take its new limits.
const raiseWait = 10 * time.Second

// askRaise asks the run's process, and waits until it has taken the limits: a
// run that ends in the same moment is not told to have them.
func (a *app) askRaise(ctx context.Context, st *sqlite.Store, r sqlite.Run, to journal.Limits, flags json.RawMessage) error {
	id, err := engine.AskRaise(ctx, st, r.ID, to, flags)
	if err != nil {
		return fault.Of(fault.Failed, err)
	}
	tick, late := time.NewTicker(50*time.Millisecond), time.NewTimer(raiseWait)
	defer tick.Stop()
	defer late.Stop()
	for {
		rows, err := st.Controls(ctx, r.ID)
		if err != nil {
			return fault.Of(fault.Failed, err)
		}
		if !slices.ContainsFunc(rows, func(c sqlite.Control) bool { return c.ID == id }) {
			return nil
		}
		now, err := st.Run(ctx, r.ID)
		if err != nil {
			return fault.Of(fault.Failed, err)
		}
		if !works(now) {
			return usage("run %s is %s now and did not take the limits", r.ID, now.Status).Hint("Name them again: pawl resume %s", r.Name)
		}
		select {
		case <-tick.C:
		case <-late.C:
			return fault.Of(fault.Failed, fmt.Errorf("the process of run %s has not taken the limits within %s", r.ID, raiseWait))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// extendTask raises the limits of a task by its run.
func (a *app) extendTask(ctx context.Context, st *sqlite.Store, r sqlite.Run, f planner.Flags) error {
	if f.MaxCost != "" {
		return usage("%s is a task: raise its iterations or its time; its cost is held to the safety level", r.Name)
	}
	l, err := readLimits(f.Max, f.Timeout)
	if err != nil {
		return err
	}
	return a.extend(ctx, st, r.Name, l)
}

// raiseTask gives the run of a task that works its new limits at once.
func (a *app) raiseTask(ctx context.Context, st *sqlite.Store, r sqlite.Run, l sqlite.CaseLimits) error {
	to := journal.Limits{TaskTimeout: l.Timeout}
	if l.MaxIterations > 0 {
		to.MaxIterations = &l.MaxIterations
	}
	err := a.askRaise(ctx, st, r, to, nil)
	var e *fault.Error
	if errors.As(err, &e) && e.Kind == fault.Refused {
		return nil // it has ended, and the limits are stored for the next time
	}
	return err
}

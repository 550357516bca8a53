package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// IsDriven reports whether the run is active and its process is alive.
func IsDriven(r store.Run) bool {
	return loop.Status(r.Status).Active() && storedrun.Alive(r.Owner)
}

// Raise gives a run that works higher limits. Its process takes them, and the
// run's stored flags with them.
func (p *Operator) Raise(ctx context.Context, r store.Run, f planner.Flags) error {
	if f.Agent != "" || f.Strategy != "" || f.Safety != "" || f.Checkpoint != "" || f.AgentCmd != "" || f.Iterate ||
		f.Unsandboxed || len(f.Context) > 0 {
		return fault.Refuse("run %s is running: only --max-iterations, --max-cost and --timeout can change now",
			r.ID).
			Hint("For the others, pause it first: pawl pause %s", r.Name)
	}
	pol, err := p.policyToResume(r, f)
	if err != nil {
		return err
	}
	to := journal.Limits{}
	if f.Max != "" {
		if err := checkIterationsLeft(r, pol.MaxIterations); err != nil {
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
		return err
	}
	if err := p.requestRaise(ctx, r, to, flags); err != nil {
		return err
	}
	p.Say("Run %s has new limits, from its next iteration on.", r.ID)
	return nil
}

// checkIterationsLeft refuses a maximum that leaves no iteration; the one under way is one.
func checkIterationsLeft(r store.Run, iterations int) error {
	used := r.Iteration
	if loop.Status(r.Status).Active() {
		used--
	}
	if iterations > 0 && iterations <= used {
		return fault.Refuse("%s has used %d iterations already: allow more than that", r.Name, used)
	}
	return nil
}

// policyToResume is the policy that the run would be resumed with.
func (p *Operator) policyToResume(r store.Run, newer planner.Flags) (loop.Policy, error) {
	f, err := StoredFlags(r, newer)
	if err != nil {
		return loop.Policy{}, err
	}
	pl, err := p.Planner(r.Root, f)
	if err != nil {
		return loop.Policy{}, err
	}
	if r.Kind != "workflow" {
		plan, err := pl.Procedure(r.Name)
		return plan.Policy, err
	}
	w, err := config.LoadWorkflow(r.Root, f.File)
	if err != nil {
		return loop.Policy{}, fault.Of(fault.Refused, err)
	}
	w.Plan.Name = r.Name
	plan, err := pl.Workflow(w)
	return plan.Policy, err
}

// raiseWait is how long the process of a run may take to take its new limits.
const raiseWait = 10 * time.Second

// requestRaise asks the run's process, and waits until it has taken the limits: a
// run that ends in the same moment is not reported to have them.
func (p *Operator) requestRaise(ctx context.Context, r store.Run, to journal.Limits, flags json.RawMessage) error {
	id, err := storedrun.AskRaise(ctx, p.Store, r.ID, to, flags)
	if err != nil {
		return err
	}
	err = pollUntil(ctx, raiseWait, func() (bool, error) {
		rows, err := p.Store.Controls(ctx, r.ID)
		if err != nil || !slices.ContainsFunc(rows, func(c store.Control) bool { return c.ID == id }) {
			return true, err
		}
		now, err := p.Store.Run(ctx, r.ID)
		if err == nil && !IsDriven(now) {
			err = fault.Refuse("run %s is now %s, and the limits were not changed", r.ID, now.Status).
				Hint("Set them again: pawl resume %s", r.Name)
		}
		return false, err
	})
	if errors.Is(err, errLate) {
		return fault.Refuse("the process of run %s has not taken the limits within %s; "+
			"it takes them when it answers again", r.ID, raiseWait).Hint("See whether it has: pawl show %s", r.ID)
	}
	return err
}

// ExtendRun raises the limits of a task by its run.
func (p *Operator) ExtendRun(ctx context.Context, r store.Run, f planner.Flags) (Done, error) {
	if f.MaxCost != "" {
		return Done{}, fault.Refuse("%s is a task: raise its iterations or time; the safety level limits its cost",
			r.Name)
	}
	l, err := ReadLimits(f.Max, f.Timeout)
	if err != nil {
		return Done{}, err
	}
	return p.Extend(ctx, r.Name, l)
}

// ResumeElsewhere resumes a run that another process drives: the autopilot resumes
// a task, and a run that works takes higher limits. done is false when the caller
// has to drive the run.
func (p *Operator) ResumeElsewhere(ctx context.Context, r store.Run, f planner.Flags) (done bool, err error) {
	if err := p.CheckTask(ctx, r, false); err != nil {
		return true, err
	}
	switch {
	case r.Kind == string(loop.Task) && f.Raises():
		d, err := p.ExtendRun(ctx, r, f)
		if err == nil {
			p.Say("%s", d.Text)
		}
		return true, err
	case r.Kind == string(loop.Task):
		return true, p.Reopen(ctx, r, "resumed by a person")
	case IsDriven(r) && f.Raises():
		return true, p.Raise(ctx, r, f)
	}
	return false, p.CheckHere(ctx, r, "resume")
}

// raiseTask gives the run of a task that works its new limits at once.
func (p *Operator) raiseTask(ctx context.Context, r store.Run, l store.CaseLimits) error {
	to := journal.Limits{TaskTimeout: l.Timeout}
	if l.MaxIterations > 0 {
		to.MaxIterations = &l.MaxIterations
	}
	err := p.requestRaise(ctx, r, to, nil)
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Kind == fault.Refused {
		return nil // it has ended, and the limits are stored for the next time
	}
	return err
}

// ReadLimits reads the limits of a task as a person writes them; one at least.
func ReadLimits(iterations, timeout string) (l store.CaseLimits, err error) {
	if iterations == "" && timeout == "" {
		return l, fault.Refuse("say by how much: --max-iterations N or --timeout DURATION")
	}
	if iterations != "" {
		if l.MaxIterations, err = strconv.Atoi(iterations); err != nil || l.MaxIterations < 1 {
			return l, fault.Refuse("--max-iterations %s: write a whole number, 1 or more", iterations)
		}
	}
	if timeout != "" {
		if l.Timeout, err = time.ParseDuration(timeout); err != nil || l.Timeout <= 0 {
			return l, fault.Refuse("--timeout %s: write a duration such as 45m or 1h30m", timeout)
		}
	}
	l.At = time.Now()
	return l, nil
}

// Extend raises a task's own limits; one that has timed out is pending again,
// and its run resumes.
func (p *Operator) Extend(ctx context.Context, id string, l store.CaseLimits) (Done, error) {
	c, err := p.Store.Case(ctx, id)
	if err != nil {
		return Done{}, err
	}
	if c.Type != board.Task || c.Status == board.Done {
		return Done{}, fault.Refuse("%s cannot be extended: it is %s", id,
			map[bool]string{true: "done", false: "an operation"}[c.Type == board.Task])
	}
	r, rerr := p.Store.Latest(ctx, p.Root, id)
	if rerr == nil {
		if err := checkIterationsLeft(r, l.MaxIterations); err != nil {
			return Done{}, err
		}
	}
	if err := p.Store.SetCaseLimits(ctx, id, l); err != nil {
		return Done{}, err
	}
	if rerr == nil && IsDriven(r) {
		if err := p.raiseTask(ctx, r, l); err != nil {
			return Done{}, err
		}
		return Done{c, fmt.Sprintf("%s and its run have new limits.", id)}, nil
	}
	if c.Status != board.Timeout {
		return Done{c, fmt.Sprintf("%s has new limits.", id)}, nil
	}
	c, err = p.Store.MoveCase(ctx, id,
		board.Change{Action: board.Retry, By: board.Person, Why: board.LimitsRaised, At: time.Now()})
	return Done{c, fmt.Sprintf("%s is %s, and its run continues where it was.", c.ID, statusPhraseOf(&c))}, err
}

// StoredFlags are the flags of the run, with the newer ones over them. What agents wrote at the
// level paranoid stays at that level, so the run does, too.
func StoredFlags(run store.Run, newer planner.Flags) (planner.Flags, error) {
	var stored Setup
	if len(run.Setup) > 0 {
		if err := json.Unmarshal(run.Setup, &stored); err != nil {
			return newer, fmt.Errorf("cannot read how run %s was started: %v", run.ID, err)
		}
	}
	flags := stored.Flags.Merge(newer)
	if run.Level() == sandbox.Paranoid {
		if newer.Safety != "" && newer.Safety != sandbox.Paranoid {
			return newer, fault.Refuse("run %s worked at the level paranoid, and what its agents wrote stays at that "+
				"level", run.ID).Hint("Resume it at that level: pawl resume %s", run.ID).
				Hint("Or see its work, apply it and start over: pawl show %s --diff", run.ID)
		}
		flags.Safety = sandbox.Paranoid
	}
	return flags, nil
}

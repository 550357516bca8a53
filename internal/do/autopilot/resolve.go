package autopilot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot/mergebrief"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Resolver has an agent bring together what a rule cannot: a run like that of a
// task, in a workspace of its own that begins at the target.
type Resolver struct {
	// Plan makes the plan of a task's run, and the tree that it works on.
	Plan     func(context.Context, Task) (runplan.Plan, *workspace.Checkout, error)
	Pool     *pool.Pool
	Store    *store.Store
	StateDir string
	Accounts *ratelimit.Store
	Log      *slog.Logger
	// Repo and Confirm are for files that run by themselves; see [Options].
	Repo    *git.Repo
	Confirm []string
}

// resolveIterations is how many iterations one attempt has.
const resolveIterations = 5

// Resolve runs the agent and returns the commit that it made, on top of the target.
// What is the machine's fault or the provider's is no answer: it is a [*merge.LaterError].
func (r *Resolver) Resolve(ctx context.Context, p merge.Problem) (string, error) {
	commit, err := r.resolveConflict(ctx, p)
	var answer *unmergedError
	if err == nil || errors.As(err, &answer) || errors.Is(err, pool.ErrRefused) || faultOf(err) != schedule.OfMachine {
		return commit, err
	}
	if later, ok := errors.AsType[*merge.LaterError](err); ok {
		return "", later
	}
	return "", &merge.LaterError{Why: err.Error()}
}

// unmergedError is how a run ended that brought nothing together.
type unmergedError struct{ why string }

func (e *unmergedError) Error() string { return "the agent did not merge it: " + e.why }

func (r *Resolver) resolveConflict(ctx context.Context, p merge.Problem) (string, error) {
	w, err := r.takeWorkspace(ctx, p.Entry.ID+pool.MergeSuffix, p.Tip)
	if err != nil {
		return "", err
	}
	commit, err := r.runAgent(ctx, w, p)
	if err == nil && commit != "" {
		err = r.refuseUnseen(ctx, p, commit)
	}
	how := pool.GivenUp("the attempt to merge it is over")
	if ctx.Err() != nil {
		how = pool.Stopped("pawl stopped")
	}
	if rerr := r.Pool.Release(context.WithoutCancel(ctx), w, how); err == nil && rerr != nil {
		err = rerr
	}
	return commit, err
}

// takeWorkspace gives a workspace at the target. One that an earlier attempt left is
// given up: it began elsewhere.
func (r *Resolver) takeWorkspace(ctx context.Context, id, tip string) (pool.Workspace, error) {
	w, err := r.Pool.Take(ctx, id, tip)
	if err != nil || !w.Kept {
		return w, err
	}
	if err := r.Pool.Release(ctx, w, pool.GivenUp("a new attempt starts from the current target")); err != nil {
		return w, err
	}
	return r.Pool.Take(ctx, id, tip)
}

func (r *Resolver) runAgent(ctx context.Context, w pool.Workspace, p merge.Problem) (string, error) {
	c, err := r.Store.Case(ctx, p.Entry.ID)
	if errors.Is(err, store.ErrNoCase) {
		c.ID = p.Entry.ID
	} else if err != nil {
		return "", err
	}
	c.Title, c.Description = mergebrief.Title(&p), mergebrief.Write(p, w, c.Description)
	if p.Entry.Revert != "" { // they are red without its work
		c.Checks, c.Acceptance = board.Checks{}, nil
	}
	task := Task{Case: c, Workspace: w, Limits: store.CaseLimits{MaxIterations: resolveIterations}}
	if p.Entry.Closed {
		task.Level = sandbox.Paranoid
	}
	plan, tree, err := r.Plan(ctx, task)
	if err != nil {
		return "", err
	}
	plan.Name = w.ID
	if err := endLeftRun(ctx, r.Store, plan.Project, r.StateDir, w.ID); err != nil { // by a pawl that was killed
		return "", err
	}
	plan.Policy.Review, plan.Policy.Reviewer, plan.Prompt.Reviewer = false, "", ""
	plan.RedFirst, plan.Landing = "", true // the work is there already, and was to land
	plan.Protect.Allow = append(plan.Protect.Allow, p.Entry.Allow...)
	d, err := engine.Start(ctx, engine.Options{
		Plan: plan, StateDir: r.StateDir, Store: r.Store, Tree: tree, Accounts: r.Accounts, Log: r.Log,
	})
	if err != nil {
		return "", err
	}
	if s := d.State(); s.Status != loop.Completed {
		return "", r.reasonUnfinished(ctx, d.ID(), &s)
	}
	return r.Pool.Collect(ctx, w, fmt.Sprintf("Merge %s\n\nPawl-Task: %[1]s\nPawl-Run: %s\n", p.Entry.ID, d.ID()))
}

// refuseUnseen refuses a merge with a file that the person's own programs run by themselves, where the file
// is neither as the target has it nor as the task left it, which a person has seen.
func (r *Resolver) refuseUnseen(ctx context.Context, p merge.Problem, commit string) error {
	ofTask, err := r.Repo.Changes(ctx, p.Entry.Commit, commit)
	if err != nil {
		return err
	}
	ofTarget, err := r.Repo.Changes(ctx, p.Tip, commit)
	if err != nil {
		return err
	}
	var paths []string
	for _, c := range ofTask {
		if slices.ContainsFunc(ofTarget, func(t git.Change) bool { return t.Path == c.Path }) {
			paths = append(paths, c.Path)
		}
	}
	found, err := delivery.RunsItself(ctx, r.Repo, paths, r.Confirm)
	if err == nil && len(found) > 0 {
		err = &unmergedError{"its merge changes " + deliver.Some(found) + ", which your own programs run by themselves"}
	}
	return err
}

// reasonUnfinished explains why a run merged nothing.
func (r *Resolver) reasonUnfinished(ctx context.Context, run string, s *loop.State) error {
	why := fmt.Sprintf("run %s is %s: %s", run, s.Status, s.Why)
	failed := s.Status == loop.FailedRun || s.Status == loop.Blocked
	switch {
	case s.Status == loop.Paused && s.Command.Limited:
		return &merge.LaterError{Until: s.Command.Until, Why: why}
	case failed:
		if end, by, _ := endOfAgent(ctx, r.Store, run); end == loop.EndedDisk || by != "" {
			return &merge.LaterError{Why: why}
		}
	}
	return &unmergedError{why}
}

// endOfAgent is how the last agent of a run ended, what stopped it that only a person can set right for every task, ""
// for nothing, and when it began.
func endOfAgent(ctx context.Context, db *store.Store, run string) (end loop.Ended, by failure.Class, began time.Time) {
	list, err := db.LastIterations(ctx, run, 1)
	if err != nil || len(list) == 0 {
		return "", "", began
	}
	if f := list[0].Failure; f != nil && f.Kind == failure.Permanent && f.Step == "" {
		switch f.Class {
		case failure.Auth, failure.QuotaExhausted, failure.Validation, failure.Network:
			by = f.Class
		}
	}
	return list[0].Exit.Ended, by, list[0].StartedAt
}

package cli

import (
	"context"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/merge"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

// landingTarget is the full name of the branch that work lands on.
func landingTarget(ctx context.Context, c *config.Config, repo *git.Repo) (string, error) {
	name := c.Merge.Target
	if name == "" {
		head, err := repo.Head(ctx)
		if err != nil {
			return "", &exitError{code: exitFailed, err: err}
		}
		if head.Branch == "" {
			return "", usage("no branch is checked out here, so there is none to land on").hint("Name one in pawl.yaml: merge: {target: main}")
		}
		name = head.Branch
	}
	name = merge.Ref(name)
	commit, err := repo.Find(ctx, name)
	if err == nil && commit == "" {
		return "", usage("there is no branch %q to land on, or it has no commit", name).hint("Make a first commit, or set merge.target in pawl.yaml")
	}
	if err != nil {
		return "", &exitError{code: exitFailed, err: err}
	}
	return name, nil
}

// merge is how verified work lands: gates run like those of a task, in a clone
// of their own, with caches of their own.
func (t *taskPlanner) merge(ctx context.Context, repo *git.Repo, target string, store *sqlite.Store, plan engine.Plan, clones *pool.Pool) (merge.Options, error) {
	self, err := process.Self()
	if err != nil {
		return merge.Options{}, &exitError{code: exitFailed, err: err}
	}
	m := t.c.Merge
	o := merge.Options{
		Store: store, Repo: repo, Dir: filepath.Join(t.stateDir, "queue"), Target: target, Gates: plan.Gates, Protect: plan.Protect, Environ: plan.Environ,
		Environment: plan.Safety + ": " + t.verdict.Enforced, Exe: plan.Exe, Args: plan.Args, Lease: plan.Lease,
		Owner: engine.OwnerOf(self), Alive: engine.Alive,
		Policy: queue.Policy{
			Batch: m.Batch, Retries: m.ConflictRetries, Timeout: m.EscalationTimeout.Std(), Action: queue.Action(m.EscalationAction), Propose: m.Mode == "pull-request",
		},
		Integration: func(ctx context.Context, commit string) (merge.Workspace, error) {
			w, err := clones.Integration(ctx, commit)
			if err != nil {
				return merge.Workspace{}, err
			}
			done := func(ctx context.Context) { _ = clones.Release(ctx, w, pool.Landed) } // the next process takes what stays
			return merge.Workspace{Dir: w.Dir, Environ: w.Env(), Done: done}, nil
		},
	}
	if !m.Auto {
		o.Policy.Batch = 0
	}
	if !t.verdict.Boxed {
		return o, nil
	}
	box := t.landingBox(ctx, plan, t.c.Root)
	o.Environ = append(o.Environ, box.Caches...)
	o.Box = func(dir string) *sandbox.Policy { return &t.landingBox(ctx, plan, dir).Gates }
	return o, nil
}

// landingBox is what gates are held to before a landing.
func (t *taskPlanner) landingBox(ctx context.Context, plan engine.Plan, dir string) *engine.Box {
	plan.Root, plan.Agents = dir, nil
	s := &session{a: t.a, c: t.c, plan: plan, stateDir: t.stateDir, cache: filepath.Join(t.stateDir, "cache-landing")}
	return s.policies(ctx, t.verdict)
}

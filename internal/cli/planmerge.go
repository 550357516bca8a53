package cli

import (
	"context"
	"log/slog"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/merge"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

// landingTarget is the full name of the branch that work lands on.
func landingTarget(ctx context.Context, c *config.Config, repo *git.Repo) (string, error) {
	name := c.Merge.Target
	if name == "" {
		head, err := repo.Head(ctx)
		if err != nil {
			return "", fault.Of(fault.Failed, err)
		}
		if head.Branch == "" {
			return "", usage("no branch is checked out here, so there is none to land on").Hint("Name one in pawl.yaml: merge: {target: main}")
		}
		name = head.Branch
	}
	name = merge.Ref(name)
	commit, err := repo.Find(ctx, name)
	if err == nil && commit == "" {
		return "", usage("there is no branch %q to land on, or it has no commit", name).Hint("Make a first commit, or set merge.target in pawl.yaml")
	}
	if err != nil {
		return "", fault.Of(fault.Failed, err)
	}
	return name, nil
}

// merge is how verified work lands: as with pawl queue, with what the tasks'
// gates are held to.
func (t *taskPlanner) merge(ctx context.Context, repo *git.Repo, store *sqlite.Store, plan engine.Plan, clones *pool.Pool) (merge.Options, error) {
	l := &landing{a: t.a, c: t.c, store: store, repo: repo, plan: plan, verdict: t.verdict}
	o, err := l.options(ctx, nil)
	if err != nil {
		return o, err
	}
	l.useWorkspaces(&o, clones)
	o.Resolve = (&resolver{t: t, clones: clones, store: store, log: slog.New(slog.DiscardHandler)}).resolve
	return o, nil
}

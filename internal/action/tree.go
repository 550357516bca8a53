package action

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/internal/workspace"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

// RootTree is the tree of a root itself. It fails where there are no snapshots.
func (p *Operator) RootTree(ctx context.Context, root string) (*workspace.Checkout, error) {
	tree, err := workspace.Open(ctx, root, workspace.Options{StateDir: config.StateDir(root, p.Env)})
	if err != nil {
		return nil, fmt.Errorf("there are no snapshots: %v", err)
	}
	return tree, nil
}

// Pool opens the workspaces of the repository that a configuration is for.
func Pool(ctx context.Context, c *config.Config, env []string, db *store.Store) (*pool.Pool, error) {
	return pool.Open(ctx, pool.Options{
		Root: c.Root, StateDir: config.StateDir(c.Root, env), Dir: string(c.Workspace.Root), Store: db,
		Copy: c.Workspace.Copy, Setup: c.Workspace.Setup, Retention: c.Workspace.Retention.Std(),
		KeepOnSuccess: c.Workspace.KeepOnSuccess, MaxFile: int64(c.Snapshot.MaxFile),
		Warm: c.Autopilot.MaxParallel + 1, // the gates before a landing need one too
	})
}

// Tree is the tree that a run worked on: for a task that of its workspace.
func (p *Operator) Tree(ctx context.Context, r store.Run) (*workspace.Checkout, error) {
	dir := PlaceOf(r)
	if dir == r.Root {
		return p.RootTree(ctx, r.Root)
	}
	tree, err := workspace.Open(ctx, dir,
		workspace.Options{StateDir: autopilot.TreeDir(config.StateDir(r.Root, p.Env), r.Name)})
	if err != nil {
		return nil, fault.Refuse("the workspace of %s is gone", r.Name).
			Hint("What landed of it: git log --first-parent --grep '^%s: '", r.Name)
	}
	return tree, nil
}

// Setup is how a run was started last, as far as others than its process need it.
type Setup struct {
	Flags   planner.Flags  `json:"flags"`
	Place   string         `json:"place"`   // where its agents work; "" is the root
	Copy    bool           `json:"copy"`    // of the work tree, on which it works
	Sandbox string         `json:"sandbox"` // what was enforced
	Checks  []engine.Check `json:"checks"`  // that its work goes through; nil: not stored
}

// SetupOf reads it; of a run that has none it says nothing.
func SetupOf(r store.Run) (s Setup) {
	_ = json.Unmarshal(r.Setup, &s)
	return s
}

// PlaceOf is the folder in which the agents of a run worked.
func PlaceOf(r store.Run) string { return cmp.Or(SetupOf(r).Place, r.Root) }

// OnCopy is whether the run works on a copy of the work tree.
func OnCopy(r store.Run) bool { return SetupOf(r).Copy }

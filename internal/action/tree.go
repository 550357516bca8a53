package action

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
)

// RootTree is the tree of a root itself. It fails where there are no snapshots.
func (p *Operator) RootTree(ctx context.Context, root string) (*workspace.Checkout, error) {
	tree, err := workspace.Open(ctx, root, workspace.Options{StateDir: config.StateDir(root, p.Env)})
	if err != nil {
		return nil, fault.Of(fault.Failed, fmt.Errorf("there are no snapshots: %v", err))
	}
	return tree, nil
}

// Tree is the tree that a run worked on: for a task that of its workspace.
func (p *Operator) Tree(ctx context.Context, r sqlite.Run) (*workspace.Checkout, error) {
	dir := PlaceOf(r)
	if dir == r.Root {
		return p.RootTree(ctx, r.Root)
	}
	tree, err := workspace.Open(ctx, dir, workspace.Options{StateDir: autopilot.TreeDir(config.StateDir(r.Root, p.Env), r.Name)})
	if err != nil {
		return nil, fault.Refuse("the workspace of %s is gone", r.Name).
			Hint("What landed of it: git log --first-parent --grep '^%s: '", r.Name)
	}
	return tree, nil
}

// PlaceOf is the folder in which the agents of a run worked.
func PlaceOf(r sqlite.Run) string {
	var setup struct {
		Place string `json:"place"`
	}
	if json.Unmarshal(r.Setup, &setup) == nil && setup.Place != "" {
		return setup.Place
	}
	return r.Root
}

package action

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/trust"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// BackTo is where a rollback goes: the snapshot after iteration N, or with
// Undo to what was there before the last rollback.
type BackTo struct {
	N    int // -1: the snapshot before the last one
	Undo bool
}

// Foresee says which files a rollback to the snapshot n would put back, and where it goes.
func (p *Operator) Foresee(ctx context.Context, r store.Run, n int) (back workspace.Rollback, where string, err error) {
	tree, err := p.goesBack(ctx, r)
	if err != nil {
		return back, "", err
	}
	if OnCopy(r) {
		return back, "", noSnapshots(r)
	}
	if n, err = snapshotOf(ctx, tree, r.ID, n); err != nil {
		return back, "", err
	}
	back, err = tree.Foresee(ctx, r.ID, n)
	return back, snapshotName(n), err
}

// goesBack is the tree of a run that may be rolled back, or why it may not.
func (p *Operator) goesBack(ctx context.Context, r store.Run) (*workspace.Checkout, error) {
	if loop.Status(r.Status).Active() && engine.Alive(r.Owner) {
		return nil, fault.Refuse("run %s is running; a rollback under a working agent helps nobody", r.ID).
			Hint("Stop it first: pawl stop %s", r.ID)
	}
	tree, err := p.Tree(ctx, r)
	if err != nil && p.Store.Board() != "" {
		return nil, fault.Refuse("run %s worked on files that are not on this machine: %s", r.ID, r.Root).
			Hint("Put them back on the machine that has them: pawl rollback %s", r.ID)
	}
	return tree, err
}

func noSnapshots(r store.Run) error {
	return fault.Refuse("run %s works on a copy: your files have no snapshots of its iterations", r.ID).
		Hint("Undo an 'apply': pawl rollback %s --undo", r.ID)
}

// Rollback puts the files of a run back; what was there before is kept, so that
// it can be undone. A run that is being worked on refuses.
func (p *Operator) Rollback(ctx context.Context, r store.Run, to BackTo) error {
	if r.Kind == string(loop.Task) {
		return fault.Refuse("run %s worked on %s, in a workspace of its own", r.ID, r.Name).
			Hint("Roll the task back: pawl case rollback %s", r.Name)
	}
	tree, err := p.goesBack(ctx, r)
	if err != nil {
		return err
	}
	if OnCopy(r) {
		if to.N >= 0 {
			return noSnapshots(r)
		}
		to.Undo = true
	}
	where := "what was there before the last rollback"
	var back workspace.Rollback
	if to.Undo {
		back, err = undoRollback(ctx, tree, r)
	} else if to.N, err = snapshotOf(ctx, tree, r.ID, to.N); err == nil {
		where = snapshotName(to.N)
		back, err = tree.Rollback(ctx, r.ID, to.N, workspace.RollbackOptions{Ended: r.EndedAt})
	}
	if err != nil {
		return err
	}
	if to.N > 0 || to.Undo { // an agent's files
		p.doubt(r, tree, back.Restored)
	}
	if _, err := journal.Append(ctx, p.Store, r.ID, time.Now(), journal.RolledBack,
		journal.Rollback{To: max(to.N, 0), Snapshot: back.To.Commit, Recovery: back.Recovery}); err != nil {
		p.Say("Warning: %v", err)
	}
	p.sayBack(back, where)
	p.Say("What was there before is kept as %s. To get it back: pawl rollback %s --undo", back.Recovery, r.ID)
	return nil
}

// doubt has the next start ask before it takes commands from files of an agent's.
func (p *Operator) doubt(r store.Run, tree *workspace.Checkout, paths []string) {
	if err := trust.Doubt(config.StateDir(r.Root, p.Env), r.ID, r.Name, tree.Repo.Top, paths); err != nil {
		p.Say("Warning: %v", err)
	}
}

func (p *Operator) sayBack(back workspace.Rollback, where string) {
	p.Say("Put back to %s: %s restored, %d removed.", where, fault.Numbered(len(back.Restored), "file"), len(back.Removed))
	if back.BranchMoved {
		p.Say("The branch was moved too, to %s.", cmp.Or(back.To.Head, "where it had no commit"))
	}
	for _, n := range back.Notes {
		p.Say("Note: %s", n)
	}
}

// undoRollback goes back to what was kept before the last rollback. That is a
// rollback too, so undoing twice changes nothing in the end.
func undoRollback(ctx context.Context, tree *workspace.Checkout, r store.Run) (workspace.Rollback, error) {
	kept, err := tree.Recoveries(ctx, r.ID)
	if err != nil {
		return workspace.Rollback{}, err
	}
	if len(kept) == 0 {
		return workspace.Rollback{}, fault.Refuse("there is no rollback of run %s to undo", r.ID)
	}
	return tree.RollbackTo(ctx, kept[len(kept)-1].Ref, workspace.RollbackOptions{Ended: r.EndedAt})
}

// snapshotOf checks the number of a snapshot; -1 is the one before the last.
func snapshotOf(ctx context.Context, tree *workspace.Checkout, run string, n int) (int, error) {
	snaps, err := tree.Snapshots(ctx, run)
	if err != nil {
		return n, err
	}
	if len(snaps) == 0 {
		return n, fault.Refuse("run %s has no snapshots to go back to", run)
	}
	if n < 0 {
		return snaps[max(len(snaps)-2, 0)].N, nil
	}
	if !slices.ContainsFunc(snaps, func(s workspace.Snapshot) bool { return s.N == n }) {
		return n, fault.Refuse("run %s has no snapshot %d", run, n).Hint("It has %d to %d", snaps[0].N, snaps[len(snaps)-1].N)
	}
	return n, nil
}

func snapshotName(n int) string {
	if n == 0 {
		return "how it was before the run"
	}
	return fmt.Sprintf("the snapshot after iteration %d", n)
}

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
	Host    string         `json:"host"`    // the machine that has its work
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

package cli

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
)

func (a *app) rollback(ctx context.Context, st *sqlite.Store, r sqlite.Run, to int) error {
	if loop.Status(r.Status).Active() && engine.Alive(r.Owner) {
		return usage("run %s is running; a rollback under a working agent helps nobody", r.ID).hint("Stop it first: pawl stop %s", r.ID)
	}
	tree, err := a.tree(ctx, r.Root)
	if err != nil {
		return err
	}
	snaps, err := tree.Snapshots(ctx, r.ID)
	if err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	if len(snaps) == 0 {
		return usage("run %s has no snapshots to go back to", r.ID)
	}
	if to < 0 {
		to = snaps[max(len(snaps)-2, 0)].N
	}
	if !hasSnapshot(snaps, to) {
		e := usage("run %s has no snapshot %d", r.ID, to)
		return e.hint("It has %d to %d", snaps[0].N, snaps[len(snaps)-1].N)
	}
	back, err := tree.Rollback(ctx, r.ID, to, workspace.RollbackOptions{})
	if err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	if _, err := journal.Append(ctx, st, r.ID, time.Now(), journal.RolledBack, journal.Rollback{To: to, Recovery: back.Recovery}); err != nil {
		a.say("Warning: %v", err)
	}
	a.say("Put back to the snapshot after iteration %d: %d file(s) restored, %d removed.", to, len(back.Restored), len(back.Removed))
	if back.BranchMoved {
		a.say("The branch was moved back too.")
	}
	for _, n := range back.Notes {
		a.say("Note: %s", n)
	}
	a.say("What was there before is kept. To get it back: pawl rollback %s --undo", r.ID)
	return nil
}

func hasSnapshot(snaps []workspace.Snapshot, n int) bool {
	for _, s := range snaps {
		if s.N == n {
			return true
		}
	}
	return false
}

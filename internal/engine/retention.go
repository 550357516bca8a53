package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/internal/workspace"
)

const (
	dropWithin = 10 * time.Second // at the end of a run
	dropAtOnce = 50               // runs
)

// dropOld drops the snapshots of runs that ended longer ago than they are
// kept. A run that may go on, and one that the database does not know, keeps
// its own. What cannot be dropped now is tried at the end of the next run.
func (d *Driver) dropOld(ctx context.Context) {
	if d.o.Tree == nil || d.o.Store == nil || d.plan.SnapshotKeep <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dropWithin)
	defer cancel()
	tree := d.original
	runs, err := tree.Kept(ctx)
	dropped := 0
	for i := 0; i < len(runs) && dropped < dropAtOnce && err == nil; i++ {
		var run store.Run
		run, err = d.o.Store.Run(ctx, runs[i])
		another := run.ID == runs[i] && run.ID != d.id
		over := !run.EndedAt.IsZero() && process.Cautious().Sub(run.EndedAt) > d.plan.SnapshotKeep
		switch {
		case errors.Is(err, store.ErrNotFound):
			err = nil
		case err == nil && another && over:
			err = d.forget(ctx, tree, runs[i])
			dropped++
		}
	}
	if err != nil && ctx.Err() == nil && !d.homeless() {
		d.warn(fmt.Sprintf("old snapshots could not be dropped: %v", err))
	}
}

// forget drops what is kept of a run, unless its copy holds work that was
// neither applied nor given up.
func (d *Driver) forget(ctx context.Context, tree *workspace.Checkout, run string) error {
	dir := CopyDir(d.o.StateDir, run)
	if workspace.HasCopy(dir) {
		applied, err := tree.Applied(ctx, run)
		if err != nil || !applied {
			return err
		}
	}
	if err := workspace.RemoveCopy(dir); err != nil {
		return err
	}
	return tree.Forget(ctx, run)
}

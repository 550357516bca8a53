package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/sqlite"
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
	runs, err := d.o.Tree.Kept(ctx)
	dropped := 0
	for i := 0; i < len(runs) && dropped < dropAtOnce && err == nil; i++ {
		var run sqlite.Run
		run, err = d.o.Store.Run(ctx, runs[i])
		switch {
		case errors.Is(err, sqlite.ErrNotFound):
			err = nil
		case err == nil && run.ID == runs[i] && run.ID != d.id && !run.EndedAt.IsZero() && time.Since(run.EndedAt) > d.plan.SnapshotKeep:
			_, err = d.o.Tree.Forget(ctx, runs[i])
			dropped++
		}
	}
	if err != nil && ctx.Err() == nil {
		d.warn(fmt.Sprintf("old snapshots could not be dropped: %v", err))
	}
}

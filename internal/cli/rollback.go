package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
)

func (a *app) rollbackCommand() *cobra.Command {
	to := backTo{n: -1}
	cmd := &cobra.Command{
		Use: "rollback RUN", Short: "Put the files back to the snapshot after an iteration; itself undoable",
		Long: "Put the files back to the snapshot after iteration N; 0 is before the run. Only files that differ\n" +
			"are changed. What was there before is kept: --undo gets it back.",
		Example: "  pawl rollback build --to 0\n  pawl rollback 7k3f --to 3\n  pawl rollback build --undo",
		Args:    exactlyOne("a run or a procedure"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch given := cmd.Flags().Changed("to"); {
			case given && to.undo:
				return usage("--to and --undo exclude each other")
			case given && to.n < 0:
				return usage("--to %d: iterations count from 1; 0 is before the run", to.n)
			}
			return a.withRun(cmd.Context(), args[0], func(st *sqlite.Store, r sqlite.Run) error {
				return a.rollback(cmd.Context(), st, r, to)
			})
		},
	}
	cmd.Flags().IntVar(&to.n, "to", -1, "the iteration `N` whose snapshot to go back to; 0 is before the run; default: the one before the last")
	cmd.Flags().BoolVar(&to.undo, "undo", false, "get back what was there before the last rollback")
	return cmd
}

// backTo is where a rollback goes: the snapshot after iteration n, or with
// undo to what was there before the last rollback.
type backTo struct {
	n    int // -1: the snapshot before the last one
	undo bool
}

func (a *app) rollback(ctx context.Context, st *sqlite.Store, r sqlite.Run, to backTo) error {
	if loop.Status(r.Status).Active() && engine.Alive(r.Owner) {
		return usage("run %s is running; a rollback under a working agent helps nobody", r.ID).Hint("Stop it first: pawl stop %s", r.ID)
	}
	if workedOnCopy(r) {
		if to.n >= 0 {
			return usage("run %s works on a copy: your files have no snapshots of its iterations", r.ID).
				Hint("Undo an 'apply': pawl rollback %s --undo", r.ID)
		}
		to.undo = true
	}
	tree, err := a.tree(ctx, r.Root)
	if err != nil {
		return err
	}
	where := "what was there before the last rollback"
	var back workspace.Rollback
	if to.undo {
		back, err = undoRollback(ctx, tree, r.ID)
	} else if to.n, err = snapshotOf(ctx, tree, r.ID, to.n); err == nil {
		where = snapshotName(to.n)
		back, err = tree.Rollback(ctx, r.ID, to.n, workspace.RollbackOptions{})
	}
	if err != nil {
		return a.rollbackError(err)
	}
	if _, err := journal.Append(ctx, st, r.ID, time.Now(), journal.RolledBack, journal.Rollback{To: max(to.n, 0), Snapshot: back.To.Commit, Recovery: back.Recovery}); err != nil {
		a.say("Warning: %v", err)
	}
	a.sayBack(back, where)
	a.say("What was there before is kept. To get it back: pawl rollback %s --undo", r.ID)
	return nil
}

func (a *app) sayBack(back workspace.Rollback, where string) {
	a.say("Put back to %s: %d file(s) restored, %d removed.", where, len(back.Restored), len(back.Removed))
	if back.BranchMoved {
		a.say("The branch was moved back too.")
	}
	for _, n := range back.Notes {
		a.say("Note: %s", n)
	}
}

func (a *app) rollbackError(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return fault.Of(fault.Failed, err)
}

// undoRollback goes back to what was kept before the last rollback. That is a
// rollback too, so undoing twice changes nothing in the end.
func undoRollback(ctx context.Context, tree *workspace.Checkout, run string) (workspace.Rollback, error) {
	kept, err := tree.Recoveries(ctx, run)
	if err != nil {
		return workspace.Rollback{}, err
	}
	if len(kept) == 0 {
		return workspace.Rollback{}, usage("there is no rollback of run %s to undo", run)
	}
	return tree.RollbackTo(ctx, kept[len(kept)-1].Ref, workspace.RollbackOptions{})
}

// snapshotOf checks the number of a snapshot; -1 is the one before the last.
func snapshotOf(ctx context.Context, tree *workspace.Checkout, run string, n int) (int, error) {
	snaps, err := tree.Snapshots(ctx, run)
	if err != nil {
		return n, err
	}
	if len(snaps) == 0 {
		return n, usage("run %s has no snapshots to go back to", run)
	}
	if n < 0 {
		return snaps[max(len(snaps)-2, 0)].N, nil
	}
	if !hasSnapshot(snaps, n) {
		return n, usage("run %s has no snapshot %d", run, n).Hint("It has %d to %d", snaps[0].N, snaps[len(snaps)-1].N)
	}
	return n, nil
}

func snapshotName(n int) string {
	if n == 0 {
		return "how it was before the run"
	}
	return fmt.Sprintf("the snapshot after iteration %d", n)
}

func hasSnapshot(snaps []workspace.Snapshot, n int) bool {
	for _, s := range snaps {
		if s.N == n {
			return true
		}
	}
	return false
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

func (a *app) caseRollbackCommand() *cobra.Command {
	to := backTo{n: 0}
	cmd := &cobra.Command{
		Use: "rollback ID", Short: "Take back the work of a task: its workspace as it began, or after an iteration; itself undoable",
		Long: "Put the workspace of a task back to the commit that it began at, or with --to N to the snapshot after\n" +
			"iteration N of its last run, and the task to pending. What was there before is kept on a ref: --undo gets it back.\n" +
			"Files that git ignores stay as they are.",
		Example: "  pawl case rollback task-007\n  pawl case rollback 7 --to 3\n  pawl case rollback 7 --undo",
		Args:    exactlyOne("the id of a task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := caseID(args[0])
			if err != nil {
				return err
			}
			switch {
			case cmd.Flags().Changed("to") && to.undo:
				return usage("--to and --undo exclude each other")
			case to.n < 0:
				return usage("--to %d: iterations count from 1; 0 is before the first", to.n)
			}
			return a.withPool(cmd.Context(), func(store *sqlite.Store, p *pool.Pool) error {
				return a.rollbackCase(cmd.Context(), store, p, id, to)
			})
		},
	}
	cmd.Flags().IntVar(&to.n, "to", 0, "the iteration `N` after which the files are wanted; 0 is before the first")
	cmd.Flags().BoolVar(&to.undo, "undo", false, "get back what was there before the last rollback")
	return cmd
}

// rollbackCase asks the board first: a task that is being worked on, waits for
// its landing or has landed is not taken back.
func (a *app) rollbackCase(ctx context.Context, store *sqlite.Store, p *pool.Pool, id string, to backTo) error {
	c, err := store.Case(ctx, id)
	if err != nil {
		return err
	}
	ch := board.Change{Action: board.Rollback, By: board.Person, At: time.Now()}
	open := c.Status == board.Pending && c.Type == board.Task
	if !open {
		if _, _, err := board.Move(c, ch); err != nil {
			return err
		}
	}
	point, where, err := a.pointOf(ctx, store, p, id, to)
	if err != nil {
		return err
	}
	ref, err := p.Rollback(ctx, id, point)
	switch {
	case errors.Is(err, pool.ErrNone):
		a.say("%s has no workspace, so no files were changed.", id)
	case errors.Is(err, pool.ErrTaken):
		return fault.Of(fault.Refused, err).Hint("Stop what works in it first")
	case err != nil:
		return err
	default:
		a.say("The workspace of %s is put back to %s.", id, where)
		a.say("What was there before is kept: %s. To get it back: pawl case rollback %s --undo", ref, id)
	}
	if open {
		return a.sayCase(&c, "%s is %s.", c.ID, state(&c))
	}
	ch.Why = "its work was taken back to " + where
	if c, err = store.MoveCase(ctx, id, ch); err != nil {
		return err
	}
	return a.sayCase(&c, "%s is %s.", c.ID, state(&c))
}

// pointOf is where a rollback goes, in data and in words.
func (a *app) pointOf(ctx context.Context, store *sqlite.Store, p *pool.Pool, id string, to backTo) (pool.Point, string, error) {
	if to.undo {
		point, r, err := p.Recovered(ctx, id)
		if err == nil && r.Ref == "" {
			err = usage("there is no rollback of %s to undo", id)
		}
		return point, "what " + r.Ref + " has", err
	}
	if to.n == 0 {
		return pool.Point{}, "how it began", nil
	}
	e, ok, err := p.Find(ctx, id)
	if err != nil {
		return pool.Point{}, "", err
	}
	if !ok {
		return pool.Point{}, "", usage("%s has no workspace", id)
	}
	run, err := store.Latest(ctx, p.Root(), id)
	if errors.Is(err, sqlite.ErrNotFound) {
		return pool.Point{}, "", usage("%s has no run whose snapshots could be gone back to", id)
	}
	if err != nil {
		return pool.Point{}, "", err
	}
	tree, err := workspace.Open(ctx, e.Root, workspace.Options{StateDir: autopilot.TreeDir(config.StateDir(p.Root(), a.env), id)})
	if err != nil {
		return pool.Point{}, "", fmt.Errorf("the snapshots of %s cannot be read: %v", id, err)
	}
	snaps, err := tree.Snapshots(ctx, run.ID)
	if err != nil {
		return pool.Point{}, "", err
	}
	for _, s := range snaps {
		if s.N == to.n && s.Attempt == "" {
			return pool.Point{Head: s.Head, Tree: s.Tree}, snapshotName(to.n), nil
		}
	}
	return pool.Point{}, "", usage("run %s of %s has no snapshot %d", run.ID, id, to.n)
}

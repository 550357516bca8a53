package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
)

func (a *app) applyCommand() *cobra.Command {
	var how applying
	cmd := &cobra.Command{
		Use: "apply RUN", Short: "Bring what a run did in its copy into your files",
		Long: "Bring what a run at the level paranoid did in its disposable copy into your files. Only paths that the\n" +
			"run changed are written; if you changed one of them too, nothing is. Commits stay in the copy: files come.\n" +
			"What was there before is kept: pawl rollback RUN --undo gets it back.",
		Example: "  pawl show build --diff\n  pawl apply build --check\n  pawl apply build",
		Args:    exactlyOne("a run or a procedure"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if how.check && how.discard {
				return usage("--check and --discard exclude each other")
			}
			return a.withRun(cmd.Context(), args[0], func(st *sqlite.Store, r sqlite.Run) error {
				return a.apply(cmd.Context(), st, r, how)
			})
		},
	}
	cmd.Flags().BoolVar(&how.check, "check", false, "say what would be done, and do nothing")
	cmd.Flags().BoolVar(&how.discard, "discard", false, "give the result up: remove the copy and what is kept of it")
	return cmd
}

type applying struct{ check, discard bool }

// application is `apply --json`.
type application struct {
	Run string `json:"run"`
	// Status is applied, already, nothing, conflict, check or discarded.
	Status string `json:"status"`
	workspace.Applied
}

func (a *app) apply(ctx context.Context, st *sqlite.Store, r sqlite.Run, how applying) error {
	switch {
	case !workedOnCopy(r):
		return usage("run %s worked in the workspace itself: there is nothing to apply", r.ID).Hint("See what it changed: pawl show %s --diff", r.ID)
	case loop.Status(r.Status).Active() && engine.Alive(r.Owner):
		return usage("run %s is running; its result is not there yet", r.ID).Hint("Stop it first: pawl stop %s", r.ID)
	}
	tree, err := a.tree(ctx, r.Root)
	if err != nil {
		return err
	}
	if how.discard {
		return a.discard(ctx, tree, r)
	}
	if err := a.gather(ctx, st, tree, r); err != nil {
		return err
	}
	done, err := tree.Apply(ctx, r.ID, how.check)
	if err != nil {
		return fault.Of(fault.Failed, err)
	}
	out := application{Run: r.ID, Status: statusOf(done, how.check), Applied: done}
	if out.Status == "applied" {
		a.noteApplied(ctx, st, r, done)
	}
	if a.json {
		err = a.document(out)
	} else {
		a.sayApplied(r, out)
	}
	if err == nil && out.Status == "conflict" {
		err = status(exitFailed)
	}
	return err
}

func statusOf(done workspace.Applied, check bool) string {
	switch {
	case done.Changed == 0:
		return "nothing"
	case len(done.Conflicts) > 0:
		return "conflict"
	case len(done.Written)+len(done.Removed) == 0:
		return "already"
	case check:
		return "check"
	}
	return "applied"
}

// noteApplied records it. The copy of a run that cannot go on has done its work.
func (a *app) noteApplied(ctx context.Context, st *sqlite.Store, r sqlite.Run, done workspace.Applied) {
	what := journal.Application{Written: len(done.Written), Removed: len(done.Removed), Recovery: done.Recovery}
	if _, err := journal.Append(ctx, st, r.ID, time.Now(), journal.Applied, what); err != nil {
		a.say("Warning: %v", err)
	}
	if loop.Status(r.Status) != loop.Completed {
		return
	}
	if err := workspace.RemoveCopy(engine.CopyDir(stateDir(r.Root, a.env), r.ID)); err != nil {
		a.say("Warning: the copy could not be removed: %v", err)
	}
}

func (a *app) sayApplied(r sqlite.Run, out application) {
	switch out.Status {
	case "nothing":
		a.result("Run %s changed nothing.\n", r.ID)
	case "already":
		a.result("Run %s is applied already: all %d file(s) are as it left them.\n", r.ID, out.Changed)
	case "conflict":
		a.result("Nothing was changed: %d file(s) of run %s cannot be applied.\n", len(out.Conflicts), r.ID)
		for _, c := range out.Conflicts {
			a.result("  %s: %s\n", report.Line(c.Path, 300), c.Why)
		}
		a.say("Move your changes of these files away and apply again, or merge by hand: pawl show %s --diff | git apply --3way", r.ID)
	case "check":
		a.result("Run %s can be applied: %d file(s) would be written, %d removed.\n", r.ID, len(out.Written), len(out.Removed))
		a.listPaths(out.Applied)
	case "applied":
		a.result("Applied run %s: %d file(s) written, %d removed. Index, branches and all other files are as they were.\n", r.ID, len(out.Written), len(out.Removed))
		if a.verbose {
			a.listPaths(out.Applied)
		}
		a.say("Commits that the agent made stay out: only files come.")
		a.say("To get back what was there before: pawl rollback %s --undo", r.ID)
	}
}

func (a *app) listPaths(done workspace.Applied) {
	for _, p := range done.Written {
		a.result("  write  %s\n", report.Line(p, 300))
	}
	for _, p := range done.Removed {
		a.result("  remove %s\n", report.Line(p, 300))
	}
}

// discard gives the result of a run up.
func (a *app) discard(ctx context.Context, tree *workspace.Checkout, r sqlite.Run) error {
	err := workspace.RemoveCopy(engine.CopyDir(stateDir(r.Root, a.env), r.ID))
	if err == nil {
		_, err = tree.Forget(ctx, r.ID)
	}
	if err != nil {
		return fault.Of(fault.Failed, fmt.Errorf("cannot give the result of run %s up: %v", r.ID, err))
	}
	if a.json {
		return a.document(application{Run: r.ID, Status: "discarded"})
	}
	a.result("The result of run %s is given up; its copy is removed. Your files were not touched.\n", r.ID)
	return nil
}

// workedOnCopy is whether the run works on a copy of the work tree.
func workedOnCopy(r sqlite.Run) bool {
	var setup struct {
		Copy bool `json:"copy"`
	}
	return json.Unmarshal(r.Setup, &setup) == nil && setup.Copy
}

// gather brings the result of a run from its copy into the repository, as data,
// where it is not there yet.
func (a *app) gather(ctx context.Context, st *sqlite.Store, tree *workspace.Checkout, r sqlite.Run) error {
	records, err := st.Iterations(ctx, r.ID)
	if err != nil {
		return fault.Of(fault.Failed, err)
	}
	n, result, ok := engine.Result(records)
	if !ok {
		return usage("run %s has no result: none of its iterations ended", r.ID).Hint("Go on with it: pawl resume %s", r.ID)
	}
	snaps, err := tree.Snapshots(ctx, r.ID)
	if err != nil {
		return fault.Of(fault.Failed, err)
	}
	if len(snaps) > 0 && snaps[len(snaps)-1].Tree == result {
		return nil
	}
	k, err := tree.OpenCopy(ctx, r.ID, engine.CopyDir(stateDir(r.Root, a.env), r.ID))
	if err == nil {
		err = k.Harvest(ctx, n, result)
	}
	if errors.Is(err, workspace.ErrNoCopy) && len(snaps) == 0 {
		err = errors.New("it was given up, or is kept no longer")
	}
	if err != nil {
		return fault.Of(fault.Failed, fmt.Errorf("cannot get the result of run %s: %v", r.ID, err))
	}
	return nil
}

// sayCopy says where the result of a run that worked on a copy is.
func (s *session) sayCopy(ctx context.Context, run string) {
	if !s.plan.Copy || s.tree == nil {
		return
	}
	snaps, err := s.tree.Snapshots(ctx, run)
	if err != nil || len(snaps) == 0 || snaps[0].Tree == snaps[len(snaps)-1].Tree {
		return
	}
	s.a.say("Your files were not touched: the result is in a copy.")
	s.a.say("  See it:   pawl show %s --diff", run)
	s.a.say("  Apply it: pawl apply %s", run)
}

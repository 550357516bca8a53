package action

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Application is what became of a result: `apply --json`.
type Application struct {
	Run string `json:"run"`
	// Status is applied, already, nothing, conflict or check.
	Status string `json:"status"`
	workspace.Applied
}

// Apply brings the result of a run that worked on a copy into the files; with
// check it only says what would be done. That some files cannot be applied is
// an outcome: then nothing was written.
func (p *Operator) Apply(ctx context.Context, r store.Run, check bool) (Application, error) {
	tree, err := p.applicable(ctx, r)
	if err != nil {
		return Application{}, err
	}
	if err := p.gather(ctx, tree, r); err != nil {
		return Application{}, err
	}
	done, err := tree.Apply(ctx, r.ID, check)
	if err != nil {
		return Application{}, err
	}
	out := Application{Run: r.ID, Status: statusOf(done, check), Applied: done}
	if out.Status == "applied" {
		p.doubt(r, tree, done.Written)
		p.noteApplied(ctx, r, done)
	}
	return out, nil
}

// applicable refuses a run that has no result of its own, and gives the tree
// that it goes into.
func (p *Operator) applicable(ctx context.Context, r store.Run) (*workspace.Checkout, error) {
	switch {
	case !OnCopy(r):
		return nil, fault.Refuse("run %s worked on your files themselves: there is nothing to apply", r.ID).
			Hint("See what it changed: pawl show %s --diff", r.ID)
	case loop.Status(r.Status).Active() && engine.Alive(r.Owner):
		return nil, fault.Refuse("run %s is running; its result is not there yet", r.ID).
			Hint("Stop it first: pawl stop %s", r.ID)
	}
	return p.RootTree(ctx, r.Root)
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
func (p *Operator) noteApplied(ctx context.Context, r store.Run, done workspace.Applied) {
	what := journal.Application{Written: len(done.Written), Removed: len(done.Removed), Recovery: done.Recovery}
	if _, err := journal.Append(ctx, p.Store, r.ID, time.Now(), journal.Applied, what); err != nil {
		p.Say("Warning: %v", err)
	}
	if loop.Status(r.Status) != loop.Completed {
		return
	}
	if err := workspace.RemoveCopy(engine.CopyDir(config.StateDir(r.Root, p.Env), r.ID)); err != nil {
		p.Say("Warning: the copy could not be removed: %v", err)
	}
}

// PrintApplied prints the result of an application; verbose lists its paths.
func (p *Operator) PrintApplied(out Application, verbose bool) {
	switch out.Status {
	case "nothing":
		p.Result("Run %s changed nothing.\n", out.Run)
	case "already":
		p.Result("Run %s is applied already: %s as it left them.\n", out.Run, fault.Numbered(out.Changed, "file"))
	case "conflict":
		p.Result("Nothing was changed: %s of run %s cannot be applied.\n", fault.Numbered(len(out.Conflicts), "file"),
			out.Run)
		for _, c := range out.Conflicts {
			p.Result("  %s: %s\n", report.Line(c.Path, 300), c.Why)
		}
		p.Say("Move your changes of these files away and apply again, or merge by hand: "+
			"pawl show %s --diff | git apply --3way", out.Run)
	case "check":
		p.Result("Run %s can be applied: %s would be written, %d removed.\n", out.Run,
			fault.Numbered(len(out.Written), "file"), len(out.Removed))
		p.listPaths(out.Applied)
	case "applied":
		p.Result("Applied run %s: %s written, %d removed. Index, branches and all other files are as they were.\n",
			out.Run, fault.Numbered(len(out.Written), "file"), len(out.Removed))
		if verbose {
			p.listPaths(out.Applied)
		}
		p.Say("Commits that the agent made stay out: only files come.")
		p.Say("To get back what was there before: pawl rollback %s --undo", out.Run)
	}
}

func (p *Operator) listPaths(done workspace.Applied) {
	for _, path := range done.Written {
		p.Result("  write  %s\n", report.Line(path, 300))
	}
	for _, path := range done.Removed {
		p.Result("  remove %s\n", report.Line(path, 300))
	}
}

// discard gives the result of a run that worked on a copy up.
func (p *Operator) discard(ctx context.Context, tree *workspace.Checkout, r store.Run) error {
	err := workspace.RemoveCopy(engine.CopyDir(config.StateDir(r.Root, p.Env), r.ID))
	if err == nil {
		err = tree.Forget(ctx, r.ID)
	}
	if err != nil {
		return fmt.Errorf("cannot give the result of run %s up: %v", r.ID, err)
	}
	p.Say("The result of run %s is given up; its copy is removed. Your files were not touched.", r.ID)
	return nil
}

// gather brings the result of a run from its copy into the repository, as data,
// where it is not there yet.
func (p *Operator) gather(ctx context.Context, tree *workspace.Checkout, r store.Run) error {
	records, err := p.Store.Iterations(ctx, r.ID)
	if err != nil {
		return err
	}
	n, result, ok := engine.Result(records)
	if !ok {
		return fault.Refuse("run %s has no result: none of its iterations ended", r.ID).
			Hint("Go on with it: pawl resume %s", r.ID)
	}
	snaps, err := tree.Snapshots(ctx, r.ID)
	if err != nil {
		return err
	}
	if len(snaps) > 0 && snaps[len(snaps)-1].Tree == result {
		return nil
	}
	k, err := tree.OpenCopy(ctx, r.ID, engine.CopyDir(config.StateDir(r.Root, p.Env), r.ID))
	if err == nil {
		err = k.Collect(ctx, n, result)
	}
	if errors.Is(err, workspace.ErrNoCopy) && len(snaps) == 0 {
		err = errors.New("it was given up, or is kept no longer")
	}
	if err != nil {
		return fmt.Errorf("cannot get the result of run %s: %v", r.ID, err)
	}
	return nil
}

// Gather makes the result of a run that works on a copy readable in the
// repository, where it is not yet.
func (p *Operator) Gather(ctx context.Context, r store.Run) error {
	tree, err := p.RootTree(ctx, r.Root)
	if err != nil {
		return err
	}
	return p.gather(ctx, tree, r)
}

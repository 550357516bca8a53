package action

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/git"
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

// Back is what a rollback did, or would do.
type Back struct {
	delivery.TakenBack
	Where string // it went, in words
}

// Foresee says which files a rollback to the snapshot n would put back, and where it goes.
func (p *Runs) Foresee(ctx context.Context, r store.Run, n int) (Back, error) {
	return p.rollBackDelivered(ctx, r, BackTo{N: n}, true)
}

// Rollback takes what a run delivered back; it can be undone. A run that is being worked
// on refuses.
func (p *Runs) Rollback(ctx context.Context, r store.Run, to BackTo) error {
	if r.Kind == string(loop.Task) {
		e, task := fault.Refuse("run %s worked on %s, in a workspace of its own", r.ID, r.Name), board.TaskOf(r.Name)
		if TaskOf(ctx, p.Store, r).Status == board.Done {
			return e.Hint("Take back what it landed: pawl revert %s", task)
		}
		return e.Hint("Roll the task back: pawl case rollback %s", task)
	}
	back, err := p.rollBackDelivered(ctx, r, to, false)
	if err != nil {
		return err
	}
	p.reportRestored(back)
	undo := "To get back what was there before: pawl rollback %s --undo"
	if back.isNothing() {
		undo = "A resumed run continues from there. To undo that: pawl rollback %s --undo"
	}
	p.Say(undo, r.ID)
	return nil
}

// rollBackDelivered takes back what iterations after a number delivered, or undoes that.
func (p *Runs) rollBackDelivered(ctx context.Context, r store.Run, to BackTo, dry bool) (Back, error) {
	if loop.Status(r.Status).Active() && storedrun.Alive(r.Owner) {
		return Back{}, fault.Refuse("run %s is running: its next delivery would go on top of the rollback",
			r.ID).
			Hint("Stop it first: pawl stop %s", r.ID)
	}
	if err := p.CheckHere(ctx, r, "rollback"); err != nil {
		return Back{}, err
	}
	person, err := p.RootTree(ctx, r.Root)
	if err != nil && p.Store.BoardName() != "" {
		return Back{}, fault.Refuse("run %s worked on files that are not on this machine: %s", r.ID, r.Root).
			Hint("Roll back on the machine that has them: pawl rollback %s", r.ID)
	}
	if err != nil {
		return Back{}, err
	}
	if !dry {
		if finished, err := p.finishDelivery(ctx, r); err == nil { // else resetDeliveredWork warns
			r = finished
		}
	}
	where, n, o, err := p.planRollback(ctx, person, r, to)
	if err != nil {
		return Back{}, err
	}
	o.Key, o.All, o.Dry = delivery.ByHand, SetupOf(r).Deliveries, dry
	o.Hold = filepath.Join(statedir.Of(r.Root, p.Env), "queue", "checkout.lock")
	before, err := p.lookByHand(ctx, person)
	if err != nil {
		return Back{}, err
	}
	taken, err := delivery.TakeBack(ctx, person, o)
	back := Back{TakenBack: taken, Where: where}
	if err != nil || dry {
		return back, err
	}
	after, err := person.See(ctx, delivery.ByHand)
	if err != nil {
		return back, err
	}
	done := journal.Rollback{To: n, Before: before.Tree, After: after.Tree, FromHead: before.Head.Commit,
		ToHead: after.Head.Commit, Branch: before.Head.Branch}
	_, err = journal.Append(ctx, p.Store, r.ID, time.Now(), journal.RolledBack, done)
	kept := person.KeepTree(ctx, r.ID, "rollback", before.Tree)
	for _, err := range []error{err, kept, p.resetDeliveredWork(ctx, r, n)} {
		if err != nil {
			p.Say("Warning: %v", err)
		}
	}
	return back, nil
}

// resetDeliveredWork has the run go on, if it does, from where its delivered work is now.
func (p *Runs) resetDeliveredWork(ctx context.Context, r store.Run, n int) error {
	w, err := p.workspaceOf(ctx, r)
	if errors.Is(err, delivery.ErrGone) {
		return nil
	}
	if err == nil {
		err = errors.Join(w.GoBack(ctx, n), w.Release(ctx, delivery.Kept))
	}
	if err != nil {
		return fmt.Errorf("the workspace of the run was not changed: %w", err)
	}
	return nil
}

// planRollback returns the steps and deliveries to undo, the target in words, and the
// number of the iteration that the run is at afterwards.
func (p *Runs) planRollback(ctx context.Context, person *workspace.Checkout, r store.Run, to BackTo,
) (where string, n int, o delivery.BackOptions, err error) {
	if to.Undo {
		where = "what was there before the last rollback"
		last, again, ok, err := p.lastRollback(ctx, r.ID)
		if n = -1; last.To < 0 { // an undo is undone
			n = again
		}
		if err == nil && !ok {
			err = fault.Refuse("there is no rollback of run %s to undo", r.ID)
		}
		o.Steps = []delivery.Step{{Before: last.Before, After: last.After}}
		o.Deliveries = []delivery.Delivered{{From: last.FromHead, To: last.ToHead, Branch: last.Branch,
			Apart: takeApartAgain(r, again, last.To >= 0)}}
		return where, n, o, err
	}
	if n, err = snapshotOf(ctx, person, r.ID, to.N); err != nil {
		return "", n, o, err
	}
	records, err := p.Store.Iterations(ctx, r.ID)
	if err != nil {
		return "", n, o, err
	}
	for _, rec := range records {
		step := delivery.Step{Before: rec.TreeBefore, After: rec.TreeAfter}
		switch {
		case step.Before == "" || step.After == "":
		case rec.Number > n:
			o.Steps = append(o.Steps, step)
		default:
			o.Earlier = append(o.Earlier, step)
		}
	}
	for _, d := range SetupOf(r).Deliveries {
		if d.Iteration > n {
			o.Deliveries = append(o.Deliveries, d)
		}
	}
	return snapshotName(n), n, o, nil
}

// takeApartAgain lists what a rollback to an iteration took back of what no snapshot has, reversed
// where that was done last: what undoes it takes that back.
func takeApartAgain(r store.Run, to int, isBack bool) (all []delivery.Piece) {
	for _, d := range SetupOf(r).Deliveries {
		for _, piece := range d.Apart {
			if isBack {
				piece.Before, piece.After = piece.After, piece.Before
			}
			if d.Iteration > to {
				all = append(all, piece)
			}
		}
	}
	if isBack {
		slices.Reverse(all)
	}
	return all
}

// RolledBack reports whether there is a rollback of a run to undo.
func (p *Runs) RolledBack(ctx context.Context, run string) (bool, error) {
	_, _, ok, err := p.lastRollback(ctx, run)
	return ok, err
}

// lastRollback is the last rollback of a run, or the last time that one was undone; to is
// where the last one went that undid none.
func (p *Runs) lastRollback(ctx context.Context, run string) (last journal.Rollback, to int, ok bool, err error) {
	for e, err := range journal.Read(ctx, p.Store, run, 0) {
		if err != nil {
			return last, to, false, err
		}
		if e.Kind == journal.RolledBack {
			var back journal.Rollback
			if err := json.Unmarshal(e.Data, &back); err != nil {
				return last, to, false, err
			}
			if last, ok = back, back.After != ""; back.To >= 0 {
				to = back.To
			}
		}
	}
	return last, to, ok, nil
}

func (b Back) isNothing() bool {
	return len(b.Written)+len(b.Removed)+len(b.Left) == 0 && b.BranchTo == ""
}

func (p *Runs) reportRestored(back Back) {
	restored, removed := len(back.Written), len(back.Removed)
	switch {
	case back.isNothing():
		p.Say("There was nothing to take back: your files have nothing newer than %s.", back.Where)
	case restored+removed == 0 && len(back.Left) > 0 && back.BranchTo == "":
		p.Say("Nothing was restored in your files, to keep what you changed in them.")
	default:
		p.Say("Restored %s: %s restored, %d removed.", back.Where, fault.Numbered(restored, "file"), removed)
	}
	switch {
	case back.BranchTo != "":
		p.Say("The branch was moved too, to %s.", back.BranchTo)
	case back.WhyNot != "" && restored+removed > 0:
		p.Say("Note: the branch stays: %s. What was taken back in your files is not committed", back.WhyNot)
	case back.WhyNot != "":
		p.Say("Note: the branch stays: %s", back.WhyNot)
	}
	if len(back.Persons) > 0 {
		p.Say("Note: as you had it before the delivery, with your own changes: %s", deliver.Some(back.Persons))
	}
	const most = 100
	for _, left := range back.Left[:min(len(back.Left), most)] {
		p.Say("Note: %s was not changed: %s", report.Line(left.Path, 300), left.Why)
	}
	if n := len(back.Left) - most; n > 0 {
		p.Say("Note: %d more were not changed", n)
	}
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
		return n, fault.Refuse("run %s has no snapshot %d", run, n).
			Hint("It has %d to %d", snaps[0].N, snaps[len(snaps)-1].N)
	}
	return n, nil
}

func snapshotName(n int) string {
	if n == 0 {
		return "the state before the run"
	}
	return fmt.Sprintf("the snapshot after iteration %d", n)
}

// RootTree is the tree of a root itself. It fails where there are no snapshots.
func (p *Runs) RootTree(ctx context.Context, root string) (*workspace.Checkout, error) {
	tree, err := workspace.Open(ctx, root, workspace.Options{StateDir: statedir.Of(root, p.Env)})
	if err != nil {
		return nil, fmt.Errorf("there are no snapshots: %v", err)
	}
	return tree, nil
}

// Pool opens the workspaces of the repository that a configuration is for.
func Pool(ctx context.Context, c *config.Config, env []string, db *store.Store) (*pool.Pool, error) {
	repo, err := git.Open(ctx, c.Root)
	if err != nil {
		return nil, err
	}
	if err := checkHidden(ctx, c, env, repo); err != nil {
		return nil, err
	}
	return pool.Open(ctx, pool.Options{
		Repo: repo, Root: c.Root, StateDir: statedir.Of(c.Root, env), Dir: string(c.Workspace.Root), Store: db,
		Copy: c.Workspace.Copy, Setup: c.Workspace.Setup, Retention: c.Workspace.Retention.Std(),
		KeepOnSuccess: c.Workspace.KeepOnSuccess, SignOff: c.Merge.Signoff, MaxFile: int64(c.Snapshot.MaxFile),
		Warm: c.Autopilot.MaxParallel + 1, // the gates before a landing need one too
	})
}

// Tree opens the checkout that has the snapshots of the run.
func (p *Runs) Tree(ctx context.Context, r store.Run) (*workspace.Checkout, error) {
	return p.RootTree(ctx, r.Root)
}

// Setup is how a run was started last, as far as others than its process need it.
type Setup struct {
	storedrun.Setup
	Flags planner.Flags `json:"flags"`
}

// ListUndelivered lists which of the run's work is not in the user's files below top,
// and the commands that bring it there.
func (s Setup) ListUndelivered(ctx context.Context, db *store.Store, top, run string, st loop.Status) (lines []string) {
	if s.Undelivered != "" {
		what := "the run's work" // all of it is commits, or its files could not be counted
		if s.UndeliveredFiles > 0 {
			what = fault.Numbered(s.UndeliveredFiles, "file") + " of " + what
		}
		lines = append(lines, fmt.Sprintf("Not in your files: %s; %s.", what, s.Undelivered),
			"  See it:     pawl show "+run+" --diff")
		canResume, back := CanContinue(st), ""
		if s.UndeliveredBack != "" {
			back = "git checkout " + s.UndeliveredBack + " && "
		}
		if s.Choose {
			lines = append(lines, "  Choose:     pawl settle "+run)
		}
		if !s.Choose || !canResume {
			lines = append(lines, "  Apply it:   "+back+"pawl apply "+run)
		}
		if canResume {
			lines = append(lines, "  Continue:   "+back+"pawl resume "+run)
		}
		lines = append(lines, "  Discard it: pawl discard "+run)
	}
	row, _, err := db.Workspace(ctx, s.Private)
	if err != nil {
		return lines
	}
	return append(lines, delivery.OnlyThere(s.Only, row.Dir, top, run)...)
}

// CanContinue reports whether a run that is over with a status has iterations left.
func CanContinue(st loop.Status) bool {
	return st != loop.Completed && st != loop.Exhausted && st != loop.TimedOut
}

// SetupOf reads it; of a run that has none it says nothing.
func SetupOf(r store.Run) (s Setup) {
	_ = json.Unmarshal(r.Setup, &s)
	if s.Private != "" && s.Undelivered == "" && storedrun.DiedUndelivered(r) {
		s.Undelivered = "pawl ended before it delivered the work; continue with: pawl resume " + r.ID
		s.UndeliveredNeeds = true
	}
	return s
}

// PlaceOf is the folder in which the agents of a run worked.
func PlaceOf(r store.Run) string { return cmp.Or(SetupOf(r).Place, r.Root) }

func staysPending(c board.Case) bool { return c.Status == board.Pending && c.Type == board.Task }

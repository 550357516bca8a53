package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// RemoteHost returns the machine that has the work of a run; "" where that is this one, or
// not known.
func (p *Runs) RemoteHost(ctx context.Context, r store.Run) string {
	host := SetupOf(r).Host
	here, err := os.Hostname()
	if p.Store.BoardName() == "" || r.Iteration == 0 || err != nil || host == here {
		return ""
	}
	if tree, err := p.Tree(ctx, r); err == nil {
		snaps, err := tree.Snapshots(ctx, r.ID)
		if err == nil && len(snaps) > 0 && snaps[len(snaps)-1].N >= r.Iteration-1 {
			return "" // the machine was called otherwise then
		}
	}
	return host
}

// CheckHere refuses a run whose work is on another machine: what is here is another clone. The command does
// there what was asked for.
func (p *Runs) CheckHere(ctx context.Context, r store.Run, command string) error {
	host := p.RemoteHost(ctx, r)
	if host == "" {
		return nil
	}
	e := fault.Refuse("the work of run %s is not on this machine: it is in %s on %s", r.ID, PlaceOf(r), host).
		Hint("Do it there: pawl %s %s", command, r.ID)
	if r.Kind == string(loop.Task) {
		return e
	}
	return e.Hint("If %s no longer exists, its work does not either; start over here: %s", host, StartCommand(r))
}

// TaskElsewhere returns the last run of a task, and the machine that has its workspace; "" where that is
// this one, or there is none.
func (p *Runs) TaskElsewhere(ctx context.Context, id string) (store.Run, string, error) {
	r, err := p.Store.Latest(ctx, p.Root, id)
	if errors.Is(err, store.ErrNotFound) {
		return r, "", nil
	}
	if err != nil {
		return r, "", err
	}
	return r, p.RemoteHost(ctx, r), nil
}

// CleanElsewhere explains that the workspace of a task has to be removed on another machine; nil where there is none.
func (p *Runs) CleanElsewhere(ctx context.Context, id string) error {
	r, host, err := p.TaskElsewhere(ctx, id)
	if err != nil || host == "" || TaskOf(ctx, p.Store, r).Status == board.Done {
		return err
	}
	return fault.Refuse("the workspace of %s is not on this machine: it is %s on %s", id, PlaceOf(r), host).
		Hint("Remove it there: pawl case clean %s", id).
		Hint("If %s no longer exists, there is nothing to remove", host)
}

// Work is what a run did, as two commits or trees that Tree has. That of a task's run is all that the task's
// runs have done until its end.
type Work struct {
	Tree     *workspace.Checkout
	From, To string
	Said     string // whence it is; "" is this machine's snapshots

	began string // the tree before the run, where From has the person's later edits, too
}

// PersonsEdits are the files that the person changed while the run worked, and that came
// into its workspace.
func (w *Work) PersonsEdits(ctx context.Context) ([]string, error) {
	if w.began == "" || w.began == w.From {
		return nil, nil
	}
	changes, err := w.Tree.TreeChanges(ctx, w.began, w.From)
	return lists.Each(changes, func(c git.Change) string { return c.Path }), err
}

// WorkOf is the work of a run, by its snapshots, or else what landed of it, or what another machine sent to the
// remote last. It refuses where nothing can be had.
func (p *Runs) WorkOf(ctx context.Context, r store.Run) (w Work, err error) {
	if w.Tree, err = p.Tree(ctx, r); err == nil {
		snaps, err := w.Tree.Snapshots(ctx, r.ID)
		if err != nil {
			return w, err
		}
		if len(snaps) > 0 {
			base := delivery.BaseOf(statedir.Of(r.Root, p.Env), r.ID)
			w.From, w.To = cmp.Or(SetupOf(r).TaskBase, base, snaps[0].Tree), snaps[len(snaps)-1].Tree
			if w.From == base {
				w.began = snaps[0].Tree
			}
			return w, nil
		}
	}
	task, shared := r.Kind == string(loop.Task), p.Store.BoardName() != ""
	if !task && !shared {
		return w, p.errorUnavailable(ctx, r)
	}
	if w.Tree, err = p.RootTree(ctx, p.Root); err != nil {
		return w, err
	}
	pl, err := p.Planner(p.Root, planner.Flags{})
	if err != nil {
		return w, err
	}
	found := false
	if task {
		found, err = p.findLanded(ctx, r, pl, &w)
	}
	if err == nil && !found && shared {
		found, err = p.findPushedWork(ctx, r, pl.Config.Cluster.Remote, 0, -1, &w)
	}
	if err == nil && !found {
		err = p.errorUnavailable(ctx, r)
	}
	return w, err
}

// errorUnavailable explains to the user where the work of the run is, or that it is lost.
func (p *Runs) errorUnavailable(ctx context.Context, r store.Run) error {
	if host := p.RemoteHost(ctx, r); host != "" {
		return fault.Refuse("the work of run %s is not on this machine, and was not sent to the remote", r.ID).
			Hint("It is in %s on %s: run this there", PlaceOf(r), host)
	}
	_, err := p.Tree(ctx, r)
	switch {
	case err != nil && r.Kind != string(loop.Task) && p.Store.BoardName() != "":
		return fault.Refuse("run %s worked on files that are not on this machine: %s", r.ID, r.Root)
	case err != nil:
		return err
	}
	return fault.Refuse("run %s has no snapshots", r.ID)
}

// findLanded returns the run's work as it is on the branch that work lands on.
func (p *Runs) findLanded(ctx context.Context, r store.Run, pl *planner.Planner, w *Work) (bool, error) {
	repo, err := git.OpenStore(ctx, pl.Config.Root)
	if err != nil {
		return false, err
	}
	target, err := LandingTarget(ctx, pl.Config, repo)
	if err != nil {
		return false, nil //nolint:nilerr // there is no such branch
	}
	list, err := p.Store.Landings(ctx, target, r.Name, 1)
	if err != nil || len(list) == 0 || list[0].Run != r.ID || list[0].Empty {
		return false, err
	}
	w.To = list[0].Commit
	w.From, err = repo.Find(ctx, list[0].Before())
	w.Said = "This is what it landed, as commit " + w.To[:min(len(w.To), 10)] + "."
	return w.From != "", err
}

// WorkBetween finds what a run did from the end of one iteration to that of another one, as another machine sent it
// to the remote. From 0 to -1 it is [Runs.WorkOf]. known is false where the snapshots of this machine say it.
func (p *Runs) WorkBetween(ctx context.Context, r store.Run, from, to int) (w Work, known bool, err error) {
	if from == 0 && to < 0 {
		w, err = p.WorkOf(ctx, r)
		return w, err == nil || p.Store.BoardName() != "", err
	}
	if p.RemoteHost(ctx, r) == "" {
		return w, false, nil
	}
	pl, err := p.Planner(p.Root, planner.Flags{})
	if err == nil {
		w.Tree, err = p.RootTree(ctx, p.Root)
	}
	found := false
	if err == nil {
		found, err = p.findPushedWork(ctx, r, pl.Config.Cluster.Remote, from, to, &w)
	}
	if err == nil && !found {
		err = p.errorUnavailable(ctx, r)
	}
	return w, true, err
}

// findPushedWork fills w with what another machine pushed to the remote at the end of two iterations; 0 is the start of
// the work, -1 the last one that was pushed. It returns false if no iteration pushed any.
func (p *Runs) findPushedWork(ctx context.Context, r store.Run, remote string, from, to int, w *Work) (bool, error) {
	records, err := p.Store.Iterations(ctx, r.ID)
	if err != nil {
		return false, err
	}
	isLast := to < 0
	if isLast {
		to = math.MaxInt
	}
	last := pushedUntil(records, to)
	if isLast && last != nil && last.Pushed.Commit == "" { // the last one did not get there
		last = pushedUntil(slices.DeleteFunc(records, func(rec loop.Record) bool {
			return rec.Pushed != nil && rec.Pushed.Commit == ""
		}), to)
	}
	if last == nil || last.Pushed.Commit == "" {
		return false, nil
	}
	w.From, w.To = last.Pushed.Base, last.Pushed.Commit
	if first := pushedUntil(records, from); from > 0 && first != nil {
		w.From = first.Pushed.Commit
	}
	for _, commit := range []string{w.From, w.To} {
		if commit == last.Pushed.Base {
			continue // it came from the target
		}
		ref := "refs/pawl/base/" + r.Name + "/shown"
		found, err := w.Tree.Repo.FetchWork(ctx, remote, r.Name, commit, ref)
		if err != nil {
			return false, err
		}
		_ = w.Tree.Repo.DropRefs(ctx, ref) // no gc takes what is so new
		if !found {
			w.From = ""
		}
	}
	if w.From, err = w.Tree.Repo.Find(ctx, w.From); err != nil {
		return false, err
	}
	if w.From == "" {
		return false, fault.Refuse("the work of run %s is no longer on this machine or on the remote %s",
			r.ID, remote).
			Hint("See what it landed: git log --first-parent --grep '^%s: '", r.Name)
	}
	w.Said = fmt.Sprintf("This is what %s sent to %s after iteration %d.", last.Pushed.Worker, remote, last.Number)
	return true, nil
}

// pushedUntil returns the last record until an iteration that says where its work was sent.
func pushedUntil(records []loop.Record, n int) *loop.Record {
	for i := range slices.Backward(records) {
		if r := &records[i]; r.Pushed != nil && r.Number <= n {
			return r
		}
	}
	return nil
}

package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// remoteHost returns the machine that has the work of a run; "" where that is this one, or
// not known.
func (p *Runs) remoteHost(ctx context.Context, r store.Run) string {
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

// checkHere refuses a run whose work is on another machine: what is here is another clone.
func (p *Runs) checkHere(ctx context.Context, r store.Run) error {
	host := p.remoteHost(ctx, r)
	if host == "" {
		return nil
	}
	e := fault.Refuse("the work of run %s is not on this machine: it is in %s on %s", r.ID, PlaceOf(r), host).
		Hint("Continue it there:   pawl resume %s", r.ID)
	if r.Kind == string(loop.Procedure) {
		e = e.Hint("Or start over here:  pawl run %s", r.Name)
	}
	return e
}

// taskHere refuses a task whose workspace is on another machine.
func (p *Runs) taskHere(ctx context.Context, id, command string) error {
	r, err := p.Store.Latest(ctx, p.Root, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if host := p.remoteHost(ctx, r); host != "" {
		return fault.Refuse("the workspace of %s is not on this machine: it is %s on %s; nothing was changed",
			id, PlaceOf(r),
			host).Hint("Do it there: %s", command)
	}
	return nil
}

// Work is what a run did, as two commits or trees that Tree has. That of a task's run is all that the task's
// runs have done until its end.
type Work struct {
	Tree     *workspace.Checkout
	From, To string
	Said     string // whence it is; "" is this machine's snapshots
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
		found, err = p.findPushedWork(ctx, r, pl.Config.Cluster.Remote, &w)
	}
	if err == nil && !found {
		err = p.errorUnavailable(ctx, r)
	}
	return w, err
}

// errorUnavailable explains to the user where the work of the run is, or that it is lost.
func (p *Runs) errorUnavailable(ctx context.Context, r store.Run) error {
	if host := p.remoteHost(ctx, r); host != "" {
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

// findPushedWork fills w with the last commit that another machine pushed to the remote.
// It returns false if no iteration pushed one.
func (p *Runs) findPushedWork(ctx context.Context, r store.Run, remote string, w *Work) (bool, error) {
	records, err := p.Store.Iterations(ctx, r.ID)
	if err != nil {
		return false, err
	}
	i := len(records) - 1
	for i >= 0 && (records[i].Pushed == nil || records[i].Pushed.Commit == "") {
		i--
	}
	if i < 0 {
		return false, nil
	}
	work := records[i].Pushed
	ref := "refs/pawl/base/" + r.Name + "/shown"
	found, err := w.Tree.Repo.FetchWork(ctx, remote, r.Name, work.Commit, ref)
	if err != nil {
		return false, err
	}
	_ = w.Tree.Repo.DropRefs(ctx, ref) // no gc takes what is so new
	if w.From, err = w.Tree.Repo.Find(ctx, work.Base); err != nil {
		return false, err
	}
	if !found || w.From == "" {
		return false, fault.Refuse("the work of run %s is no longer on this machine or on the remote %s",
			r.ID, remote).
			Hint("See what it landed: git log --first-parent --grep '^%s: '", r.Name)
	}
	w.To = work.Commit
	w.Said = fmt.Sprintf("This is what %s sent to %s after iteration %d.", work.Worker, remote, records[i].Number)
	return true, nil
}

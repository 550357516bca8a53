package run

import (
	"context"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/internal/workspace"
)

// maxDiff bounds what show --diff prints.
const maxDiff = 10 << 20

func showDiff(ctx context.Context, a *command.App, p *action.Operator, r store.Run) error {
	tree, snaps, err := snapshots(ctx, p, r)
	if shared := p.Store.Board() != ""; shared && len(snaps) == 0 {
		return showPushed(ctx, a, p, r)
	}
	if err != nil {
		return err
	}
	if len(snaps) == 0 {
		return command.Usage("run %s has no snapshots", r.ID)
	}
	return printDiff(ctx, a, tree, snaps[0].Commit, snaps[len(snaps)-1].Commit)
}

// snapshots are those of a run whose tree is on this machine.
func snapshots(
	ctx context.Context, p *action.Operator, r store.Run,
) (*workspace.Checkout, []workspace.Snapshot, error) {
	tree, err := p.Tree(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	if action.OnCopy(r) {
		if err := p.Gather(ctx, r); err != nil {
			return nil, nil, err
		}
	}
	snaps, err := tree.Snapshots(ctx, r.ID)
	return tree, snaps, err
}

// showPushed shows the work of another machine as it sent it to the remote last.
func showPushed(ctx context.Context, a *command.App, p *action.Operator, r store.Run) error {
	records, err := p.Store.Iterations(ctx, r.ID)
	if err != nil {
		return err
	}
	i := len(records) - 1
	for i >= 0 && (records[i].Pushed == nil || records[i].Pushed.Commit == "") {
		i--
	}
	if i < 0 {
		return command.Usage("the work of run %s is not on this machine, and was not sent to the remote", r.ID).
			Hint("It is in %s, on the machine that worked on it: run this there", action.PlaceOf(r))
	}
	c, err := a.Peek()
	if err != nil {
		return err
	}
	tree, err := p.RootTree(ctx, p.Root)
	if err != nil {
		return err
	}
	work := records[i].Pushed
	ref := "refs/pawl/base/" + r.Name + "/shown"
	found, err := tree.Repo.FetchWork(ctx, c.Cluster.Remote, r.Name, work.Commit, ref)
	if err != nil {
		return err
	}
	defer func() { _ = tree.Repo.DropRefs(ctx, ref) }() // one that stays is dropped by the next
	base, err := tree.Repo.Find(ctx, work.Base)
	if err != nil {
		return err
	}
	if !found || base == "" {
		return command.Usage("the work of run %s is neither on this machine nor on the remote %s any more",
			r.ID, c.Cluster.Remote).
			Hint("What landed of it: git log --first-parent --grep '^%s: '", r.Name)
	}
	a.Say("This is what %s sent to %s after iteration %d.", work.Worker, c.Cluster.Remote, records[i].Number)
	return printDiff(ctx, a, tree, base, work.Commit)
}

func printDiff(ctx context.Context, a *command.App, tree *workspace.Checkout, from, to string) error {
	patch, cut, err := tree.Diff(ctx, from, to, maxDiff)
	if err != nil {
		return err
	}
	a.Result("%s", patch)
	if cut {
		a.Say("The patch is cut at 10 MB. The whole: git diff %s %s", from, to)
	}
	return nil
}

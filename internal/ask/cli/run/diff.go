package run

import (
	"context"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// maxDiff bounds what show --diff prints.
const maxDiff = 10 << 20

func showDiff(ctx context.Context, a *command.App, p *action.Operator, r store.Run) error {
	tree, snaps, err := snapshots(ctx, p, r)
	if len(snaps) > 0 {
		return printDiff(ctx, a, tree, snaps[0].Commit, snaps[len(snaps)-1].Commit)
	}
	if local := p.Store.Board() == ""; err != nil && local && r.Kind != string(loop.Task) {
		return err
	}
	w, err := p.WorkOf(ctx, r)
	if err != nil {
		return err
	}
	a.Say("%s", w.Said)
	return printDiff(ctx, a, w.Tree, w.From, w.To)
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

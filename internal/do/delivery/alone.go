package delivery

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
)

// This file is about commits of an agent that are not what the gates judged, since it left
// other files uncommitted: the branch gets a commit only if its own tree is green.

// listLooseChanges compares a tree of all files with that of a commit, and leaves out
// what the person has not committed, unless the agent's commits had it: that was there before.
func (w *Workspace) listLooseChanges(ctx context.Context, commit, tree string) ([]git.Change, error) {
	changes, err := w.changesSince(ctx, commit, tree)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	before, err := w.changesSince(ctx, w.agreed.Head, w.agreed.Tree)
	if err != nil {
		return nil, err
	}
	run, persons := lists.Set(slices.Concat(w.agreed.Loose, w.agreed.Withheld)), map[git.Change]bool{}
	for _, ch := range before {
		persons[ch] = !run[ch.Path]
	}
	return lists.Pick(changes, func(ch git.Change) (git.Change, bool) { return ch, !persons[ch] }), nil
}

// changesSince are the changes from a commit, or from none, to a tree.
func (w *Workspace) changesSince(ctx context.Context, commit, tree string) ([]git.Change, error) {
	from, err := treeOfCommit(ctx, w.o.Person.Store, commit)
	if err != nil {
		return nil, err
	}
	return w.tree.TreeChanges(ctx, from, tree)
}

// treeOfCommitsOnly is the tree of the agent's commits, with what the person has not committed, and the
// changes that it left uncommitted.
func (w *Workspace) treeOfCommitsOnly(ctx context.Context, u Undelivered) (tree string, loose []git.Change, err error) {
	loose, err = w.listLooseChanges(ctx, u.Head.Commit, u.Tree)
	if err != nil || len(loose) == 0 {
		return u.Tree, nil, err
	}
	tree, err = w.tree.TreeWith(ctx, w.run, u.Tree, lists.Each(loose, reverseChange))
	return tree, loose, err
}

// listLoosePaths lists what the agent left uncommitted; nothing where its commits alone
// are green.
func (w *Workspace) listLoosePaths(ctx context.Context, u Undelivered) ([]string, error) {
	tree, loose, err := w.treeOfCommitsOnly(ctx, u)
	if err != nil || tree == w.agreed.Green {
		return nil, err
	}
	return lists.Each(loose, func(ch git.Change) string { return ch.Path }), nil
}

// SetAside takes out of the workspace what the agent left uncommitted beside commits that
// are not delivered, for gates to judge these alone, and returns its paths. With none
// nothing is done, nor where a person asks for deliveries. The caller calls
// [Workspace.TakeBack]; a later process does it otherwise.
func (w *Workspace) SetAside(ctx context.Context, iteration int) ([]string, error) {
	if w.o.When == deliver.Asked {
		return nil, nil
	}
	u, err := w.AtSnapshot(ctx, iteration)
	if err != nil || u.Commits <= 0 {
		return nil, err
	}
	tree, loose, err := w.treeOfCommitsOnly(ctx, u)
	if err != nil || len(loose) == 0 || tree == w.agreed.Green {
		return nil, err
	}
	next := w.agreed
	w.judging, next.Aside = tree, u.Tree
	if err := w.storeAgreed(next); err != nil {
		return nil, err
	}
	err = w.restoreTree(ctx, tree)
	return lists.Each(loose, func(ch git.Change) string { return ch.Path }), err
}

// TakeBack has the workspace be as it was before [Workspace.SetAside]. green is what the
// gates said.
func (w *Workspace) TakeBack(ctx context.Context, green bool) error {
	if err := w.restoreTree(ctx, w.agreed.Aside); err != nil {
		return fmt.Errorf("cannot bring back what the agent did not commit: %w", err)
	}
	next := w.agreed
	if next.Aside = ""; green {
		next.Green = w.judging
	}
	return w.storeAgreed(next)
}

// restoreTree makes the files those of a tree.
func (w *Workspace) restoreTree(ctx context.Context, tree string) error {
	now, err := w.tree.See(ctx, w.run)
	if err != nil {
		return err
	}
	return w.tree.PutBack(ctx, w.run, workspace.Seen{Tree: tree, Head: now.Head, Skipped: now.Skipped})
}

// BaseOf reads the tree that the work of a run with a private workspace is compared with; "" if it is
// not known.
func BaseOf(stateDir, run string) string {
	w := Workspace{at: pool.Workspace{Own: runWorkFolder(stateDir, run)}}
	_ = w.readAgreed() // without it the tree before the run is compared
	return w.agreed.Base
}

// WorkBase returns the tree that the work is compared with; "" of no workspace, and if it is not known.
func WorkBase(w *Workspace) string {
	if w == nil {
		return ""
	}
	return w.agreed.Base
}

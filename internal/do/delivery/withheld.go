package delivery

import (
	"bytes"
	"context"
	"slices"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
)

// This file is about commits of an agent that have what the person has not committed: the workspace
// begins with it, and `git add -A` takes it along.

// uncommitted has by path what the person changed, or staged, and did not commit. What deliveries brought is
// not among it.
type uncommitted struct {
	*Workspace
	changes map[string]git.Change
	index   map[string]Side
}

func findUncommitted(ctx context.Context, w *Workspace) (uncommitted, error) {
	changes, err := w.changesSince(ctx, w.agreed.Head, w.agreed.Tree)
	if err != nil {
		return uncommitted{}, err
	}
	staged, err := w.o.Person.Repo.IndexEntries(ctx)
	if err != nil {
		return uncommitted{}, err
	}
	filtered, err := w.o.Person.Repo.Filtered(ctx, lists.Each(changes, func(ch git.Change) string { return ch.Path }))
	u := uncommitted{
		Workspace: w,
		changes:   lists.ToMap(changes, func(ch git.Change) (string, git.Change) { return ch.Path, ch }),
		index:     lists.ToMap(staged, func(e git.Entry) (string, Side) { return e.Path, Side{e.Mode, e.Object} }),
	}
	for _, path := range slices.Concat(w.agreed.Loose, filtered) {
		delete(u.changes, path)
		delete(u.index, path)
	}
	return u, err
}

// AlignHead makes the agent's commits follow what is delivered, without what the person has not committed:
// commits that differ are made again, and the files stay. say gets what a person should know. No agent
// works in the workspace; a nil one has nothing to align.
func (w *Workspace) AlignHead(ctx context.Context, say func(string)) {
	if w == nil {
		return
	}
	if err := w.alignHead(ctx, say); err != nil && ctx.Err() == nil {
		say("cannot read the agent's commits: " + err.Error())
	}
}

func (w *Workspace) alignHead(ctx context.Context, say func(string)) error {
	head, err := w.tree.Head(ctx)
	if err != nil || head.Commit == w.agreed.Head {
		return err
	}
	commit, err := w.onTop(ctx, head.Commit)
	var persons uncommitted
	if err == nil {
		persons, err = findUncommitted(ctx, w)
	}
	if err == nil {
		commit, err = persons.withholdPersons(ctx, commit, say)
	}
	if err != nil || commit == head.Commit {
		return err
	}
	if err := w.tree.Clone().Lend(ctx, w.o.Person.Store, w.agreed.Head, commit); err != nil {
		return err
	}
	return w.tree.Clone().SetHead(ctx, git.Head{Commit: commit, Branch: head.Branch})
}

// withholdPersons makes the commits of an agent again without what the person has changed and not
// committed. Where both changed the same lines, the commits are without the file.
func (w uncommitted) withholdPersons(ctx context.Context, head string, say func(string)) (string, error) {
	commits, err := commitsTo(ctx, w.o.Person.Store, w.agreed.Head, head)
	if err != nil {
		return "", err
	}
	at, held := w.agreed.Head, []string(nil)
	for _, c := range commits {
		changes, err := w.changesSince(ctx, w.agreed.Head, c[0])
		if err != nil {
			return "", err
		}
		persons, _, err := w.splitChanges(ctx, changes)
		if err != nil {
			return "", err
		}
		held = lists.Union(held, lists.Each(persons, func(ch git.Change) string { return ch.Path })...)
		for i := range persons {
			if persons[i], err = w.onlyAgents(ctx, persons[i]); err != nil {
				return "", err
			}
		}
		if at, err = w.commitWith(ctx, c, persons, at); err != nil {
			return "", err
		}
	}
	if len(held) == 0 {
		return at, nil
	}
	say("the agent committed your uncommitted " + deliver.Some(held) + ": its commits are made again without your " +
		"changes, which stay uncommitted")
	next := w.agreed
	next.Withheld = lists.Union(next.Withheld, held...)
	return at, w.storeAgreed(next)
}

// commitsTo lists the commits from one to another, each with its parent: as one where there are merges.
func commitsTo(ctx context.Context, store *git.Repo, began, head string) ([][]string, error) {
	commits, err := store.Since(ctx, began, head)
	if slices.ContainsFunc(commits, func(c []string) bool { return len(c) > 2 }) {
		commits = [][]string{{head, began}}
	}
	return commits, err
}

// onlyAgents changes a file of a commit to what the agent alone has changed there, or to what it was.
func (w uncommitted) onlyAgents(ctx context.Context, ch git.Change) (git.Change, error) {
	was := w.changes[ch.Path]
	side, ok, err := w.mergeFile(ctx, Conflict{Base: sideAfter(was), Mine: sideBefore(was), Agent: sideAfter(ch)})
	if !ok {
		return reverseChange(ch), err
	}
	return git.Change{Path: ch.Path, NewMode: side.Mode, NewObject: side.Object}, nil
}

// commitWith makes a commit again, on another parent and with changes; one of which nothing is left is left
// out.
func (w uncommitted) commitWith(ctx context.Context, c []string, changes []git.Change, at string,
) (string, error) {
	if len(changes) == 0 && append(c, "")[1] == at {
		return c[0], nil
	}
	store := w.o.Person.Store
	tree, err := treeOf(ctx, store, c[0])
	if err == nil && len(changes) > 0 {
		tree, err = w.tree.TreeWith(ctx, w.run, tree, changes)
	}
	if err != nil {
		return "", err
	}
	was, err := treeOf(ctx, store, at)
	if err != nil {
		return "", err
	}
	if was == tree && len(changes) > 0 {
		return at, nil
	}
	return store.CommitAgain(ctx, c[0], tree, at)
}

// splitChanges divides changes into those of files that the person has changed or staged, and others.
func (w uncommitted) splitChanges(ctx context.Context, changes []git.Change) (persons, others []git.Change, err error) {
	for _, ch := range changes {
		was, isPersons := w.changes[ch.Path]
		if isPersons {
			isSame, err := w.isSameText(ctx, was.OldObject, was.NewObject)
			if err != nil {
				return nil, nil, err
			}
			isPersons = !isSame
		}
		isStaged := ch.NewObject != "" && w.index[ch.Path] == sideAfter(ch)
		if isPersons || isStaged {
			persons = append(persons, ch)
		} else {
			others = append(others, ch)
		}
	}
	return persons, others, nil
}

// isSameText compares files but for line ends, which git may store as others.
func (w uncommitted) isSameText(ctx context.Context, a, b string) (bool, error) {
	if a == "" || b == "" || a == b {
		return a == b, nil
	}
	texts, err := w.tree.Contents(ctx, mergeLimit, a, b)
	if err != nil {
		return false, ctx.Err() // too large
	}
	lf := func(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) }
	return bytes.Equal(lf(texts[0]), lf(texts[1])), nil
}

package delivery

import (
	"bytes"
	"context"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
)

// This file is about commits of an agent that have what the person has not committed: the workspace
// begins with it, and `git add -A` takes it along.

// uncommitted is what the person has in no commit: changes of files by path, and what is staged.
type uncommitted struct {
	*Workspace
	changes map[string]git.Change
	index   map[string]Side
}

// withoutPersons makes the commits of an agent again without what the person has not committed.
// mixed are paths that they change on top of that: then they cannot be taken apart, and stay as
// they are.
func (w *Workspace) withoutPersons(ctx context.Context, head string,
) (commit string, without, mixed []string, err error) {
	began := w.agreed.Head
	if head == began {
		return head, nil, nil, nil
	}
	before, err := w.changesSince(ctx, began, w.agreed.Tree)
	if err != nil {
		return "", nil, nil, err
	}
	persons := lists.ToMap(before, func(ch git.Change) (string, git.Change) { return ch.Path, ch })
	staged, err := w.o.Person.Repo.IndexEntries(ctx)
	if err != nil {
		return "", nil, nil, err
	}
	index := lists.ToMap(staged, func(e git.Entry) (string, Side) { return e.Path, Side{e.Mode, e.Object} })
	for _, path := range w.agreed.Loose {
		delete(persons, path)
		delete(index, path)
	}
	u := uncommitted{w, persons, index}
	commits, err := commitsTo(ctx, w.o.Person.Store, began, head)
	if err != nil {
		return "", nil, nil, err
	}
	at := began
	for _, c := range commits {
		back, both, err := u.personsIn(ctx, c[0])
		if err != nil {
			return "", nil, nil, err
		}
		mixed = lists.Union(mixed, both...)
		without = lists.Union(without, lists.Each(back, func(ch git.Change) string { return ch.Path })...)
		if at, err = u.commitWithout(ctx, c, back, at); err != nil {
			return "", nil, nil, err
		}
	}
	if len(mixed) > 0 {
		return head, nil, mixed, nil
	}
	return at, without, nil, nil
}

// personsIn are the changes that take what the person had not committed, or has staged, out of a
// commit, and the paths that it changes on top of that.
func (w uncommitted) personsIn(ctx context.Context, commit string) (back []git.Change, mixed []string, err error) {
	changes, err := w.changesSince(ctx, w.agreed.Head, commit)
	for _, ch := range changes {
		was, ok := w.changes[ch.Path]
		isStaged := ch.NewObject != "" && w.index[ch.Path] == sideAfter(ch)
		isInFile := ok && sideAfter(ch) == sideAfter(was)
		if isStaged || isInFile {
			back = append(back, reverseChange(ch))
			continue
		}
		if !ok || err != nil {
			continue
		}
		var isClean, isSame bool
		if isClean, err = w.isSameText(ctx, was.OldObject, was.NewObject); err == nil && !isClean {
			isSame, err = w.isSameText(ctx, ch.NewObject, was.NewObject)
		}
		switch {
		case isClean: // but for line ends and the mode
		case isSame:
			back = append(back, reverseChange(ch))
		default:
			mixed = append(mixed, ch.Path)
		}
	}
	return back, mixed, err
}

// commitWithout makes a commit again, on another parent, with changes; one of which nothing is left is
// left out.
func (w uncommitted) commitWithout(ctx context.Context, c []string, back []git.Change, at string) (string, error) {
	parent := append(c, "")[1]
	if parent == at && len(back) == 0 {
		return c[0], nil
	}
	store := w.o.Person.Store
	tree, err := treeOf(ctx, store, c[0])
	if err == nil && len(back) > 0 {
		tree, err = w.tree.TreeWith(ctx, w.run, tree, back)
	}
	if err != nil {
		return "", err
	}
	was, err := treeOf(ctx, store, at)
	if err != nil {
		return "", err
	}
	if was == tree && len(back) > 0 {
		return at, nil
	}
	return store.CommitAgain(ctx, c[0], tree, at)
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

package delivery

import (
	"bytes"
	"context"
	"fmt"
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

// ProtectUncommitted is called between an agent's work and its snapshot. It puts back what the agent discarded of what
// the person has not committed, and makes the agent's commits follow what is delivered, without what the person
// has not committed: commits that differ are made again, and the files stay. say gets what a person should know;
// what is returned is for the agent's next prompt. A nil workspace has nothing to align.
func (w *Workspace) ProtectUncommitted(ctx context.Context, say func(string)) (forAgent string) {
	if w == nil {
		return ""
	}
	back, err := putBackDiscarded(ctx, w, say)
	if err == nil {
		err = w.alignHead(ctx, say)
	}
	if back != "" {
		forAgent = "You removed or undid what a person has not committed in " + back + ". It was put back: leave it in."
	}
	if err != nil && ctx.Err() == nil {
		say("cannot read the agent's commits: " + err.Error())
	}
	return forAgent
}

func (w *Workspace) alignHead(ctx context.Context, say func(string)) error {
	head, err := w.tree.Head(ctx)
	if err != nil {
		return err
	}
	if head.Commit == w.agreed.Head {
		return nil
	}
	persons, err := findUncommitted(ctx, w)
	if err != nil {
		return err
	}
	commit, err := w.rebasedOnAgreed(ctx, head.Commit)
	if err == nil && commit != head.Commit && commit != w.agreed.Head {
		say("the agent rewrote commits that you have: what it changed is one commit on top of them")
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

// putBackDiscarded writes anew what an agent removed or undid of what the person has not committed, file by file,
// as 'git stash', 'git reset --hard' and 'git checkout' do. What it undid of a part of a file may be its answer: that
// stays so, and say names it.
func putBackDiscarded(ctx context.Context, w *Workspace, say func(string)) (paths string, err error) {
	committed, err := treeOfCommit(ctx, w.o.Person.Store, w.agreed.Head)
	if err != nil || committed == w.agreed.Tree {
		return "", err
	}
	persons, err := findUncommitted(ctx, w)
	if err != nil {
		return "", err
	}
	now, err := w.tree.See(ctx, w.run)
	if err != nil {
		return "", err
	}
	changes, err := w.tree.TreeChanges(ctx, w.agreed.Tree, now.Tree)
	if err != nil {
		return "", err
	}
	var back, replaced []git.Change
	for _, ch := range changes {
		if _, isPersons := persons.changes[ch.Path]; !isPersons {
			continue
		}
		side, isDiscarded, err := persons.restoreDiscarded(ctx, ch)
		if err != nil {
			return "", err
		}
		now := sideAfter(ch)
		switch {
		case isDiscarded:
			back = append(back, git.Change{Path: ch.Path, OldMode: now.Mode, OldObject: now.Object,
				NewMode: side.Mode, NewObject: side.Object})
		case !keepsLines(ctx, w, persons.changes[ch.Path], now):
			replaced = append(replaced, ch)
		}
	}
	named := func(list []git.Change) string {
		return deliver.Some(lists.Each(list, func(ch git.Change) string { return ch.Path }))
	}
	if len(replaced) > 0 {
		say("the agent undid or replaced your uncommitted changes of " + named(replaced) + "; to have them back, " +
			"without its work: pawl rollback " + w.run + " --to 0")
	}
	if len(back) == 0 {
		return "", nil
	}
	done, err := w.tree.Carry(ctx, w.run, back)
	if err == nil && len(done.Left) > 0 {
		err = fmt.Errorf("%s in the workspace cannot be written: %s", done.Left[0].Path, done.Left[0].Why)
	}
	if err == nil {
		say("the agent discarded your uncommitted " + named(back) + ": that is put back")
	}
	return named(back), err
}

// restoreDiscarded returns a file that an agent changed with what the person has not committed in it; false where
// the agent left some of that, or both changed the same lines.
func (w uncommitted) restoreDiscarded(ctx context.Context, ch git.Change) (Side, bool, error) {
	was, now := w.changes[ch.Path], sideAfter(ch)
	isRemoved := ch.NewObject == "" && was.NewObject != ""
	if isRemoved || now == sideBefore(was) {
		return sideAfter(was), true, nil
	}
	without, isMerged, err := w.onlyAgents(ctx, ch)
	if err != nil || !isMerged || without != now {
		return Side{}, false, err
	}
	return w.mergeFile(ctx, Conflict{Base: sideBefore(was), Mine: sideAfter(was), Agent: now})
}

// keepsLines reports whether a file still has all lines that a change of the person's added; a file that is too
// large to read counts as one that has not.
func keepsLines(ctx context.Context, w *Workspace, was git.Change, now Side) bool {
	objects := []string{was.NewObject, now.Object, was.OldObject}
	objects = slices.DeleteFunc(objects, func(o string) bool { return o == "" })
	texts, err := w.tree.Contents(ctx, mergeLimit, objects...)
	if err != nil {
		return false
	}
	known := map[string]bool{}
	for _, text := range texts[1:] {
		for line := range bytes.Lines(text) {
			known[string(bytes.TrimSpace(line))] = true
		}
	}
	for line := range bytes.Lines(texts[0]) {
		if !known[string(bytes.TrimSpace(line))] {
			return false
		}
	}
	return true
}

// withholdPersons makes the commits of an agent again without what the person has changed and not
// committed. Where both changed the same lines, the commits are without the file.
func (w uncommitted) withholdPersons(ctx context.Context, head string, say func(string)) (string, error) {
	commits, asOne, err := commitsTo(ctx, w.o.Person.Store, w.agreed.Head, head)
	if err != nil {
		return "", err
	}
	at, held, whole := w.agreed.Head, []string(nil), []string(nil)
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
		before, err := w.sidesAtCommit(ctx, at)
		if err != nil {
			return "", err
		}
		for i, ch := range persons {
			side, isMerged, err := w.onlyAgents(ctx, ch)
			if err != nil {
				return "", err
			}
			if !isMerged {
				var isChanged bool
				if side, isChanged = before[ch.Path]; !isChanged {
					side = sideBefore(ch)
				}
				if sideAfter(ch) != sideAfter(w.changes[ch.Path]) {
					whole = lists.Union(whole, ch.Path)
				}
			}
			persons[i] = git.Change{Path: ch.Path, NewMode: side.Mode, NewObject: side.Object}
		}
		if at, err = w.commitWith(ctx, c, persons, at); err != nil {
			return "", err
		}
	}
	if len(held) == 0 {
		return at, nil
	}
	text := "the agent committed your uncommitted " + deliver.Some(held) + ": its commits are made again without " +
		"your changes, which stay uncommitted"
	if asOne > 0 {
		text += fmt.Sprintf("; its %d commits have a merge among them and become one", asOne)
	}
	if len(whole) > 0 {
		text += "; so does what the agent changed in " + deliver.Some(whole) + ", in the same lines"
	}
	say(text)
	next := w.agreed
	next.Withheld = lists.Union(next.Withheld, held...)
	return at, w.storeAgreed(next)
}

// commitsTo lists the commits from one to another, each with its parent: as one where there are merges.
// Of how many it is made is asOne, else 0.
func commitsTo(ctx context.Context, store *git.Repo, began, head string) (commits [][]string, asOne int, err error) {
	commits, err = store.Since(ctx, began, head)
	if slices.ContainsFunc(commits, func(c []string) bool { return len(c) > 2 }) {
		return [][]string{{head, began}}, len(commits), err
	}
	return commits, 0, err
}

// onlyAgents merges what the agent alone has changed in a file of a commit; false where both changed the same
// lines.
func (w uncommitted) onlyAgents(ctx context.Context, ch git.Change) (Side, bool, error) {
	was, isChanged := w.changes[ch.Path]
	if !isChanged {
		return Side{}, false, nil
	}
	return w.mergeFile(ctx, Conflict{Base: sideAfter(was), Mine: sideBefore(was), Agent: sideAfter(ch)})
}

// sidesAtCommit are the files of a commit that it, or one before it, has changed since both agreed.
func (w uncommitted) sidesAtCommit(ctx context.Context, commit string) (map[string]Side, error) {
	tree, err := treeOfCommit(ctx, w.o.Person.Store, commit)
	if err != nil {
		return nil, err
	}
	changes, err := w.changesSince(ctx, w.agreed.Head, tree)
	return lists.ToMap(changes, func(ch git.Change) (string, Side) { return ch.Path, sideAfter(ch) }), err
}

// commitWith makes a commit again, on another parent and with changes; one of which nothing is left is left
// out.
func (w uncommitted) commitWith(ctx context.Context, c []string, changes []git.Change, at string,
) (string, error) {
	if len(changes) == 0 && append(c, "")[1] == at {
		return c[0], nil
	}
	store := w.o.Person.Store
	tree, err := treeOfCommit(ctx, store, c[0])
	if err == nil && len(changes) > 0 {
		tree, err = w.tree.TreeWith(ctx, w.run, tree, changes)
	}
	if err != nil {
		return "", err
	}
	was, err := treeOfCommit(ctx, store, at)
	if err != nil {
		return "", err
	}
	if was == tree {
		changed, err := w.changesSince(ctx, append(c, "")[1], c[0])
		if err != nil || len(changed) > 0 { // one that the agent made empty stays
			return at, err
		}
	}
	return store.CommitAgain(ctx, c[0], tree, at)
}

// emptyFile has the object of a file without content, for both kinds of repositories.
var emptyFile = []string{
	"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
	"473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
}

// splitChanges divides changes into those of files that the person has changed or staged, also where such a
// file got another name, and others. A new file with the content of one that is in no commit is that one.
func (w uncommitted) splitChanges(ctx context.Context, changes []git.Change) (persons, others []git.Change, err error) {
	moved := map[Side]bool{}
	for _, ch := range changes {
		if was, isPersons := w.changes[ch.Path]; isPersons && ch.NewObject == "" {
			moved[sideAfter(was)] = true
		}
	}
	for _, was := range w.changes {
		if was.OldObject == "" && !slices.Contains(emptyFile, was.NewObject) {
			moved[sideAfter(was)] = true
		}
	}
	for _, ch := range changes {
		was, isPersons := w.changes[ch.Path]
		if isPersons {
			isSame, err := w.isSameText(ctx, was.OldObject, was.NewObject)
			if err != nil {
				return nil, nil, err
			}
			isPersons = !isSame || was.OldMode != was.NewMode
		}
		isStaged := ch.NewObject != "" && w.index[ch.Path] == sideAfter(ch)
		isMoved := ch.OldObject == "" && moved[sideAfter(ch)]
		if isPersons || isStaged || isMoved {
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

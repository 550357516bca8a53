package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/workspace"
)

// BroughtIn is what came into the workspace of what the person did.
type BroughtIn struct {
	Files   int  // that the person changed, and that are in the workspace now
	Commits bool // the person committed
	// Conflicts are what both changed in the same lines. Then nothing was brought in.
	Conflicts []Conflict
	// Rest says why nothing can be brought in until a person has put the checkout in
	// order; "" otherwise.
	Rest string
}

// Text says it to the person.
func (in BroughtIn) Text() string {
	text := "what you changed meanwhile is in the workspace"
	if in.Files > 0 {
		text += ": " + fault.Numbered(in.Files, "file")
	}
	if in.Commits {
		text += ", and your commits"
	}
	return text
}

// Conflict is a path that the person and the agent both changed. What is stored outlives
// the code: names must not change.
type Conflict struct {
	Path  string `json:"path"`
	Base  Side   `json:"base"`
	Mine  Side   `json:"mine"`
	Agent Side   `json:"agent"`
	// Settled is what a person chose; nil is nothing yet.
	Settled *Side `json:"settled,omitempty"`
}

// Open reports whether a person has to choose yet.
func (c Conflict) Open() bool { return c.Settled == nil }

// Side is what one side has at a path: both are empty where nothing is.
type Side struct {
	Mode   string `json:"mode,omitempty"`
	Object string `json:"object,omitempty"`
}

const conflictsFile = "conflicts.json"

// BringIn brings what the person did since the last agreement into the workspace, in
// which no agent works: by file, three-way; commits of the agent that are not delivered
// are put on top of the person's. What the workspace has then is the snapshot after the
// iteration n.
func (w *Workspace) BringIn(ctx context.Context, n int) (BroughtIn, error) {
	in, err := w.bringIn(ctx, n)
	if err != nil {
		return in, fmt.Errorf("cannot bring your changes into the workspace: %w", err)
	}
	return in, nil
}

func (w *Workspace) bringIn(ctx context.Context, n int) (in BroughtIn, err error) {
	now, err := w.o.Person.See(ctx, w.o.ID)
	if err != nil {
		return in, err
	}
	if err := w.repairClone(ctx); err != nil {
		return in, err
	}
	if err := w.alignHead(ctx); err != nil {
		return in, err
	}
	if now.Tree == w.agreed.Tree && now.Head == w.agreed.gitHead() {
		return in, nil
	}
	u, err := w.Here(ctx)
	if err != nil {
		return in, err
	}
	place, err := w.placeOf(ctx, now.Head)
	if err != nil {
		return in, err
	}
	rests := deliver.Decide(deliver.Facts{
		Requested: true, Commits: max(u.Commits, 0), Files: 1, Place: place, Began: w.agreed.Branch,
		Now: now.Head.Branch,
	})
	if rests.Kind == deliver.Rest {
		in.Rest = rests.Why
		return in, nil
	}
	todo, conflicts, err := w.mergeFiles(ctx, now.Tree, u)
	if err != nil {
		return in, err
	}
	head := now.Head.Commit
	if u.Commits > 0 && len(conflicts) == 0 {
		var paths []string
		if head, paths, err = w.putOnTop(ctx, u.Head.Commit, now.Head.Commit); err != nil {
			return in, err
		}
		if len(paths) > 0 { // the files could be merged: they are what counts
			head = now.Head.Commit
			w.o.Tell(fmt.Sprintf("the agent's commits and yours both change %s, so the agent's work is in the "+
				"workspace as uncommitted files", deliver.Some(paths)))
		}
	}
	if len(conflicts) > 0 {
		in.Conflicts = conflicts
		return in, w.storeConflicts(conflicts)
	}
	in.Files, in.Commits = len(todo), now.Head.Commit != w.agreed.Head
	return in, w.takeMerged(ctx, n, todo, now, head, u)
}

func (a Agreed) gitHead() git.Head { return git.Head{Commit: a.Head, Branch: a.Branch} }

// repairClone gives a workspace whose repository an agent broke a new one.
func (w *Workspace) repairClone(ctx context.Context) error {
	if _, err := w.tree.Head(ctx); err != nil || w.tree.Broken() == "" {
		return err
	}
	w.o.Tell("an agent left the repository of its workspace in a state that git cannot read (" + w.tree.Broken() +
		"); it has a new one, and the files stay")
	apart, err := w.filteredFiles(ctx, w.agreed.Tree)
	if err == nil {
		err = w.tree.Clone().NewRepository(ctx, apart)
	}
	return err
}

// alignHead has the next agent work on what is delivered: where one has rewritten commits
// that were, or went back before them, its files stay and its commits are one on top.
func (w *Workspace) alignHead(ctx context.Context) error {
	head, err := w.tree.Head(ctx)
	if err != nil {
		return err
	}
	onTop, err := w.onTop(ctx, head.Commit)
	if err != nil || onTop == head.Commit {
		return err
	}
	if err := w.tree.Clone().Lend(ctx, w.o.Person.Store, w.agreed.Head, onTop); err != nil {
		return err
	}
	return w.tree.Clone().SetHead(ctx, git.Head{Commit: onTop, Branch: head.Branch})
}

// placeOf is how what is checked out is to what was when both agreed.
func (w *Workspace) placeOf(ctx context.Context, now git.Head) (deliver.Place, error) {
	switch {
	case now == w.agreed.gitHead():
		return deliver.Same, nil
	case now.Branch != w.agreed.Branch:
		return deliver.Switched, nil
	case w.agreed.Head == "":
		return deliver.Ahead, nil
	case now.Commit == "":
		return deliver.Rewritten, nil
	}
	follows, err := w.o.Person.Repo.IsAncestor(ctx, w.agreed.Head, now.Commit)
	if err != nil || !follows {
		return deliver.Rewritten, err
	}
	return deliver.Ahead, nil
}

// takeMerged carries out what was merged: files, then what is checked out.
func (w *Workspace) takeMerged(ctx context.Context, n int, todo []git.Change, now workspace.Seen, head string,
	u Undelivered,
) error {
	if head != "" && head != now.Head.Commit {
		if err := w.tree.Clone().Lend(ctx, w.o.Person.Store, now.Head.Commit, head); err != nil {
			return err
		}
	}
	done, err := w.tree.Carry(ctx, w.run, todo)
	if err != nil {
		return err
	}
	if len(done.Left) > 0 {
		return fmt.Errorf("%s in the workspace cannot be written: %s", done.Left[0].Path, done.Left[0].Why)
	}
	if now.Head.Commit != w.agreed.Head {
		if err := w.tree.Clone().SetHead(ctx, git.Head{Commit: head, Branch: now.Head.Branch}); err != nil {
			return err
		}
	}
	o := workspace.SnapshotOptions{Message: fmt.Sprintf("pawl %s: iteration %d, with what a person did", w.run, n)}
	if _, err := w.tree.Snapshot(ctx, w.run, n, o); err != nil {
		return err
	}
	isPersons := func(path string) bool {
		return slices.ContainsFunc(todo, func(ch git.Change) bool { return ch.Path == path })
	}
	next := Agreed{Run: w.run, Tree: now.Tree, Head: now.Head.Commit, Branch: now.Head.Branch,
		Own:   slices.DeleteFunc(slices.Clone(w.agreed.Own), isPersons),
		Loose: slices.DeleteFunc(slices.Clone(w.agreed.Loose), isPersons)}
	if len(u.Changes) > 0 || u.Commits > 0 {
		next.Unjudged = n
	}
	if err := w.keepAgreed(ctx, n, next); err != nil {
		return err
	}
	return unlessGone(os.Remove(filepath.Join(w.at.Own, conflictsFile)))
}

// mergeFiles lists the changes to make to the files of the workspace.
func (w *Workspace) mergeFiles(ctx context.Context, tree string, u Undelivered,
) (todo []git.Change, conflicts []Conflict, err error) {
	mine, err := w.tree.TreeChanges(ctx, w.agreed.Tree, tree)
	if err != nil {
		return nil, nil, err
	}
	agents := make(map[string]git.Change, len(u.Changes))
	for _, ch := range u.Changes {
		agents[ch.Path] = ch
	}
	settled, err := w.settledSides()
	if err != nil {
		return nil, nil, err
	}
	for _, ch := range mine {
		other, both := agents[ch.Path]
		switch {
		case !both:
			todo = append(todo, ch)
			continue
		case sideAfter(ch) == sideAfter(other):
			continue
		}
		c := Conflict{Path: ch.Path, Base: sideBefore(ch), Mine: sideAfter(ch), Agent: sideAfter(other)}
		result, ok := settled[c]
		if !ok {
			if result, ok, err = w.mergeFile(ctx, c); err != nil {
				return nil, nil, err
			}
		}
		if !ok {
			conflicts = append(conflicts, c)
			continue
		}
		todo = append(todo, git.Change{Path: c.Path, OldMode: c.Agent.Mode, OldObject: c.Agent.Object,
			NewMode: result.Mode, NewObject: result.Object})
	}
	return todo, append(conflicts, findClashes(mine, u.Changes)...), nil
}

func sideBefore(ch git.Change) Side { return Side{ch.OldMode, ch.OldObject} }
func sideAfter(ch git.Change) Side  { return Side{ch.NewMode, ch.NewObject} }

// findClashes are files of one side where the other made a folder.
func findClashes(mine, agents []git.Change) []Conflict {
	made := map[string]Side{}
	for _, ch := range agents {
		if ch.NewObject != "" {
			made[ch.Path] = sideAfter(ch)
		}
	}
	var found []Conflict
	for _, ch := range mine {
		if ch.NewObject == "" {
			continue
		}
		for dir := filepath.Dir(ch.Path); dir != "."; dir = filepath.Dir(dir) {
			if side, is := made[dir]; is {
				found = append(found, Conflict{Path: dir, Agent: side})
			}
		}
		for path, side := range made {
			if len(path) > len(ch.Path) && path[:len(ch.Path)+1] == ch.Path+"/" {
				found = append(found, Conflict{Path: ch.Path, Mine: sideAfter(ch), Agent: side})
				break
			}
		}
	}
	return found
}

// mergeLimit is the size in bytes of a file that is merged by lines.
const mergeLimit = 4 << 20

// marker is the length of conflict markers: no text that people write has such lines.
const marker = 23

// isOfFiles is true where there was a file, and both sides have one: no link, and nothing
// that one of them made or removed.
func (c Conflict) isOfFiles() bool {
	return !slices.ContainsFunc([]Side{c.Base, c.Mine, c.Agent}, func(s Side) bool {
		return s.Mode != git.ModeFile && s.Mode != git.ModeExec
	})
}

// mergeFile merges a file by lines; ok is false for a conflict.
func (w *Workspace) mergeFile(ctx context.Context, c Conflict) (result Side, ok bool, err error) {
	text, err := w.mergedText(ctx, c)
	if err != nil || text == nil || bytes.Contains(text, bytes.Repeat([]byte("<"), marker)) {
		return Side{}, false, err
	}
	result.Mode = c.Agent.Mode
	if c.Agent.Mode == c.Base.Mode {
		result.Mode = c.Mine.Mode
	}
	result.Object, err = w.tree.StoreFile(ctx, text)
	return result, err == nil, err
}

// mergedText is both sides of a file, with markers where they conflict; nil for what is
// no text, or too large.
func (w *Workspace) mergedText(ctx context.Context, c Conflict) ([]byte, error) {
	if !c.isOfFiles() {
		return nil, nil
	}
	sides, err := w.tree.Contents(ctx, mergeLimit, c.Mine.Object, c.Base.Object, c.Agent.Object)
	if err != nil {
		return nil, ctx.Err() // too large: people merge it
	}
	for _, data := range sides {
		if bytes.IndexByte(data, 0) >= 0 {
			return nil, nil
		}
	}
	dir, err := os.MkdirTemp(w.at.Own, "merge-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the next merge has its own
	return git.MergeFile(ctx, dir, sides[0], sides[1], sides[2], marker)
}

// putOnTop puts the agent's commits on top of the person's: each with its author and
// message, or all as one where there are merges among them. paths are those that
// conflict; then there is no head.
func (w *Workspace) putOnTop(ctx context.Context, head, onto string) (string, []string, error) {
	store := w.o.Person.Store
	commits, err := store.Since(ctx, w.agreed.Head, head)
	if err != nil {
		return "", nil, err
	}
	linear := !slices.ContainsFunc(commits, func(c []string) bool { return len(c) > 2 })
	if !linear {
		commits = [][]string{{head, w.agreed.Head}}
	}
	at := onto
	for _, c := range commits {
		base := ""
		if len(c) > 1 {
			base = c[1]
		}
		var trees [3]string
		for i, commit := range []string{base, at, c[0]} {
			if trees[i], err = treeOf(ctx, store, commit); err != nil {
				return "", nil, err
			}
		}
		tree, conflicts, err := store.MergeTrees(ctx, trees[0], trees[1], trees[2])
		if err != nil || len(conflicts) > 0 {
			return "", conflicts, err
		}
		if tree == trees[1] {
			continue // the person has it already
		}
		if at, err = store.CommitAgain(ctx, c[0], tree, at); err != nil {
			return "", nil, err
		}
	}
	return at, nil, nil
}

func treeOf(ctx context.Context, store *git.Repo, commit string) (string, error) {
	if commit == "" {
		return store.EmptyTree(ctx)
	}
	return store.TreeOf(ctx, commit)
}

func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

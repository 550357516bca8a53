package delivery

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// BroughtIn is what came into the workspace of what the person did.
type BroughtIn struct {
	Files   int  // that the person changed, and that are in the workspace now
	Commits bool // the person committed
	// Conflicts are what both changed in the same lines. Then nothing was brought in.
	Conflicts []Conflict
	// Rests is [deliver.Rest] where nothing can be brought in before a person says where the
	// work goes on, or has to choose between Conflicts first.
	Rests deliver.Decision
}

// Text says it to the person.
func (in BroughtIn) Text() string {
	text := "the workspace has your latest changes"
	if in.Files > 0 {
		text += ": " + fault.Numbered(in.Files, "file")
	}
	if in.Commits {
		text += ", and your commits"
	}
	return text
}

// Together names what of the person the work is judged with.
func (in BroughtIn) Together() string {
	if in.Commits {
		return "together with your commits"
	}
	return "together with your changes"
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
	in, err := w.bringInChanges(ctx, n)
	if err != nil {
		return in, fmt.Errorf("cannot bring your changes into the workspace: %w", err)
	}
	return in, nil
}

func (w *Workspace) bringInChanges(ctx context.Context, n int) (in BroughtIn, err error) {
	if err := w.repairClone(ctx); err != nil {
		return in, err
	}
	if err := w.alignHead(ctx, w.o.Tell); err != nil {
		return in, err
	}
	m, err := w.mergeSides(ctx, deliver.Facts{Green: true, When: deliver.Each, GoesOn: w.goesOn})
	switch {
	case err != nil || m.rests.Kind == deliver.Rest:
		in.Rests = m.rests
		return in, err
	case len(m.conflicts) > 0:
		in.Conflicts = m.conflicts
		paths := lists.Each(m.conflicts, func(c Conflict) string { return c.Path })
		in.Rests = deliver.Decision{Kind: deliver.Settle, Paths: paths,
			Why: "you and the agent both changed " + deliver.Some(paths)}
		return in, w.storeConflicts(m.conflicts)
	}
	w.goesOn = false
	if m.came {
		in.Files, in.Commits = len(m.todo), m.now.Head.Commit != w.agreed.Head
		if err := w.takeMerged(ctx, n, m); err != nil {
			return in, err
		}
	}
	was, err := apartFiles{w}.readApart()
	if err == nil {
		err = apartFiles{w}.mirrorApart(ctx, m.now, was)
	}
	return in, err
}

// merged is what a person and agents did, put together. Nothing is written of it yet.
type merged struct {
	now       workspace.Seen // the person's files
	came      bool           // something of theirs comes in
	u         Undelivered    // before
	mine      []git.Change   // what the person did
	todo      []git.Change   // of the files of the workspace
	conflicts []Conflict
	head      string           // what the workspace has checked out then
	rests     deliver.Decision // nothing is put together where it is [deliver.Rest]
}

// mergeSides puts what the person did since the last agreement and the work together.
func (w *Workspace) mergeSides(ctx context.Context, f deliver.Facts) (m merged, err error) {
	now, err := w.o.Person.SeeAll(ctx, w.o.ID)
	if err != nil {
		return m, err
	}
	m.now, m.head, m.came = now, now.Head.Commit, now.Tree != w.agreed.Tree || now.Head != w.agreed.toGitHead()
	if !m.came && !f.Requested {
		return m, nil
	}
	m.u, err = w.AtSnapshot(ctx, -1)
	if n := m.u.N; err == nil && m.came && !w.isElsewhere(f.Requested) {
		m.u, err = w.Here(ctx)
		m.u.N = n
	}
	if err != nil || !m.came {
		return m, err
	}
	f.Files, f.Commits, f.Began, f.From, f.Now = 1, max(m.u.Commits, 0), w.agreed.Branch, w.agreed.Head, now.Head.Branch
	if f.Place, err = w.placeSinceAgreed(ctx, now.Head); err != nil {
		return m, err
	}
	if m.rests = deliver.Decide(f); m.rests.Kind == deliver.Rest {
		return m, nil
	}
	if m.mine, err = w.tree.TreeChanges(ctx, w.agreed.Tree, now.Tree); err != nil {
		return m, err
	}
	m.todo, m.conflicts, err = w.mergeFiles(ctx, m.mine, m.u)
	if err != nil || m.u.Commits <= 0 || len(m.conflicts) > 0 {
		return m, err
	}
	head, paths, err := w.putOnTop(ctx, m.u.Head.Commit, now.Head.Commit)
	if err == nil && len(paths) == 0 {
		m.head = head
	} else if err == nil { // the files could be merged: they are what counts
		w.o.Tell(fmt.Sprintf("the agent's commits and yours both change %s, so the agent's work arrives as "+
			"uncommitted files",
			deliver.Some(paths)))
	}
	return m, err
}

func (a Agreed) toGitHead() git.Head { return git.Head{Commit: a.Head, Branch: a.Branch} }

// repairClone gives a workspace whose repository an agent broke a new one.
func (w *Workspace) repairClone(ctx context.Context) error {
	if _, err := w.tree.Head(ctx); err != nil || w.tree.Broken() == "" {
		return err
	}
	w.o.Tell("an agent left the repository of its workspace unreadable for git (" + w.tree.Broken() +
		"); it has a new one, and the files stay")
	apart, err := w.filteredFiles(ctx, w.agreed.Tree)
	if err == nil {
		err = w.tree.Clone().NewRepository(ctx, apart)
	}
	return err
}

// placeSinceAgreed is how what is checked out is to what was when both agreed.
func (w *Workspace) placeSinceAgreed(ctx context.Context, now git.Head) (deliver.Place, error) {
	switch {
	case now == w.agreed.toGitHead():
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

// takeMerged carries out what was merged: files, then what is checked out. A workspace
// whose folder is gone, or another run's, has its snapshots only.
func (w *Workspace) takeMerged(ctx context.Context, n int, m merged) error {
	title := fmt.Sprintf("pawl %s: iteration %d, with what a person did", w.run, n)
	head := git.Head{Commit: m.head, Branch: m.now.Head.Branch}
	if w.kept {
		tree, err := w.tree.TreeWith(ctx, w.run, m.u.Tree, m.todo)
		if err == nil {
			err = w.tree.KeepSnapshot(ctx, w.run, n, tree, head, title)
		}
		if err != nil {
			return err
		}
	} else {
		if err := w.changeWorkspace(ctx, m.todo, head, m.now.Head.Commit); err != nil {
			return err
		}
		if _, err := w.tree.Snapshot(ctx, w.run, n, workspace.SnapshotOptions{Message: title}); err != nil {
			return err
		}
	}
	next := Agreed{Run: w.run, Tree: m.now.Tree, Head: m.now.Head.Commit, Branch: m.now.Head.Branch,
		Own: withoutChanged(w.agreed.Own, m.todo), Loose: withoutChanged(w.agreed.Loose, m.todo)}
	if len(m.u.Changes) > 0 || m.u.Commits > 0 {
		next.Unjudged = n
	}
	if w.agreed.Base != "" {
		base, err := w.tree.TreeWith(ctx, w.run, w.agreed.Base, m.mine)
		if err == nil {
			err = w.o.Person.KeepTree(ctx, w.run, "base", base)
		}
		if err != nil {
			return err
		}
		next.Base = base
	}
	if err := w.o.Person.KeepTree(ctx, w.run, fmt.Sprintf("persons-%d", n), m.now.Tree); err != nil {
		return err // a rollback may go back to it
	}
	if err := w.keepAgreed(ctx, n, next); err != nil {
		return err
	}
	return files.UnlessGone(os.Remove(filepath.Join(w.at.Own, conflictsFile)))
}

func withoutChanged(paths []string, changes []git.Change) []string {
	changed := lists.Set(lists.Each(changes, func(ch git.Change) string { return ch.Path }))
	return lists.Pick(paths, func(path string) (string, bool) { return path, !changed[path] })
}

// changeWorkspace changes the files of the workspace, and what it has checked out.
func (w *Workspace) changeWorkspace(ctx context.Context, todo []git.Change, head git.Head, persons string) error {
	if head.Commit != "" && head.Commit != persons {
		if err := w.tree.Clone().Lend(ctx, w.o.Person.Store, persons, head.Commit); err != nil {
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
	if persons != w.agreed.Head || head.Branch != w.agreed.Branch {
		return w.tree.Clone().SetHead(ctx, head)
	}
	return nil
}

// isElsewhere reports whether the folder does not hold the work that is asked for: it is
// gone, or went back with a rollback.
func (w *Workspace) isElsewhere(requested bool) bool {
	isBack := requested && w.agreed.Back > 0
	return w.kept || isBack
}

// mergeFiles lists the changes to make to the files of the workspace.
func (w *Workspace) mergeFiles(ctx context.Context, mine []git.Change, u Undelivered,
) (todo []git.Change, conflicts []Conflict, err error) {
	agents := lists.ToMap(u.Changes, func(ch git.Change) (string, git.Change) { return ch.Path, ch })
	settled, err := w.settledSides()
	if err != nil {
		return nil, nil, err
	}
	clashes := findClashes(mine, u.Changes)
	for _, ch := range mine {
		other, both := agents[ch.Path]
		_, clash := clashes[ch.Path]
		switch {
		case clash:
			continue
		case !both:
			todo = append(todo, ch)
			continue
		case sideAfter(ch) == sideAfter(other):
			continue
		}
		c := Conflict{Path: ch.Path, Base: sideBefore(ch), Mine: sideAfter(ch), Agent: sideAfter(other)}
		result, ok := settled[c]
		if !ok {
			if result, ok, err = w.mergeFile(ctx, sinceChosen(c, settled)); err != nil {
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
	for _, path := range slices.Sorted(maps.Keys(clashes)) {
		if side, ok := settled[clashes[path]]; ok {
			todo = settleClash(todo, clashes[path], side, u.Changes, mine)
		} else {
			conflicts = append(conflicts, clashes[path])
		}
	}
	return todo, conflicts, nil
}

// sinceChosen leaves of a conflict what the person changed in their file after they chose, beside what they chose.
func sinceChosen(c Conflict, settled map[Conflict]Side) Conflict {
	for was, chosen := range settled {
		isEarlier := was.Path == c.Path && was.Base == c.Base && was.Agent == c.Agent
		if isEarlier && was.Mine.Object != "" && chosen.Object != "" {
			return Conflict{Path: c.Path, Base: was.Mine, Mine: c.Mine, Agent: chosen}
		}
	}
	return c
}

// settleClash has a file of the one side stay, or the folder that the other has there.
func settleClash(todo []git.Change, c Conflict, chosen Side, agents, mine []git.Change) []git.Change {
	if chosen != c.Mine { // nothing of the person's comes there
		return slices.DeleteFunc(todo, func(ch git.Change) bool { return strings.HasPrefix(ch.Path, c.Path+"/") })
	}
	for _, ch := range changesBelow(agents, c.Path) {
		isMine := slices.ContainsFunc(mine, func(m git.Change) bool { return m.Path == ch.Path })
		switch {
		case putsSomething(ch):
			todo = append(todo, git.Change{Path: ch.Path, OldMode: ch.NewMode, OldObject: ch.NewObject})
		case !isMine: // the agent removed it for its file
			todo = append(todo, reverseChange(ch))
		}
	}
	return append(todo, git.Change{Path: c.Path, OldMode: c.Agent.Mode, OldObject: c.Agent.Object,
		NewMode: c.Mine.Mode, NewObject: c.Mine.Object})
}

func sideBefore(ch git.Change) Side { return Side{ch.OldMode, ch.OldObject} }
func sideAfter(ch git.Change) Side  { return Side{ch.NewMode, ch.NewObject} }

// findClashes are files of one side where the other made a folder, by path.
func findClashes(mine, agents []git.Change) map[string]Conflict {
	found := map[string]Conflict{}
	find := func(files, others []git.Change, at func(file git.Change) Conflict) {
		for _, file := range files {
			if file.NewObject != "" && slices.ContainsFunc(changesBelow(others, file.Path), putsSomething) {
				found[file.Path] = at(file)
			}
		}
	}
	find(agents, mine, func(ch git.Change) Conflict {
		return Conflict{Path: ch.Path, Base: sideBefore(ch), Agent: sideAfter(ch)}
	})
	find(mine, agents, func(ch git.Change) Conflict {
		return Conflict{Path: ch.Path, Base: sideBefore(ch), Mine: sideAfter(ch)}
	})
	return found
}

func putsSomething(ch git.Change) bool { return ch.NewObject != "" }

// changesBelow picks those of the changes, which are in the order of their paths, that are in a folder.
func changesBelow(changes []git.Change, dir string) []git.Change {
	byPath := func(ch git.Change, path string) int { return strings.Compare(ch.Path, path) }
	from, _ := slices.BinarySearchFunc(changes, dir+"/", byPath)
	to, _ := slices.BinarySearchFunc(changes, dir+"0", byPath) // the one that follows a slash
	return changes[from:max(from, to)]
}

// mergeLimit is the size in bytes of a file that is merged by lines.
const mergeLimit = 4 << 20

// marker is the length of conflict markers, which people hardly write.
const marker = 23

// isOfFiles is true where both sides have a file, and there was one or nothing: no link, and
// nothing that one of them removed.
func (c Conflict) isOfFiles() bool {
	return !slices.ContainsFunc([]Side{cmp.Or(c.Base, c.Mine), c.Mine, c.Agent}, func(s Side) bool {
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
	objects := []string{c.Mine.Object, c.Agent.Object}
	if c.Base.Object != "" { // not both made it
		objects = append(objects, c.Base.Object)
	}
	sides, err := w.tree.Contents(ctx, mergeLimit, objects...)
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
	base := bytes.Join(sides[2:], nil)
	return git.MergeFile(ctx, dir, sides[0], base, sides[1], marker)
}

// putOnTop puts the agent's commits on top of the person's: each with its author and
// message, or all as one where there are merges among them. paths are those that
// conflict; then there is no head.
func (w *Workspace) putOnTop(ctx context.Context, head, onto string) (string, []string, error) {
	store := w.o.Person.Store
	commits, asOne, err := commitsTo(ctx, store, w.agreed.Head, head)
	if err != nil {
		return "", nil, err
	}
	if asOne > 0 {
		w.o.Tell(fmt.Sprintf("the agent's %d commits have a merge among them, so they are one commit "+
			"on top of yours", asOne))
	}
	at := onto
	for _, c := range commits {
		base := ""
		if len(c) > 1 {
			base = c[1]
		}
		var trees [3]string
		for i, commit := range []string{base, at, c[0]} {
			if trees[i], err = treeOfCommit(ctx, store, commit); err != nil {
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

func treeOfCommit(ctx context.Context, store *git.Repo, commit string) (string, error) {
	if commit == "" {
		return store.EmptyTree(ctx)
	}
	return store.TreeOf(ctx, commit)
}

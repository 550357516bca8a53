package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Options say whose work is done where.
type Options struct {
	Person *workspace.Checkout // the person's own files
	Pool   *pool.Pool
	// ID names the workspace: runs of one procedure use the same one after each other.
	ID       string
	StateDir string // pawl's folder for the repository
	MaxFile  int64  // see [workspace.Options]
	Hide     []string
	When     deliver.When
	// Confirm are patterns of what runs by itself; see [RunsItself].
	Confirm []string
	// Tell gets the state of a long copy, and what a person should know.
	Tell func(text string)

	point func(name string) // tests end the process here
}

// Workspace is the private workspace of a run.
type Workspace struct {
	o      Options
	at     pool.Workspace
	tree   *workspace.Checkout
	run    string
	agreed Agreed

	judging  string     // see [Workspace.SetAside]
	finished *intention // a delivery that was cut off, and is finished now
	// kept: the folder is gone, or another run works in it. There is what was stored.
	kept   bool
	apart  workspace.Apart // see [Workspace.readApart]
	goesOn bool            // a person goes on from what is checked out now, also where it was rewritten
}

// Finished is a delivery that was cut off and was finished as the workspace was taken,
// with its run; ok is false for none.
func (w *Workspace) Finished() (run string, d Delivered, ok bool) {
	if w.finished == nil {
		return "", d, false
	}
	return w.finished.Run, w.finished.Delivered, true
}

// Agreed is what the checkout and the workspace had in common last. What is stored
// outlives the code: names must not change.
type Agreed struct {
	Run    string `json:"run"`  // that works, or worked, in the workspace
	Tree   string `json:"tree"` // of all files
	Head   string `json:"head"` // commit that was checked out; "" before the first one
	Branch string `json:"branch,omitempty"`
	// Base is the tree that the work of the run is compared with: what it began with, and what
	// the person did since that came in. "" of runs that began before it was stored.
	Base string `json:"base,omitempty"`
	// Own are the paths that deliveries of the run added, and that no person changed since.
	Own []string `json:"own,omitempty"`
	// Back is the newest snapshot whose work a person took back; 0 is none.
	Back int `json:"back,omitempty"`
	// Unjudged is the iteration after whose verdict something of the person's came in
	// beside work that was not delivered; 0 is none.
	Unjudged int `json:"unjudged,omitempty"`
	// Loose are the paths that deliveries of the run brought as files and in no commit.
	Loose []string `json:"loose,omitempty"`
	// Withheld paths of the person were in commits of the run's agents. The gates judge commits without them.
	Withheld []string `json:"withheld,omitempty"`
	// Green is a tree of the agent's commits alone that the gates found green, and Aside the
	// tree of the workspace while they judge it; see [Workspace.SetAside].
	Green string `json:"green,omitempty"`
	Aside string `json:"aside,omitempty"`
	// Last is the delivery that was made last, which whoever drives the run notes a little
	// later.
	Last *Delivered `json:"last,omitempty"`
	// After has, for each snapshot of the run by its number, what was agreed when it was
	// taken; the newest maxAfter.
	After map[int]Agreed `json:"after,omitempty"`
}

// maxAfter is how many snapshots the workspace can go back to.
const maxAfter = 200

const (
	agreedFile    = "agreed.json"
	intentionFile = "delivery.json"
	apartFile     = "apart.json"
)

// Take takes the workspace for this process. The caller releases it.
func Take(ctx context.Context, o Options) (*Workspace, error) {
	if o.Tell == nil {
		o.Tell = func(string) {}
	}
	if o.point == nil {
		o.point = func(string) {}
	}
	at, err := o.Pool.TakeRun(ctx, o.ID)
	if err != nil {
		return nil, err
	}
	w := &Workspace{o: o, at: at}
	if err := w.openWorkspace(ctx); err != nil {
		return nil, errors.Join(err, w.Release(ctx, "it could not be used"))
	}
	return w, nil
}

// OpenKept opens what is stored of a run whose workspace is gone, or works for a later run.
// The error is [ErrGone] where nothing is.
func OpenKept(ctx context.Context, o Options, run string) (*Workspace, error) {
	o.ID, o.point = ByHand, func(string) {}
	w := &Workspace{o: o, at: pool.Workspace{Own: runWorkFolder(o.StateDir, run)}, tree: o.Person, run: run, kept: true}
	if err := w.readAgreed(); err != nil {
		return nil, err
	}
	if w.agreed.Run != run {
		return nil, ErrGone
	}
	if err := o.Person.Renew(ctx, o.ID); err != nil {
		return nil, err
	}
	return w, carrier{w}.finishInterrupted(ctx)
}

// ByHand names what is known of the person's files where no workspace is.
const ByHand = "by-hand"

// runWorkFolder has of a run what it has in common with the person's files.
func runWorkFolder(stateDir, run string) string { return filepath.Join(stateDir, "runs", run, "work") }

// readAgreed reads what the checkout and the workspace had in common last.
func (w *Workspace) readAgreed() error {
	err := files.ReadJSON(filepath.Join(w.at.Own, agreedFile), &w.agreed)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read the state of the workspace: %w", err)
	}
	return nil
}

func (w *Workspace) openWorkspace(ctx context.Context) (err error) {
	if err := w.readAgreed(); err != nil {
		return err
	}
	at := workspace.Place{Top: w.at.Top, Root: w.at.Top, Own: w.at.Own, Base: w.agreed.Head, Lent: w.at.Lent}
	w.tree, err = workspace.OpenClone(ctx, w.o.Person.Repo, at, workspace.Options{
		StateDir: filepath.Join(w.at.Own, "tree"), Store: w.o.Person.Store.Dir, MaxFile: w.o.MaxFile, Hide: w.o.Hide,
	})
	if err != nil {
		return err
	}
	return carrier{w}.finishInterrupted(ctx)
}

// Kept is why the workspace of a run stays when its process ends.
const Kept = "the next run of this name continues there"

// Release gives the workspace back; why is shown to people.
func (w *Workspace) Release(ctx context.Context, why string) error {
	if w.kept {
		return nil
	}
	return w.o.Pool.Release(context.WithoutCancel(ctx), w.at, pool.Keep(why))
}

// GoOn has the run go on from what is checked out, also where that was rewritten: a person
// resumed it.
func (w *Workspace) GoOn() { w.goesOn = true }

// DeliverWhen says at which times verified work is delivered from now on.
func (w *Workspace) DeliverWhen(when deliver.When) { w.o.When = when }

// Tree is the files of the workspace.
func (w *Workspace) Tree() *workspace.Checkout { return w.tree }

// Place of the workspace: work is done in Dir.
func (w *Workspace) Place() pool.Workspace { return w.at }

// Person is the person's own files.
func (w *Workspace) Person() *workspace.Checkout { return w.o.Person }

// Agreed returns what the checkout and the workspace had in common last.
func (w *Workspace) Agreed() Agreed { return w.agreed }

// Begin fills the workspace with what the person has, for a new run, and takes its
// snapshot 0.
func (w *Workspace) Begin(ctx context.Context, run string) error {
	if err := w.beginRun(ctx, run); err != nil {
		return fmt.Errorf("cannot fill the workspace of the run: %w", err)
	}
	return nil
}

func (w *Workspace) beginRun(ctx context.Context, run string) error {
	person, before := w.o.Person, w.agreed.Run
	if w.run = before; before != "" { // what it has in no snapshot is kept with its run
		u, err := w.AtSnapshot(ctx, -1)
		if err == nil {
			_, err = apartFiles{w}.withApart(ctx, u)
		}
		if err != nil {
			w.o.Tell(err.Error())
		}
	}
	if err := person.Renew(ctx, w.o.ID); err != nil {
		return err
	}
	now, err := person.SeeAll(ctx, w.o.ID)
	if err != nil {
		return err
	}
	w.run = run
	var changed []git.Change
	if len(w.agreed.Loose) > 0 { // what an earlier run left uncommitted is no work of the person's
		if changed, err = w.tree.TreeChanges(ctx, w.agreed.Tree, now.Tree); err != nil {
			return err
		}
	}
	w.agreed.After, w.agreed.Last, w.agreed.Withheld = nil, nil, nil
	if err := files.UnlessGone(os.Remove(filepath.Join(w.at.Own, conflictsFile))); err != nil { // of an earlier run
		return err
	}
	agreed := Agreed{Run: run, Tree: now.Tree, Head: now.Head.Commit, Branch: now.Head.Branch, Base: now.Tree,
		Loose: withoutChanged(w.agreed.Loose, changed)}
	if err := w.keepAgreed(ctx, 0, agreed); err != nil {
		return err
	}
	if err := w.openWorkspace(ctx); err != nil { // what it has checked out is another commit now
		return err
	}
	if err := w.tree.Fill(ctx, run, before, now.Tree); err != nil {
		return err
	}
	apart, err := w.filteredFiles(ctx, now.Tree)
	if err != nil {
		return err
	}
	if err := w.tree.Clone().NewRepository(ctx, apart); err != nil {
		return err
	}
	if err := w.tree.SameTimes(ctx, person, run); err != nil {
		return err
	}
	if err := (apartFiles{w}).mirrorApart(ctx, now, nil); err != nil {
		return err
	}
	if err := os.MkdirAll(w.at.Dir, 0o755); err != nil { //nolint:gosec // a folder of the workspace
		return err
	}
	_, err = w.tree.Snapshot(ctx, run, 0, workspace.SnapshotOptions{Message: "pawl " + run + ": before the run"})
	return err
}

// filteredFiles are the files of a tree whose content a program filters, by .gitattributes.
func (w *Workspace) filteredFiles(ctx context.Context, tree string) ([]string, error) {
	names, err := w.o.Person.Store.FilesOf(ctx, tree)
	if err != nil {
		return nil, err
	}
	return w.o.Person.Repo.Filtered(ctx, names)
}

// Continue resumes the run that works in the workspace. The error is [ErrGone] when
// another run has it now, or it was removed.
func (w *Workspace) Continue(ctx context.Context, run string) error {
	if w.agreed.Run != run {
		return ErrGone
	}
	w.run = run
	_, err := os.Lstat(w.at.Dir)
	if err != nil {
		return ErrGone
	}
	if w.agreed.Aside != "" { // its pawl died as the gates judged
		return w.TakeBack(ctx, false)
	}
	return ctx.Err()
}

// ErrGone is that the workspace of a run is not there any more.
var ErrGone = errors.New("the workspace of the run is gone, or a later run of the same name uses it")

// keepAgreed stores what the checkout and the workspace have in common, as of the snapshot n.
func (w *Workspace) keepAgreed(ctx context.Context, n int, a Agreed) error {
	if err := w.o.Person.KeepTree(ctx, a.Run, "agreed", a.Tree); err != nil {
		return err
	}
	after := maps.Clone(w.agreed.After)
	if after == nil {
		after = map[int]Agreed{}
	}
	last := cmp.Or(a.Last, w.agreed.Last)
	a.After, a.Last, a.Withheld = nil, nil, w.agreed.Withheld
	after[n] = a
	a.Last = last
	for _, old := range slices.Sorted(maps.Keys(after))[:max(0, len(after)-maxAfter)] {
		delete(after, old)
	}
	a.After = after
	return w.storeAgreed(a)
}

func (w *Workspace) storeAgreed(a Agreed) error {
	dir := runWorkFolder(w.o.StateDir, a.Run)
	err := os.MkdirAll(dir, 0o700)
	for _, in := range slices.Compact([]string{dir, w.at.Own}) {
		err = errors.Join(err, files.ReplaceJSON(filepath.Join(in, agreedFile), a, true))
	}
	if err != nil {
		return fmt.Errorf("cannot store the start of the workspace: %w", err)
	}
	w.agreed = a
	return nil
}

// Undelivered is what the workspace has and the checkout has not.
type Undelivered struct {
	N       int    // of the snapshot that it is of
	Tree    string // of the workspace
	Head    git.Head
	Commits int
	Changes []git.Change // of files, from what both had
	// Apart are changes of what no snapshot has, and Only what no delivery brings, where
	// these were asked for.
	Apart   []git.Change
	Only    []workspace.Conflict
	skipped []string // of the snapshot
}

func (u Undelivered) allChanges() []git.Change { return slices.Concat(u.Changes, u.Apart) }

// GoBack has the work go on from the snapshot n, since a person took back what was
// delivered later. A negative n is the newest: that was undone.
func (w *Workspace) GoBack(ctx context.Context, n int) error {
	snaps, err := w.tree.Snapshots(ctx, w.run)
	if err != nil || len(snaps) == 0 {
		return err
	}
	newest := snaps[len(snaps)-1].N
	to := newest
	if n >= 0 {
		to = n
	}
	if !w.kept {
		if err := w.rewindFiles(ctx, to); err != nil {
			return err
		}
	}
	if err := w.BackTo(ctx, to); err != nil {
		return err
	}
	a := w.agreed
	if a.Back = 0; to < newest {
		a.Back = newest
	}
	return w.keepAgreed(ctx, to, a)
}

// rewindFiles puts the files of the workspace back to a snapshot, whatever they are.
func (w *Workspace) rewindFiles(ctx context.Context, n int) error {
	now, err := w.tree.See(ctx, w.run)
	if err == nil {
		_, err = w.tree.Rewind(ctx, w.run, n, now.Tree)
	}
	return err
}

// BackTo goes back to what was agreed when the snapshot n was taken, whose files the
// workspace has again.
func (w *Workspace) BackTo(ctx context.Context, n int) error {
	at := 0
	for taken := range w.agreed.After {
		if taken <= n {
			at = max(at, taken)
		}
	}
	a, ok := w.agreed.After[at]
	if !ok {
		return nil
	}
	return w.keepAgreed(ctx, n, a)
}

// Here returns what the workspace has now and the checkout has not.
func (w *Workspace) Here(ctx context.Context) (Undelivered, error) {
	seen, err := w.tree.See(ctx, w.run)
	if err != nil {
		return Undelivered{}, err
	}
	return w.undeliveredAt(ctx, seen.Tree, seen.Head, seen.Skipped)
}

// AtSnapshot returns what the snapshot after iteration n, or the newest with a negative
// n, has and the checkout has not. What gates and agents that were cut off wrote since
// is no part of it.
func (w *Workspace) AtSnapshot(ctx context.Context, n int) (Undelivered, error) {
	snaps, err := w.tree.Snapshots(ctx, w.run)
	if err != nil {
		return Undelivered{}, err
	}
	for _, s := range slices.Backward(snaps) {
		if isOther := s.N != n || s.Attempt != ""; n < 0 || !isOther {
			u, err := w.undeliveredAt(ctx, s.Tree, git.Head{Commit: s.Head, Branch: s.Branch}, s.Skipped)
			u.N = s.N
			return u, err
		}
	}
	return Undelivered{N: max(n, 0), Tree: w.agreed.Tree, Head: w.agreed.toGitHead()}, nil
}

func (w *Workspace) undeliveredAt(ctx context.Context, tree string, head git.Head, skipped []string,
) (u Undelivered, err error) {
	u = Undelivered{Tree: tree, Head: head, skipped: skipped}
	if u.Head.Commit, err = w.rebasedOnAgreed(ctx, head.Commit); err != nil {
		return u, err
	}
	if u.Commits, err = w.o.Person.Store.Count(ctx, w.agreed.Head, u.Head.Commit); err != nil {
		return u, err
	}
	changes, err := w.tree.TreeChanges(ctx, w.agreed.Tree, tree)
	u.Changes = workspace.WithoutSkipped(changes, skipped)
	return u, err
}

// refsLimit is how many branches and tags of an agent are looked at.
const refsLimit = 1000

// OwnRefs are the branches and tags that are in the workspace and not, or at another
// commit, in the person's repository, but for the branch that is delivered: "branch wip",
// "tag v1.0".
func (w *Workspace) OwnRefs(ctx context.Context) (names []string, err error) {
	theirs, err := w.o.Person.Repo.Refs(ctx, "refs/heads/", "refs/tags/")
	if err != nil {
		return nil, err
	}
	refs := w.tree.Clone().BranchesAndTags(refsLimit)
	for _, ref := range theirs {
		if refs[ref.Name] == ref.Commit {
			delete(refs, ref.Name)
		}
	}
	delete(refs, w.agreed.Branch)
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		name, isTag := strings.CutPrefix(ref, "refs/tags/")
		if isTag {
			names = append(names, "tag "+name)
		} else {
			names = append(names, "branch "+strings.TrimPrefix(ref, "refs/heads/"))
		}
	}
	return names, nil
}

// rebasedOnAgreed is the commit of an agent as one that follows what was checked out. A history
// that was rewritten beyond that, as by an amended commit, becomes one commit on it:
// the files are what counts.
func (w *Workspace) rebasedOnAgreed(ctx context.Context, head string) (string, error) {
	began, store := w.agreed.Head, w.o.Person.Store
	if head == began || head == "" || began == "" {
		return cmp.Or(head, began), nil
	}
	if follows, err := store.IsAncestor(ctx, began, head); err != nil || follows {
		return head, err
	}
	if before, err := store.IsAncestor(ctx, head, began); err != nil || before {
		return began, err
	}
	tree, err := store.TreeOf(ctx, head)
	if err != nil {
		return "", err
	}
	was, err := store.TreeOf(ctx, began)
	if err != nil || was == tree {
		return began, err
	}
	return store.CommitAgain(ctx, head, tree, began)
}

package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Snapshot is the work tree as it was at one moment.
type Snapshot struct {
	Ref     string    `json:"ref"`
	Run     string    `json:"run"`
	N       int       `json:"n"`                 // iteration; 0 is before the run
	Attempt string    `json:"attempt,omitempty"` // of an attempt that was cut off
	Commit  string    `json:"commit"`
	Tree    string    `json:"tree"`
	Head    string    `json:"head"`   // commit that was checked out; empty before the first one
	Branch  string    `json:"branch"` // full name; empty when HEAD was detached
	Skipped []string  `json:"skipped,omitempty"`
	When    time.Time `json:"when"` // in whole seconds
}

// SnapshotOptions add to a snapshot what is not needed to find it.
type SnapshotOptions struct {
	Attempt string // name of an attempt that was cut off; it is kept beside the iteration's own
	Message string // first line of the commit
}

// state is the work tree as it was just scanned into the private index.
type state struct {
	tree    string
	head    git.Head
	skipped []string
	others  git.Others // if they are asked for
	strays  []string   // temporary files that a rollback which was killed left behind
}

// Snapshot keeps the work tree as it is under the number n of the run, and
// replaces a snapshot that is there already. The first one of a run fixes the
// ignore rules of its start. When nothing changed since the last one, both
// names point to the same commit.
func (c *Checkout) Snapshot(ctx context.Context, run string, n int, o SnapshotOptions) (Snapshot, error) {
	snap, err := c.snapshot(ctx, run, n, o)
	for _, dir := range []string{c.Store.Dir, c.stateDir} {
		if err != nil && files.Full(dir) { // git does not always say so
			return snap, fmt.Errorf("%w; the disk of %s is full, make room", machine{err}, dir)
		}
	}
	if git.OfMachine(err) {
		err = machine{err}
	}
	return snap, err
}

// ErrMachine is that the machine did not let a snapshot be taken: a disk is full, or
// git was killed. It is nobody's fault, and the same may work later.
var ErrMachine = errors.New("the machine did not let it")

type machine struct{ error }

func (machine) Is(target error) bool { return target == ErrMachine }
func (m machine) Unwrap() error      { return m.error }

func (c *Checkout) snapshot(ctx context.Context, run string, n int, o SnapshotOptions) (Snapshot, error) {
	named := o.Attempt == "" || validName(o.Attempt)
	if n < 0 || !named {
		return Snapshot{}, fmt.Errorf("cannot take snapshot %d %q of run %s: the number or the attempt cannot be "+
			"part of a ref", n, o.Attempt, run)
	}
	r, err := c.openSession(ctx, run)
	if err != nil {
		return Snapshot{}, err
	}
	defer r.closeSession()
	s, err := r.scanFiles(ctx)
	if err != nil {
		return Snapshot{}, fmt.Errorf("cannot take snapshot %d of run %s: %w", n, run, err)
	}
	o.Message = cmp.Or(o.Message, fmt.Sprintf("pawl %s: iteration %d", run, n))
	snap := Snapshot{
		Ref: snapshotRef(run, n, o.Attempt), Run: run, N: n, Attempt: o.Attempt,
		Tree: s.tree, Head: s.head.Commit, Branch: s.head.Branch, Skipped: s.skipped, When: r.mem.last.When,
	}
	if last := r.mem.last; last.Commit != "" && isSameState(last, snap) {
		snap.Commit = last.Commit
	} else {
		snap.When = time.Now().Truncate(time.Second)
		if snap.Commit, err = c.shadow.Commit(ctx, snap.Tree, snap.commitMessage(o.Message), snap.Head); err != nil {
			return Snapshot{}, err
		}
	}
	if err := c.Store.SetRefs(ctx, snap.Ref, snap.Commit); err != nil {
		return Snapshot{}, fmt.Errorf("cannot keep snapshot %d of run %s: %w", n, run, err)
	}
	r.mem.last = snap
	return snap, nil
}

// Seen is how files are now.
type Seen struct {
	Tree    string
	Head    git.Head
	Skipped []string // what the tree does not have; see [Snapshot.Skipped]

	others git.Others // see [Checkout.SeeAll]
}

// See looks at the files, by the rules of the run. It makes no ref, so git may collect
// the tree after some weeks.
func (c *Checkout) See(ctx context.Context, run string) (Seen, error) {
	return seeFiles(ctx, c, run, false)
}

// SeeAll is See for [Checkout.Mirror], which needs to know what is ignored, too.
func (c *Checkout) SeeAll(ctx context.Context, run string) (Seen, error) {
	return seeFiles(ctx, c, run, true)
}

func seeFiles(ctx context.Context, c *Checkout, run string, others bool) (Seen, error) {
	r, err := c.openSession(ctx, run)
	if err != nil {
		return Seen{}, err
	}
	defer r.closeSession()
	r.others = others
	s, err := r.scanFiles(ctx)
	return Seen{Tree: s.tree, Head: s.head, Skipped: s.skipped, others: s.others}, err
}

// Renew forgets what was ignored when a run began to be looked at: the rules of now
// hold from here. What is known of files stays.
func (c *Checkout) Renew(ctx context.Context, run string) error {
	r, err := c.openSession(ctx, run)
	if err != nil {
		return err
	}
	defer r.closeSession()
	return unlessGone(os.Remove(filepath.Join(r.dir, "rules")))
}

// Fill makes all files of a clone those of a tree, of which nothing else is left but
// what is ignored. What it knows of files it has from the run before, so that only what
// differs is written.
func (c *Checkout) Fill(ctx context.Context, run, before, tree string) error {
	r, err := c.openSession(ctx, run)
	if err != nil {
		return err
	}
	defer r.closeSession()
	if was := filepath.Join(c.runFolder(before), "index"); before != "" && before != run {
		_ = os.Rename(was, r.indexFile()) // without it each file is looked into
	}
	if err := c.shadow.SetExclude(readRules(c.Repo.Exclude)); err != nil {
		return err
	}
	if err := r.index.Fill(ctx, tree); err != nil {
		return fmt.Errorf("cannot fill the workspace: %w", err)
	}
	*r.mem = memory{}
	return nil
}

// KeepTree keeps a tree of the store from being collected, under a name, until the run is
// forgotten.
func (c *objects) KeepTree(ctx context.Context, run, name, tree string) error {
	return c.Store.SetRefs(ctx, treePrefix+run+"/"+name, tree)
}

// KeepSnapshot keeps a tree of the store as the snapshot n of a run, with what is checked
// out there; title is the first line of the commit.
func (c *objects) KeepSnapshot(ctx context.Context, run string, n int, tree string, head git.Head, title string,
) error {
	snap := Snapshot{Ref: snapshotRef(run, n, ""), Run: run, N: n, Tree: tree, Head: head.Commit, Branch: head.Branch}
	commit, err := c.shadow.Commit(ctx, tree, snap.commitMessage(title), snap.Head)
	if err != nil {
		return err
	}
	return c.Store.SetRefs(ctx, snap.Ref, commit)
}

// treePrefix begins the names of refs to trees that a run goes on from.
const treePrefix = "refs/pawl/trees/"

func isSameState(a, b Snapshot) bool {
	return a.Tree == b.Tree && a.Head == b.Head && a.Branch == b.Branch && slices.Equal(a.Skipped, b.Skipped)
}

// scanFiles brings the private index up to date and stores its tree. An index that
// git cannot use is made anew, once.
func (r *session) scanFiles(ctx context.Context) (state, error) {
	s, err := r.scanOnce(ctx)
	if err == nil || ctx.Err() != nil {
		return s, err
	}
	if rerr := r.rebuildIndex(ctx); rerr != nil {
		return state{}, err
	}
	return r.scanOnce(ctx)
}

func (r *session) scanOnce(ctx context.Context) (state, error) {
	head, err := r.c.Head(ctx) // before the files: a commit meanwhile must not hide a change of them
	if err != nil {
		return state{}, err
	}
	if r.near = head.Commit; r.c.clone != nil { // its agent's commits may be of any size
		r.near = r.mem.last.Commit
	}
	if err := r.prepareIndex(ctx); err != nil {
		return state{}, err
	}
	if err := r.knowNested(ctx); err != nil {
		return state{}, err
	}
	scan, err := r.compareFiles(ctx)
	if err != nil {
		return state{}, err
	}
	d, err := r.classify(ctx, scan)
	if err != nil {
		return state{}, err
	}
	if err := r.applyDelta(ctx, &d); err != nil {
		return state{}, err
	}
	unchanged := func(p string) bool { return !slices.Contains(d.changed, p) }
	r.mem.unread = slices.DeleteFunc(slices.Clone(d.skipped), unchanged)
	slices.Sort(d.skipped)
	s := state{head: head, skipped: slices.Compact(d.skipped), strays: d.strays, others: scan.Others}
	if r.others && len(d.add)+len(d.remove) > 0 { // what is in the index is not among them
		if s.others, err = r.index.ListOthers(ctx); err != nil {
			return state{}, err
		}
	}
	if r.mem.tree == "" {
		if r.mem.tree, err = r.index.WriteTree(ctx); err != nil {
			return state{}, err
		}
	}
	s.tree = r.mem.tree
	return s, nil
}

// compareFiles compares the files with the private index, if that was not just done.
func (r *session) compareFiles(ctx context.Context) (git.Scan, error) {
	if s := r.scanned; s != nil {
		r.scanned = nil
		return *s, nil
	}
	rules := r.rulesNow(ctx)
	known := rules != "" && rules == r.mem.rules
	scan, err := r.index.Scan(ctx, git.ScanOptions{Near: r.near, Tracked: !known, Others: r.others})
	if known {
		scan.Tracked = r.mem.ignored
	} else if err == nil {
		r.mem.rules, r.mem.ignored = rules, scan.Tracked
	}
	return scan, err
}

// delta is what has to be done to the private index.
type delta struct {
	add, remove     []string
	skipped, strays []string
	changed         []string // what is tracked and differs
}

// classify decides about every path that the scan found.
func (r *session) classify(ctx context.Context, scan git.Scan) (delta, error) {
	d := delta{changed: scan.Changed}
	d.remove = r.untrackedIgnored(ctx, scan.Tracked)
	d.addGoneFiles(r.c, scan.Gone)
	for _, p := range scan.Changed {
		if r.c.kindOfPath(p) == absent { // in conflict, or just gone
			d.remove = append(d.remove, p)
		}
	}
	gone := lists.Set(d.remove)
	fresh, err := r.newUntrackedFiles(ctx, scan.Untracked, &d)
	if err != nil {
		return d, err
	}
	for _, p := range slices.Concat(scan.Changed, fresh, r.pinnedAgain(scan.Tracked)) {
		if gone[p] {
			continue
		}
		switch r.c.kindOfPath(p) {
		case takeable:
			d.add = append(d.add, p)
		case leftAlone:
			d.skipped = append(d.skipped, p)
		case absent:
		}
	}
	for _, p := range r.mem.nested {
		if inside, err := os.ReadDir(filepath.Join(r.c.Repo.Top, p)); err == nil && len(inside) > 0 {
			d.skipped = append(d.skipped, p)
		}
	}
	return d, nil
}

// addGoneFiles takes files off that are no longer there. Adding a path where nothing
// is does the same without another git command, but not behind a link.
func (d *delta) addGoneFiles(c *Checkout, paths []string) {
	plain := c.newFolderTest()
	for _, p := range paths {
		if _, err := os.Lstat(filepath.Join(c.Repo.Top, p)); plain(filepath.Dir(p)) && os.IsNotExist(err) {
			d.add = append(d.add, p)
		} else {
			d.remove = append(d.remove, p)
		}
	}
}

// newUntrackedFiles are the untracked files that belong into the snapshot: neither the
// rules of now nor those of the start ignore them.
func (r *session) newUntrackedFiles(ctx context.Context, untracked []string, d *delta) ([]string, error) {
	untracked = slices.DeleteFunc(untracked, func(p string) bool {
		if strings.HasPrefix(path.Base(p), tempPrefix) {
			d.strays = append(d.strays, p)
			return true
		}
		return isPawlsOwn(strings.TrimSuffix(p, "/")) || r.start.wasIgnored(p)
	})
	untracked, err := r.withoutIgnoredAtStart(ctx, untracked)
	if err != nil {
		return nil, err
	}
	var fresh []string
	for _, p := range untracked {
		switch {
		case strings.HasSuffix(p, "/"):
			d.skipped = append(d.skipped, strings.TrimSuffix(p, "/"))
		default:
			fresh = append(fresh, p)
		}
	}
	return fresh, nil
}

// withoutIgnoredAtStart drops what the rules of the start ignore.
func (r *session) withoutIgnoredAtStart(ctx context.Context, untracked []string) ([]string, error) {
	if len(untracked) == 0 {
		return untracked, nil
	}
	allowed, err := r.index.UntrackedBy(ctx, r.start.file)
	if err != nil {
		return nil, err
	}
	by := lists.Set(allowed)
	return slices.DeleteFunc(untracked, func(p string) bool { return !by[p] }), nil
}

// untrackedIgnored are those of the private index's ignored paths that neither
// the user's index tracks nor the start's did.
func (r *session) untrackedIgnored(ctx context.Context, ignored []string) []string {
	pinned := lists.Set(r.start.pinned)
	ask := slices.DeleteFunc(slices.Clone(ignored), func(p string) bool { return pinned[p] })
	if len(ask) == 0 {
		return nil
	}
	tracked, err := r.c.trackedFiles(ctx)
	if err != nil {
		return nil // an index that cannot be read: what was tracked stays so
	}
	isTracked := lists.Set(tracked)
	return slices.DeleteFunc(ask, func(p string) bool { return isTracked[p] })
}

// pinnedAgain are paths that were tracked at the start although ignored, are
// not in the private index, and may be back on disk.
func (r *session) pinnedAgain(ignored []string) []string {
	var back []string
	for _, p := range r.start.pinned {
		if !slices.Contains(ignored, p) && !isPawlsOwn(p) {
			back = append(back, p)
		}
	}
	return back
}

// kind says what a snapshot does with a path.
type kind int

const (
	absent kind = iota
	takeable
	leftAlone
)

// kindOfPath decides by what is on disk now.
func (c *Checkout) kindOfPath(p string) kind {
	name := filepath.Join(c.Repo.Top, p)
	info, err := os.Lstat(name)
	switch {
	case err != nil:
		return absent
	case info.Mode()&os.ModeSymlink != 0 && !c.isHidden(p):
		return takeable
	case !info.Mode().IsRegular() || info.Size() > c.maxFile || c.isHidden(p):
		return leftAlone
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if os.IsNotExist(err) {
		return absent
	}
	if err != nil {
		return leftAlone
	}
	_ = f.Close() // opened for reading only
	return takeable
}

// applyDelta changes the private index.
func (r *session) applyDelta(ctx context.Context, d *delta) error {
	if len(d.remove)+len(d.add) == 0 {
		return nil
	}
	r.mem.tree, r.mem.rules = "", ""
	r.noteFolders(d.add)
	if err := r.index.Remove(ctx, d.remove); err != nil {
		return fmt.Errorf("cannot update the private index: %w", err)
	}
	failed, err := r.addPathsInHalves(ctx, d.add)
	all := len(failed) == len(d.add) && len(failed) > 1
	if err != nil && (all || r.c.ofMachine(err)) {
		return fmt.Errorf("cannot read the work tree: %w", err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	d.skipped = append(d.skipped, failed...)
	return nil
}

// ofMachine reports whether an error is nobody's fault: git was killed, or a disk that
// snapshots are written to is full, which git does not always say.
func (c *Checkout) ofMachine(err error) bool {
	full := files.Full(c.Store.Dir) || files.Full(c.stateDir)
	return full || git.OfMachine(err)
}

// addPathsInHalves enters paths. Files may change or go while they are read: a part
// that fails is tried again in halves, and a path that fails alone, twice, is returned.
func (r *session) addPathsInHalves(ctx context.Context, paths []string) (failed []string, err error) {
	err = r.index.Add(ctx, paths)
	if err == nil || ctx.Err() != nil {
		return nil, err
	}
	if len(paths) > 1 {
		half := len(paths) / 2
		a, errA := r.addPathsInHalves(ctx, paths[:half])
		b, errB := r.addPathsInHalves(ctx, paths[half:])
		return append(a, b...), cmp.Or(errA, errB)
	}
	if r.c.kindOfPath(paths[0]) == absent {
		return nil, r.index.Remove(ctx, paths)
	}
	if err = r.index.Add(ctx, paths); err == nil {
		return nil, nil
	}
	return paths, err
}

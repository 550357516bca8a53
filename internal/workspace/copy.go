package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/git"
)

// ErrNoCopy says that a run's copy is not there, or was never finished.
var ErrNoCopy = errors.New("the run's copy of the work tree is gone")

// Copy is a work tree of its own for one run, with a repository of its own
// that borrows the objects of the original. Snapshots of the copy are in its
// repository. The original has what the copy began with as snapshot 0 of the
// run, and what [Copy.Collect] brings over.
type Copy struct {
	*Checkout
	of   *Checkout
	run  string
	dir  string
	plan copied
}

// copied is what is known of a finished copy. It is stored.
type copied struct {
	// Views are paths of the original that are too large to be copied.
	Views []string `json:"views,omitempty"`
	// Left are paths that the copy does not have at all.
	Left []string `json:"left,omitempty"`
}

// View is a place of the machine and where the run's processes see it.
type View struct {
	From, To string
	ReadOnly bool
}

func copyTree(dir string) string    { return filepath.Join(dir, "tree") }
func copyObjects(dir string) string { return filepath.Join(dir, "objects") }
func copyPlan(dir string) string    { return filepath.Join(dir, "copy.json") }

// HasCopy reports whether a finished copy is at dir.
func HasCopy(dir string) bool {
	_, err := os.Stat(copyPlan(dir))
	return err == nil
}

// MakeCopy copies the work tree as it is to the folder dir, which must lie
// outside of it: all that a snapshot has, and of what is ignored as much as
// the limits allow; the rest of that is shown from the original, read-only.
// What an earlier call that was cut off left there is removed.
func (c *Checkout) MakeCopy(ctx context.Context, run, dir string) (*Copy, error) {
	k, err := c.makeCopy(ctx, run, dir)
	if err != nil {
		_ = RemoveCopy(dir) // half of one is of no use; the first error matters more
		return nil, fmt.Errorf("cannot make a copy of the work tree: %w", err)
	}
	return k, nil
}

func (c *Checkout) makeCopy(ctx context.Context, run, dir string) (*Copy, error) {
	if c.holds(dir) {
		return nil, fmt.Errorf("pawl's folder %s is inside of the repository; set XDG_STATE_HOME to a folder outside of it",
			c.stateDir)
	}
	if err := RemoveCopy(dir); err != nil {
		return nil, err
	}
	base, err := c.Snapshot(ctx, run, 0, SnapshotOptions{Message: "pawl " + run + ": before the run"})
	if err != nil {
		return nil, err
	}
	entries, ignored, err := c.inventory(ctx, run)
	if err != nil {
		return nil, err
	}
	top := copyTree(dir)
	if err := os.MkdirAll(filepath.Join(top, filepath.FromSlash(c.inside())), 0o700); err != nil {
		return nil, err
	}
	if err := c.Repo.Borrow(ctx, top, copyObjects(dir)); err != nil {
		return nil, err
	}
	if err := c.fill(ctx, top, entries); err != nil {
		return nil, err
	}
	plan, err := c.carry(ctx, top, slices.Concat(ignored, base.Skipped))
	if err != nil {
		return nil, err
	}
	k, err := c.enter(ctx, run, dir, plan)
	if err != nil {
		return nil, err
	}
	if err := k.agree(ctx, base); err != nil {
		return nil, err
	}
	data, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	return k, files.Replace(copyPlan(dir), data, 0o600, true)
}

// OpenCopy finds the copy of a run again; [ErrNoCopy] when it is not there.
func (c *Checkout) OpenCopy(ctx context.Context, run, dir string) (*Copy, error) {
	data, err := os.ReadFile(copyPlan(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoCopy
	}
	var plan copied
	if err == nil {
		err = json.Unmarshal(data, &plan)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what the run's copy is: %v", err)
	}
	return c.enter(ctx, run, dir, plan)
}

func (c *Checkout) enter(ctx context.Context, run, dir string, plan copied) (*Copy, error) {
	root := filepath.Join(copyTree(dir), filepath.FromSlash(c.inside()))
	own, err := Open(ctx, root, Options{StateDir: filepath.Join(dir, "state"), MaxFile: c.maxFile})
	if err != nil {
		return nil, err
	}
	if want, err := filepath.EvalSymlinks(copyTree(dir)); err != nil || own.Repo.Top != want {
		return nil, fmt.Errorf("%w: %s is no repository of its own any more", ErrNoCopy, copyTree(dir))
	}
	return &Copy{Checkout: own, of: c, run: run, dir: dir, plan: plan}, nil
}

// inventory is what the snapshot that was just taken has, and what is on disk
// and ignored.
func (c *Checkout) inventory(ctx context.Context, run string) (entries []git.Entry, ignored []string, err error) {
	r, err := c.open(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	defer r.close()
	if entries, err = r.index.Entries(ctx); err != nil {
		return nil, nil, err
	}
	ignored, err = r.index.IgnoredFolded(ctx)
	return entries, ignored, err
}

// holds reports whether dir, whose parent exists, lies in the work tree.
func (c *Checkout) holds(dir string) bool {
	if found, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = found
	}
	rel, err := filepath.Rel(c.Repo.Top, dir)
	return err == nil && filepath.IsLocal(rel)
}

// fill writes the files of a snapshot, byte for byte, below top.
func (c *Checkout) fill(ctx context.Context, top string, entries []git.Entry) error {
	w, err := newRestorer(&git.Repo{Top: top, Format: c.Repo.Format})
	if err != nil {
		return err
	}
	defer w.close()
	entries = slices.DeleteFunc(entries, func(e git.Entry) bool { return e.Mode == git.ModeNested })
	blobs := make([]string, len(entries))
	for i, e := range entries {
		blobs[i] = e.Object
	}
	return c.shadow.Blobs(ctx, blobs, func(i int, size int64, body io.Reader) error {
		e := entries[i]
		if _, err := w.write(git.Change{Path: e.Path, NewMode: e.Mode, NewObject: e.Object}, size, body); err != nil {
			return fmt.Errorf("cannot write %q: %w", e.Path, err)
		}
		return ctx.Err()
	})
}

// agree takes the copy's first snapshot and makes it the run's snapshot 0 in
// the original too, so that what the run changed is measured from one tree.
// They differ where the copy cannot have what the original has.
func (k *Copy) agree(ctx context.Context, base Snapshot) error {
	first, err := k.Snapshot(ctx, k.run, 0, SnapshotOptions{Message: "pawl " + k.run + ": before the run"})
	if err != nil || first.Tree == base.Tree {
		return err
	}
	if err := k.of.Repo.Take(ctx, k.Repo, k.dir, base.Tree, first.Tree); err != nil {
		return err
	}
	commit, err := k.of.shadow.Commit(ctx, first.Tree, base.message("pawl "+k.run+": before the run"), base.Commit)
	if err != nil {
		return err
	}
	return k.of.setRef(ctx, k.run, base.Ref, commit)
}

// Left are paths that the copy does not have, because there is no room for them.
func (k *Copy) Left() []string { return k.plan.Left }

// Views are what the run's processes must see so that the copy is where the
// original is: first the copy, then what it borrows.
func (k *Copy) Views() []View {
	views := []View{
		{From: k.Repo.Top, To: k.of.Repo.Top},
		{From: k.of.Repo.Objects, To: copyObjects(k.dir), ReadOnly: true},
	}
	for _, p := range k.plan.Views {
		path := filepath.Join(k.of.Repo.Top, filepath.FromSlash(p))
		views = append(views, View{From: path, To: path, ReadOnly: true})
	}
	return views
}

// Collect brings the copy's tree after iteration n, as it was recorded, into
// the original's repository, as data under the run's refs: files only. Commits
// that were made in the copy stay there.
func (k *Copy) Collect(ctx context.Context, n int, tree string) error {
	have, err := k.of.Snapshots(ctx, k.run)
	if err != nil {
		return err
	}
	if len(have) == 0 || have[0].N != 0 {
		return errors.New("cannot tell what the run changed: its first snapshot is gone")
	}
	base, last := have[0], have[len(have)-1]
	if last.N == n && last.Tree == tree {
		return nil
	}
	if err := k.of.Repo.Take(ctx, k.Repo, k.dir, base.Tree, tree); err != nil {
		return err
	}
	s := Snapshot{Run: k.run, N: n, Tree: tree, Head: base.Head, Branch: base.Branch, Skipped: base.Skipped}
	title := fmt.Sprintf("pawl %s: the copy after iteration %d", k.run, n)
	commit, err := k.of.shadow.Commit(ctx, s.Tree, s.message(title), s.Head)
	if err != nil {
		return err
	}
	return k.of.setRef(ctx, k.run, runRef(k.run, n, ""), commit)
}

// RemoveCopy removes the copy at dir; none is no error.
func RemoveCopy(dir string) error {
	_ = os.Remove(copyPlan(dir)) // first: what is left is no copy any more
	return files.RemoveAll(dir)
}

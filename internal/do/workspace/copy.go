package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/keep/files"
)

// ErrNoCopy says that a run's copy is not there, or was never finished.
var ErrNoCopy = errors.New("the run's copy of the work tree is gone")

// Copy is a work tree of its own for one run, with a repository of its own
// that borrows the objects of the original. Snapshots of the copy are in its
// repository. The original has what the copy began with as snapshot 0 of the
// run, and what [Copy.Collect] brings over.
type Copy struct {
	*Checkout
	// Left are paths that a copy which was just made does not have, as they are too large.
	Left []string

	of  *Checkout
	run string
	dir string
}

// View is a place of the machine and where the run's processes see it.
type View struct {
	From, To string
	ReadOnly bool
}

func copyTree(dir string) string    { return filepath.Join(dir, "tree") }
func copyObjects(dir string) string { return filepath.Join(dir, "objects") }
func copyDone(dir string) string    { return filepath.Join(dir, "done") } // there when the copy is whole

// HasCopy reports whether a finished copy is at dir.
func HasCopy(dir string) bool {
	_, err := os.Stat(copyDone(dir))
	return err == nil
}

// MakeCopy copies the work tree as it is to the folder dir, which must lie
// outside of it, what git ignores too. What an earlier call that was cut off left
// there is removed.
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
	ignored, err := c.ignored(ctx, run)
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
	left, err := c.copyAll(ctx, top, slices.Concat(ignored, base.Skipped))
	if err != nil {
		return nil, err
	}
	k, err := c.enter(ctx, run, dir)
	if err != nil {
		return nil, err
	}
	k.Left = left
	if err := k.agree(ctx, base); err != nil {
		return nil, err
	}
	return k, files.Replace(copyDone(dir), nil, 0o600, true)
}

// OpenCopy finds the copy of a run again; [ErrNoCopy] when it is not there.
func (c *Checkout) OpenCopy(ctx context.Context, run, dir string) (*Copy, error) {
	if !HasCopy(dir) {
		return nil, ErrNoCopy
	}
	return c.enter(ctx, run, dir)
}

func (c *Checkout) enter(ctx context.Context, run, dir string) (*Copy, error) {
	root := filepath.Join(copyTree(dir), filepath.FromSlash(c.inside()))
	own, err := Open(ctx, root, Options{StateDir: filepath.Join(dir, "state"), MaxFile: c.maxFile})
	if err != nil {
		return nil, err
	}
	if want, err := filepath.EvalSymlinks(copyTree(dir)); err != nil || own.Repo.Top != want {
		return nil, fmt.Errorf("%w: %s is no repository of its own any more", ErrNoCopy, copyTree(dir))
	}
	return &Copy{Checkout: own, of: c, run: run, dir: dir}, nil
}

// ignored is what is on disk and ignored.
func (c *Checkout) ignored(ctx context.Context, run string) ([]string, error) {
	r, err := c.open(ctx, run)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.index.IgnoredFolded(ctx)
}

// holds reports whether dir, whose parent exists, lies in the work tree.
func (c *Checkout) holds(dir string) bool {
	if found, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = found
	}
	rel, err := filepath.Rel(c.Repo.Top, dir)
	return err == nil && filepath.IsLocal(rel)
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

// Views are what the run's processes must see so that the copy is where the
// original is: the copy, and what it borrows.
func (k *Copy) Views() []View {
	return []View{
		{From: k.Repo.Top, To: k.of.Repo.Top},
		{From: k.of.Repo.Objects, To: copyObjects(k.dir), ReadOnly: true},
	}
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
	_ = os.Remove(copyDone(dir)) // first: what is left is no copy any more
	return files.RemoveAll(dir)
}

// The most that one ignored folder, one large file or one nested repository may have to
// be copied; what has more is left out.
const (
	mostBytes = 4 << 30
	mostFiles = 500_000
)

// copyAll copies the work tree to the folder top, without git's folder, and names what
// is too large. These are looked at for that.
func (c *Checkout) copyAll(ctx context.Context, top string, these []string) (left []string, err error) {
	from, err := os.OpenRoot(c.Repo.Top)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	for _, p := range these {
		if p = strings.TrimSuffix(p, "/"); tooLarge(from, p) {
			left = append(left, p)
		}
	}
	return left, fs.WalkDir(from.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && d == nil:
			return err
		case err != nil || p == ".":
			return nil //nolint:nilerr // what cannot be read is not copied
		case p == ".git" || ours(p) || slices.Contains(left, p):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return copyOne(from, to, p, d)
	})
}

// tooLarge measures what is at a path. Counting ends where it is too much.
func tooLarge(from *os.Root, path string) bool {
	bytes, count := int64(0), 0
	_ = fs.WalkDir(from.FS(), path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is not copied
		}
		count++
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		if bytes > mostBytes || count > mostFiles {
			return fs.SkipAll
		}
		return nil
	})
	return bytes > mostBytes || count > mostFiles
}

// copyOne copies a file, a folder without what is in it, or a link. What is anything
// else, cannot be read, or goes meanwhile, is passed over.
func copyOne(from, to *os.Root, p string, d fs.DirEntry) (err error) {
	switch {
	case d.IsDir():
		err = to.Mkdir(p, 0o700)
	case d.Type()&fs.ModeSymlink != 0:
		var target string
		if target, err = from.Readlink(p); err == nil {
			err = to.Symlink(target, p)
		}
	case d.Type().IsRegular():
		_, err = files.Copy(from, to, p, mostBytes)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

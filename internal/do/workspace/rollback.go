package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
)

var (
	errMeanwhile = errors.New("it was changed in the meantime")
	errFolder    = errors.New("there is a folder that is not empty")
	errNested    = errors.New("it is a nested repository")
)

// Conflict is a path that could not be written or removed.
type Conflict struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Carried is what came of changing files.
type Carried struct {
	Written []string   `json:"written,omitempty"`
	Removed []string   `json:"removed,omitempty"`
	Left    []Conflict `json:"left,omitempty"` // what was left as it is, and why
}

// Rewound is what came of going back to a snapshot.
type Rewound struct {
	Carried
	// Refused says why nothing was done; empty otherwise.
	Refused string
	To      Snapshot
}

// Rewind puts the files and the branch of a clone back to snapshot n of the run, between
// two iterations. It does nothing, and says so in Refused, unless the files are still
// those of the tree left, which a snapshot has. After an error or a kill it can be run
// again.
func (c *Checkout) Rewind(ctx context.Context, run string, n int, left string) (Rewound, error) {
	return c.rewindTo(ctx, run, snapshotRef(run, n, ""), left)
}

func (c *Checkout) rewindTo(ctx context.Context, run, ref, left string) (Rewound, error) {
	if left == "" {
		return Rewound{}, errors.New("cannot rewind: the tree that the agent left is not known")
	}
	r, err := c.openSession(ctx, run)
	if err != nil {
		return Rewound{}, err
	}
	defer r.closeSession()
	want, err := c.findSnapshot(ctx, ref)
	if err != nil {
		return Rewound{}, err
	}
	b := Rewound{To: want}
	now, err := r.scanFiles(ctx)
	if err != nil {
		return b, fmt.Errorf("cannot go back to %s: %w", ref, err)
	}
	if now.tree != left {
		b.Refused = "files were changed after the agent ended" + c.namesOfChanges(ctx, left, now.tree)
		return b, nil
	}
	changes, _, err := c.shadow.Changes(ctx, now.tree, want.Tree, false, 0)
	if err == nil {
		b.Carried, err = r.carryChanges(ctx, WithoutSkipped(changes, now.skipped, want.Skipped), now.strays)
	}
	if err == nil && now.head != (git.Head{Commit: want.Head, Branch: want.Branch}) && c.clone != nil {
		err = c.clone.SetHead(ctx, git.Head{Commit: want.Head, Branch: want.Branch})
	}
	if err != nil {
		return b, fmt.Errorf("cannot finish going back to %s: %w", ref, err)
	}
	return b, nil
}

// Carry changes files: each path only if what is there is what its change begins with,
// or ends with already; any other is left, and why is said. Nothing is written through a
// link, and no path of git's own is touched. Contents come from the store. It is safe to
// repeat.
func (c *Checkout) Carry(ctx context.Context, run string, changes []git.Change) (Carried, error) {
	r, err := c.openSession(ctx, run)
	if err != nil {
		return Carried{}, err
	}
	defer r.closeSession()
	return r.carryChanges(ctx, changes, nil)
}

// Sweep removes the temporary files of a pawl that was killed as it wrote files.
func Sweep(ctx context.Context, c *Checkout, run string) error {
	r, err := c.openSession(ctx, run)
	if err != nil {
		return err
	}
	defer r.closeSession()
	s, err := r.scanFiles(ctx)
	if err == nil {
		newRestorer(c.Repo, c.rootBelowTop()).removeStrayFiles(s.strays)
	}
	return err
}

// Since are the changes that were made to the files since they were seen, also those that a
// tree cannot show: of a file that became too large, cannot be read, or is none any more,
// and a repository that was made. now is how the files are.
func (c *Checkout) Since(ctx context.Context, run string, was Seen) (now Seen, changes []git.Change, err error) {
	if now, err = c.See(ctx, run); err != nil {
		return now, nil, err
	}
	if now.Tree != was.Tree {
		changes, err = c.TreeChanges(ctx, was.Tree, now.Tree)
	}
	if slices.Equal(now.Skipped, was.Skipped) || err != nil {
		return now, changes, err
	}
	known := lists.Set(was.Skipped)
	names, err := c.Names(ctx, run)
	tracked := lists.Set(names)
	for _, path := range now.Skipped {
		status := byte('A')
		if tracked[path] {
			status = 'M'
		}
		if !known[path] {
			changes = append(changes, git.Change{Path: path, Status: status, NewMode: unseenMode})
		}
	}
	return now, changes, err
}

// unseenMode is that of a change to what no tree has.
const unseenMode = "special"

// PutBack makes the files of a clone, and what is checked out, what they were seen to be.
// What git ignores, and empty folders, stay.
func (c *Checkout) PutBack(ctx context.Context, run string, was Seen) error {
	now, changes, err := c.Since(ctx, run, was)
	if err != nil {
		return err
	}
	top, err := os.OpenRoot(c.Repo.Top)
	if err != nil {
		return err
	}
	defer top.Close()
	for _, ch := range changes {
		if ch.NewMode == unseenMode {
			err = errors.Join(err, top.RemoveAll(ch.Path))
		}
	}
	if err == nil && len(changes) > 0 {
		err = c.carryBack(ctx, run, was, top)
	}
	if err == nil && c.clone != nil && now.Head != was.Head {
		err = c.clone.SetHead(ctx, was.Head)
	}
	return err
}

// carryBack makes files those of a tree. What is in the way of one goes.
func (c *Checkout) carryBack(ctx context.Context, run string, was Seen, top *os.Root) error {
	for try := 0; ; try++ {
		now, changes, err := c.Since(ctx, run, was)
		if err != nil || len(changes) == 0 {
			return err
		}
		back, err := c.TreeChanges(ctx, now.Tree, was.Tree)
		if err != nil {
			return err
		}
		done, err := c.Carry(ctx, run, back)
		switch {
		case err != nil:
			return err
		case len(done.Left) == 0:
			return nil
		case try > 0:
			return fmt.Errorf("%q: %s", done.Left[0].Path, done.Left[0].Why)
		}
		for _, left := range done.Left {
			err = errors.Join(err, top.RemoveAll(left.Path))
		}
		if err != nil {
			return err
		}
	}
}

// Differing are those of the changes whose path is neither as the change begins nor as
// it ends, or cannot become that: a folder on its way is a file that they do not remove. A folder whose
// files they all remove is nothing.
func (c *Checkout) Differing(changes []git.Change) []string {
	w := newRestorer(c.Repo)
	removed := lists.ToMap(changes, func(ch git.Change) (string, bool) { return ch.Path, ch.NewObject == "" })
	var paths []string
	for _, ch := range changes {
		here, err := w.readEntryAt(ch.Path)
		isGoing := here.dir && ch.OldObject == "" && c.hasNoOtherFiles(ch.Path, removed)
		isEither := here.isSameContent(ch.OldMode, ch.OldObject) || here.isSameContent(ch.NewMode, ch.NewObject)
		known := isGoing || isEither
		for dir := path.Dir(ch.Path); here.mode == "" && ch.NewObject != "" && dir != "."; dir = path.Dir(dir) {
			above, aerr := w.readEntryAt(dir)
			isFile := above.mode != "" && !above.dir && !removed[dir]
			known, err = known && !isFile, errors.Join(err, aerr)
		}
		if err != nil || !known {
			paths = append(paths, ch.Path)
		}
	}
	return paths
}

// hasNoOtherFiles reports whether a folder has no files but some.
func (c *Checkout) hasNoOtherFiles(dir string, some map[string]bool) bool {
	return fs.WalkDir(os.DirFS(c.Repo.Top), dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !some[p] {
			return fs.ErrExist
		}
		return err
	}) == nil
}

// Has reports whether a path is as given: a mode of git's and an object, or nothing.
func (c *Checkout) Has(path, mode, object string) bool {
	here, err := newRestorer(c.Repo).readEntryAt(path)
	return err == nil && here.isSameContent(mode, object)
}

// StoreFile stores bytes, for a change that [Checkout.Carry] makes.
func (c *objects) StoreFile(ctx context.Context, data []byte) (object string, err error) {
	return c.shadow.Store(ctx, bytes.NewReader(data))
}

// TreeChanges are the changes from one tree or commit of the store to another, by path
// without renames.
func (c *objects) TreeChanges(ctx context.Context, from, to string) ([]git.Change, error) {
	all, _, err := c.shadow.Changes(ctx, from, to, false, 0)
	return all, err
}

// TreeWith is a tree in which changes were made, whatever they begin with.
func (c *Checkout) TreeWith(ctx context.Context, run, tree string, changes []git.Change) (string, error) {
	r, err := c.openSession(ctx, run)
	if err != nil {
		return "", err
	}
	defer r.closeSession()
	put := lists.Each(changes, func(ch git.Change) git.Entry {
		return git.Entry{Mode: ch.NewMode, Object: ch.NewObject, Path: ch.Path}
	})
	return c.shadow.Index(filepath.Join(r.dir, "edited"), r.lock).TreeWith(ctx, tree, put)
}

// Contents are blobs of the store, each at most limit bytes; one that is larger, or not
// there, is an error.
func (c *objects) Contents(ctx context.Context, limit int64, objects ...string) ([][]byte, error) {
	all := make([][]byte, len(objects))
	err := c.shadow.Blobs(ctx, objects, func(i int, size int64, body io.Reader) (err error) {
		if size > limit {
			return fmt.Errorf("object %s has %d bytes", objects[i], size)
		}
		all[i], err = io.ReadAll(body)
		return err
	})
	return all, err
}

// namesOfChanges are the first files in which two trees differ, in brackets.
func (c *objects) namesOfChanges(ctx context.Context, from, to string) string {
	const shown = 3
	all, more, err := c.FileChanges(ctx, from, to, shown)
	if err != nil || len(all) == 0 {
		return ""
	}
	names := lists.Each(all, func(f git.FileChange) string { return fault.Cut(f.Path, 80) })
	if more {
		names = append(names, "…")
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// findSnapshot reads the snapshot at a ref.
func (c *objects) findSnapshot(ctx context.Context, ref string) (Snapshot, error) {
	all, err := c.listSnapshots(ctx, ref[:strings.LastIndexByte(ref, '/')+1])
	if err != nil {
		return Snapshot{}, err
	}
	for _, s := range all {
		if s.Ref == ref {
			return s, nil
		}
	}
	return Snapshot{}, fmt.Errorf("cannot roll back to %s: there is no such snapshot", ref)
}

// carryChanges removes, then writes.
func (r *session) carryChanges(ctx context.Context, changes []git.Change, strays []string) (b Carried, err error) {
	w := newRestorer(r.c.Repo, r.c.rootBelowTop())
	w.removeStrayFiles(strays)
	var writes []git.Change
	var blobs []string
	for _, ch := range slices.Backward(changes) {
		switch {
		case ch.OldMode == git.ModeNested || ch.NewMode == git.ModeNested:
			b.noteLeft(ch.Path, errNested)
		case ch.NewMode == ModeFolder:
			done, reason := w.makeFolder(ch.Path)
			if done {
				b.Written = append(b.Written, ch.Path)
			}
			b.noteLeft(ch.Path, reason)
		case ch.NewObject == "":
			done, reason := w.removeUnchanged(ch.Path, ch.OldMode, ch.OldObject)
			if done {
				b.Removed = append(b.Removed, ch.Path)
			}
			b.noteLeft(ch.Path, reason)
		}
	}
	for _, ch := range changes {
		if ch.NewObject != "" && ch.NewMode != ModeFolder && ch.OldMode != git.ModeNested &&
			ch.NewMode != git.ModeNested {
			writes, blobs = append(writes, ch), append(blobs, ch.NewObject)
		}
	}
	return b, r.c.shadow.Blobs(ctx, blobs, func(i int, size int64, body io.Reader) error {
		done, reason := w.writeBlob(writes[i], size, body)
		if errors.Is(reason, syscall.ENOSPC) || errors.Is(reason, syscall.EDQUOT) {
			return fmt.Errorf("%q is unchanged: %w; free space on the disk of %s", writes[i].Path, reason, r.c.Repo.Top)
		}
		if done {
			b.Written = append(b.Written, writes[i].Path)
		}
		b.noteLeft(writes[i].Path, reason)
		return ctx.Err()
	})
}

func (b *Carried) noteLeft(path string, reason error) {
	if reason != nil {
		b.Left = append(b.Left, Conflict{path, reason.Error()})
	}
}

// WithoutSkipped leaves out what neither snapshot really has: paths that one of
// them skipped, and what is in nested repositories.
func WithoutSkipped(changes []git.Change, paths ...[]string) []git.Change {
	skipped := lists.Set(slices.Concat(paths...))
	return slices.DeleteFunc(changes, func(ch git.Change) bool {
		return skipped[ch.Path] ||
			isBelowAny(ch.Path, skipped)
	})
}

func isBelowAny(p string, dirs map[string]bool) bool {
	for i := range len(p) {
		if p[i] == '/' && dirs[p[:i]] {
			return true
		}
	}
	return false
}

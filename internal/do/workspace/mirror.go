package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// The most that one ignored folder, one large file or one nested repository may have to
// be copied; what has more is left out.
const (
	mostBytes = 4 << 30
	mostFiles = 500_000
)

// Apart is what no snapshot has, by path: what shows a change of a file, a link or a folder.
type Apart map[string]string

// Mirror makes what no snapshot has in the clone c as it is in the user's own files:
// what git ignores, nested repositories, large files and empty folders. seen is what
// [Checkout.SeeAll] saw of the user's files. What is there already as it is to be is not copied again.
// Each is copied, or shares its blocks where the file system can: none is the same file.
//
// was is what both had when they were made the same last: what the run changed since then
// stays. Without it everything becomes the user's. now is what both have now; left are
// paths that are too large; copied gets now and then how many files were copied.
func (c *Checkout) Mirror(ctx context.Context, from *Checkout, seen Seen, run string, was Apart, copied func(n int),
) (now Apart, left []string, err error) {
	ignored, empty := from.visiblePaths(seen.others.Ignored), from.visiblePaths(seen.others.Folders)
	m := &mirror{from: from, copied: copied, was: was, now: Apart{}, free: make(chan struct{}, foldersAtOnce)}
	m.ctx, m.stop = context.WithCancelCause(ctx)
	defer m.stop(nil)
	if m.pair, err = openBothTops(from, c); err != nil {
		return was, nil, err
	}
	defer m.closeBoth()
	there := slices.Concat(ignored, from.visiblePaths(slices.Clone(seen.Skipped)))
	known := lists.Set(there)
	if was == nil {
		here, err := c.listShown(ctx, run, (*git.Index).ListIgnored)
		for _, p := range here {
			if !known[p] {
				err = errors.Join(err, m.b.RemoveAll(p))
			}
		}
		if err != nil {
			return was, nil, err
		}
	}
	for _, p := range there {
		if was[p] == "" && m.isTooLarge(p) {
			left = append(left, p)
			continue
		}
		if err = errors.Join(err, m.b.MkdirAll(path.Dir(p), 0o755), m.makeSame(p)); err != nil {
			break
		}
	}
	for _, p := range empty {
		if !known[p] {
			err = errors.Join(err, m.makeFolders(p))
		}
	}
	return m.now, left, errors.Join(err, m.removeGone())
}

// removeGone removes what the user removed, and the run did not change.
func (m *mirror) removeGone() (err error) {
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(m.was))) {
		if _, is := m.now[p]; !is && m.was[p] == lookApart(m.b, p) && lookApart(m.a, p) == "" {
			if rerr := m.b.Remove(p); rerr != nil && m.was[p] != folderApart { // a folder has files of the run's
				err = errors.Join(err, unlessGone(rerr))
			}
		}
	}
	return err
}

const folderApart = "folder"

// lookApart finds what shows a change at a path; "" is that nothing is there.
func lookApart(in *os.Root, p string) string {
	info, err := in.Lstat(p)
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return folderApart
	case info.Mode()&fs.ModeSymlink != 0:
		to, _ := in.Readlink(p)
		return "link " + to
	}
	return fmt.Sprintf("%v %d %d", info.Mode()|0o200, info.Size(), info.ModTime().UnixNano())
}

// listShown lists those of the paths that agents may see.
func (c *Checkout) listShown(ctx context.Context, key string,
	list func(*git.Index, context.Context) ([]string, error),
) ([]string, error) {
	r, err := c.openSession(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.closeSession()
	paths, err := list(r.index, ctx)
	return c.visiblePaths(paths), err
}

// Ignored returns a test for whether a path is there and git ignores it.
func (c *Checkout) Ignored(ctx context.Context, key string) (func(p string) bool, error) {
	ignored, err := c.listShown(ctx, key, (*git.Index).ListIgnored)
	known := lists.Set(ignored)
	return func(p string) bool { return known[p] || isBelowAny(p, known) }, err
}

// visiblePaths are the paths that agents may see, without a slash at their ends.
func (c *Checkout) visiblePaths(paths []string) []string {
	paths = lists.Each(paths, func(p string) string { return strings.TrimSuffix(p, "/") })
	return slices.DeleteFunc(paths, func(p string) bool { return isPawlsOwn(p) || c.isHidden(p) })
}

// mirror copies from the folder a to the folder b.
type mirror struct {
	ctx  context.Context
	stop context.CancelCauseFunc // after an error all of it ends
	pair
	from   *Checkout
	n      atomic.Int64
	copied func(n int)
	free   chan struct{} // has room for each folder that is copied beside others
	was    Apart

	sync.Mutex // of what follows, and of copied
	now        Apart
}

const (
	// tellEvery is after how many files it is told how many were copied.
	tellEvery = 2000
	// foldersAtOnce is how many folders are copied side by side: most of the time is waiting
	// for the disk.
	foldersAtOnce = 8
)

// pair is a folder at both sides; path is where it is, from the top.
type pair struct {
	a, b *os.Root
	path string
}

// openBothTops opens the tops of two checkouts.
func openBothTops(a, b *Checkout) (p pair, err error) {
	if p.a, err = os.OpenRoot(a.Repo.Top); err != nil {
		return p, err
	}
	if p.b, err = os.OpenRoot(b.Repo.Top); err != nil {
		err = errors.Join(err, p.a.Close())
	}
	return p, err
}

func (p pair) closeBoth() {
	_, _ = p.a.Close(), p.b.Close() // folders: nothing to lose
}

// makeSame makes what is at a path in b what it is in a, whose folders are there.
func (m *mirror) makeSame(p string) error {
	at := m.pair
	if dir := path.Dir(p); dir != "." {
		var err error
		if at, err = at.enterFolder(dir); err != nil {
			return unlessGone(err)
		}
		defer at.closeBoth()
	}
	return m.sameName(at, path.Base(p))
}

// enterFolder opens the folder of a name, which is there at both sides.
func (p pair) enterFolder(name string) (pair, error) {
	a, err := p.a.OpenRoot(name)
	if err != nil {
		return p, err
	}
	b, err := p.b.OpenRoot(name)
	if err != nil {
		return p, errors.Join(err, a.Close())
	}
	return pair{a, b, path.Join(p.path, name)}, nil
}

// sameName makes what has a name in a folder of b what it is in a. What cannot be read, or
// goes meanwhile, is passed over, and so is what the run changed.
func (m *mirror) sameName(at pair, name string) error {
	if err := context.Cause(m.ctx); err != nil {
		return err
	}
	full := path.Join(at.path, name)
	want, err := at.a.Lstat(name)
	gitFile := name == ".git" && err == nil && !want.IsDir() // of a submodule: it leads to the user's .git
	if err != nil || gitFile || isPawlsOwn(full) || m.from.isHidden(full) {
		if m.was != nil {
			return nil
		}
		return at.b.RemoveAll(name)
	}
	is, have, was := lookApart(at.a, name), lookApart(at.b, name), m.was[full]
	if m.was != nil && have != was && have != is {
		m.noteCommon(full, was)
		return nil
	}
	m.noteCommon(full, is)
	switch {
	case want.IsDir():
		return m.sameFolder(at, name, have == folderApart)
	case want.Mode()&fs.ModeSymlink != 0:
		return sameLink(at, name)
	case !want.Mode().IsRegular() || is == have:
		return nil
	}
	if have != "" {
		if err := at.b.RemoveAll(name); err != nil {
			return err
		}
	}
	_, err = files.Copy(at.a, at.b, name, mostBytes)
	if n := m.n.Add(1); n%tellEvery == 0 {
		m.Lock()
		m.copied(int(n))
		m.Unlock()
	}
	m.noteCommon(full, lookApart(at.b, name))
	return unlessGone(err)
}

// noteCommon keeps what both have at a path now; "" is nothing.
func (m *mirror) noteCommon(p, is string) {
	m.Lock()
	defer m.Unlock()
	if m.now[p] = is; is == "" {
		delete(m.now, p)
	}
}

func sameLink(at pair, name string) error {
	want, err := at.a.Readlink(name)
	if err != nil {
		return unlessGone(err)
	}
	if have, err := at.b.Readlink(name); err == nil && have == want {
		return nil
	}
	if err := at.b.RemoveAll(name); err != nil {
		return err
	}
	return at.b.Symlink(want, name)
}

// sameFolder does some folders in it side by side: as many as there is room for, and the
// others one after another.
func (m *mirror) sameFolder(at pair, name string, there bool) error {
	if !there {
		if err := at.b.RemoveAll(name); err != nil {
			return err
		}
		if err := at.b.Mkdir(name, 0o755); err != nil { //nolint:gosec // as a checkout makes it
			return err
		}
	}
	in, err := at.enterFolder(name)
	if err != nil {
		return unlessGone(err)
	}
	defer in.closeBoth()
	names, err := folderNames(in.a)
	if err != nil {
		return unlessGone(err)
	}
	var all sync.WaitGroup
	for _, name := range names {
		select {
		case m.free <- struct{}{}:
			all.Go(func() {
				defer func() { <-m.free }()
				if err := m.sameName(in, name); err != nil {
					m.stop(err)
				}
			})
		default:
			if err := m.sameName(in, name); err != nil {
				m.stop(err)
			}
		}
	}
	all.Wait()
	if err := context.Cause(m.ctx); err != nil || !there || m.was != nil {
		return err
	}
	known := lists.Set(names)
	more, err := folderNames(in.b)
	for _, name := range more {
		if !known[name] {
			err = errors.Join(err, in.b.RemoveAll(name))
		}
	}
	return err
}

// makeFolders makes the folder at a path, and those below it, without what is in them.
func (m *mirror) makeFolders(p string) error {
	return fs.WalkDir(m.a.FS(), p, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return unlessGone(err)
		case isPawlsOwn(p) || m.from.isHidden(p) || path.Base(p) == ".git",
			m.was[p] != "" && lookApart(m.b, p) == "": // the run removed it
			return fs.SkipDir
		}
		m.now[p] = folderApart
		return m.b.MkdirAll(p, 0o755)
	})
}

func folderNames(in *os.Root) ([]string, error) {
	dir, err := in.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}

// unlessGone is nil for an error of what went meanwhile or may not be read.
func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// isTooLarge measures what is at a path. Counting ends where it is too much.
func (m *mirror) isTooLarge(p string) bool {
	bytes, count := int64(0), 0
	_ = fs.WalkDir(m.a.FS(), p, func(_ string, d fs.DirEntry, err error) error {
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

// SameTimes gives the files of the clone c the times of those of the user, where both
// have the same size: what was built there from them is not older than they are here.
// Both were just filled with, or seen as, the same tree.
func (c *Checkout) SameTimes(ctx context.Context, from *Checkout, run string) error {
	names, err := c.Names(ctx, run)
	if err != nil {
		return err
	}
	changed := false
	for _, name := range names {
		want, werr := os.Lstat(path.Join(from.Repo.Top, name))
		have, herr := os.Lstat(path.Join(c.Repo.Top, name))
		if werr != nil || herr != nil || !have.Mode().IsRegular() || !want.Mode().IsRegular() ||
			want.Size() != have.Size() || want.ModTime().Equal(have.ModTime()) {
			continue
		}
		changed = files.SetTime(path.Join(c.Repo.Top, name), want.ModTime()) == nil || changed
	}
	if !changed {
		return nil
	}
	r, err := c.openSession(ctx, run)
	if err != nil {
		return err
	}
	defer r.closeSession()
	return r.index.Refresh(ctx)
}

// CopyTo copies all files to an empty folder, also those that git ignores; none is the same
// file.
func (c *Checkout) CopyTo(ctx context.Context, dir string) (err error) {
	m := &mirror{from: c, copied: func(int) {}, now: Apart{}, free: make(chan struct{}, foldersAtOnce)}
	m.ctx, m.stop = context.WithCancelCause(ctx)
	defer m.stop(nil)
	if m.a, err = os.OpenRoot(c.Repo.Top); err != nil {
		return err
	}
	if m.b, err = os.OpenRoot(dir); err != nil {
		return errors.Join(err, m.a.Close())
	}
	defer m.closeBoth()
	names, err := folderNames(m.a)
	for _, name := range names {
		if err == nil {
			err = m.sameName(m.pair, name)
		}
	}
	return err
}

// LayOver makes the files of a folder those of a tree with some changes on top. Files that git
// ignores stay as they are. The folder dir is a copy, see [Checkout.CopyTo].
func (c *objects) LayOver(ctx context.Context, dir, tree string, changes []git.Change) error {
	file := dir + ".index"
	defer os.Remove(file)
	x := c.shadow.Over(dir).Index(file, nil)
	if err := x.ReadTree(ctx, tree); err != nil {
		return err
	}
	entries := lists.Each(changes, func(ch git.Change) git.Entry {
		return git.Entry{Path: ch.Path, Mode: ch.NewMode, Object: ch.NewObject}
	})
	err := x.Set(ctx, entries)
	if err == nil {
		tree, err = x.WriteTree(ctx)
	}
	if err != nil {
		return err
	}
	return x.Fill(ctx, tree)
}

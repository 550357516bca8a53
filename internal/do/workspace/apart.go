package workspace

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// ModeFolder is the mode of an empty folder among changes, whose object is the empty tree:
// git keeps none, and so no snapshot has it.
const ModeFolder = "040000"

// ApartWork finds what a run changed of what no snapshot has, where was is what its clone
// and the user's files had in common: large files, files of submodules and of other
// nested repositories, and new empty folders. skipped are those of its newest snapshot,
// and agreed is the tree of all other files that both had in common. Contents are stored.
// only are paths that cannot be changes, each with the reason: a .git is the agent's, a
// pipe is no file, and some the user changed, too.
func (c *Checkout) ApartWork(ctx context.Context, from *Checkout, run string, skipped []string, was Apart,
	agreed string,
) (changes []git.Change, only []Conflict, err error) {
	w := apartWork{c: c, from: from, was: was, agreed: agreed}
	if w.pair, err = openBothTops(from, c); err != nil {
		return nil, nil, err
	}
	defer w.closeBoth()
	for _, p := range c.visiblePaths(slices.Clone(skipped)) {
		names := []string{p}
		if lookApart(w.b, p) == folderApart {
			names = w.changedIn(ctx, p)
		}
		for _, name := range names {
			if err := w.addFileChange(ctx, name); err != nil {
				return nil, nil, err
			}
		}
	}
	folders, err := c.listShown(ctx, run, (*git.Index).ListFolders)
	for _, p := range folders {
		err = errors.Join(err, w.addFolders(ctx, p))
	}
	return w.changes, w.only, err
}

type apartWork struct {
	pair
	c, from *Checkout
	was     Apart
	agreed  string
	sides   map[string]git.Change // of the agreed tree, once it is asked for
	changes []git.Change
	only    []Conflict
}

// changedIn lists the files in a nested repository that differ from what both had, but for
// those that it ignores. What differs in its .git is named.
func (w *apartWork) changedIn(ctx context.Context, dir string) []string {
	all, err := w.c.filesBelowFolder(ctx, dir)
	if err != nil {
		w.noteLeftOut(dir, err.Error())
		return nil
	}
	ignored := w.c.ignoredIn(ctx, dir)
	for name, was := range w.was {
		if was != folderApart && strings.HasPrefix(name, dir+"/") {
			all = append(all, name) // it may be gone
		}
	}
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(name string) bool {
		isGits := strings.Contains(name+"/", "/.git/")
		return isGits || ignored[name] || lookApart(w.b, name) == w.was[name]
	})
	if len(all) > nestedLimit {
		w.noteLeftOut(dir, "it has too many new files")
		return nil
	}
	if w.changedGit(dir + "/.git") {
		w.noteLeftOut(dir+"/.git", "a .git of an agent is never delivered")
	}
	return all
}

// changedGit reports whether branches, tags or what is checked out of a nested repository
// are others than both had.
func (w *apartWork) changedGit(dir string) (changed bool) {
	refs := []string{dir, dir + "/HEAD", dir + "/packed-refs"}
	_ = fs.WalkDir(w.b.FS(), dir+"/refs", func(p string, _ fs.DirEntry, err error) error {
		refs = append(refs, p)
		return err
	})
	return slices.ContainsFunc(refs, func(p string) bool { return lookApart(w.b, p) != w.was[p] })
}

func (w *apartWork) noteLeftOut(p, why string) { w.only = append(w.only, Conflict{p, why}) }

// addFileChange adds the change of one file.
func (w *apartWork) addFileChange(ctx context.Context, name string) error {
	if lookApart(w.b, name) == w.was[name] {
		return nil
	}
	ours, err := newRestorer(w.c.Repo).readEntryAt(name)
	info, lerr := w.b.Lstat(name)
	tooLarge := lerr == nil && info.Size() > mostBytes
	switch {
	case err != nil:
		w.noteLeftOut(name, err.Error())
		return nil
	case tooLarge, ours.mode == "special", ours.dir:
		w.noteLeftOut(name, "it is too large, or not a file")
		return nil
	}
	theirs, err := newRestorer(w.from.Repo).readEntryAt(name)
	switch {
	case err != nil:
		w.noteLeftOut(name, err.Error())
		return nil
	case theirs.isSameContent(ours.mode, ours.object):
		return nil
	case lookApart(w.a, name) != w.was[name] && !w.isAsBothAgreed(ctx, name, theirs):
		w.noteLeftOut(name, "you changed it, too")
		return nil
	}
	for _, side := range []struct {
		of *Checkout
		found
	}{{w.c, ours}, {w.from, theirs}} {
		if err := side.of.storePath(ctx, name, side.found); err != nil {
			return err
		}
	}
	w.changes = append(w.changes, git.Change{Path: name, OldMode: theirs.mode, OldObject: theirs.object,
		NewMode: ours.mode, NewObject: ours.object})
	return nil
}

// isAsBothAgreed reports whether what the user has at a path is what both had in the tree of all
// files: it has become too large for one since.
func (w *apartWork) isAsBothAgreed(ctx context.Context, name string, theirs found) bool {
	if w.sides == nil {
		w.sides = map[string]git.Change{}
		none, err := w.c.Store.EmptyTree(ctx)
		if err != nil {
			return false
		}
		all, err := w.c.TreeChanges(ctx, none, w.agreed)
		for _, ch := range all {
			w.sides[ch.Path] = ch
		}
		if err != nil {
			return false
		}
	}
	ch, there := w.sides[name]
	return there && theirs.isSameContent(ch.NewMode, ch.NewObject)
}

// storePath stores what is at a path.
func (c *Checkout) storePath(ctx context.Context, name string, is found) error {
	switch is.mode {
	case git.ModeFile, git.ModeExec:
		f, err := files.OpenBelow(c.Repo.Top, name)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = c.shadow.Store(ctx, f)
		return err
	case git.ModeSymlink:
		to, err := os.Readlink(path.Join(c.Repo.Top, name))
		if err != nil {
			return err
		}
		_, err = c.StoreFile(ctx, []byte(to))
		return err
	}
	return nil
}

// addFolders adds the new folders at and below a path in which no file is.
func (w *apartWork) addFolders(ctx context.Context, p string) error {
	var dirs []string
	err := fs.WalkDir(w.b.FS(), p, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			return fs.ErrExist
		}
		dirs = append(dirs, p)
		return err
	})
	if err != nil {
		return nil //nolint:nilerr // a file is there, or it goes just now
	}
	none, err := w.c.Store.EmptyTree(ctx)
	for _, dir := range dirs {
		if w.was[dir] == "" && lookApart(w.a, dir) == "" {
			w.changes = append(w.changes, git.Change{Path: dir, NewMode: ModeFolder, NewObject: none})
		}
	}
	return err
}

// SameApart notes that both have the same at paths now, whose content is the same: the
// clone's get the times of the user's.
func (c *Checkout) SameApart(from *Checkout, was Apart, changes []git.Change) (Apart, error) {
	b, err := os.OpenRoot(c.Repo.Top)
	if err != nil {
		return was, err
	}
	defer b.Close()
	now := maps.Clone(was)
	for _, ch := range changes {
		info, err := os.Lstat(path.Join(from.Repo.Top, ch.Path))
		if err == nil && info.Mode().IsRegular() {
			_ = files.SetTime(path.Join(c.Repo.Top, ch.Path), info.ModTime()) // it is copied once more then
		}
		if now[ch.Path] = lookApart(b, ch.Path); now[ch.Path] == "" {
			delete(now, ch.Path)
		}
	}
	return now, nil
}

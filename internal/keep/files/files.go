// Package files writes files that several processes share: whole or not at
// all, and by one of them at a time. It knows nothing of what is in them.
package files

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Replace writes a file in one step: a reader, and a crash, see the old
// content or the new one. The new file has the mode. With synced it also
// survives a power loss, which costs two writes to the disk.
func Replace(path string, data []byte, mode os.FileMode, synced bool) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".pawl-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && mode != 0o600 { // what it is made with
		err = f.Chmod(mode)
	}
	if err == nil && synced {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	if synced {
		return Sync(filepath.Dir(path))
	}
	return nil
}

// ErrLarge is that a file has more bytes than may be copied.
var ErrLarge = errors.New("the file is too large")

// ReplaceJSON is [Replace] with what v is as JSON, for this user alone.
func ReplaceJSON(path string, v any, synced bool) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return Replace(path, data, 0o600, synced)
}

// ReadJSON reads a file into v. What is no file of an agent's may be read so.
func ReadJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// Copy copies a regular file, at most limit bytes of it, from one folder to
// another that has nothing of that name: bytes, permissions and time, by sharing
// blocks where the file system can. It returns how many bytes they were.
func Copy(from, to *os.Root, name string, limit int64) (int64, error) {
	in, err := from.Open(name)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	info, err := in.Stat()
	switch {
	case err != nil, !info.Mode().IsRegular():
		return 0, err
	case info.Size() > limit:
		return 0, ErrLarge
	}
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o200)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, io.LimitReader(in, limit+1))
	if err = errors.Join(err, out.Close()); err == nil && n > limit {
		err = ErrLarge // it grew
	}
	return n, errors.Join(err, to.Chtimes(name, info.ModTime(), info.ModTime()))
}

// RemoveAll removes a folder with all below it, also below folders that cannot
// be written: programs make such, which is no reason to keep them. A path that
// does not exist is no error; no link is followed.
func RemoveAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, rerr := os.OpenRoot(dir)
	if rerr != nil {
		return err
	}
	openFolders(root)
	_ = root.Close() // a folder: nothing to lose
	return os.RemoveAll(dir)
}

// openFolders makes a folder and all in it writable for their owner.
func openFolders(root *os.Root) {
	_ = root.Chmod(".", 0o700) // what it does not open, the removal says
	entries, _ := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if in, ok := openFolder(root, e.Name(), new(bool)); ok {
			openFolders(in)
			_ = in.Close() // a folder: nothing to lose
		}
	}
}

// atOnce is how many files are synced side by side: one write of a disk's
// journal serves all that wait for it.
const atOnce = 32

// Sync makes files and folders survive a power loss: what is in files, and
// which names are in folders. One that is not there any more is no error.
func Sync(paths ...string) error {
	if len(paths) == 1 {
		return syncFile(paths[0])
	}
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	errs := make([]error, len(paths))
	turn := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, path := range paths {
		turn <- struct{}{}
		all.Go(func() {
			errs[i] = syncFile(path)
			<-turn
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Folders are the folders from that of path up to top, top included: they
// have to be synced for a new path to be found again.
func Folders(path, top string) []string {
	var all []string
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		all = append(all, dir)
		if rel, err := filepath.Rel(top, dir); err != nil || rel == "." || !filepath.IsLocal(rel) {
			return all
		}
	}
}

// MkdirAll is [os.MkdirAll]; folders that it makes survive a power loss.
func MkdirAll(dir string, mode os.FileMode) error {
	var made []string
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		made = append(made, filepath.Dir(at))
	}
	if err := os.MkdirAll(dir, mode); err != nil || len(made) == 0 {
		return err
	}
	return Sync(made...)
}

// ProgramPath is a PATH without the folders in which others than the person may
// put programs: those that lie below one of trees, whatever link leads there and
// whether they are there yet, and relative ones. left are those folders.
func ProgramPath(path string, trees ...string) (kept string, left []string) {
	var tops []os.FileInfo
	for _, tree := range trees {
		if info, err := os.Stat(tree); err == nil {
			tops = append(tops, info)
		}
	}
	var keep []string
	for _, folder := range filepath.SplitList(path) {
		if filepath.IsAbs(folder) && !passesThrough(tops, folder, maxLinks) {
			keep = append(keep, folder)
		} else {
			left = append(left, folder)
		}
	}
	return strings.Join(keep, string(filepath.ListSeparator)), left
}

// passesThrough reports whether one comes through one of the folders, or into it, on the way to
// an absolute path. Links are followed as the kernel does, one after the other.
func passesThrough(tops []os.FileInfo, path string, links int) bool {
	at, parts := "/", strings.Split(path, "/")
	for i, part := range parts {
		if part == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		info, err := os.Lstat(next)
		if err == nil && info.Mode()&os.ModeSymlink != 0 && links > 0 {
			to, _ := os.Readlink(next)
			if !filepath.IsAbs(to) {
				to = at + "/" + to
			}
			return passesThrough(tops, to+"/"+strings.Join(parts[i+1:], "/"), links-1)
		}
		if err == nil && slices.ContainsFunc(tops, func(top os.FileInfo) bool { return os.SameFile(info, top) }) {
			return true
		}
		at = next
	}
	return false
}

// maxLinks is how many links the kernel follows on the way to a file.
const maxLinks = 40

// Mend makes a work tree one that git can read, even if an agent broke it: folders that
// their owner may not list can be listed, and pipes by names that git opens are removed,
// since it would wait for who writes into them. It reports whether there was one. No
// link is followed.
func Mend(dir string) (mended bool) { return mendUntil(dir, nil) }

func mendUntil(dir string, quit <-chan struct{}) (mended bool) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	mendFolder(root, "", quit, &mended)
	return mended
}

// MendAfter mends the work tree of a reader that is not done after a time, unless stop is
// called before; stop returns when nothing runs any more.
func MendAfter(wait time.Duration, dir string) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-quit:
		case <-time.After(wait):
			mendUntil(dir, quit)
		}
	}()
	return sync.OnceFunc(func() {
		close(quit)
		<-done
	})
}

// longestPath is what git can open, in bytes.
const longestPath = 4096

// mendFolder mends an open folder. at is where it is in the work tree: each folder is opened
// in the one before, since the way to one in a deep tree is long.
func mendFolder(root *os.Root, at string, quit <-chan struct{}, mended *bool) {
	entries, _ := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		select {
		case <-quit:
			return
		default:
		}
		name := filepath.Join(at, e.Name())
		switch {
		case e.IsDir() && len(name) < longestPath:
			if in, ok := openFolder(root, e.Name(), mended); ok {
				mendFolder(in, name, quit, mended)
				_ = in.Close() // opened for reading only
			}
		case e.Type()&fs.ModeNamedPipe != 0 && opensPipe(name):
			// A process that waits for its other end continues, and reads nothing.
			if f, err := root.OpenFile(e.Name(), os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
				_ = f.Close()
			}
			*mended = root.Remove(e.Name()) == nil || *mended
		}
	}
}

// openFolder opens a folder in another, and lets its owner list it first.
func openFolder(root *os.Root, name string, opened *bool) (in *os.Root, ok bool) {
	in, err := root.OpenRoot(name)
	if errors.Is(err, fs.ErrPermission) {
		info, ierr := root.Lstat(name)
		if ierr != nil || root.Chmod(name, info.Mode().Perm()|0o700) != nil {
			return nil, false // it is somebody else's
		}
		*opened = true
		in, err = root.OpenRoot(name)
	}
	return in, err == nil
}

// opensPipe reports whether git opens what has the name, without a look at what it is.
func opensPipe(name string) bool {
	base := filepath.Base(name)
	return strings.HasPrefix(base, ".git") || base == ".mailmap" || base == ".lfsconfig" || base == "HEAD" ||
		slices.Contains(strings.Split(name, string(filepath.Separator)), ".git")
}

// IsFile reports whether a file is there, and not a folder.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

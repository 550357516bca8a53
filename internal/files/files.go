// Package files writes files that several processes share: whole or not at
// all, and by one of them at a time. It knows nothing of what is in them.
package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
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
		return syncOne(paths[0])
	}
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	errs := make([]error, len(paths))
	turn := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, path := range paths {
		turn <- struct{}{}
		all.Go(func() {
			errs[i] = syncOne(path)
			<-turn
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func syncOne(path string) error {
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

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mend makes a work tree one that git can read, whatever was made of it: folders that
// their owner may not list can be listed, and pipes by names that git opens are removed,
// since it would wait for who writes into them. It tells whether there was one. No link
// is followed.
func Mend(dir string) (mended bool) {
	return mend(dir, nil)
}

func mend(dir string, quit <-chan struct{}) (mended bool) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	mendFolder(root, "", quit, &mended)
	return mended
}

// MendAfter mends the work tree of a reader that is not done after a time, unless stop is
// called before; stop returns when nothing goes on.
func MendAfter(wait time.Duration, dir string) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-quit:
		case <-time.After(wait):
			mend(dir, quit)
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
			// Whoever waits for its other end goes on, and reads nothing.
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

// opensPipe is whether git opens what has the name, without a look at what it is.
func opensPipe(name string) bool {
	base := filepath.Base(name)
	return strings.HasPrefix(base, ".git") || base == ".mailmap" || base == ".lfsconfig" || base == "HEAD" ||
		slices.Contains(strings.Split(name, string(filepath.Separator)), ".git")
}

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
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	mendFolder(root, ".", &mended)
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
			Mend(dir)
		}
	}()
	return sync.OnceFunc(func() {
		close(quit)
		<-done
	})
}

func mendFolder(root *os.Root, dir string, mended *bool) {
	entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(dir))
	if errors.Is(err, fs.ErrPermission) {
		info, err := root.Stat(dir)
		if err != nil || root.Chmod(dir, info.Mode().Perm()|0o700) != nil {
			return // it is somebody else's
		}
		*mended = true
		entries, _ = fs.ReadDir(root.FS(), filepath.ToSlash(dir))
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			mendFolder(root, name, mended)
		case e.Type()&fs.ModeNamedPipe != 0 && opensPipe(name):
			// Whoever waits for its other end goes on, and reads nothing.
			if f, err := root.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
				_ = f.Close()
			}
			*mended = root.Remove(name) == nil || *mended
		}
	}
}

// opensPipe is whether git opens what has the name, without a look at what it is.
func opensPipe(name string) bool {
	base := filepath.Base(name)
	return strings.HasPrefix(base, ".git") || base == ".mailmap" || base == ".lfsconfig" || base == "HEAD" ||
		slices.Contains(strings.Split(name, string(filepath.Separator)), ".git")
}

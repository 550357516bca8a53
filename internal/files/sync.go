package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

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

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

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
	openFolders(root, ".")
	_ = root.Close() // a folder: nothing to lose
	return os.RemoveAll(dir)
}

// openFolders makes a folder and all in it writable for their owner.
func openFolders(root *os.Root, dir string) {
	_ = root.Chmod(dir, 0o700) // what it does not open, the removal says
	f, err := root.Open(dir)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(-1)
	_ = f.Close() // opened for reading only
	for _, e := range entries {
		if e.IsDir() {
			openFolders(root, filepath.Join(dir, e.Name()))
		}
	}
}

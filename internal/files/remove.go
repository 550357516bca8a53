package files

import (
	"errors"
	"io/fs"
	"os"
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

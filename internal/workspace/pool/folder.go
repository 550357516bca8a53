package pool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folderID tells a folder from any other on the machine: device and inode. A
// link and a file are an error.
func folderID(dir string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return "", fmt.Errorf("cannot look at %s: %w", dir, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return "", fmt.Errorf("cannot use %s: it is no folder", dir)
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino), nil
}

// removeTree removes a folder with all below it; none is no error. Folders that
// cannot be written are opened first. No link is followed.
func removeTree(dir string) error {
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

// treeSize is the room that a folder takes on the disk, in bytes; what cannot
// be read is not counted.
func treeSize(dir string) int64 {
	var size int64
	_ = filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		var st unix.Stat_t
		if unix.Lstat(name, &st) == nil {
			size += st.Blocks * 512
		}
		return nil
	})
	return size
}

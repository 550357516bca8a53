package pool

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folderID identifies a folder on this machine by device and inode. A link and a
// file are an error.
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

//go:build unix

package files

import "golang.org/x/sys/unix"

// noRoom is what is left on a disk that counts as full, in bytes.
const noRoom = 1 << 20

// Free is how many bytes a user may still write on the disk of a folder.
func Free(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil //nolint:gosec // a block size is positive
}

// Full reports whether the disk of a folder has less than a megabyte of room; no
// for one that does not tell.
func Full(dir string) bool {
	free, err := Free(dir)
	return err == nil && free < noRoom
}

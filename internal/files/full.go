//go:build unix

package files

import "golang.org/x/sys/unix"

// noRoom is what is left on a disk that counts as full, in bytes.
const noRoom = 1 << 20

// Full reports whether the disk of a folder has less than a megabyte of room; no
// for one that does not tell.
func Full(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Bavail*uint64(st.Bsize) < noRoom //nolint:gosec // a block size is positive
}

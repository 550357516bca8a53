package files

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Identity distinguishes a file or folder from all others that are, or ever were, at its
// path: by its inode and, where the file system has it, its time of birth. It stays when
// the file is moved within a file system. A link is not followed.
func Identity(path string) (string, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &st)
	if err != nil {
		return "", &os.PathError{Op: "statx", Path: path, Err: err}
	}
	return fmt.Sprintf("%d.%d.%d", st.Ino, st.Btime.Sec, st.Btime.Nsec), nil
}

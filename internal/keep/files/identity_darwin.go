package files

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Identity distinguishes a file or folder from all others that are, or ever were, at its
// path: by its inode and its time of birth. It stays when the file is moved within a file system. A
// link is not followed.
func Identity(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return "", &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	return fmt.Sprintf("%d.%d.%d", st.Ino, st.Btim.Sec, st.Btim.Nsec), nil
}

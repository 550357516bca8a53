//go:build unix

package files

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Holder says who keeps others from n bytes at at of the file: "process 1234
// (python3)", "another process" where the kind of lock does not tell which, ""
// when nobody does or it cannot be seen. The locks of fcntl count, not
// [Lock]'s. Whoever asks must have no lock of its own on the file that ends
// with a descriptor (one of fcntl's old kind).
func Holder(path string, at, n int64) string { return holder(path, at, n, unix.F_RDLCK) }

// User says in the same words who has any lock there: who only reads counts, too.
func User(path string, at, n int64) string { return holder(path, at, n, unix.F_WRLCK) }

func holder(path string, at, n int64, kind int16) string {
	f, err := os.Open(path) //nolint:gosec // the path is the caller's choice
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	lock := unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: at, Len: n}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK {
		return ""
	}
	if lock.Pid <= 0 {
		return "another process"
	}
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", lock.Pid)) // it may just have ended, or there is no /proc
	if len(name) == 0 {
		return fmt.Sprintf("process %d", lock.Pid)
	}
	return fmt.Sprintf("process %d (%s)", lock.Pid, strings.TrimSpace(string(name)))
}

package process

import "golang.org/x/sys/unix"

func pipeCloseOnExec(fds *[2]int) error { return unix.Pipe2(fds[:], unix.O_CLOEXEC) }

// enlarge may be refused to a user who has many large pipes; the pipe works
// all the same.
func enlarge(fd, size int) {
	if size > 0 {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, size) //nolint:gosec // a descriptor fits
	}
}

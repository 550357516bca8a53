package sandbox

import (
	"syscall"

	"golang.org/x/sys/unix"
)

var oldSetID = []string{"chmod", "creat", "open", "mknod"}

func setIDByOld(call string, path uintptr, mode int) (errno syscall.Errno) {
	switch call {
	case "mknod":
		_, _, errno = unix.Syscall(unix.SYS_MKNOD, path, uintptr(mode|unix.S_IFREG), 0)
	case "creat":
		_, _, errno = unix.Syscall(unix.SYS_CREAT, path, uintptr(mode), 0)
	case "open":
		_, _, errno = unix.Syscall(unix.SYS_OPEN, path, unix.O_CREAT|unix.O_WRONLY, uintptr(mode))
	case "chmod":
		if _, _, errno = unix.Syscall(unix.SYS_CREAT, path, 0o755, 0); errno == 0 {
			_, _, errno = unix.Syscall(unix.SYS_CHMOD, path, uintptr(mode), 0)
		}
	}
	return errno
}

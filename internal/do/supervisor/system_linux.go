package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socketAddress names the socket by way of an open folder, as the path of a
// socket must be shorter than 108 bytes and that of a run may not be.
func socketAddress(runDir string, _ bool) (string, func(), error) {
	dir, err := os.OpenFile(runDir, unix.O_DIRECTORY|os.O_RDONLY, 0)
	if err != nil {
		return "", nil, fmt.Errorf("cannot open the run's folder: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketName), func() { _ = dir.Close() }, nil
}

// isOwnUnboxedPeer reports whether the other end has our user id, and is in no other user
// or mount namespace: what is in a box has them of its own.
func isOwnUnboxedPeer(c *net.UnixConn) bool {
	cred, err := peerCredentials(c)
	if err != nil || int(cred.Uid) != os.Getuid() {
		return false
	}
	for _, space := range []string{"user", "mnt"} {
		ours, err := os.Readlink("/proc/self/ns/" + space)
		theirs, terr := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", cred.Pid, space))
		if err != nil || terr != nil || ours != theirs {
			return false
		}
	}
	return isPeerAlive(c, 0)
}

// isPeerAlive reports whether the process that made the other end lives, so that its
// number is no other's, and is not about to end; true where the kernel does not
// know.
func isPeerAlive(c *net.UnixConn, wait time.Duration) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	alive := false
	err = raw.Control(func(fd uintptr) {
		pidfd, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD) //nolint:gosec // a descriptor fits
		if err != nil {
			alive = errors.Is(err, unix.ENOPROTOOPT)
			return
		}
		defer func() { _ = unix.Close(pidfd) }()
		n, err := pollProcessEnd(pidfd, wait)
		alive = err == nil && n == 0
	})
	return err == nil && alive
}

// pollProcessEnd waits until the process has ended, also before it was waited for: its
// descriptor can be read then. Go's runtime interrupts it by signals of its own.
func pollProcessEnd(pidfd int, wait time.Duration) (n int, err error) {
	ends := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}} //nolint:gosec // a descriptor fits
	for until := time.Now().Add(wait); ; wait = max(0, time.Until(until)) {
		if n, err = unix.Poll(ends, int(wait.Milliseconds())); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// peerProcessID is the process at the other end; 0 when unknown.
func peerProcessID(c *net.UnixConn) int {
	cred, err := peerCredentials(c)
	if err != nil {
		return 0
	}
	return int(cred.Pid)
}

func peerCredentials(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) //nolint:gosec // a descriptor fits
	})
	if err != nil {
		return nil, err
	}
	return cred, credErr
}

// changedAt is the last change of a file's content or name: an unpacked archive
// sets old times of content.
func changedAt(info fs.FileInfo) time.Time {
	at := info.ModTime()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		//nolint:unconvert // the fields are 32 bits wide on some machines
		if ctime := time.Unix(int64(st.Ctim.Sec), int64(st.Ctim.Nsec)); ctime.After(at) {
			return ctime
		}
	}
	return at
}

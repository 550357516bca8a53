package supervisor

import (
	"fmt"
	"net"
	"os"

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

// sameUser reports whether the other end has our user id.
func sameUser(c *net.UnixConn) bool {
	cred, err := peer(c)
	return err == nil && int(cred.Uid) == os.Getuid()
}

// peerPID is the process at the other end; 0 when unknown.
func peerPID(c *net.UnixConn) int {
	cred, err := peer(c)
	if err != nil {
		return 0
	}
	return int(cred.Pid)
}

func peer(c *net.UnixConn) (*unix.Ucred, error) {
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

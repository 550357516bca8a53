package postgres

import (
	"syscall"
	"time"
)

// setSendTimeout has a connection end when what was sent is not confirmed for so long:
// a server that is cut off would be waited for a quarter of an hour.
func setSendTimeout(_, _ string, c syscall.RawConn) error {
	const userTimeout = 18 // TCP_USER_TIMEOUT
	var err error
	cerr := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int((30 * time.Second).Milliseconds()))
	})
	if cerr != nil || err == syscall.EOPNOTSUPP || err == syscall.ENOPROTOOPT { // a socket of the file system
		return cerr
	}
	return err
}

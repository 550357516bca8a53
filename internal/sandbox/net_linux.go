package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// openLoopback brings the box's own loopback up, listens there where the proxy
// is expected, and passes the listener out: who accepts on it is outside, with
// the network of outside.
func openLoopback() error {
	control, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open the loopback: %w", err)
	}
	defer func() { _ = unix.Close(control) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("cannot open the loopback: %w", err)
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(control, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("cannot open the loopback: %w", err)
	}
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot listen for the proxy: %w", err)
	}
	defer func() { _ = unix.Close(listener) }()
	if err := unix.Bind(listener, &unix.SockaddrInet4{Port: ProxyPort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("cannot listen for the proxy: %w", err)
	}
	if err := unix.Listen(listener, 128); err != nil {
		return fmt.Errorf("cannot listen for the proxy: %w", err)
	}
	if err := unix.Sendmsg(statusFD, []byte("\n"), unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("cannot pass the listener on: %w", err)
	}
	return nil
}

package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// openLoopback brings the box's own loopback up, listens on ports there, and
// passes the listeners out: who accepts on them is outside, with the network of
// outside.
func openLoopback(ports []int) error {
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
	for _, port := range ports {
		if err := passListener(port); err != nil {
			return fmt.Errorf("cannot open port %d of the box: %w", port, err)
		}
	}
	return nil
}

func passListener(port int) error {
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(listener) }()
	if err := unix.Bind(listener, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.Listen(listener, 128); err != nil {
		return err
	}
	return unix.Sendmsg(statusFD, []byte("\n"), unix.UnixRights(listener), nil, 0)
}

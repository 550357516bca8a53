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

// passListener listens on both addresses of the loopback.
func passListener(port int) error {
	listener, err := listenOnLoopback(unix.AF_INET6, &unix.SockaddrInet6{Port: port})
	if err != nil { // a kernel without IPv6
		listener, err = listenOnLoopback(unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(listener) }()
	return passDescriptor(listener)
}

func listenOnLoopback(family int, address unix.Sockaddr) (int, error) {
	s, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if family == unix.AF_INET6 {
		err = unix.SetsockoptInt(s, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err == nil {
		err = unix.Bind(s, address)
	}
	if err == nil {
		err = unix.Listen(s, 128)
	}
	if err != nil {
		_ = unix.Close(s)
	}
	return s, err
}

func passDescriptor(fd int) error {
	return unix.Sendmsg(statusFD, []byte("\n"), unix.UnixRights(fd), nil, 0)
}

package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// boxes counts those of this process.
var boxes atomic.Int64

// listenInward opens the socket by which the ports of a box are reached from outside, for its init. It is in a
// folder of the person's alone, which no box shows, by the first port of the workspace. A box of no workspace has none;
// where none can be opened, previews do without.
func listenInward(p Policy, env []string) (*os.File, string) {
	first := FirstPort(env)
	if p.Inward == "" || !p.Means.PID || first == 0 || os.MkdirAll(p.Inward, 0o700) != nil {
		return nil, ""
	}
	folder, err := os.Open(p.Inward)
	if err != nil {
		return nil, ""
	}
	defer func() { _ = folder.Close() }()
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, ""
	}
	f := os.NewFile(uintptr(s), "inward") //nolint:gosec // a descriptor fits
	name := fmt.Sprintf("%d-%d-%d", first, os.Getpid(), boxes.Add(1))
	short := fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name)
	if unix.Bind(s, &unix.SockaddrUnix{Name: short}) != nil || unix.Listen(s, 128) != nil {
		_ = f.Close()
		return nil, ""
	}
	return f, filepath.Join(p.Inward, name)
}

// serveInward connects who names a port, in two bytes, to that port of the box's own
// loopback, and passes the connection out.
func serveInward() {
	for {
		from, _, err := unix.Accept4(inwardFD, unix.SOCK_CLOEXEC)
		if err == nil {
			go passConnection(from)
		} else if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ECONNABORTED) {
			return
		}
	}
}

func passConnection(from int) {
	defer func() { _ = unix.Close(from) }()
	var word [2]byte
	if n, err := unix.Read(from, word[:]); err != nil || n < len(word) {
		return
	}
	port := int(binary.LittleEndian.Uint16(word[:]))
	s, err := connectTo(unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if err != nil {
		s, err = connectTo(unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}})
	}
	if err == nil {
		_ = unix.Sendmsg(from, word[:], unix.UnixRights(s), nil, 0) // who asked may be gone
		_ = unix.Close(s)
	}
}

func connectTo(family int, address unix.Sockaddr) (int, error) {
	s, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	err = unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 2}) // a server may be busy
	if err == nil {
		err = unix.Connect(s, address)
	}
	if err != nil {
		_ = unix.Close(s)
	}
	return s, err
}

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/do/process"
)

// self is this program, also when its file was replaced.
const self = "/proc/self/exe"

func errnoOf(n int) error { return syscall.Errno(n) } //nolint:gosec // small

// orderFile is a file without a name.
func orderFile(o order) (*os.File, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the sandbox: %v", err)
	}
	f, err := process.Sealed(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("cannot hand the sandbox over: %v", err)
	}
	return f, nil
}

func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot hear from the sandbox: %v", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, fmt.Errorf("cannot hear from the sandbox: %v", err)
	}
	ours, theirs = os.NewFile(uintptr(fds[0]), "status"), os.NewFile(uintptr(fds[1]), "status") //nolint:gosec // they fit
	return ours, theirs, nil
}

// attributes are those of a process that starts in its namespaces. A user
// namespace maps the user to itself, and for root everybody, since root may
// work on files of others.
func attributes(m Means) *syscall.SysProcAttr {
	var a syscall.SysProcAttr
	if m.User {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = userMapping(os.Geteuid())
		a.GidMappings = userMapping(os.Getegid())
		a.GidMappingsEnableSetgroups = os.Geteuid() == 0
		// An overlay keeps a folder in Scratch that nobody may enter without CAP_DAC_OVERRIDE.
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE}
	}
	if m.Mounts {
		a.Cloneflags |= unix.CLONE_NEWNS
	}
	if m.Net {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	if m.PID {
		a.Cloneflags |= unix.CLONE_NEWPID
	}
	return &a
}

func userMapping(id int) []syscall.SysProcIDMap {
	if os.Geteuid() == 0 {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: wholeRange()}}
	}
	return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
}

// maxStatus is the longest failure that is read.
const maxStatus = 16 << 10

// readStatus reads to the end: what was said, and what was passed.
func readStatus(f *os.File) (said []byte, all []*os.File, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	buf, oob := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(4))
	for len(said) < maxStatus {
		var n, oobn int
		var rerr error
		err := conn.Read(func(fd uintptr) bool {
			n, oobn, _, _, rerr = unix.Recvmsg(int(fd), buf, oob, unix.MSG_CMSG_CLOEXEC) //nolint:gosec // a descriptor fits
			return !errors.Is(rerr, unix.EAGAIN)
		})
		switch {
		case err != nil:
			return said, all, err
		case errors.Is(rerr, unix.EINTR):
			continue
		case rerr != nil:
			return said, all, rerr
		}
		if oobn > 0 {
			fd, err := takeDescriptor(oob[:oobn])
			if err != nil {
				return said, all, err
			}
			_ = unix.SetNonblock(fd, true)                       // so that a read of it ends when it is closed
			all = append(all, os.NewFile(uintptr(fd), "passed")) //nolint:gosec // a descriptor fits
		}
		if n == 0 {
			break
		}
		said = append(said, buf[:n]...)
	}
	return said, all, nil
}

// takeDescriptor takes the descriptor in a control message.
func takeDescriptor(oob []byte) (int, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return -1, fmt.Errorf("cannot take what the sandbox passes: %v", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, fmt.Errorf("cannot take what the sandbox passes: %v", err)
	}
	return fds[0], nil
}

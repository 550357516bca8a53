package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() { //nolint:gochecknoinits // attempts that other systems do not have
	for verb, attempt := range map[string]func(a []string) error{
		"set-id":          func(a []string) error { return setIDBy(a[0], number(a[1])) },
		"file capability": func([]string) error { return giveCapability() },
		"open with a mode that does not count": func(a []string) error {
			fd, _, errno := rawOpenat(unix.AT_FDCWD, a[0], unix.O_RDONLY, 0o7777)
			if errno != 0 {
				return errno
			}
			return unix.Close(int(fd))
		},
		"clone": func(a []string) error {
			cmd := exec.Command("true")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: uintptr(number(a[0]))}
			return cmd.Run()
		},
		"call": func(a []string) error {
			var n [6]uintptr
			for i, text := range a[1:] {
				n[i] = uintptr(number(text))
			}
			_, _, errno := unix.Syscall6(n[0], n[1], n[2], n[3], n[4], n[5], 0)
			if errno == unix.EPERM || errno == unix.ENOSYS {
				return errno
			}
			return nil
		},
		"set the clock": func([]string) error {
			now := unix.Timespec{Sec: 1, Nsec: 0}
			return unix.ClockSettime(unix.CLOCK_REALTIME, &now)
		},
		"terminal": func(a []string) error {
			request, _ := strconv.ParseUint(a[0], 10, 64)
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, uintptr(request), uintptr(unsafe.Pointer(new(byte))))
			if errno == unix.EPERM {
				return errno
			}
			return nil
		},
		"shared memory": func(a []string) error {
			if _, _, errno := unix.Syscall(unix.SYS_SHMGET, uintptr(number(a[0])), 0, 0); errno != 0 {
				return errno
			}
			return nil
		},
		"open to write": func(a []string) error {
			fd, err := unix.Open(a[0], unix.O_WRONLY, 0)
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		},
		"pair": func(a []string) error {
			fds, err := unix.Socketpair(unix.AF_UNIX, number(a[0]), 0)
			if err == nil {
				_, err = unix.Write(fds[0], []byte("x"))
			}
			return err
		},
		"pair that sends": func(a []string) error {
			fds, err := unix.Socketpair(unix.AF_UNIX, number(a[0]), 0)
			if err != nil {
				return err
			}
			return unix.Sendto(fds[0], []byte("escaped"), 0, &unix.SockaddrUnix{Name: a[1]})
		},
		"own socket": func([]string) error {
			l, err := net.Listen("unix", "own")
			if err != nil {
				return err
			}
			defer func() { _ = l.Close() }()
			c, err := net.Dial("unix", "own")
			if err == nil {
				_ = c.Close()
			}
			return err
		},
		"lease": func(a []string) error {
			f, err := os.Open(a[0])
			if err == nil {
				_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
			}
			return err
		},
		"message queue": func(a []string) error { _, err := openQueue(a[0], unix.O_RDWR); return err },
		"descriptor": func(a []string) error {
			_, err := unix.Write(number(a[0]), []byte("escaped"))
			if errors.Is(err, unix.EBADF) {
				return os.ErrPermission
			}
			return err
		},
	} {
		attempts[verb] = attempt
	}
}

func number(text string) int { n, _ := strconv.Atoi(text); return n }

func rawOpenat(dir int, path string, flags, mode int) (uintptr, uintptr, syscall.Errno) {
	p, _ := unix.BytePtrFromString(path)
	return unix.Syscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(p)), uintptr(flags), uintptr(mode), 0, 0)
}

// setIDBy gives a file bits by one of the calls that can, and looks whether it has them.
func setIDBy(call string, bits int) error {
	const name = "powerful"
	_ = os.Remove(name)
	mode := 0o755 | bits
	made := func(fd uintptr, errno syscall.Errno) error {
		if errno != 0 {
			return errno
		}
		return hasBits(int(fd), bits)
	}
	switch call {
	case "openat":
		fd, _, errno := rawOpenat(unix.AT_FDCWD, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, mode)
		return made(fd, errno)
	case "openat tmpfile":
		fd, _, errno := rawOpenat(unix.AT_FDCWD, ".", unix.O_TMPFILE|unix.O_WRONLY, mode)
		return made(fd, errno)
	case "mknodat":
		p, _ := unix.BytePtrFromString(name)
		at := unix.AT_FDCWD
		path, kind := uintptr(unsafe.Pointer(p)), uintptr(mode|unix.S_IFREG)
		_, _, errno := unix.Syscall6(unix.SYS_MKNODAT, uintptr(at), path, kind, 0, 0, 0)
		if errno != 0 {
			return errno
		}
		fd, err := unix.Open(name, unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return hasBits(fd, bits)
	case "openat2":
		fd, err := unix.Openat2(unix.AT_FDCWD, name, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: uint64(mode)})
		if err != nil {
			return err
		}
		return hasBits(fd, bits)
	}
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("cannot try: %v", err)
	}
	p, _ := unix.BytePtrFromString(name)
	path, at := uintptr(unsafe.Pointer(p)), unix.AT_FDCWD
	var errno syscall.Errno
	switch call {
	case "fchmod":
		_, _, errno = unix.Syscall(unix.SYS_FCHMOD, uintptr(fd), uintptr(mode), 0)
	case "fchmodat":
		_, _, errno = unix.Syscall(unix.SYS_FCHMODAT, uintptr(at), path, uintptr(mode))
	case "fchmodat2":
		_, _, errno = unix.Syscall6(unix.SYS_FCHMODAT2, uintptr(at), path, uintptr(mode), 0, 0, 0)
	default:
		_ = os.Remove(name)
		if errno = setIDByOld(call, path, mode); errno != 0 {
			return errno
		}
		fd, err = unix.Open(name, unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
	}
	return made(uintptr(fd), errno)
}

func hasBits(fd, bits int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if int(st.Mode)&bits != bits {
		return fmt.Errorf("the file has mode %o", st.Mode)
	}
	return nil
}

// giveCapability gives a file the right to do anything that root may do.
func giveCapability() error {
	const revision, effective = 0x02000000, 1
	data := binary.LittleEndian.AppendUint32(nil, revision|effective)
	data = binary.LittleEndian.AppendUint32(data, 1<<unix.CAP_SYS_ADMIN)
	data = append(data, make([]byte, 12)...)
	return unix.Setxattr("file", "security.capability", data, 0)
}

func openQueue(name string, flags int) (int, error) {
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return -1, err
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(p)), uintptr(flags), 0o600, 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

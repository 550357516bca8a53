package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const tryCommand = "__try"

// refusedCode is the exit status of an attempt that the system refused. An
// attempt that succeeded exits with 0, one that could not be made with 1.
const refusedCode = 42

// attempts are ways out of a box.
var attempts = map[string]func(a []string) error{
	"write":    func(a []string) error { return os.WriteFile(a[0], []byte("escaped"), 0o600) },
	"append":   func(a []string) error { return appendTo(a[0]) },
	"create":   func(a []string) error { return os.WriteFile(filepath.Join(a[0], "new"), nil, 0o600) },
	"mkdir":    func(a []string) error { return os.Mkdir(filepath.Join(a[0], "folder"), 0o755) },
	"remove":   func(a []string) error { return os.Remove(a[0]) },
	"truncate": func(a []string) error { return os.Truncate(a[0], 0) },
	"rename":   func(a []string) error { return os.Rename(a[0], a[1]) },
	"rename then write below": func(a []string) error {
		if err := os.Rename(a[0], a[1]); err != nil {
			return err
		}
		return appendTo(filepath.Join(a[1], a[2]))
	},
	"symlink then write": func(a []string) error {
		if err := os.Symlink(a[0], "link"); err != nil {
			return fmt.Errorf("cannot try: %v", err)
		}
		return appendTo("link")
	},
	"hardlink then write": func(a []string) error {
		if err := os.Link(a[0], "hard"); err != nil {
			return err
		}
		return appendTo("hard")
	},
	"chmod":    func(a []string) error { return os.Chmod(a[0], 0o777) },
	"chown":    func(a []string) error { return os.Chown(a[0], os.Geteuid(), os.Getegid()) },
	"utimes":   func(a []string) error { return os.Chtimes(a[0], time.Unix(1, 0), time.Unix(1, 0)) },
	"setxattr": func(a []string) error { return unix.Setxattr(a[0], "user.pawl", []byte("x"), 0) },
	"read": func(a []string) error {
		data, err := os.ReadFile(a[0])
		if err == nil && len(data) == 0 {
			return os.ErrNotExist // the null device
		}
		return err
	},
	"remount": func(a []string) error {
		return unix.Mount("", a[0], "", unix.MS_REMOUNT|unix.MS_BIND, "")
	},
	"unmount": func(a []string) error { return unix.Unmount(a[0], unix.MNT_DETACH) },
	"nested namespaces": func(a []string) error {
		cmd := exec.Command(os.Args[0], tryCommand, "remount and write", a[0], a[1])
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		}
		if err := cmd.Run(); err != nil {
			return syscall.EPERM
		}
		return nil
	},
	"remount and write": func(a []string) error {
		_ = unix.Unmount(a[0], unix.MNT_DETACH)
		_ = unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, "")
		return appendTo(a[1])
	},
	"read block device": func([]string) error { return readDisk() },
	"mknod": func([]string) error {
		return unix.Mknod("disk", unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0))) //nolint:gosec // small
	},
	"signal": func(a []string) error { pid, _ := strconv.Atoi(a[0]); return syscall.Kill(pid, 0) },
	"ptrace": func(a []string) error { pid, _ := strconv.Atoi(a[0]); return syscall.PtraceAttach(pid) },
	"write into a process": func(a []string) error { // one that it has started, and that may be looked at
		runtime.LockOSThread()
		child := exec.Command("sleep", "100")
		if err := child.Start(); err != nil {
			return err
		}
		pid := child.Process.Pid
		if a[0] == "directly" {
			_, err := unix.ProcessVMWritev(pid, []unix.Iovec{{}}, []unix.RemoteIovec{{}}, 0)
			return errors.Join(err, child.Process.Kill())
		}
		var regs syscall.PtraceRegs
		if err := syscall.PtraceAttach(pid); err != nil {
			return fmt.Errorf("cannot look at it: %v", err)
		}
		_, err := syscall.Wait4(pid, nil, 0, nil)
		if err = errors.Join(err, syscall.PtraceGetRegs(pid, &regs)); err != nil {
			return fmt.Errorf("cannot look at it: %v", err)
		}
		return errors.Join(syscall.PtraceSetRegs(pid, &regs), child.Process.Kill())
	},
	"environ": func(a []string) error { _, err := os.ReadFile("/proc/" + a[0] + "/environ"); return err },
	"keyring": func([]string) error {
		_, err := unix.KeyctlInt(unix.KEYCTL_GET_KEYRING_ID, unix.KEY_SPEC_USER_KEYRING, 1, 0, 0)
		return err
	},
	"dial": func(a []string) error {
		c, err := net.DialTimeout(a[0], a[1], 5*time.Second)
		if err != nil {
			return os.ErrPermission
		}
		_ = c.Close()
		return nil
	},
	"fast open": sendAtOnce,
	"multipath": connectByPaths,
	"own loopback": func([]string) error {
		for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
			l, err := net.Listen("tcp", address)
			if err != nil {
				return err
			}
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				return err
			}
			_, _ = c.Close(), l.Close()
		}
		return nil
	},
	"send": func(a []string) error {
		c, err := net.Dial(a[0], a[1])
		if err != nil {
			return os.ErrPermission
		}
		defer func() { _ = c.Close() }()
		if _, err = c.Write([]byte("escaped")); err != nil {
			return os.ErrPermission
		}
		return nil
	},
	"socket": func(a []string) error {
		family, _ := strconv.Atoi(a[0])
		kind, _ := strconv.Atoi(a[1])
		protocol, _ := strconv.Atoi(a[2])
		fd, err := unix.Socket(family, kind, protocol)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	},
	"resolve": func(a []string) error {
		if _, err := net.LookupHost(a[0]); err != nil {
			return os.ErrPermission
		}
		return nil
	},
	"big file": func([]string) error {
		f, err := os.Create("big")
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		_, err = io.CopyN(f, zeros{}, 1<<20)
		if errors.Is(err, syscall.EFBIG) {
			return os.ErrPermission
		}
		return err
	},
	"processes": func(a []string) error {
		n, _ := strconv.Atoi(a[0])
		for range n {
			if err := exec.Command("sleep", "30").Start(); err != nil {
				return os.ErrPermission
			}
		}
		return nil
	},
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func appendTo(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = f.WriteString("escaped")
	return err
}

func readDisk() error {
	entries, _ := os.ReadDir("/dev")
	for _, e := range entries {
		if e.Type()&os.ModeDevice == 0 || e.Type()&os.ModeCharDevice != 0 {
			continue
		}
		f, err := os.Open("/dev/" + e.Name())
		if err != nil {
			continue
		}
		n, _ := f.Read(make([]byte, 512))
		_ = f.Close()
		if n > 0 {
			return nil
		}
	}
	return os.ErrPermission
}

// tryOut makes an attempt and says how it went by its exit status.
func tryOut(verb string, args []string) int {
	attempt, ok := attempts[verb]
	if !ok {
		attempt, ok = reaches[verb]
	}
	if verb == "reach all" {
		attempt, ok = reachAll, true
	}
	if !ok {
		fmt.Println("no such attempt:", verb)
		return 1
	}
	err := attempt(args)
	if err == nil {
		fmt.Println(verb, args, "succeeded")
		return 0
	}
	fmt.Println(err)
	for _, refusal := range []error{
		os.ErrPermission, os.ErrNotExist, syscall.EROFS, syscall.EXDEV, syscall.EBUSY, syscall.EINVAL, syscall.ENOSYS, syscall.EAFNOSUPPORT, syscall.ESRCH,
	} {
		if errors.Is(err, refusal) {
			return refusedCode
		}
	}
	return 1
}

package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kept are the rights that root keeps in a box: those over the files that it
// may write, and what installing packages and starting servers takes. None of
// them reaches out, or leaves files that give rights to whoever executes them.
var kept = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_KILL, unix.CAP_SETGID,
	unix.CAP_SETUID, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT,
}

// dropRights takes all capabilities away, root's but a few, for good: no
// program that is executed gets any back.
func dropRights(m Means) error {
	var keep [2]uint32
	if os.Geteuid() == 0 {
		for _, c := range kept {
			keep[c/32] |= 1 << (c % 32)
		}
	}
	if m.User || os.Geteuid() == 0 {
		for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
			if keep[c/32]&(1<<(c%32)) != 0 {
				continue
			}
			err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
			if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
				return fmt.Errorf("cannot give up rights: %w", err)
			}
		}
	}
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("cannot give up rights: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("cannot read its rights: %w", err)
	}
	for i := range data {
		data[i].Permitted &= keep[i]
		data[i].Effective &= keep[i]
		data[i].Inheritable = 0
	}
	err = everyThread(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	if err != nil {
		return fmt.Errorf("cannot give up rights: %w", err)
	}
	if err := everyThread(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); err != nil {
		return fmt.Errorf("cannot refuse new rights: %w", err)
	}
	return nil
}

// everyThread makes a system call on all threads, or on this one alone in a
// program with C in it, as tests may be. The command comes of this thread; the
// others stay where this process is the init of the box.
//
//go:uintptrescapes
func everyThread(number, a, b, c uintptr) error {
	_, _, errno := syscall.AllThreadsSyscall(number, a, b, c)
	if errno == unix.ENOTSUP {
		_, _, errno = unix.Syscall(number, a, b, c)
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// setLimits sets what the system limits by itself. The number of processes is
// that of the user in a user namespace of the box's own; without one the
// processes of all the user's other programs would count.
func setLimits(l Limits, m Means) error {
	if err := lowerResourceLimit(unix.RLIMIT_CORE, 0); err != nil {
		return err
	}
	if l.FileSize > 0 {
		if err := lowerResourceLimit(unix.RLIMIT_FSIZE, uint64(l.FileSize)); err != nil {
			return err
		}
	}
	if l.Processes > 0 && m.User {
		return lowerResourceLimit(unix.RLIMIT_NPROC, uint64(l.Processes))
	}
	return nil
}

// lowerResourceLimit sets a limit that is above most.
func lowerResourceLimit(resource int, most uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return fmt.Errorf("cannot read a limit: %w", err)
	}
	if now.Max <= most {
		return nil
	}
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: min(now.Cur, most), Max: most}); err != nil {
		return fmt.Errorf("cannot set a limit: %w", err)
	}
	return nil
}

// preferAsVictim: when memory runs out, the kernel shall end what runs in the
// box and not pawl. It is no great matter when that cannot be said.
func preferAsVictim() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0o644) //nolint:gosec // a file of the kernel
}

// wholeRange is how many users a mapping of everybody has: all in the first
// namespace, and in one that is nested those that it was given.
func wholeRange() int {
	data, err := os.ReadFile("/proc/self/uid_map")
	fields := strings.Fields(string(data))
	if err != nil || len(fields) != 3 || fields[0] != "0" {
		return 1
	}
	n, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || n < 1 || n > math.MaxUint32 {
		return 1
	}
	return int(n)
}

// DefaultLimits are generous: what a big build needs passes, and what grows
// without end does not take the machine.
func DefaultLimits() Limits {
	l := Limits{Processes: maxProcesses, FileSize: maxFileSize}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		l.Memory = int64(info.Totalram) * int64(info.Unit) / 10 * 9 //nolint:gosec // fits
	}
	return l
}

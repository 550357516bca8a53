package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What Landlock can be told to keep, by the ABI that knows it.
const (
	accessWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	accessRead = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// accessFile is what a rule for a file may say.
	accessFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE

	landlockPort = 2 // a rule for a port; x/sys does not know it

	landlockRefer    = 2
	landlockTruncate = 3
)

// landlockABI is the version of Landlock; 0 when there is none.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi) //nolint:gosec // a small number
}

// landlock restricts the calling thread, and what it executes. Without mounts
// it also keeps what is hidden from being read. Paths are resolved and exist.
func landlock(p Policy) error {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: accessWrite}
	if p.Means.Landlock >= landlockRefer {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if p.Means.Landlock >= landlockTruncate {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if p.Means.Landlock >= landlockScopes {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	shuts := len(p.Shut) > 0 && !p.HasLoopback() && CanShut(p.Means)
	if shuts {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	hide := hideable(p)
	if len(hide) > 0 {
		attr.Handled_access_fs |= accessRead
	}
	ruleset, err := newRuleset(attr, p.Means.Landlock)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(ruleset) }()
	for _, path := range slices.Concat(p.Write, writableTargets(p), devices) {
		if err := allowBelow(ruleset, path, attr.Handled_access_fs); err != nil {
			return err
		}
	}
	if len(hide) > 0 {
		if err := allowReading(ruleset, hide, p.Show); err != nil {
			return err
		}
	}
	if shuts {
		if err := allowPortsBut(ruleset, p.Shut); err != nil {
			return err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("cannot restrict itself with Landlock: %w", errno)
	}
	return nil
}

// hideable is what Landlock has to keep from being read: nothing when mounts
// do it. What lies in a writable folder cannot be hidden: the rule for the
// folder counts for all in it.
func hideable(p Policy) []string {
	if p.Means.Mounts {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Hide), func(path string) bool {
		return slices.ContainsFunc(p.Write, func(w string) bool { return isWithin(w, path) })
	})
}

// newRuleset makes a ruleset. The attribute's size tells the kernel which
// fields there are; older kernels refuse a longer one.
func newRuleset(attr unix.LandlockRulesetAttr, abi int) (int, error) {
	size := unsafe.Offsetof(attr.Handled_access_net)
	if abi >= landlockPorts {
		size = unsafe.Offsetof(attr.Scoped)
	}
	if abi >= landlockScopes {
		size = unsafe.Offsetof(attr.Quiet_access_fs)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return -1, fmt.Errorf("cannot make Landlock rules: %w", errno)
	}
	return int(fd), nil //nolint:gosec // a descriptor fits
}

// allowPortsBut lets every TCP port be connected to but some. Landlock knows no exceptions, so all others
// are allowed one by one, which takes some 20 ms.
func allowPortsBut(ruleset int, shut []int) error {
	for port := range 1 << 16 {
		if slices.Contains(shut, port) {
			continue
		}
		const connect = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		rule := struct{ access, port uint64 }{connect, uint64(port)} //nolint:gosec // not negative
		_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), landlockPort,
			uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
		if errno != 0 {
			return fmt.Errorf("cannot shut ports: %w", errno)
		}
	}
	return nil
}

// allowBelow adds a rule for path and what is below it. A path that is not there
// needs none, nor one that leads to a pipe or a socket, as /dev/stderr may: no
// rule is about these.
func allowBelow(ruleset int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot allow %s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("cannot allow %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= accessFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)} //nolint:gosec // a descriptor fits
	_, _, errno := unix.Syscall6(
		unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0,
	)
	if errno != 0 && errno != unix.EBADFD {
		return fmt.Errorf("cannot allow %s: %w", path, errno)
	}
	return nil
}

// allowReading lets everything be read but what is hidden. Landlock knows no
// exceptions, so the neighbours of what is hidden are allowed one by one. Names
// can be listed everywhere, but in a box that is built from nothing.
func allowReading(ruleset int, hide, show []string) error {
	fromNothing := slices.Contains(hide, "/")
	hide = slices.DeleteFunc(hide, func(path string) bool { return path == "/" })
	if !fromNothing {
		if err := allowBelow(ruleset, "/", unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
			return err
		}
		show = append(visibleEntries("/", hide), show...)
	}
	var readable []string
	for _, path := range show {
		if holdsAnyOf(path, hide) {
			readable = append(readable, visibleEntries(path, hide)...)
		} else {
			readable = append(readable, path)
		}
	}
	for _, path := range readable {
		if err := allowBelow(ruleset, path, accessRead); err != nil {
			return err
		}
	}
	return nil
}

// visibleEntries are the entries below dir that hold nothing hidden and are not hidden.
func visibleEntries(dir string, hide []string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.Type()&os.ModeSymlink != 0: // a rule would be for what it leads to, hidden or not
		case slices.ContainsFunc(hide, func(h string) bool { return isWithin(h, path) }):
		case holdsAnyOf(path, hide):
			out = append(out, visibleEntries(path, hide)...)
		default:
			out = append(out, path)
		}
	}
	return out
}

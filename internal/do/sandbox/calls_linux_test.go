package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// control makes an attempt without a box, which shows that it can succeed here.
func control(t *testing.T, dir, verb string, args ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{tryCommand, verb}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %v fails without a box, so it shows nothing: %v, %s", verb, args, err, strings.TrimSpace(string(out)))
	}
}

// inEach runs a test in every combination of mechanisms that has seccomp.
func inEach(t *testing.T, test func(t *testing.T, p place, pol Policy)) {
	t.Helper()
	for _, tier := range tiers(t) {
		if !tier.Seccomp {
			continue
		}
		t.Run(tier.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			test(t, p, p.policy(tier.Means))
		})
	}
}

func TestNoFileGivesTheRightsOfItsOwner(t *testing.T) {
	verbs := []string{"fchmod", "fchmodat", "fchmodat2", "openat", "openat tmpfile", "openat2", "mknodat"}
	verbs = append(verbs, oldSetID...)
	dir := t.TempDir()
	for _, verb := range verbs {
		for _, bits := range []int{unix.S_ISUID, unix.S_ISGID, unix.S_ISUID | unix.S_ISGID} {
			control(t, dir, "set-id", verb, strconv.Itoa(bits))
		}
	}
	if os.Geteuid() == 0 {
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o700); err != nil {
			t.Fatal(err)
		}
		control(t, dir, "file capability")
	}
	inEach(t, func(t *testing.T, p place, pol Policy) {
		for _, verb := range verbs {
			for _, bits := range []int{unix.S_ISUID, unix.S_ISGID, unix.S_ISUID | unix.S_ISGID} {
				p.try(t, pol, "set-id", verb, strconv.Itoa(bits))
			}
		}
		p.try(t, pol, "file capability")
	})
}

// Modes without these bits are set, in folders too, and an open that makes
// nothing is not judged by what lies where its mode would be.
func TestOrdinaryModesAreSet(t *testing.T) {
	inEach(t, func(t *testing.T, p place, pol Policy) {
		script := `set -e
mkdir -m 1777 d; chmod 0755 d; touch f; chmod 0777 f; chmod u+x,go-w f; install -m 0755 f g; mkfifo -m 600 p; cat f g
cp -a f h; tar cf a.tar f d; tar xpf a.tar
git init -q r; cd r; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x`
		if r := run(t, pol, p.work, "sh", "-c", script); r.code != 0 {
			t.Errorf("exit %d: %s", r.code, r.out)
		}
		if r := run(t, pol, p.work, os.Args[0], tryCommand, "open with a mode that does not count", "file"); r.code != 0 {
			t.Errorf("exit %d: %s", r.code, r.out)
		}
	})
}

func TestNoNamespaceInside(t *testing.T) {
	flags := []int{
		unix.CLONE_NEWUSER, unix.CLONE_NEWUSER | unix.CLONE_NEWNS, unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID, unix.CLONE_NEWUSER | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	}
	if offer().User {
		for _, f := range flags {
			control(t, "", "call", "unshare", strconv.Itoa(unix.SYS_UNSHARE), strconv.Itoa(f))
			control(t, "", "clone", strconv.Itoa(f))
		}
	}
	inEach(t, func(t *testing.T, p place, pol Policy) {
		for _, f := range flags {
			p.try(t, pol, "call", "unshare", strconv.Itoa(unix.SYS_UNSHARE), strconv.Itoa(f))
			p.try(t, pol, "clone", strconv.Itoa(f))
		}
	})
}

// What the kernel is asked with arguments that it cannot take: a call that is
// refused says so before it looks at them.
func TestCallsThatActOnTheMachine(t *testing.T) {
	calls := map[string][]int{
		"mount": {unix.SYS_MOUNT}, "umount": {unix.SYS_UMOUNT2}, "pivot_root": {unix.SYS_PIVOT_ROOT},
		"setns": {unix.SYS_SETNS, -1}, "fsopen": {unix.SYS_FSOPEN}, "fspick": {unix.SYS_FSPICK, -1},
		"fsconfig": {unix.SYS_FSCONFIG, -1, 99}, "fsmount": {unix.SYS_FSMOUNT, -1}, "open_tree": {unix.SYS_OPEN_TREE, -1},
		"move_mount": {unix.SYS_MOVE_MOUNT, -1, 0, -1}, "mount_setattr": {unix.SYS_MOUNT_SETATTR, -1},
		"bpf": {unix.SYS_BPF, 9999}, "perf_event_open": {unix.SYS_PERF_EVENT_OPEN}, "syslog": {unix.SYS_SYSLOG, 10},
		"userfaultfd": {unix.SYS_USERFAULTFD, 0xffff}, "open_by_handle_at": {unix.SYS_OPEN_BY_HANDLE_AT, -1},
		"clone3": {unix.SYS_CLONE3}, "openat2": {unix.SYS_OPENAT2, -1}, "keyctl": {unix.SYS_KEYCTL, 0, -3},
		// These take rights that nobody has in a box.
		"fanotify_init": {unix.SYS_FANOTIFY_INIT, unix.FAN_CLASS_CONTENT}, "swapon": {unix.SYS_SWAPON},
		"reboot":      {unix.SYS_REBOOT, 1, 2, 3},
		"sethostname": {unix.SYS_SETHOSTNAME, 0, -1}, "acct": {unix.SYS_ACCT, 1},
	}
	words := func(name string) []string {
		out := []string{name}
		for _, n := range calls[name] {
			out = append(out, strconv.Itoa(n))
		}
		return out
	}
	if os.Geteuid() == 0 {
		for name := range calls {
			control(t, "", "call", words(name)...)
		}
	}
	inEach(t, func(t *testing.T, p place, pol Policy) {
		for name := range calls {
			p.try(t, pol, "call", words(name)...)
		}
		p.try(t, pol, "set the clock")
		p.try(t, pol, "terminal", strconv.Itoa(unix.TIOCSTI))
		p.try(t, pol, "terminal", strconv.Itoa(unix.TIOCSTI|1<<32))
		p.try(t, pol, "terminal", strconv.Itoa(unix.TIOCLINUX|1<<62))
	})
}

// Who has a lease on a file holds up all that want to write it.
func TestNoLeaseOutside(t *testing.T) {
	file := filepath.Join(newPlace(t).outside, "file")
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	_ = f.Close()
	if err != nil {
		t.Skip("files here have no leases:", err)
	}
	control(t, "", "lease", file)
	inEach(t, func(t *testing.T, p place, pol Policy) { p.try(t, pol, "lease", filepath.Join(p.outside, "file")) })
}

func TestSharedMemoryIsNotTheMachines(t *testing.T) {
	const key = 0x7061776c
	id, _, errno := unix.Syscall(unix.SYS_SHMGET, key, 4096, unix.IPC_CREAT|0o600)
	if errno != 0 {
		t.Skipf("no shared memory: %v", errno)
	}
	defer func() { _, _, _ = unix.Syscall(unix.SYS_SHMCTL, id, unix.IPC_RMID, 0) }()
	queue, err := openQueue("pawl-test", unix.O_CREAT|unix.O_RDWR)
	if err != nil {
		t.Skipf("no message queues: %v", err)
	}
	defer func() { _ = unix.Close(queue) }()
	control(t, "", "shared memory", strconv.Itoa(key))
	control(t, "", "message queue", "pawl-test")
	for _, tier := range tiers(t) {
		if tier.Mounts {
			p := newPlace(t)
			p.try(t, p.policy(tier.Means), "shared memory", strconv.Itoa(key))
			p.try(t, p.policy(tier.Means), "message queue", "pawl-test")
		}
	}
}

func TestDescriptorsOfPawlsParentAreNotInherited(t *testing.T) {
	p := newPlace(t)
	// Not closed by an execve, as a careless parent leaves it.
	fd, err := unix.Open(filepath.Join(p.outside, "file"), unix.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	// The first free number is perhaps one that a box has for itself.
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 50) //nolint:gosec // a descriptor fits
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(high) }()
	control(t, "", "descriptor", strconv.Itoa(high))
	for _, tier := range tiers(t) {
		p.try(t, p.policy(tier.Means), "descriptor", strconv.Itoa(high))
	}
	if got := read(t, filepath.Join(p.outside, "file")); !strings.Contains(got, "escaped") {
		t.Errorf("the control wrote nothing: %q", got)
	}
}

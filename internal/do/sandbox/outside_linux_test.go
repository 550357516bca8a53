package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reaches are what a process may do to another one of its user.
var reaches = map[string]func(a []string) error{
	"prlimit": func(a []string) error {
		return unix.Prlimit(number(a[0]), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}, nil)
	},
	"prlimit, asked": func(a []string) error {
		return unix.Prlimit(number(a[0]), unix.RLIMIT_NOFILE, nil, new(unix.Rlimit))
	},
	"sched_setattr": func(a []string) error {
		return unix.SchedSetAttr(number(a[0]), &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: 19}, 0)
	},
	"sched_setscheduler": func(a []string) error {
		var param struct{ priority int32 }
		return call(unix.SYS_SCHED_SETSCHEDULER, uintptr(number(a[0])), unix.SCHED_BATCH, uintptr(unsafe.Pointer(&param)))
	},
	"sched_setaffinity": func(a []string) error {
		var cpus unix.CPUSet
		cpus.Set(0)
		return unix.SchedSetaffinity(number(a[0]), &cpus)
	},
	"setpriority":          func(a []string) error { return unix.Setpriority(unix.PRIO_PROCESS, number(a[0]), 19) },
	"setpriority of group": func(a []string) error { return unix.Setpriority(unix.PRIO_PGRP, number(a[0]), 19) },
	"ioprio_set": func(a []string) error {
		return call(unix.SYS_IOPRIO_SET, 1, uintptr(number(a[0])), 2<<13|4)
	},
	"ioprio_set of group": func(a []string) error {
		return call(unix.SYS_IOPRIO_SET, 2, uintptr(number(a[0])), 2<<13|4)
	},
	"process_vm_readv": func(a []string) error {
		buf := make([]byte, 1)
		local := []unix.Iovec{{Base: &buf[0], Len: 1}}
		_, err := unix.ProcessVMReadv(number(a[0]), local, []unix.RemoteIovec{{Base: 4096, Len: 1}}, 0)
		if errors.Is(err, unix.EFAULT) {
			return nil // it may look, and there is nothing
		}
		return err
	},
	"kcmp": func(a []string) error {
		return call(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(number(a[0])), 1)
	},
	"move_pages": func(a []string) error { return call(unix.SYS_MOVE_PAGES, uintptr(number(a[0])), 0, 0) },
	"pidfd_getfd": func(a []string) error {
		fd, err := unix.PidfdOpen(number(a[0]), 0)
		if err == nil {
			_, err = unix.PidfdGetfd(fd, 0, 0)
		}
		return err
	},
	"pidfd_open": func(a []string) error { _, err := unix.PidfdOpen(number(a[0]), 0); return err },
	"command line": func(a []string) error {
		_, err := os.ReadFile("/proc/" + a[0] + "/cmdline")
		return err
	},
	"getsid": func(a []string) error { _, err := unix.Getsid(number(a[0])); return err },
	"probe": func([]string) error {
		_, err := fmt.Println(Probe(context.Background()))
		return err
	},
	"own a descriptor": func(a []string) error {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		fd := r.Fd()
		for _, set := range [][2]int{{unix.F_SETOWN, number(a[0])}, {unix.F_SETSIG, int(unix.SIGUSR1)}, {unix.F_SETFL, unix.O_ASYNC}} {
			if _, err := unix.FcntlInt(fd, set[0], set[1]); err != nil {
				return err
			}
		}
		_, err = w.WriteString("x")
		runtime.KeepAlive(r)
		return err
	},
}

func call(nr, a, b, c uintptr) error {
	if _, _, errno := unix.Syscall6(nr, a, b, c, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// victim is a process outside of all boxes, which leads its group.
func victim(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// reachAll makes all attempts on a process and says which work.
func reachAll(a []string) error {
	for verb, attempt := range reaches {
		if verb == "own a descriptor" || verb == "probe" {
			continue // it ends the other one; it reaches nobody
		}
		if err := attempt(a); err == nil {
			fmt.Println(verb)
		}
	}
	return nil
}

// Each attempt works without a box, and none in one.
func TestProcessesOutsideAreNotReached(t *testing.T) {
	pid := strconv.Itoa(victim(t).Process.Pid)
	free, err := exec.Command(os.Args[0], tryCommand, "reach all", pid).Output()
	if n := strings.Count(string(free), "\n"); err != nil || n < len(reaches)-4 { // some are not in every kernel
		t.Errorf("without a box %d of %d attempts work: %s, %v", n, len(reaches), free, err)
	}
	// A thread is named like a process: without a process namespace these cannot
	// be told from what libraries do to their own threads, or only look.
	threads := []string{"sched_setscheduler", "sched_setaffinity", "setpriority", "pidfd_open", "command line", "getsid"}
	for _, tier := range tiers(t) {
		p := newPlace(t)
		r := run(t, p.policy(tier.Means), p.work, os.Args[0], tryCommand, "reach all", pid)
		for verb := range strings.Lines(r.out) {
			verb = strings.TrimSpace(verb)
			if _, known := reaches[verb]; known && (tier.PID || !slices.Contains(threads, verb)) {
				t.Errorf("%s: %s reaches a process outside", tier.name, verb)
			}
		}
		if r.code != 0 {
			t.Errorf("%s: exit %d", tier.name, r.code)
		}
	}
}

// Who owns a descriptor gets a signal, without being sent one.
func TestSignalsOfDescriptorsStayInside(t *testing.T) {
	ends := func(attempt func(pid string)) bool {
		v := victim(t)
		attempt(strconv.Itoa(v.Process.Pid))
		// Of two signals that wait the lower number comes first.
		_ = v.Process.Signal(syscall.SIGTERM)
		_ = v.Wait()
		status, _ := v.ProcessState.Sys().(syscall.WaitStatus)
		return status.Signal() == syscall.SIGUSR1 // which nohup does not have ignored
	}
	free := func(pid string) { _ = exec.Command(os.Args[0], tryCommand, "own a descriptor", pid).Run() }
	if !ends(free) {
		t.Error("the attempt does not work without a box either")
	}
	for _, tier := range tiers(t) {
		p := newPlace(t)
		if ends(func(pid string) {
			run(t, p.policy(tier.Means), p.work, os.Args[0], tryCommand, "own a descriptor", pid)
		}) {
			t.Errorf("%s: the signal came out of the box", tier.name)
		}
	}
}

// A library sets what belongs to its own threads, and a program what belongs to
// itself.
func TestOwnThreadsAndLimits(t *testing.T) {
	for _, tier := range tiers(t) {
		p := newPlace(t)
		r := run(t, p.policy(tier.Means), p.work, os.Args[0], tryCommand, "reach all", "0")
		for _, verb := range []string{"prlimit", "sched_setattr", "sched_setaffinity", "sched_setscheduler", "setpriority", "ioprio_set"} {
			if !strings.Contains(r.out, verb+"\n") {
				t.Errorf("%s: %s does not work on itself: %s", tier.name, verb, r.out)
			}
		}
	}
}

// The box of a process namespace sees its own processes, which are numbered
// anew, and its init is none of its business.
func TestTheBoxHasItsOwnProcesses(t *testing.T) {
	if !offer().PID {
		t.Skipf("no process namespace: %s", offer())
	}
	p := newPlace(t)
	pol := p.policy(Judge(Normal, offer(), false).Means)
	r := run(t, pol, p.work, "sh", "-c", "echo $$ $PPID; grep -hE '^(CapEff|NoNewPrivs|Seccomp):' /proc/1/task/*/status | sort -u")
	for _, want := range []string{" 1\n", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"} {
		if os.Geteuid() == 0 && strings.HasPrefix(want, "CapEff") {
			continue // root keeps a few over its files
		}
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in %q", want, r.out)
		}
	}
	_, _, withC := syscall.AllThreadsSyscall(unix.SYS_GETPID, 0, 0, 0)
	if withC == 0 && strings.Contains(r.out, "NoNewPrivs:\t0") {
		t.Errorf("a thread of the init may get rights: %q", r.out)
	}
	r = run(t, pol, p.work, "sh", "-c", "ls -d /proc/[0-9]*")
	if n := len(strings.Fields(r.out)); n > 3 {
		t.Errorf("it sees %d processes: %s", n, r.out)
	}
	r = run(t, pol, p.work, os.Args[0], tryCommand, "reach all", "1")
	for _, verb := range []string{
		"prlimit", "sched_setattr", "sched_setscheduler", "sched_setaffinity", "setpriority", "ioprio_set", "process_vm_readv", "pidfd_getfd",
	} {
		if strings.Contains(r.out, verb+"\n") {
			t.Errorf("%s reaches the init of the box", verb)
		}
	}
	for _, file := range []string{"environ", "mem", "fd/5", "root/etc/passwd", "cwd/.", "exe", "maps"} {
		p.try(t, pol, "read", "/proc/1/"+file)
	}
}

// Where something covers a part of /proc, as in a container, no other can be
// mounted: there is a box without a process namespace.
func TestAMaskedProcIsNoticed(t *testing.T) {
	if os.Geteuid() != 0 || !offer().PID {
		t.Skip("only root can cover a part of /proc, and there must be something to miss")
	}
	const script = `mount --make-rprivate / && mount --bind /dev/null /proc/version && exec "$0" "$@"`
	cmd := exec.Command("sh", "-c", script, os.Args[0], tryCommand, "probe")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "mount") || strings.Contains(string(out), "process") {
		t.Errorf("it finds %q, %v", out, err)
	}
}

// However a command ends, who started it hears it.
func TestHowACommandEnds(t *testing.T) {
	for _, tier := range tiers(t) {
		for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "exit 255": 255, "kill -9 $$": 128 + 9, "kill -TERM $$": 128 + 15} {
			p := newPlace(t)
			wait, entry, err := start(t, p.policy(tier.Means), p.work, "sh", "-c", script)
			if err != nil {
				t.Fatal(err)
			}
			if got := wait(); got.code != want && (tier.PID || want < 128) {
				t.Errorf("%s: %s: exit %d, want %d: %s", tier.name, script, got.code, want, got.out)
			}
			entry.Close()
		}
	}
}

// What empties its environment, leaves its session and ignores what it can is
// killed with the box.
func TestNothingOutlivesTheEndOfTheLifeLine(t *testing.T) {
	if !offer().PID {
		t.Skipf("no process namespace: %s", offer())
	}
	p := newPlace(t)
	pol := p.policy(Judge(Normal, offer(), false).Means)
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	const script = `trap '' HUP TERM INT
env -i setsid sh -c 'trap "" HUP TERM INT; (setsid sleep 1000 &); sleep 1000' &
echo up; sleep 1000`
	cmd, entry, err := startCommand(t, pol, p.work, outW, "sh", "-c", script)
	_ = outW.Close()
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(outR)
	if line, err := out.ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	entry.Close()
	// The pipe ends when the last one that holds it has ended.
	if rest, err := out.ReadString('\n'); err == nil {
		t.Errorf("it says %q", rest)
	}
	_ = cmd.Wait()
}

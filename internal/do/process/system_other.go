//go:build !linux

package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownsGroups is false where sessions are not shown by ps: a group may have
// innocent processes in it.
const ownsGroups = false

func isSubreaper() bool { return false }

// BecomeSubreaper does nothing here: orphans fall to the first process of the
// system, and only their group and their mark are left to find them by.
func BecomeSubreaper() error { return nil }

func ownSession() int { return -1 }

// runPS runs ps with a bound on its time. Its exit status is of no use: a Reaper may have waited
// for it first.
func runPS(args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, "ps", args...).Output()
	return string(out)
}

// readTable reads all processes from ps.
func readTable() []Proc { return parseProcesses(runPS("-axo", "pid=,ppid=,pgid=,stat=,lstart=")) }

func parseProcesses(text string) []Proc {
	var out []Proc
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 9 {
			continue
		}
		pid, err := strconv.Atoi(f[0])
		if err != nil {
			continue
		}
		parent, _ := strconv.Atoi(f[1])
		group, _ := strconv.Atoi(f[2])
		when, _ := time.Parse("Mon Jan 2 15:04:05 2006", strings.Join(f[4:9], " "))
		out = append(out, Proc{
			PID: pid, Parent: parent, Group: group, Session: group,
			Start:  uint64(when.Unix()), //nolint:gosec // after 1970
			Zombie: strings.HasPrefix(f[3], "Z"), Stopped: strings.HasPrefix(f[3], "T"),
		})
	}
	return out
}

func readProc(pid int) (Proc, bool) {
	for _, p := range parseProcesses(runPS("-o", "pid=,ppid=,pgid=,stat=,lstart=", "-p", strconv.Itoa(pid))) {
		if p.PID == pid {
			return p, true
		}
	}
	return Proc{}, false
}

func signalProc(p Proc, sig syscall.Signal) error {
	if now, ok := readProc(p.PID); !ok || now.Start != p.Start {
		return os.ErrProcessDone
	}
	return syscall.Kill(p.PID, sig)
}

// environOf a process, as ps shows it, blanks turned to zero bytes;
// only processes of the same user show any.
func environOf(pid int) []byte {
	text := runPS("-E", "-ww", "-o", "command=", "-p", strconv.Itoa(pid))
	return []byte(strings.Join(strings.Fields(text), "\x00") + "\x00")
}

// machineUptime counts from the start of this process. A machine that slept looks like
// one whose clock was set.
func machineUptime() time.Duration { return time.Since(started) }

// bootID is the time of the last boot: there is no boot id here.
var bootID = sync.OnceValue(func() string {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return ""
	}
	return strconv.FormatInt(tv.Sec, 10)
})

func bootTime() time.Time {
	secs, err := strconv.ParseInt(bootID(), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(secs, 0)
}

func pidSpace() string { return "" }

func inheritedIgnored(syscall.Signal) bool { return false }

// CloseOnExec keeps descriptors above 2 that this process inherited from
// going on to its children.
func CloseOnExec() {
	for fd := 3; fd < 256; fd++ {
		syscall.CloseOnExec(fd)
	}
}

// Limit does nothing: no other process can be given a limit here.
func Limit(int, uint64, time.Duration) error { return nil }

// MachineMemory is not known here.
func MachineMemory() uint64 { return 0 }

func pipeCloseOnExec(fds *[2]int) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := syscall.Pipe(fds[:]); err != nil {
		return err
	}
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	return nil
}

func enlargePipe(int, int) {}

// Sealed copies r into a file without a name. It is read from its beginning.
func Sealed(r io.Reader) (*os.File, error) {
	f, err := os.CreateTemp("", "pawl-*")
	if err != nil {
		return nil, fmt.Errorf("cannot make a copy: %v", err)
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = io.Copy(f, r)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("cannot make a copy: %v", err)
	}
	return f, nil
}

// Youngest returns the start of the newest process below this one; here there is
// no way to know.
func (r *Reaper) Youngest() (time.Time, bool) { return time.Time{}, false }

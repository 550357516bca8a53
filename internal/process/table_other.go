//go:build !linux

package process

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ownsGroups is false where sessions are not shown by ps: a group may have
// innocent processes in it.
const ownsGroups = false

func subreaping() bool { return false }

// BecomeSubreaper does nothing here: orphans fall to the first process of the
// system, and only their group and their mark are left to find them by.
func BecomeSubreaper() error { return nil }

func ownSession() int { return -1 }

// ps runs ps with a bound on its time. Its exit status is of no use: a Reaper
// may have waited for it first.
func ps(args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, "ps", args...).Output()
	return string(out)
}

// table reads all processes from ps.
func table() []Proc {
	return parsePS(ps("-axo", "pid=,ppid=,pgid=,stat=,lstart="))
}

func parsePS(text string) []Proc {
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
	for _, p := range parsePS(ps("-o", "pid=,ppid=,pgid=,stat=,lstart=", "-p", strconv.Itoa(pid))) {
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

// environment is what ps shows of the variables, blanks turned to zero bytes;
// only processes of the same user show any.
func environment(pid int) []byte {
	text := ps("-E", "-ww", "-o", "command=", "-p", strconv.Itoa(pid))
	return []byte(strings.Join(strings.Fields(text), "\x00") + "\x00")
}

package supervisor

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// Boxed reports whether a process of this machine is in a box that any pawl made and this
// process is not in: an agent's, a check's, a hook's or that of a shell. A supervisor that
// speaks does so for a closed box. One whose ancestors are not known counts as boxed.
//
// A box with a process namespace has pawl as its init, which no process of the box can
// get away from. Without one a process of the box has the supervisor above it, as long as
// that lives.
func Boxed(pid int) bool {
	line, ok := process.Ancestors(pid)
	if !ok {
		return true
	}
	own, _ := process.Ancestors(os.Getpid())
	for i, p := range line {
		around := slices.ContainsFunc(own, func(o process.Proc) bool { return o.PID == p.PID && o.Start == p.Start })
		switch {
		case around:
			return false
		case isHiddenCommand(p.PID, sandbox.Command):
			return true
		case isHiddenCommand(p.PID, Command):
			return i == 0 || restrictionsOf(line[i-1].PID) != restrictionsOf(p.PID)
		}
	}
	return false
}

// Ours reports whether a process is this one or was started by it, however long ago.
func Ours(pid int) bool {
	line, ok := process.Ancestors(pid)
	return ok && slices.ContainsFunc(line, func(p process.Proc) bool { return p.PID == os.Getpid() })
}

// isHiddenCommand reports whether the process is pawl as a hidden command.
func isHiddenCommand(pid int, command string) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	args := strings.Split(string(line), "\x00")
	return err == nil && len(args) > 1 && args[1] == command
}

// restrictionsOf a process: those that it keeps for good, and hands down.
func restrictionsOf(pid int) string {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return ""
	}
	var out []string
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "NoNewPrivs:") || strings.HasPrefix(line, "Seccomp") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

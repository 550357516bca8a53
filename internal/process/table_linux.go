package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownsGroups: a descendant's group has only descendants in it, as each child
// starts with a session of its own.
const ownsGroups = true

var subreaper atomic.Bool

func subreaping() bool { return subreaper.Load() }

// BecomeSubreaper makes orphans of this process's descendants fall to it
// instead of to init.
func BecomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot adopt orphaned processes: %v", err)
	}
	subreaper.Store(true)
	return nil
}

var ownSession = sync.OnceValue(func() int {
	sid, err := unix.Getsid(0)
	if err != nil {
		return -1
	}
	return sid
})

// table reads all processes. One that goes away meanwhile is left out.
func table() []Proc {
	entries, _ := os.ReadDir("/proc") // those that could be read
	out := make([]Proc, 0, len(entries))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := readProc(pid); ok {
			out = append(out, p)
		}
	}
	return out
}

// readProc reads one process from the table.
func readProc(pid int) (Proc, bool) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Proc{}, false
	}
	return parseStat(pid, line)
}

// parseStat reads a line of /proc/<pid>/stat. The name in it may hold blanks
// and brackets, so the fields count from the last bracket.
func parseStat(pid int, line []byte) (Proc, bool) {
	at := bytes.LastIndexByte(line, ')')
	if at < 0 {
		return Proc{}, false
	}
	fields := bytes.Fields(line[at+1:])
	if len(fields) < 21 {
		return Proc{}, false
	}
	number := func(i int) int {
		v, _ := strconv.Atoi(string(fields[i]))
		return v
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return Proc{}, false
	}
	state := fields[0][0]
	// A process whose first thread has ended looks like a zombie while its
	// other threads run.
	alone := number(17) <= 1
	zombie := state == 'Z' && alone
	return Proc{
		PID: pid, Parent: number(1), Group: number(2), Session: number(3),
		Start: start, Zombie: zombie || state == 'X', Stopped: state == 'T',
		leaving: alone && number(20) == 0,
		Name:    string(line[bytes.IndexByte(line, '(')+1 : at]),
	}, true
}

// signalProc signals p if it is still the same process.
func signalProc(p Proc, sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ENOSYS) {
		return signalPlain(p, sig)
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if now, ok := readProc(p.PID); !ok || now.Start != p.Start {
		return os.ErrProcessDone
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

func signalPlain(p Proc, sig syscall.Signal) error {
	if now, ok := readProc(p.PID); !ok || now.Start != p.Start {
		return os.ErrProcessDone
	}
	return syscall.Kill(p.PID, sig)
}

// environment is the variables that pid was started with, each ended by a zero
// byte; nil when they cannot be read.
func environment(pid int) []byte {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	return data
}

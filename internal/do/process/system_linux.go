package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownsGroups: a descendant's group has only descendants in it, as each child
// starts with a session of its own.
const ownsGroups = true

var subreaper atomic.Bool

func isSubreaper() bool { return subreaper.Load() }

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

// readTable reads all processes. One that goes away meanwhile is left out.
func readTable() []Proc {
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
	// By hand: os.ReadFile takes twice the time, and a sweep reads one of each process of the machine.
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Proc{}, false
	}
	var line [1024]byte
	n, err := unix.Read(fd, line[:])
	_ = unix.Close(fd)
	if err != nil {
		return Proc{}, false
	}
	return parseStat(pid, line[:n])
}

// parseStat reads a line of /proc/<pid>/stat. The name in it may hold blanks
// and brackets, so the fields count from the last bracket.
func parseStat(pid int, line []byte) (Proc, bool) {
	at := bytes.LastIndexByte(line, ')')
	if at < 0 {
		return Proc{}, false
	}
	fields := bytes.SplitN(bytes.TrimSpace(line[at+1:]), []byte{' '}, 22) // one blank is between them
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

// environOf is the variables that pid was started with, each ended by a zero
// byte; nil when they cannot be read.
func environOf(pid int) []byte {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	return data
}

// machineUptime is how long the machine is up, asleep too.
func machineUptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return time.Since(started)
	}
	return time.Duration(ts.Nano())
}

var bootID = sync.OnceValue(func() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
})

var bootTime = sync.OnceValue(func() time.Time {
	data, _ := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(data)) {
		if secs, ok := strings.CutPrefix(line, "btime "); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(secs), 10, 64); err == nil {
				return time.Unix(n, 0)
			}
		}
	}
	return time.Time{}
})

var pidSpace = sync.OnceValue(func() string {
	link, _ := os.Readlink("/proc/self/ns/pid")
	return link
})

var ignoredMask = sync.OnceValue(func() uint64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "SigIgn:"); ok {
			mask, _ := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
			return mask
		}
	}
	return 0
})

func inheritedIgnored(sig syscall.Signal) bool { return ignoredMask()&(1<<(sig-1)) != 0 }

// CloseOnExec keeps descriptors above 2 that this process inherited from
// going on to its children.
func CloseOnExec() {
	if unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, n := range names {
		if fd, err := strconv.Atoi(n.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// Limit lets a process that has just begun, and what it starts from then on, have at most
// so many bytes of memory of its own and so much of the processors' time, each.
func Limit(pid int, memory uint64, cpu time.Duration) error {
	seconds := uint64(cpu / time.Second) //nolint:gosec // not negative
	return errors.Join(
		unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: memory, Max: memory}, nil),
		unix.Prlimit(pid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds}, nil),
	)
}

// MachineMemory is how many bytes the machine has; 0 is not known.
func MachineMemory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit) //nolint:unconvert // elsewhere it has 32 bits
}

func pipeCloseOnExec(fds *[2]int) error { return unix.Pipe2(fds[:], unix.O_CLOEXEC) }

// enlargePipe may be refused to a user who has many large pipes; the pipe works
// all the same.
func enlargePipe(fd, size int) {
	if size > 0 {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, size) //nolint:gosec // a descriptor fits
	}
}

// Sealed copies r into a file without a name that cannot be changed any more. It
// is read from its beginning.
func Sealed(r io.Reader) (*os.File, error) {
	fd, err := unix.MemfdCreate("pawl", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("cannot make a file in memory: %v", err)
	}
	f := os.NewFile(uintptr(fd), "sealed") //nolint:gosec // a descriptor fits
	if _, err = io.Copy(f, r); err == nil {
		const all = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, all)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("cannot fill a file in memory: %v", err)
	}
	return f, nil
}

// ticksPerSecond is the unit of start times, the same on every Linux.
const ticksPerSecond = 100

// Youngest returns the start of the newest process below this one, to a
// hundredth of a second; false when there is none, or no way to know.
func (r *Reaper) Youngest() (time.Time, bool) {
	var last uint64
	for _, p := range r.ownDescendants() {
		if !p.Zombie {
			last = max(last, p.Start)
		}
	}
	var up unix.Timespec
	if last == 0 || unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return time.Time{}, false
	}
	age := time.Duration(up.Nano()) - time.Duration(last)*(time.Second/ticksPerSecond)
	return time.Now().Add(-age), true
}

package process

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

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

package process

import "golang.org/x/sys/unix"

// LimitMemory lets a process that has just begun, and what it starts from then on, have
// at most so many bytes of memory of its own, each.
func LimitMemory(pid int, most uint64) error {
	return unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil)
}

// MachineMemory is how many bytes the machine has; 0 is not known.
func MachineMemory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit) //nolint:unconvert // elsewhere it has 32 bits
}

//go:build !linux

package process

// LimitMemory does nothing: no other process can be given a limit here.
func LimitMemory(int, uint64) error { return nil }

// MachineMemory is not known here.
func MachineMemory() uint64 { return 0 }

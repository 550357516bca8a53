//go:build !linux

package process

import "time"

// Limit does nothing: no other process can be given a limit here.
func Limit(int, uint64, time.Duration) error { return nil }

// MachineMemory is not known here.
func MachineMemory() uint64 { return 0 }

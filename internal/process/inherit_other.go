//go:build !linux

package process

import "syscall"

func inheritedIgnored(syscall.Signal) bool { return false }

// CloseOnExec keeps descriptors above 2 that this process inherited from
// going on to its children.
func CloseOnExec() {
	for fd := 3; fd < 256; fd++ {
		syscall.CloseOnExec(fd)
	}
}

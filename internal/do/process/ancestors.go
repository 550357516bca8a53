package process

import (
	"errors"
	"syscall"
)

// Ancestors are a process, its parent, and so on up to the first or to one that is hidden
// from here. ok is false when there is none, or they change all the time.
func Ancestors(pid int) (line []Proc, ok bool) {
	for range 20 {
		if line, ok = ancestorsOf(pid); ok || len(line) == 0 {
			return line, ok
		}
	}
	return nil, false
}

// ancestorsOf is not ok when an ancestor ended meanwhile: its child has another one by then.
func ancestorsOf(pid int) (line []Proc, ok bool) {
	for pid > 0 {
		p, ok := readProc(pid)
		older := len(line) == 0 || p.Start <= line[len(line)-1].Start // else it has the number of one that is gone
		switch {
		case ok && older:
			line = append(line, p)
		case !ok && errors.Is(syscall.Kill(pid, 0), syscall.EPERM):
			return line, len(line) > 0
		default:
			return line, false
		}
		pid = p.Parent
	}
	return line, len(line) > 0
}

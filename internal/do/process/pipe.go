package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Pipe makes a pipe for a child's output of about size bytes (best effort;
// some programs lose at exit what does not fit). The reading end can be given
// a deadline, the writing end blocks as programs expect. Neither is inherited
// except through a [Command].
func Pipe(size int) (r, w *os.File, err error) {
	var fds [2]int
	if err := pipeCloseOnExec(&fds); err != nil {
		return nil, nil, fmt.Errorf("cannot make a pipe: %v", err)
	}
	if err := syscall.SetNonblock(fds[0], true); err != nil {
		_, _ = syscall.Close(fds[0]), syscall.Close(fds[1])
		return nil, nil, fmt.Errorf("cannot make a pipe: %v", err)
	}
	enlargePipe(fds[1], size)
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// Channel is like [Pipe], but no other process opens the writing end: what a child starts
// could open a pipe by the child's /proc/PID/fd, and write in its name.
func Channel(size int) (r, w *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a channel: %v", err)
	}
	_ = syscall.SetsockoptInt(fds[1], syscall.SOL_SOCKET, syscall.SO_SNDBUF, size) // as much as it gets
	if err = syscall.Shutdown(fds[0], syscall.SHUT_WR); err == nil {
		err = syscall.SetNonblock(fds[0], true)
	}
	if err != nil {
		_, _ = syscall.Close(fds[0]), syscall.Close(fds[1])
		return nil, nil, fmt.Errorf("cannot make a channel: %v", err)
	}
	return os.NewFile(uintptr(fds[0]), "channel"), os.NewFile(uintptr(fds[1]), "channel"), nil
}

// rest is the most that is read from a pipe after its time is over: what was
// in it then, and not what is still written.
const rest = 2 << 20

// Drain reads r to its end in pieces of buf and hands each to take. After a
// deadline set on r it takes what is in the pipe and returns, so an unknown
// writer cannot hold it up.
func Drain(r *os.File, buf []byte, take func([]byte)) {
	for {
		n, err := r.Read(buf)
		if n > 0 {
			take(buf[:n])
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			drainRest(r, buf, take)
			return
		}
		if err != nil {
			return
		}
	}
}

func drainRest(r *os.File, buf []byte, take func([]byte)) {
	if r.SetReadDeadline(time.Time{}) != nil {
		return
	}
	raw, err := r.SyscallConn()
	if err != nil {
		return
	}
	for left := rest; left > 0; {
		n := 0
		err := raw.Read(func(fd uintptr) bool {
			n, _ = syscall.Read(int(fd), buf) //nolint:gosec // a descriptor fits
			return true
		})
		if err != nil || n <= 0 {
			return
		}
		take(buf[:n])
		left -= n
	}
}

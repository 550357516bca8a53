package sandbox

import (
	"encoding/binary"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"
)

// runAsInit starts the command and is the init of the box's process namespace from
// then on: it waits for all that falls to it, tells over the life line how the
// command ended, and ends when nothing is left. The other end of the life line
// closes when the parent has ended, however that happens; then this process
// ends, and the kernel kills all that is in the namespace.
//
// It is restricted like the command. What the box could do to it comes to its
// end, which is the end of the box.
func runAsInit(o order) int {
	// Nobody looks into it: what lies in /proc/1 is root's, outside of the box.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		reportFailure(startFailure{Message: err.Error()})
		return 1
	}
	debug.SetGCPercent(-1) // there is little garbage, and collecting it takes more room
	var fd int
	pid, err := syscall.ForkExec(o.Path, o.Args, &syscall.ProcAttr{
		Env: o.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: o.Terminal, PidFD: &fd},
	})
	if err != nil {
		tellNotExecuted(err)
		return 1
	}
	passSignals(fd)
	// The streams are the command's, and so is the folder.
	_, _, _, _ = unix.Close(0), unix.Close(1), unix.Close(2), unix.Chdir("/")
	heard := make(chan struct{})
	go endWithLifeLine(heard)
	if o.Inward {
		go serveInward()
	}
	_ = unix.Close(statusFD) // the command runs
	status := reapChildren(pid)
	<-heard
	code := status.ExitStatus()
	if status.Signaled() {
		code = 128 + int(status.Signal())
	}
	syscall.Exit(code) // os.Exit waits for a second where the race detector is on
	return code
}

// passSignals passes on what asks a program to end, and lets nothing else end
// this one.
func passSignals(pidfd int) {
	asked := make(chan os.Signal, 16)
	signal.Notify(asked,
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for s := range asked {
			if number, ok := s.(syscall.Signal); ok {
				_ = unix.PidfdSendSignal(pidfd, number, nil, 0)
			}
		}
	}()
}

// endWithLifeLine ends this process when the life line does. What comes over it before
// says that the command's end was heard.
func endWithLifeLine(heard chan<- struct{}) {
	var word [1]byte
	for {
		n, err := unix.Read(lifeFD, word[:])
		switch {
		case errors.Is(err, unix.EINTR):
		case n <= 0:
			os.Exit(1) //nolint:forbidigo // nobody is there to return to
		case heard != nil:
			close(heard)
			heard = nil
		}
	}
}

// reapChildren waits until nothing is left, tells how the command ended when it does,
// and returns that.
func reapChildren(command int) (status syscall.WaitStatus) {
	for {
		var one syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &one, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return status
		case pid == command:
			status = one
			_, _ = unix.Write(lifeFD, binary.LittleEndian.AppendUint32(nil, uint32(one)))
		}
	}
}

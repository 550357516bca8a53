package terminal

import (
	"os"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/pawl-dev/pawl/internal/process"
)

// hangUpTime is how long a command may take to end after its terminal has gone.
const hangUpTime = 10 * time.Second

// Attached is a command on a terminal of its own, whose other end this process has. When
// this process ends, in any way, the system hangs up on the command.
type Attached struct {
	*os.File // what is printed is read here, and what is typed is written
	child    *process.Detached
	id       process.Identity
}

// Attach starts a command. [Attached.HangUp] must be called.
func Attach(c process.Command) (*Attached, error) {
	ours, theirs, err := pty.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }() // the command has it
	c.Stdin, c.Stdout, c.Stderr = theirs, theirs, theirs
	c.Sys = &syscall.SysProcAttr{Setctty: true}
	child, err := process.StartDetached(c)
	if err != nil {
		_ = ours.Close() // nothing was started
		return nil, err
	}
	a := &Attached{File: ours, child: child}
	a.id, _ = process.Identify(child.PID) // one that has ended already is not signalled
	return a, nil
}

// Resize says how large the terminal is.
func (a *Attached) Resize(columns, rows uint16) {
	_ = pty.Setsize(a.File, &pty.Winsize{Cols: columns, Rows: rows}) // of one that is closed there is no size
}

// HangUp ends the command, by force if it takes too long, closes the terminal, and returns
// the command's exit status. A second call changes nothing.
func (a *Attached) HangUp() int {
	_ = a.id.Signal(syscall.SIGTERM) // it has ended already
	late := time.NewTimer(hangUpTime)
	defer late.Stop()
	select {
	case <-a.child.Done():
	case <-late.C:
		_ = a.id.Signal(syscall.SIGKILL) // likewise
		<-a.child.Done()
	}
	_ = a.Close() // closed already
	return exitStatus(a.child.Status())
}

// Package terminal runs a command for a person who looks on: a shell in a task's
// workspace, for example. Pawl waits for it and then ends what it left behind.
//
// A command in a sandbox gets a terminal of its own. On the person's terminal it
// could type for the person: a program can put keys into the terminal that it has.
package terminal

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"

	"github.com/pawl-dev/pawl/internal/do/boxnet"
	"github.com/pawl-dev/pawl/internal/do/netstack"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// grace is how long what the command leaves behind may take to end by itself.
const grace = 2 * time.Second

// SignalError is returned when a signal asked this process to end before the command had ended.
type SignalError syscall.Signal

func (e SignalError) Error() string { return fmt.Sprintf("ended by signal: %v", syscall.Signal(e)) }

// Run runs a command in a box, or without one if policy is nil, and returns its exit
// status. screen is the person's terminal. If it is nil, the command gets the streams of
// this process. A signal that asks this process to end, as the end of the person's
// terminal does, ends the command: the error is a [SignalError].
func Run(ctx context.Context, c process.Command, policy *sandbox.Policy, screen *os.File) (status int, err error) {
	asked := untilSignal()
	defer signal.Stop(asked)
	mark := "PAWL_MARK=shell-" + rand.Text()
	c.Env = append(slices.Clone(c.Env), mark)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if screen != nil {
		s, err := showOutput(screen, asked)
		if err != nil {
			return 0, err
		}
		defer s.closeShown()
		c.Stdin, c.Stdout, c.Stderr = s.theirs, s.theirs, s.theirs
		c.Sys = &syscall.SysProcAttr{Setctty: true}
	}
	if policy != nil {
		_, leave := sandbox.LimitGroup(policy.Limits)
		defer leave()
	}
	status, err = startChild(ctx, c, policy, asked)
	_, serr := process.Sweep(context.WithoutCancel(ctx), mark, grace)
	err = cmp.Or(err, serr)
	return status, err
}

// untilSignal gets the signals that ask a process to end. One that was ignored when pawl
// started stays ignored, so that nohup works.
func untilSignal() chan os.Signal {
	asked := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(asked, sig)
		}
	}
	return asked
}

// startChild starts c in its box and waits for its end.
func startChild(ctx context.Context, c process.Command, policy *sandbox.Policy, asked <-chan os.Signal) (int, error) {
	var entry *sandbox.Entry
	ports := sandbox.FirstPort(c.Env)
	if policy != nil {
		var err error
		if c, entry, err = sandbox.Prepare(c, *policy); err != nil {
			return 0, err
		}
		defer entry.Close()
	}
	child, err := process.StartDetached(c)
	if err != nil {
		return 0, err
	}
	inBox := make(chan syscall.WaitStatus, 1)
	if entry != nil {
		if err := entry.Wait(); err != nil {
			return 0, err
		}
		network, err := boxnet.Open(entry, *policy, boxnet.Options{Forward: ports,
			Ways: func() (boxnet.Ways, error) { return boxnet.Ways{Stack: netstack.Serve}, nil },
			Logf: func(string, ...any) {}, // the screen is the command's
		})
		if err != nil {
			return 0, err
		}
		defer network.Close()
		go entry.Outcome(func(s syscall.WaitStatus) { inBox <- s })
	}
	select {
	case s := <-inBox: // others in the box may outlive the command
		return exitStatus(s), nil
	case <-child.Done():
	case sig := <-asked:
		number, _ := sig.(syscall.Signal)
		return 0, SignalError(number)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	select {
	case s := <-inBox:
		return exitStatus(s), nil
	default:
		return exitStatus(child.Status()), nil
	}
}

// exitStatus as a shell has it.
func exitStatus(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// shown is a terminal that is shown on another one.
type shown struct {
	screen, ours, theirs *os.File
	before               *term.State
	resized              chan os.Signal
	output               sync.WaitGroup
}

func showOutput(screen *os.File, asked chan<- os.Signal) (*shown, error) {
	ours, theirs, err := pty.Open()
	if err != nil {
		return nil, err
	}
	s := &shown{screen: screen, ours: ours, theirs: theirs, resized: make(chan os.Signal, 1)}
	if s.before, err = term.MakeRaw(screen.Fd()); err != nil {
		_, _ = ours.Close(), theirs.Close()
		return nil, err
	}
	_ = pty.InheritSize(screen, ours)
	signal.Notify(s.resized, syscall.SIGWINCH)
	go func() {
		for range s.resized {
			_ = pty.InheritSize(screen, ours)
		}
	}()
	s.output.Go(func() { _, _ = io.Copy(screen, ours) })
	go func() { // it ends with this process, or with the person's terminal
		_, _ = io.Copy(ours, screen) // keys
		select {
		case asked <- syscall.SIGHUP:
		default: // something asked before
		}
	}()
	return s, nil
}

// closeShown shows what is left of the output, and gives the person's terminal back.
func (s *shown) closeShown() {
	_ = s.theirs.Close()
	s.output.Wait()
	signal.Stop(s.resized)
	close(s.resized)
	_ = s.ours.Close()
	_ = term.Restore(s.screen.Fd(), s.before)
}

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
		_ = a.id.Signal(syscall.SIGKILL) // as above
		<-a.child.Done()
	}
	_ = a.Close() // closed already
	return exitStatus(a.child.Status())
}

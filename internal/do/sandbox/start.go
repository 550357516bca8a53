package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/do/process"
)

// Descriptors of the hidden command.
const (
	policyFD = 3 // order, as JSON
	statusFD = 4 // a socket: listeners and way out, then a failure; it closes with the execve
	lifeFD   = 5 // a socket, for the init of a process namespace: see keep
	inwardFD = 6 // a socket that the init listens on: see listenInward
)

// enterBound is how long it may take to enter a box.
const enterBound = 20 * time.Second

// order is what the hidden command is told.
type order struct {
	Policy Policy   `json:"policy"`
	Path   string   `json:"path"`
	Args   []string `json:"args"`
	Env    []string `json:"env"`
	Dir    string   `json:"dir"`
	Probe  bool     `json:"probe,omitempty"` // enter, and end well
	// Terminal: stdin becomes the controlling terminal of the command.
	Terminal bool `json:"terminal,omitempty"`
	// Inward: there is a socket by which ports of the box are reached.
	Inward bool `json:"inward,omitempty"`
}

// startFailure is what the hidden command says when it does not become the command.
type startFailure struct {
	Message string `json:"message"`
	// Errno is set when the box is entered and the command could not be executed.
	Errno int `json:"errno,omitempty"`
}

// Entry is a box that is being entered. Close must be called.
type Entry struct {
	// Listeners accept, after Wait, the connections to ProxyPort of a closed
	// box, and to the Doors, in that order; none in an open one. They are the
	// caller's to close, and so is Tun: one packet a read and a write, of a box with
	// a network of its own.
	Listeners []net.Listener
	Tun       *os.File

	policy  Policy
	inward  string // where others reach the ports of the box; "" is nowhere
	command process.Command
	path    string
	status  *os.File
	life    *os.File // nil without a process namespace
	theirs  []*os.File
}

// Prepare returns c so that it starts in a box. Extra descriptors of c are not
// passed on. After the start call Started and Wait, then Outcome, and Close when
// the command and all that it started have ended.
func Prepare(c process.Command, p Policy) (process.Command, *Entry, error) {
	path, err := c.Resolve()
	if err != nil {
		return c, nil, err
	}
	return prepareBoxed(c, order{Policy: p, Path: path, Args: c.Args, Env: c.Environ(), Dir: c.Dir,
		Terminal: c.Sys != nil && c.Sys.Setctty})
}

func prepareBoxed(c process.Command, o order) (process.Command, *Entry, error) {
	e := &Entry{policy: o.Policy, command: c, path: o.Path}
	inward, name := listenInward(o.Policy, o.Env)
	e.inward, o.Inward = name, inward != nil
	if err := makeTemp(o.Policy.Temp); err != nil {
		return c, nil, err
	}
	order, err := orderFile(o)
	if err != nil {
		e.Close()
		return c, nil, err
	}
	e.theirs = append(e.theirs, order)
	ours, theirs, err := socketPair()
	if err != nil {
		e.Close()
		return c, nil, err
	}
	e.status, e.theirs = ours, append(e.theirs, theirs)
	if o.Policy.Means.PID {
		if ours, theirs, err = socketPair(); err != nil {
			e.Close()
			return c, nil, err
		}
		e.life, e.theirs = ours, append(e.theirs, theirs)
	}
	if inward != nil {
		e.theirs = append(e.theirs, inward)
	}
	box := process.Command{
		// smaller, and sooner there
		Path: self, Args: []string{os.Args[0], Command}, Dir: "/", Env: []string{"GOMAXPROCS=1"},
		Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, Extra: e.theirs, Sys: attributes(o.Policy.usedMeans()),
		Init: o.Policy.Means.PID,
	}
	if o.Terminal && !o.Policy.Means.PID { // else its init hands it on to the command
		box.Sys.Setctty = true
	}
	return box, e, nil
}

// makeTemp makes the folders of the run's own, which nobody else reaches. Each has the
// mode of the machine's: a program may trust no settings below a home folder that all
// may write, and every user of the box may write /tmp.
func makeTemp(temp []Bind) error {
	for _, b := range temp {
		if b.From == "" {
			return fmt.Errorf("the sandbox has no folder to show at %s", b.To)
		}
		err := os.MkdirAll(b.From, 0o700)
		mode := 0o777 | os.ModeSticky
		if info, err := os.Stat(b.To); err == nil {
			mode = info.Mode()&mode | 0o700
		}
		if err == nil {
			err = os.Chmod(b.From, mode)
		}
		if err != nil {
			return fmt.Errorf("cannot make a folder for temporary files: %w", err)
		}
	}
	return nil
}

// Started gives up what belongs to the process, which has been started or not.
func (e *Entry) Started() {
	for _, f := range e.theirs {
		_ = f.Close()
	}
	e.theirs = nil
}

// Wait waits until the command runs. The error is a *process.StartError and
// means that it does not: the process ends by itself.
func (e *Entry) Wait() error {
	e.Started()
	_ = e.status.SetReadDeadline(time.Now().Add(enterBound))
	said, passed, err := readStatus(e.status)
	if terr := e.takePassed(passed); err == nil {
		err = terr
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return e.startError("its sandbox was not ready after %v", enterBound)
	case err != nil:
		return e.startError("%v", err)
	case len(bytes.TrimSpace(said)) == 0:
		return nil
	}
	var f startFailure
	if err := json.Unmarshal(said, &f); err != nil {
		return e.startError("its sandbox said %q", said)
	}
	if f.Errno != 0 {
		return e.command.Explain(e.path, errnoOf(f.Errno))
	}
	return e.startError("no sandbox: %s", f.Message)
}

// takePassed takes what came out of the box: listeners, and then the way out.
func (e *Entry) takePassed(passed []*os.File) error {
	var failed error
	for i, f := range passed {
		if e.policy.Own && i == len(e.policy.Doors) {
			e.Tun = f
			continue
		}
		l, err := net.FileListener(f)
		_ = f.Close() // the listener has its own
		if err != nil {
			failed = fmt.Errorf("cannot take the sandbox's listener: %v", err)
			continue
		}
		e.Listeners = append(e.Listeners, l)
	}
	return failed
}

func (e *Entry) startError(format string, args ...any) error {
	why := fmt.Sprintf(format, args...)
	return &process.StartError{Code: -1, Message: "cannot start " + e.command.Args[0] + ": " + why}
}

// Outcome waits for the end of the command, which others in its process
// namespace may outlive, and hands it on; only then can the process that was
// started end. It hands nothing on where that process tells by its own end how
// the command ended, and after Close.
func (e *Entry) Outcome(take func(syscall.WaitStatus)) {
	var said [4]byte
	if e.life == nil {
		return
	}
	if _, err := io.ReadFull(e.life, said[:]); err != nil {
		return
	}
	take(syscall.WaitStatus(binary.LittleEndian.Uint32(said[:])))
	_, _ = e.life.Write([]byte{0})
}

// Close releases what the box took. What still runs in it is killed where it
// has a process namespace, and else keeps running.
func (e *Entry) Close() {
	e.Started()
	if e.inward != "" {
		_ = os.Remove(e.inward)
	}
	for _, f := range []*os.File{e.status, e.life} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// readOrder reads what the hidden command is told.
func readOrder(r io.Reader) (order, error) {
	var o order
	if err := json.NewDecoder(r).Decode(&o); err != nil {
		return o, fmt.Errorf("cannot read the order: %v; pawl starts this command itself", err)
	}
	return o, nil
}

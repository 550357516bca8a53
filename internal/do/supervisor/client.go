package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/do/process"
)

var (
	// ErrGone says that no supervisor serves the run. What its jobs came to is
	// in their result files.
	ErrGone = errors.New("no supervisor is running for this run")
	// ErrRunning says that a supervisor serves the run already; attach to it.
	ErrRunning = errors.New("a supervisor is already running for this run")
	// ErrTaken says that another pawl attached to the run's supervisor. The job continues
	// there.
	ErrTaken = errors.New("another pawl took the run over")
)

const (
	// DefaultLease is how long a supervisor works without its client.
	DefaultLease = 30 * time.Second
	// MarkName is the variable that all processes of a run carry.
	MarkName = "PAWL_RUN"

	readyBound = 10 * time.Second
	exitBound  = 5 * time.Second
	lostGrace  = 2 * time.Second
	logLimit   = 1 << 20
)

// Mark of the processes of a run, for [process.Sweep].
func Mark(run string) string { return MarkName + "=" + run }

// LaneMark is the mark of one supervisor of a run that has several, numbered from 1.
func LaneMark(run string, lane int) string { return fmt.Sprintf("PAWL_LANE=%s.%d", run, lane) }

// Options say how a supervisor is started.
type Options struct {
	RunDir string        // the run's folder; made when missing, 0700 from then on
	Exe    string        // "" is this program
	Args   []string      // what makes Exe call Serve; RunDir is appended
	Lease  time.Duration // 0 is DefaultLease
	Run    string        // the run's id, for the mark
	Mark   string        // NAME=value that all processes carry; "" is that of Run
	// Unboxed lets jobs run without a box; else a job that has none is always
	// refused.
	Unboxed bool
}

// Client is a run's connection to its supervisor. Run, one at a time, and
// Kill, at any time, may be called from different goroutines.
type Client struct {
	opts  Options // RunDir only when attached
	turn  sync.Mutex
	hurry context.Context // done: no grace for what a dead supervisor left
	rush  context.CancelFunc

	mu sync.Mutex
	s  *session
}

// Start starts a supervisor and attaches to it. ctx bounds the start only. The
// error is ErrRunning when one serves the run already. The caller becomes the
// adopter of orphans (see [process.BecomeSubreaper]).
func Start(ctx context.Context, o Options) (*Client, error) {
	dir, err := filepath.Abs(o.RunDir)
	if err != nil || o.Run == "" || strings.ContainsAny(o.Run, "=\x00") {
		return nil, fmt.Errorf("cannot start a supervisor: bad run %q in folder %q", o.Run, o.RunDir)
	}
	o.RunDir = dir
	if o.Lease <= 0 {
		o.Lease = DefaultLease
	}
	o.Mark = cmp.Or(o.Mark, Mark(o.Run))
	if o.Exe == "" {
		if o.Exe, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("cannot start a supervisor: %v", err)
		}
	}
	if err := process.BecomeSubreaper(); err != nil {
		return nil, err
	}
	s, err := startSession(ctx, o)
	if err != nil {
		return nil, err
	}
	return newClient(o, s), nil
}

// Attach comes back to the supervisor of a run. Status.Job is what it runs:
// pass it to [Client.Run] to get its events from now on and its result. The
// error is ErrGone when there is none; one that does not answer is ended
// first. A client that was attached before gets ErrTaken.
func Attach(ctx context.Context, runDir string) (*Client, Status, error) {
	s, pid, err := greetSupervisor(ctx, runDir, opAttach)
	if err != nil && s != nil && ctx.Err() == nil {
		if errors.Is(err, errSilent) {
			endSilent(pid)
		}
		err = ErrGone
	}
	if err != nil {
		return nil, Status{}, err
	}
	s.startKeepingUp()
	return newClient(Options{RunDir: runDir}, s), s.status, nil
}

// Probe asks the supervisor of a run how it is, without attaching. ErrGone
// when there is none.
func Probe(ctx context.Context, runDir string) (Status, error) {
	s, _, err := greetSupervisor(ctx, runDir, opStatus)
	if err != nil && s != nil && ctx.Err() == nil && !errors.Is(err, errSilent) {
		err = ErrGone
	}
	if err != nil {
		return Status{}, err
	}
	s.closeSession()
	return s.status, nil
}

// greetSupervisor greets the supervisor of a run, whose process is pid. Without a session none of
// ours was reached.
func greetSupervisor(ctx context.Context, runDir string, as op) (s *session, pid int, err error) {
	dir, err := filepath.Abs(runDir)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot ask the supervisor: %v", err)
	}
	conn, err := dialSupervisor(ctx, dir)
	if err != nil {
		return nil, 0, err
	}
	pid = peerProcessID(conn)
	s = newSession(conn, nil)
	if err = s.sendGreeting(ctx, request{Op: as, Secret: readSecret(dir)}); err != nil {
		s.closeSession()
	}
	return s, pid, err
}

func newClient(o Options, s *session) *Client {
	c := &Client{opts: o, s: s}
	c.hurry, c.rush = context.WithCancel(context.Background())
	return c
}

// endSilent ends a supervisor that holds its socket and does not answer, for
// it was stopped. What it ran is left to the sweep.
func endSilent(pid int) {
	id, err := process.Identify(pid)
	if pid <= 1 || err != nil {
		return
	}
	_ = id.Signal(syscall.SIGKILL)
	ctx, cancel := context.WithTimeout(context.Background(), exitBound)
	defer cancel()
	id.AwaitEnd(ctx)
}

// startSession starts a supervisor. One that ended before it answered, as when the
// machine had no memory left, is started once more.
func startSession(ctx context.Context, o Options) (*session, error) {
	log, err := prepareDir(o.RunDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	s, err := startProcess(ctx, o, log)
	if errors.Is(err, errLeft) {
		s, err = startProcess(ctx, o, log)
	}
	switch {
	case errors.Is(err, ErrRunning):
		return nil, ErrRunning
	case errors.Is(err, errLeft):
		return nil, fmt.Errorf("cannot start a supervisor: %v, two times; where the system ends it, as when memory is "+
			"short, dmesg says so", err)
	case err != nil:
		return nil, fmt.Errorf("cannot start a supervisor: %v", err)
	}
	return s, nil
}

// startProcess starts a process that is connected from birth: no path is looked up,
// and its end is seen at once.
func startProcess(ctx context.Context, o Options, log *os.File) (*session, error) {
	conn, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	child, err := process.StartDetached(process.Command{
		Args: append(append([]string{o.Exe}, o.Args...), o.RunDir), Dir: "/", Env: ownEnvironment(o.Mark),
		Stdout: log, Stderr: log, Extra: []*os.File{theirs},
	})
	_ = theirs.Close()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	s := newSession(conn, child)
	if err := s.sendGreeting(ctx, request{Op: opHello, Lease: o.Lease, Mark: o.Mark, Unboxed: o.Unboxed}); err != nil {
		s.closeSession()
		endSilent(child.PID)
		return nil, fmt.Errorf("%w%s", err, lastLine(o.RunDir))
	}
	s.startKeepingUp()
	return s, nil
}

// ownEnvironment is the supervisor's own: the sweep finds it by the mark, and it
// is kept small. What its jobs get comes with them. With one processor to run
// on it has fewer threads and caches, and its goroutines, which wait for each
// other most of the time, do not have to wake another thread at each step.
func ownEnvironment(mark string) []string {
	return append(os.Environ(), mark, "GOGC=50", "GOMAXPROCS=1")
}

func supervisorLogPath(runDir string) string { return filepath.Join(runDir, "supervisor.log") }

// prepareDir makes the folder private and opens the log, emptied when long.
func prepareDir(runDir string) (*os.File, error) {
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the run's folder: %v", err)
	}
	if err := os.Chmod(runDir, 0o700); err != nil { //nolint:gosec // a folder needs x
		return nil, fmt.Errorf("cannot make the run's folder private: %v", err)
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if info, err := os.Stat(supervisorLogPath(runDir)); err == nil && info.Size() > logLimit {
		flags |= os.O_TRUNC
	}
	log, err := os.OpenFile(supervisorLogPath(runDir), flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the supervisor's log: %v", err)
	}
	return log, nil
}

// lastLine is the end of the log, for a message.
func lastLine(runDir string) string {
	f, err := os.Open(supervisorLogPath(runDir))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > 4096 {
		_, _ = f.Seek(-4096, io.SeekEnd)
	}
	data, _ := io.ReadAll(io.LimitReader(f, 4096))
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return " (its log ends: " + last + ")"
	}
	return ""
}

// Kill ends the running job at once, without grace: a second Ctrl+C.
func (c *Client) Kill() {
	c.rush()
	if s := c.currentSession(); s != nil {
		_ = s.sendRequest(request{Op: opKill})
	}
}

// Close leaves the supervisor. One that is idle exits, and Close waits for
// that; one that runs a job continues until the lease runs out.
func (c *Client) Close() error {
	s := c.currentSession()
	if s == nil {
		return nil
	}
	idle := s.isWithoutJob()
	s.closeSession()
	if !idle || s.wasTakenOver() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), exitBound)
	defer cancel()
	if s.awaitExit(ctx) {
		return nil
	}
	return c.endDeadSupervisor(s)
}

func (c *Client) currentSession() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s
}

// endDeadSupervisor makes sure that a supervisor which does not answer is dead, and ends
// all that it left.
func (c *Client) endDeadSupervisor(s *session) error {
	s.closeSession()
	_ = s.status.Supervisor.Signal(syscall.SIGKILL)
	ctx, cancel := context.WithTimeout(context.Background(), exitBound)
	defer cancel()
	if !s.awaitExit(ctx) {
		return fmt.Errorf("cannot end the supervisor, process %d: it does not react to KILL", s.status.Supervisor.PID)
	}
	ended, err := process.Sweep(c.hurry, s.status.Mark, lostGrace)
	if err == nil && ended.Left > 0 {
		err = fmt.Errorf("cannot end %d processes of the run", ended.Left)
	}
	return err
}

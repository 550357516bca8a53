package supervisor

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/process"
)

// Command is the command that makes pawl a supervisor; the run's folder follows.
const Command = "__supervise"

// clientFD is the descriptor of the starter's connection.
const clientFD = 3

const (
	helloBound = 10 * time.Second
	maxLinks   = 16
)

// Serve is the supervisor's main: it serves the run whose folder is runDir
// until it is not needed any more. The process must have been started by
// [Start] and do nothing else. A done ctx, like SIGTERM, ends the running job
// (TERM, grace, KILL) and then the supervisor; the terminal's signals do not.
func Serve(ctx context.Context, runDir string, parsers Parsers, rest func() (Rest, error)) error {
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	// Caught and not read: these must neither end us nor be handed down ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP)
	process.HandDownDefaults()

	conn, err := connectionOfFile(os.NewFile(clientFD, "client"))
	if err != nil {
		return fmt.Errorf("cannot supervise: only pawl starts this command: %v", err)
	}
	s := &server{
		parsers: parsers, rest: rest, terms: terms,
		inbox: make(chan inbound, maxLinks), done: make(chan Result, 1), quit: make(chan struct{}),
	}
	first := newClientLink(conn)
	if err := s.takeOverRun(first, runDir); err != nil {
		first.sendReply(reply{Op: opRefused, Error: err.Error(), Running: errors.Is(err, ErrRunning)})
		first.closeLink()
		return err
	}
	defer s.leaveRun()
	s.readFrom(first)
	return s.serveLoop(ctx)
}

// server is the state of a supervisor. One goroutine, loop, owns it; readers
// send to inbox, the running task to done.
type server struct {
	parsers Parsers
	rest    func() (Rest, error)
	mark    string
	runDir  string
	secret  string // who comes back knows it
	unboxed bool   // jobs may come without a box
	lease   time.Duration
	self    process.Identity
	reaper  *process.Reaper
	buffers buffers
	terms   chan os.Signal
	release []func() // in reverse order, at the end

	inbox   chan inbound
	done    chan Result
	quit    chan struct{}
	readers sync.WaitGroup
	links   sync.Map // of *link

	limited sync.Once
	unlimit atomic.Pointer[func()] // goes back to the control group of before

	client  atomic.Pointer[link] // who is attached; the running task reads it
	task    *task
	last    *Result
	expiry  time.Time
	leaving bool
}

// inbound is a message, or the end of a link.
type inbound struct {
	from *link
	req  request
	gone bool
}

// takeOverRun takes the run: its lock, the starter's hello, the orphans, the socket.
func (s *server) takeOverRun(first *link, runDir string) error {
	s.runDir = runDir
	unlock, err := lockRunFolder(runDir)
	if err != nil {
		return err
	}
	s.release = append(s.release, unlock)
	if err := s.readHello(first); err != nil {
		return err
	}
	if s.self, err = process.Self(); err != nil {
		return err
	}
	if s.secret, err = makeSecret(runDir); err != nil {
		return err
	}
	if s.reaper, err = process.NewReaper(); err != nil {
		return err
	}
	s.release = append(s.release, s.reaper.Close)
	listener, closeListener, err := listenAt(runDir)
	if err != nil {
		return err
	}
	s.release = append(s.release, closeListener)
	s.readers.Go(func() { s.acceptLinks(listener) })
	s.attachClient(first)
	return nil
}

// readHello reads the starter's first message.
func (s *server) readHello(first *link) error {
	_ = first.conn.SetReadDeadline(time.Now().Add(helloBound))
	line, err := readLine(first.reader)
	if err != nil {
		return fmt.Errorf("cannot supervise: the starter said nothing: %v", err)
	}
	_ = first.conn.SetReadDeadline(time.Time{})
	var req request
	if err := json.Unmarshal(line, &req); err != nil || req.Op != opHello || req.Lease <= 0 {
		return errors.New("cannot supervise: the starter's first message is no hello with a lease")
	}
	s.lease, s.mark, s.unboxed = req.Lease, req.Mark, req.Unboxed
	return nil
}

// leaveRun ends everything; no job runs any more, unless it could not be ended.
func (s *server) leaveRun() {
	if back := s.unlimit.Load(); back != nil {
		(*back)()
	}
	close(s.quit)
	for i := len(s.release) - 1; i >= 0; i-- {
		s.release[i]()
	}
	for l := range s.links.Range {
		if l, ok := l.(*link); ok {
			l.closeLink()
		}
	}
	s.readers.Wait()
}

func (s *server) serveLoop(ctx context.Context) error {
	s.expiry = time.Now().Add(s.lease)
	lease := time.NewTimer(s.lease)
	defer lease.Stop()
	stop := ctx.Done()
	for {
		select {
		case m := <-s.inbox:
			s.receiveMessage(m)
		case r := <-s.done:
			s.sendResult(r)
		case <-lease.C:
			if left := time.Until(s.expiry); left > 0 {
				lease.Reset(left)
				break
			}
			s.endJobAndServer(loop.EndedLease)
		case <-s.terms:
			s.endJobAndServer(loop.EndedStop)
		case <-stop:
			stop = nil
			s.endJobAndServer(loop.EndedStop)
		}
		over := s.leaving || s.client.Load() == nil
		if over && s.task == nil {
			return nil
		}
	}
}

// endJobAndServer ends the running job and then the supervisor.
func (s *server) endJobAndServer(why loop.Ended) {
	s.leaving = true
	if s.task != nil {
		s.task.requestEnd(why)
	}
}

// sendResult to the client; it is stored by now.
func (s *server) sendResult(r Result) {
	s.task = nil
	s.last = &r
	if c := s.client.Load(); c != nil {
		c.sendReply(reply{Op: opResult, ID: r.ID, Result: &r})
	}
}

func (s *server) receiveMessage(m inbound) {
	if m.gone {
		s.client.CompareAndSwap(m.from, nil)
		return
	}
	greets := m.req.Op == opStatus || m.req.Op == opAttach
	if greets && subtle.ConstantTimeCompare([]byte(m.req.Secret), []byte(s.secret)) == 0 {
		m.from.sendReply(reply{Op: opRefused, Error: "cannot " + string(m.req.Op) + ": not of this run's pawl"})
		return
	}
	switch m.req.Op {
	case opStatus:
		m.from.sendReply(reply{Op: opStatus, Status: s.statusNow()})
		return
	case opAttach:
		s.attachClient(m.from)
		return
	}
	if s.client.Load() != m.from {
		m.from.sendReply(reply{Op: opRefused, Error: "cannot " + string(m.req.Op) + ": not attached"})
		return
	}
	s.renewLease()
	switch m.req.Op {
	case opRun:
		s.startJob(m.req)
	case opStop:
		if s.task != nil {
			s.task.requestEnd(loop.EndedStop)
		}
	case opKill:
		if s.task != nil {
			s.task.cutGraceShort()
		}
	case opRenew:
		m.from.sendReply(reply{Op: opRenewed})
	default:
		m.from.sendReply(reply{Op: opRefused, Error: "cannot " + string(m.req.Op) + ": not known to this supervisor"})
	}
}

// renewLease moves the end of the lease. The timer is not touched: when it fires
// it looks at the new end.
func (s *server) renewLease() { s.expiry = time.Now().Add(s.lease) }

// attachClient makes l the client; the one before gets a message.
func (s *server) attachClient(l *link) {
	s.renewLease()
	if old := s.client.Swap(l); old != nil && old != l {
		old.sendReply(reply{Op: opTaken})
	}
	l.sendReply(reply{Op: opReady, Status: s.statusNow()})
}

func (s *server) statusNow() *Status {
	st := &Status{
		Supervisor: s.self, Mark: s.mark, Lease: s.lease, Left: time.Until(s.expiry),
		Attended: s.client.Load() != nil,
	}
	if s.task != nil {
		st.Job, st.StartedAt = &s.task.job, s.task.started
	}
	return st
}

// startJob starts the job, joins it, or answers with its earlier result.
func (s *server) startJob(req request) {
	c := s.client.Load()
	if req.Job == nil || req.Job.ID == "" || req.Job.Files == "" {
		c.sendReply(reply{Op: opRefused, Error: "cannot run: the job has no ID or no Files"})
		return
	}
	job := *req.Job
	job.Gateway = job.Gateway.WithKeys(req.Keys)
	switch {
	case s.task != nil && s.task.job.ID == job.ID:
		if req.Stop {
			s.task.requestEnd(loop.EndedStop)
		}
		return
	case job.Box == nil && !s.unboxed:
		why := fmt.Sprintf("cannot run %s: it has no sandbox, and the run has one", job.ID)
		c.sendReply(reply{Op: opRefused, ID: job.ID, Error: why})
		return
	case s.task != nil:
		c.sendReply(reply{Op: opRefused, ID: job.ID, Error: "cannot run " + job.ID + ": " + s.task.job.ID + " runs"})
		return
	}
	if r, ok := s.earlierResult(job); ok {
		c.sendReply(reply{Op: opResult, ID: r.ID, Result: &r})
		return
	}
	if req.Stop || s.leaving {
		r := Result{ID: job.ID, StartedAt: time.Now(), Exit: loop.Exit{Code: -1, Ended: loop.EndedStop}}
		c.sendReply(reply{Op: opResult, ID: r.ID, Result: &r})
		return
	}
	fresh, err := claimJob(job.Files)
	if err != nil {
		s.writeLog("%v", err)
	}
	if !fresh {
		r, err := Lost(job)
		if err != nil {
			s.writeLog("%v", err)
		}
		c.sendReply(reply{Op: opResult, ID: r.ID, Result: &r})
		return
	}
	s.task = newJobTask(job, s)
	go func(t *task) { s.done <- t.runToEnd() }(s.task)
}

// earlierResult is the result of a job that already ran.
func (s *server) earlierResult(job Job) (Result, bool) {
	if s.last != nil && s.last.ID == job.ID {
		return *s.last, true
	}
	return knownResult(job)
}

// emitEvents passes events to the client, if there is one. Called by the task.
func (s *server) emitEvents(events []json.RawMessage) {
	if c := s.client.Load(); c != nil {
		c.sendReply(reply{Op: opEvents, Events: events})
	}
}

// writeLog writes to the supervisor's log.
func (s *server) writeLog(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format(time.RFC3339), fmt.Sprintf(format, args...))
}

func (s *server) acceptLinks(listener *net.UnixListener) {
	for {
		conn, err := listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.writeLog("cannot accept a connection: %v", err)
			select {
			case <-s.quit:
				return
			case <-time.After(100 * time.Millisecond): // out of descriptors, most likely
			}
			continue
		}
		if !isOwnUnboxedPeer(conn) || s.countLinks() >= maxLinks {
			_ = conn.Close()
			continue
		}
		s.readFrom(newClientLink(conn))
	}
}

func (s *server) countLinks() (n int) {
	for range s.links.Range {
		n++
	}
	return n
}

// readFrom starts to read a link's messages.
func (s *server) readFrom(l *link) {
	s.links.Store(l, nil)
	s.readers.Go(func() {
		defer l.closeLink()
		for {
			req, err := nextRequest(l)
			select {
			case s.inbox <- inbound{from: l, req: req, gone: err != nil}:
			case <-s.quit:
				return
			}
			if err != nil {
				s.links.Delete(l)
				return
			}
		}
	})
}

func nextRequest(l *link) (request, error) {
	line, err := readLine(l.reader)
	if err != nil {
		return request{}, err
	}
	var req request
	if err := json.Unmarshal(bytes.TrimSpace(line), &req); err != nil {
		return request{}, fmt.Errorf("cannot read a message: %v", err)
	}
	return req, nil
}

// lockRunFolder keeps two supervisors from serving one run. The lock goes with the
// process, however that ends.
func lockRunFolder(runDir string) (func(), error) {
	dir, err := os.Open(filepath.Clean(runDir))
	if err != nil {
		return nil, fmt.Errorf("cannot supervise: %v", err)
	}
	err = syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // a descriptor fits
	if errors.Is(err, syscall.EWOULDBLOCK) {
		_ = dir.Close()
		return nil, ErrRunning
	}
	// Other errors: a file system without locks.
	return func() { _ = dir.Close() }, nil
}

package supervisor

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/internal/do/process"
)

// errSilent: the supervisor is there and does not answer.
var errSilent = errors.New("the supervisor does not answer")

// errLeft: the supervisor ended before it answered.
var errLeft = errors.New("it ended before it answered")

// session is one connection of a client, with the goroutines that read it and
// renew the lease. It ends once and is not used again.
type session struct {
	conn   *net.UnixConn
	reader *bufio.Reader
	child  *process.Detached // nil when another process started it
	status Status            // from the greeting

	writing sync.Mutex
	heard   atomic.Bool // something came since the last renewal
	taken   atomic.Bool
	once    sync.Once
	quit    chan struct{} // closed by close
	gone    chan struct{} // closed when nothing more will come
	work    sync.WaitGroup

	events  chan []json.RawMessage // for Run
	replies chan reply             // result, refused; for Run
	busy    atomic.Bool
}

func newSession(conn *net.UnixConn, child *process.Detached) *session {
	return &session{
		conn: conn, child: child, reader: bufio.NewReaderSize(conn, 16<<10),
		quit: make(chan struct{}), gone: make(chan struct{}), events: make(chan []json.RawMessage, maxChunks),
		replies: make(chan reply, 16),
	}
}

// sendGreeting sends the first message and waits for the answer.
func (s *session) sendGreeting(ctx context.Context, req request) error {
	deadline := time.Now().Add(readyBound)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	_ = s.conn.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_, unsent := s.conn.Write(encodeMessage(req))
	line, err := readLine(s.reader) // also from one that left at once: it sent the reason
	if err != nil {
		return s.greetError(ctx, cmp.Or(unsent, err))
	}
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("cannot read the supervisor's answer: %v", err)
	}
	switch {
	case r.Running:
		return ErrRunning
	case r.Status == nil:
		return fmt.Errorf("the supervisor refused: %s", r.Error)
	}
	if !stop() {
		return ctx.Err()
	}
	_ = s.conn.SetDeadline(time.Time{})
	s.status = *r.Status
	s.busy.Store(r.Status.Job != nil)
	return nil
}

func (s *session) greetError(ctx context.Context, err error) error {
	var timeout net.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &timeout) && timeout.Timeout():
		return errSilent
	}
	return errLeft
}

// startKeepingUp starts to read and to renew.
func (s *session) startKeepingUp() {
	s.heard.Store(true)
	s.work.Go(s.readReplies)
	s.work.Go(s.keepLease)
}

func (s *session) readReplies() {
	defer close(s.gone)
	for {
		line, err := readLine(s.reader)
		if err != nil {
			return
		}
		s.heard.Store(true)
		var r reply
		if json.Unmarshal(line, &r) != nil {
			return
		}
		switch r.Op {
		case opRenewed:
		case opEvents:
			s.queueEvents(r.Events)
		case opTaken:
			s.taken.Store(true)
			return
		default:
			select {
			case s.replies <- r:
			case <-s.quit:
				return
			}
		}
	}
}

// maxChunks is how many messages with events wait for a slow receiver.
const maxChunks = 128

// queueEvents keeps events for Run, so that a slow receiver never holds up the
// reading, on which the lease depends: the oldest are dropped.
func (s *session) queueEvents(events []json.RawMessage) {
	for {
		select {
		case s.events <- events:
			return
		default:
		}
		select {
		case <-s.events:
		default:
		}
	}
}

// keepLease keeps the lease up. Two renewals without any answer mean that the
// supervisor is stopped or stuck: the connection is given up.
func (s *session) keepLease() {
	ticker := time.NewTicker(max(s.status.Lease/3, time.Millisecond))
	defer ticker.Stop()
	missed := 0
	for {
		select {
		case <-s.quit:
			return
		case <-s.gone:
			return
		case <-ticker.C:
		}
		missed++
		if s.heard.Swap(false) {
			missed = 0
		}
		if missed >= 2 || s.sendRequest(request{Op: opRenew}) != nil {
			_ = s.conn.Close()
			return
		}
	}
}

// sendRequest writes a message. It is bounded, as a stopped supervisor reads nothing.
func (s *session) sendRequest(r request) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(s.status.Lease))
	_, err := s.conn.Write(encodeMessage(r))
	return err
}

// closeSession ends the connection and waits for its goroutines.
func (s *session) closeSession() {
	s.once.Do(func() {
		close(s.quit)
		_ = s.conn.Close()
	})
	s.work.Wait()
}

// hasEnded reports whether the connection has ended.
func (s *session) hasEnded() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

func (s *session) isWithoutJob() bool { return !s.busy.Load() }
func (s *session) wasTakenOver() bool { return s.taken.Load() }

// awaitExit waits for the end of the supervisor's process.
func (s *session) awaitExit(ctx context.Context) bool {
	if s.child == nil {
		return s.status.Supervisor.AwaitEnd(ctx)
	}
	select {
	case <-s.child.Done():
		return true
	case <-ctx.Done():
		return false
	}
}

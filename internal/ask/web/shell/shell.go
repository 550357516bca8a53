// Package shell is a terminal in a browser: a command on a terminal of its own at one end,
// and a WebSocket at the other.
//
//	page ══ WebSocket ══ Server ══ terminal ══ pawl case shell ══ terminal ══ the task's sandbox
//
// The command is the one that a person gives in a terminal, so the sandbox is the same. Its
// terminal hangs up when the connection ends, and also when the server ends in any way.
//
// Who may connect is decided where a ticket is issued; a connection without one gets
// nothing. The package knows no sessions, and no tasks but their names.
package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/pawl-dev/pawl/internal/ask/web/ticket"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/terminal"
)

// Bounds of terminals.
const (
	maxOpen = 8
	// maxMessage is the most bytes of what is typed at once, maxTyped how many such
	// messages wait for the command to read them.
	maxMessage = 64 << 10
	maxTyped   = 64
	// window is how many printed bytes may be on their way to the page. The command waits
	// for a page that is slower.
	window = 512 << 10
	// piece is how much is sent at once.
	piece = 32 << 10
	// sendTime is how long one message may take.
	sendTime = 30 * time.Second
	// idleTime is how long a terminal stays without a key or a printed byte.
	idleTime = 4 * time.Hour
	// maxSide is the most columns or rows.
	maxSide = 1000
)

// ErrFull is that no further terminal may be opened.
var ErrFull = fmt.Errorf("%d terminals are open already", maxOpen)

// Why a terminal is closed that did not end by itself, as the person reads it.
var (
	errIdle   = errors.New("nothing was typed or printed for four hours")
	errClosed = errors.New("the server has ended")
	errTyped  = errors.New("the command does not read its input")
)

// Server has the terminals.
type Server struct {
	// Command opens a shell in the workspace of a task.
	Command func(task string) (process.Command, error)

	tickets ticket.Desk
	idle    time.Duration // of tests; 0 is idleTime
	ctx     context.Context
	end     context.CancelCauseFunc
	mu      sync.Mutex
	open    int
	left    sync.WaitGroup
}

// New makes a server; [Server.Close] must be called.
func New(command func(task string) (process.Command, error)) *Server {
	s := &Server{Command: command, idle: idleTime}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	return s
}

// Ticket lets its bearer open one terminal in the workspace of a task, soon.
func (s *Server) Ticket(task string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= maxOpen {
		return "", ErrFull
	}
	return s.tickets.Issue(task), nil
}

// Close ends all terminals, and waits until nothing of them runs.
func (s *Server) Close() {
	s.mu.Lock()
	s.end(errClosed)
	s.mu.Unlock()
	s.left.Wait()
}

// reserveTerminal counts a terminal; releaseTerminal must be called at its end. It
// returns false at the limit.
func (s *Server) reserveTerminal() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= maxOpen || s.ctx.Err() != nil {
		return false
	}
	s.open++
	s.left.Add(1)
	return true
}

func (s *Server) releaseTerminal() {
	s.mu.Lock()
	s.open--
	s.mu.Unlock()
	s.left.Done()
}

// ServeHTTP opens a terminal for who has a ticket.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	task, ok := s.tickets.Use(r.URL.Query().Get("ticket"))
	if !ok {
		http.Error(w, "the ticket is used, or too old: open the terminal again", http.StatusForbidden)
		return
	}
	if !s.reserveTerminal() {
		http.Error(w, ErrFull.Error(), http.StatusServiceUnavailable)
		return
	}
	defer s.releaseTerminal()
	// The library refuses an Origin other than the Host, as the guard has before it.
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // it has answered
	}
	defer func() { _ = conn.CloseNow() }() // closed with a word before
	conn.SetReadLimit(maxMessage)
	c, err := s.Command(task)
	if err != nil {
		_ = conn.Close(websocket.StatusInternalError, cutReason(err.Error()))
		return
	}
	t, err := terminal.Attach(c)
	if err != nil {
		_ = conn.Close(websocket.StatusInternalError, cutReason(err.Error()))
		return
	}
	defer t.HangUp()
	s.serveTerminal(conn, t)
}

// cutReason shortens a reason to what fits into the last message of a connection.
func cutReason(text string) string { return text[:min(len(text), 120)] }

// link is a page at one end and a terminal at the other.
type link struct {
	conn  *websocket.Conn
	t     *terminal.Attached
	idle  *time.Timer
	every time.Duration
	stop  context.CancelCauseFunc
	typed chan []byte
	seen  atomic.Int64
	more  chan struct{} // seen has changed
}

// serveTerminal hands on what is printed and typed until one side ends.
func (s *Server) serveTerminal(conn *websocket.Conn, t *terminal.Attached) {
	ctx, stop := context.WithCancelCause(s.ctx)
	l := &link{conn: conn, t: t, every: s.idle, stop: stop,
		typed: make(chan []byte, maxTyped), more: make(chan struct{}, 1)}
	l.idle = time.AfterFunc(l.every, func() { stop(errIdle) })
	defer l.idle.Stop()
	var parts sync.WaitGroup
	parts.Go(func() { l.sendOutput(ctx); stop(nil) })
	parts.Go(func() { l.typeKeys(ctx) })
	parts.Go(func() { l.readMessages(); stop(nil) })
	<-ctx.Done()
	status := t.HangUp()
	switch why := context.Cause(ctx); {
	case errors.Is(why, context.Canceled):
		_ = conn.Close(websocket.StatusNormalClosure, fmt.Sprintf("ended with status %d", status))
	default:
		_ = conn.Close(websocket.StatusGoingAway, why.Error())
	}
	parts.Wait()
}

// sendOutput sends what is printed.
func (l *link) sendOutput(ctx context.Context) {
	buf := make([]byte, piece)
	for sent := int64(0); ; {
		for sent-l.seen.Load() > window {
			select {
			case <-l.more:
			case <-ctx.Done():
				return
			}
		}
		n, err := l.t.Read(buf)
		if n > 0 {
			l.idle.Reset(l.every)
			sent += int64(n)
			out, done := context.WithTimeout(ctx, sendTime)
			werr := l.conn.Write(out, websocket.MessageBinary, buf[:n])
			done()
			if werr != nil {
				return
			}
		}
		if err != nil {
			return // the command has ended
		}
	}
}

// typeKeys hands what is typed to the command, which may let it wait.
func (l *link) typeKeys(ctx context.Context) {
	for {
		select {
		case keys := <-l.typed:
			if _, err := l.t.Write(keys); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// word is what a page says beside keys.
type word struct {
	Columns uint16 `json:"columns"`
	Rows    uint16 `json:"rows"`
	Seen    int64  `json:"seen"` // bytes of all that was printed, which the page has drawn
}

// readMessages takes what the page sends, until the connection is closed.
func (l *link) readMessages() {
	for {
		kind, data, err := l.conn.Read(context.Background())
		if err != nil {
			return // the page has gone
		}
		if kind == websocket.MessageBinary {
			l.idle.Reset(l.every)
			select {
			case l.typed <- data:
			default:
				l.stop(errTyped)
				return
			}
			continue
		}
		var w word
		if json.Unmarshal(data, &w) != nil {
			return
		}
		if w.Columns > 0 && w.Rows > 0 {
			l.t.Resize(min(w.Columns, maxSide), min(w.Rows, maxSide))
		}
		if w.Seen > 0 {
			l.seen.Store(w.Seen)
			select {
			case l.more <- struct{}{}:
			default:
			}
		}
	}
}

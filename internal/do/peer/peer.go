// Package peer finds out whether the program at the other end of a TCP connection may
// speak there, by the process that holds that end. A token can be read or handed
// on; a process cannot be lent.
//
//	check := peer.Check{Accepts: func(pid int) bool { return !supervisor.Boxed(pid) }, Unseen: true}
//	server := http.Server{ConnContext: check.WithConn}
//	...
//	if !check.Allows(request.Context()) { refuse }
//
// The kernel names the other socket, and /proc who has it open. A socket that
// no process is seen to hold is an attempt to hide where all processes are seen. It is
// not where some are hidden: a tunnel of ssh belongs to a process that its own user
// may not look into. Systems other than Linux do not show it, and all is allowed there.
package peer

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// Check looks at connections, each once and when it is first asked about.
type Check struct {
	// Accepts reports whether a process may connect.
	Accepts func(pid int) bool
	// Unseen: what speaks may be out of sight, as another machine, the host of a
	// container or a program of another user is.
	Unseen bool

	turn sync.Mutex   // one search at a time: many connections at once take one processor
	last atomic.Int64 // who was accepted last, and waits for no search
}

type answerKey struct{}

// WithConn is for ConnContext of a server.
func (c *Check) WithConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, answerKey{}, sync.OnceValue(func() bool { return c.findHolder(conn) }))
}

// Allows reports whether the process on the connection of a request may speak. Where there is no
// connection, as for tools in this process, it is true.
func (c *Check) Allows(ctx context.Context) bool {
	answer, ok := ctx.Value(answerKey{}).(func() bool)
	return !ok || answer()
}

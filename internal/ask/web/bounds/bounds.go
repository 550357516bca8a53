// Package bounds holds a server to a number of connections. At the limit a new one takes
// the place of the one that has been without a request for the longest time, so that idle
// connections keep no others out. While all have a request, the new one is closed.
//
//	server := http.Server{Handler: bounds.Answering(pages), ConnContext: bounds.WithConn}
//	server.Serve(bounds.New(listener, 256))
package bounds

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// Listener has a limit on open connections.
type Listener struct {
	net.Listener
	most int

	mu   sync.Mutex
	open map[*counted]bool
	turn int // counts what happens
}

// New holds a listener to so many connections.
func New(l net.Listener, most int) *Listener {
	return &Listener{Listener: l, most: most, open: map[*counted]bool{}}
}

// Accept closes connections for which there is no room, and returns the next other one.
func (b *Listener) Accept() (net.Conn, error) {
	for {
		inner, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &counted{Conn: inner, of: b}
		if b.admitConnection(c) {
			return c, nil
		}
		_ = inner.Close() // nothing was sent
	}
}

// admitConnection reports whether there is room for a connection.
func (b *Listener) admitConnection(c *counted) bool {
	b.mu.Lock()
	var quiet *counted
	for one := range b.open {
		if one.requests > 0 {
			continue
		}
		if quiet == nil || one.turn < quiet.turn {
			quiet = one
		}
	}
	full := len(b.open) >= b.most
	fits := !full || quiet != nil
	if fits {
		b.turn++
		c.turn = b.turn
		b.open[c] = true
	}
	b.mu.Unlock()
	if full && fits {
		_ = quiet.Close() // no request waits for an answer there
	}
	return fits
}

// counted is a connection of a bounded listener, whose lock guards it.
type counted struct {
	net.Conn
	of       *Listener
	requests int // that are being answered
	turn     int // when it was opened, or the last answer ended
}

func (c *counted) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// countRequest notes that a request begins, by 1, or ends, by -1.
func (c *counted) countRequest(by int) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.turn++
	c.requests, c.turn = c.requests+by, c.of.turn
}

// connKey is where the connection of a request is in its context.
type connKey struct{}

// WithConn is for ConnContext of a server.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// Answering notes which connections have a request.
func Answering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*counted); ok {
			c.countRequest(1)
			defer c.countRequest(-1)
		}
		next.ServeHTTP(w, r)
	})
}

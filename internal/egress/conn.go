package egress

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// errBytes ends a connection when the proxy's bytes are used up.
var errBytes = errors.New("the limit on bytes is reached")

// pair is what two connected sides share: they are idle together.
type pair struct {
	proxy *Proxy
	start time.Time
	last  atomic.Int64 // when something moved, in nanoseconds after start
}

func (p *Proxy) newPair() *pair { return &pair{proxy: p, start: time.Now()} }

// side is one connection of a pair. Its reads and writes end when neither side
// moved for the idle time; counted ones use up the proxy's bytes.
type side struct {
	net.Conn

	from    io.Reader // what reads come from: the connection, or what was read ahead of it
	pair    *pair
	counted bool // its bytes use up the proxy's
}

func (s *side) Read(b []byte) (int, error) {
	for {
		began := time.Since(s.pair.start)
		_ = s.SetReadDeadline(time.Now().Add(s.pair.proxy.limits.Idle))
		n, err := s.from.Read(b)
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && s.pair.last.Load() > int64(began) {
			continue // the other direction moved meanwhile
		}
		if n > 0 {
			if over := s.moved(n); over != nil {
				return 0, over
			}
		}
		return n, err
	}
}

func (s *side) Write(b []byte) (int, error) {
	if over := s.moved(len(b)); over != nil {
		return 0, over
	}
	_ = s.SetWriteDeadline(time.Now().Add(s.pair.proxy.limits.Idle))
	return s.Conn.Write(b)
}

// moved notes that n bytes move.
func (s *side) moved(n int) error {
	s.pair.last.Store(int64(time.Since(s.pair.start)))
	if s.counted && s.pair.proxy.bytes.Add(int64(n)) > s.pair.proxy.limits.Bytes {
		return errBytes
	}
	return nil
}

// closeWrite tells the peer that nothing more comes, and still hears it.
func (s *side) closeWrite() {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = s.Close()
}

// join passes bytes on in both directions until both have ended. An end on one
// side is passed on as such; an error ends both. It returns the first error
// that is more than an end.
func join(a, b *side) error {
	var back error
	var wait sync.WaitGroup
	wait.Go(func() { back = pass(b, a) })
	there := pass(a, b)
	wait.Wait()
	if errors.Is(back, errBytes) {
		return back
	}
	return there
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// pass copies what one side says to the other.
func pass(from, to *side) error {
	buf, _ := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for {
		n, err := from.Read(*buf)
		if n > 0 {
			if _, failed := to.Write((*buf)[:n]); failed != nil {
				err = failed
			}
		}
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) {
			to.closeWrite()
			return nil
		}
		_ = from.Close()
		_ = to.Close()
		return err
	}
}

package supervisor

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/sandbox"
)

const (
	maxForwards = 256 // connections through doors at a time
	dialBound   = 5 * time.Second
	maxRefused  = 20 // refusals that a result tells
)

// Proxy makes the way out of a closed box: it serves what comes to listener,
// to the endpoints of reach and nowhere else, until ctx is done, and tells what
// it refuses. The listener is its own, also when it fails. Supervisors are
// handed one, as most need none and a proxy costs memory.
type Proxy func(ctx context.Context, listener net.Listener, reach []string, refused func(host,
	why string)) (serve func() error, err error)

// Rest is the part of pawl that is large, and that most supervisors never need.
type Rest struct {
	Proxy  Proxy
	Models Models
}

// exits are the ways out of a closed box: the proxy, and the doors to ports of
// this machine. They are in the supervisor, so that an agent whose pawl is gone
// reaches its model as long as it may live. nil has none.
type exits struct {
	stop  context.CancelFunc
	work  sync.WaitGroup
	room  chan struct{}
	doors []net.Listener

	mu      sync.Mutex
	refused []string
}

// openExits serves listeners: the first is the proxy's, the others are those
// of p.Doors. It closes them, also when it fails.
func (t *task) openExits(listeners []net.Listener, p sandbox.Policy) (*exits, error) {
	ctx, stop := context.WithCancel(context.Background())
	x := &exits{stop: stop, room: make(chan struct{}, maxForwards), doors: listeners[1:]}
	rest, err := t.rest()
	if err != nil {
		_ = listeners[0].Close()
		x.close()
		return nil, err
	}
	serve, err := rest.Proxy(ctx, listeners[0], p.Reach, x.refuse)
	if err != nil {
		x.close()
		return nil, err
	}
	x.work.Go(func() {
		if err := serve(); err != nil {
			t.logf("the egress proxy ended: %v", err)
		}
	})
	for i, l := range x.doors {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Doors[i]))
		x.work.Go(func() { x.accept(ctx, l, address) })
	}
	return x, nil
}

// refuse keeps what the proxy refused.
func (x *exits) refuse(host, why string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.refused) < maxRefused {
		x.refused = append(x.refused, fmt.Sprintf("connection to %s: %s", host, why))
	}
}

// refusals are those so far.
func (x *exits) refusals() []string {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]string(nil), x.refused...)
}

// close ends all connections and waits for what served them.
func (x *exits) close() {
	if x == nil {
		return
	}
	x.stop()
	for _, l := range x.doors {
		_ = l.Close()
	}
	x.work.Wait()
}

func (x *exits) accept(ctx context.Context, l net.Listener, address string) {
	for {
		inside, err := l.Accept()
		if err != nil {
			return
		}
		select {
		case x.room <- struct{}{}:
			x.work.Go(func() {
				pass(ctx, inside, address)
				<-x.room
			})
		default: // as many as there may be
			_ = inside.Close()
		}
	}
}

// pass copies both ways until both sides have said all.
func pass(ctx context.Context, inside net.Conn, address string) {
	defer func() { _ = inside.Close() }()
	d := net.Dialer{Timeout: dialBound}
	outside, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = outside.Close() }()
	defer context.AfterFunc(ctx, func() {
		_ = inside.Close()
		_ = outside.Close()
	})()
	var both sync.WaitGroup
	both.Go(func() { copyHalf(outside, inside) })
	both.Go(func() { copyHalf(inside, outside) })
	both.Wait()
}

// copyHalf copies one way and passes the end on.
func copyHalf(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

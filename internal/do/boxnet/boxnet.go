package boxnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

const (
	maxForwards = 256 // connections through doors at a time
	dialBound   = 5 * time.Second
	maxRefused  = 20 // refusals that are kept
)

// Proxy makes the way out of a closed box: it serves connections to listener,
// to the endpoints of reach and nowhere else, until ctx is done, and reports what
// it refuses. The listener is its own, also when it fails.
type Proxy func(ctx context.Context, listener net.Listener, reach []string, refused func(host,
	why string)) (serve func() error, err error)

// Stack makes connections of this machine of the packets at a tun device, until ctx is
// done. It reaches this machine itself at the doors of the policy only, and reports what
// it refuses.
type Stack func(ctx context.Context, tun int, p sandbox.Policy, refused func(host, why string)) error

// Ways are the two.
type Ways struct {
	Proxy Proxy
	Stack Stack
}

// Options say how a box reaches others.
type Options struct {
	Ways func() (Ways, error) // is asked when it is needed
	// Forward is the first port of a workspace whose ports are, in this machine's loopback, those of its
	// boxes; 0 is none.
	Forward int
	Logf    func(format string, args ...any)
}

// Network is the network of one box. nil has none.
type Network struct {
	stop    context.CancelFunc
	work    sync.WaitGroup
	room    chan struct{}
	closers []io.Closer

	mu      sync.Mutex
	refused []string
}

// Open serves what came out of a box that has been entered. It closes that, also when it fails.
func Open(e *sandbox.Entry, p sandbox.Policy, o Options) (*Network, error) {
	ctx, stop := context.WithCancel(context.Background())
	n := &Network{stop: stop, room: make(chan struct{}, maxForwards)}
	doors := e.Listeners
	if p.Closed {
		doors = doors[1:]
		n.closers = append(n.closers, e.Listeners[0])
	}
	for i, l := range doors {
		n.closers = append(n.closers, l)
		port := strconv.Itoa(p.Doors[i])
		n.work.Go(func() { n.acceptDoor(ctx, l, func() (net.Conn, error) { return dialLoopback(ctx, port) }) })
	}
	if p.Closed {
		if err := n.openProxy(ctx, e.Listeners[0], p, o); err != nil {
			n.Close()
			return nil, err
		}
	}
	if e.Tun != nil {
		n.closers = append(n.closers, e.Tun)
		n.work.Go(func() {
			if err := n.servePackets(ctx, e.Tun, p, o); err != nil && ctx.Err() == nil {
				o.Logf("the network of the sandbox ended: %v", err)
			}
		})
	}
	for port := o.Forward; port > 0 && port < o.Forward+PortsIn; port++ {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue // somebody else has it
		}
		n.closers = append(n.closers, l)
		n.work.Go(func() {
			n.acceptDoor(ctx, l, func() (net.Conn, error) { return dialBoxes(ctx, p.Inward, port) })
		})
	}
	return n, nil
}

func (n *Network) openProxy(ctx context.Context, l net.Listener, p sandbox.Policy, o Options) error {
	ways, err := o.Ways()
	if err != nil {
		return err
	}
	if ways.Proxy == nil {
		return l.Close()
	}
	serve, err := ways.Proxy(ctx, l, p.Reach, n.recordRefusal)
	if err != nil {
		return err
	}
	n.work.Go(func() {
		if err := serve(); err != nil {
			o.Logf("the egress proxy ended: %v", err)
		}
	})
	return nil
}

// servePackets starts the stack when the first packet is there: most boxes send none.
func (n *Network) servePackets(ctx context.Context, tun *os.File, p sandbox.Policy, o Options) error {
	conn, err := tun.SyscallConn()
	if err != nil {
		return err
	}
	err = conn.Read(func(fd uintptr) bool {
		look := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} //nolint:gosec // a descriptor fits
		ready, err := unix.Poll(look, 0)
		return ready > 0 || err != nil
	})
	if err != nil {
		return err
	}
	ways, err := o.Ways()
	if err != nil {
		return err
	}
	var serr error
	err = conn.Control(func(fd uintptr) {
		serr = ways.Stack(ctx, int(fd), p, n.recordRefusal) //nolint:gosec // a descriptor fits
	})
	return errors.Join(err, serr)
}

// recordRefusal keeps what was not let out.
func (n *Network) recordRefusal(host, why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.refused) < maxRefused {
		n.refused = append(n.refused, fmt.Sprintf("connection to %s: %s", host, why))
	}
}

// Refused are the connections that were not let out, the first 20.
func (n *Network) Refused() []string {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.refused...)
}

// Close ends all connections and waits for what served them.
func (n *Network) Close() {
	if n == nil {
		return
	}
	n.stop()
	for _, c := range n.closers {
		_ = c.Close()
	}
	n.work.Wait()
}

// acceptDoor hands connections on, as many at a time as there may be.
func (n *Network) acceptDoor(ctx context.Context, l net.Listener, dial func() (net.Conn, error)) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		select {
		case n.room <- struct{}{}:
			n.work.Go(func() {
				defer func() { <-n.room }()
				if to, err := dial(); err == nil {
					Join(ctx, from, to)
				}
				_ = from.Close()
			})
		default:
			_ = from.Close()
		}
	}
}

// dialLoopback connects to a port of this machine, of which it may have either address.
func dialLoopback(ctx context.Context, port string) (c net.Conn, err error) {
	d := net.Dialer{Timeout: dialBound}
	for _, host := range []string{"127.0.0.1", "::1"} {
		if c, err = d.DialContext(ctx, "tcp", net.JoinHostPort(host, port)); err == nil {
			return c, nil
		}
	}
	return nil, err
}

// Join copies until both sides are at their end, and closes them. What one learns of the
// other, its end or that it broke off, is what it would learn without this between them.
func Join(ctx context.Context, a, b net.Conn) {
	end := func() {
		_ = a.Close()
		_ = b.Close()
	}
	defer end()
	defer context.AfterFunc(ctx, end)()
	var both sync.WaitGroup
	copyHalf := func(to, from net.Conn) {
		if _, err := io.Copy(to, from); err != nil {
			for _, c := range []net.Conn{a, b} {
				if c, ok := c.(interface{ SetLinger(int) error }); ok {
					_ = c.SetLinger(0)
				}
			}
			end()
		} else if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	both.Go(func() { copyHalf(a, b) })
	both.Go(func() { copyHalf(b, a) })
	both.Wait()
}

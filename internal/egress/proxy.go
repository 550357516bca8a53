package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Config is what a proxy may do.
type Config struct {
	// Socket is the path of the Unix socket to listen on, "" for none. A dead
	// socket that is there is replaced. Who may use it is the folder's business;
	// the socket itself is its owner's alone.
	Socket string
	// TCP is a loopback address to listen on, "" for none, e.g. "127.0.0.1:0".
	// All users of the machine can reach what is allowed through it.
	TCP string
	// Listener is one that is open already, nil for none. The proxy closes it.
	Listener net.Listener

	Allow    []Endpoint
	Upstream Upstream
	Limits   Limits

	// Resolve looks up a name; nil asks the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address that was checked; nil dials it by TCP.
	Dial func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
	// Refused is told of what was refused, one at a time and the first
	// [MaxRefusals] of a proxy; the rest is counted. It must return soon. nil
	// tells nobody.
	Refused func(Refusal)
}

// Limits bound what a client can cost. All must be positive.
type Limits struct {
	Connections int           // at once; more are refused
	HeaderBytes int64         // of a request or response up to its body
	HeaderTime  time.Duration // until a request, and after a CONNECT the ClientHello, is complete
	DialTime    time.Duration // lookup, connection and upstream's answer together
	Idle        time.Duration // nothing in either direction
	Bytes       int64         // in and out, of all connections of the proxy together
}

// DefaultLimits let an agent with many helpers work for a day. A model that
// thinks for long says nothing meanwhile, hence the idle time.
func DefaultLimits() Limits {
	return Limits{
		Connections: 256, HeaderBytes: 64 << 10, HeaderTime: 15 * time.Second,
		DialTime: 20 * time.Second, Idle: 20 * time.Minute, Bytes: 64 << 30,
	}
}

// MaxRefusals is how many refusals one proxy tells in full.
const MaxRefusals = 1000

// Proxy is a listening proxy. [Listen] makes one.
type Proxy struct {
	config    Config
	listeners []net.Listener
	limits    Limits
	slots     chan struct{}
	counts    counts
	bytes     atomic.Int64

	mu     sync.Mutex
	open   map[net.Conn]struct{} // clients and servers; nil when the proxy ends
	works  sync.WaitGroup
	served atomic.Bool
}

// Listen opens the proxy's doors. Clients wait behind them until [Proxy.Serve]
// is called; Serve, or Close when it never comes to that, shuts them.
func Listen(ctx context.Context, config Config) (*Proxy, error) {
	if err := config.Limits.check(); err != nil {
		return nil, err
	}
	if config.Socket == "" && config.TCP == "" && config.Listener == nil {
		return nil, errors.New("cannot start the egress proxy: it has neither a socket nor an address to listen on")
	}
	if config.Resolve == nil {
		config.Resolve = systemResolve
	}
	if config.Dial == nil {
		config.Dial = tcpDial
	}
	p := &Proxy{
		config: config, limits: config.Limits, slots: make(chan struct{}, config.Limits.Connections),
		open: map[net.Conn]struct{}{}, counts: counts{told: config.Refused},
	}
	if err := p.listen(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (l Limits) check() error {
	for name, n := range map[string]int64{
		"Connections": int64(l.Connections), "HeaderBytes": l.HeaderBytes, "HeaderTime": int64(l.HeaderTime),
		"DialTime": int64(l.DialTime), "Idle": int64(l.Idle), "Bytes": l.Bytes,
	} {
		if n <= 0 {
			return fmt.Errorf("cannot start the egress proxy: its limit %s is %d", name, n)
		}
	}
	return nil
}

func (p *Proxy) listen(ctx context.Context) error {
	if p.config.Listener != nil {
		p.listeners = append(p.listeners, p.config.Listener)
	}
	if path := p.config.Socket; path != "" {
		l, err := listenUnix(ctx, path)
		if err != nil {
			return err
		}
		p.listeners = append(p.listeners, l)
	}
	if p.config.TCP == "" {
		return nil
	}
	addr, err := netip.ParseAddrPort(p.config.TCP)
	if err != nil || !addr.Addr().IsLoopback() {
		return fmt.Errorf("cannot listen on %q: the egress proxy listens on a loopback address with a port only", p.config.TCP)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", p.config.TCP)
	if err != nil {
		return fmt.Errorf("cannot start the egress proxy: %v", err)
	}
	p.listeners = append(p.listeners, l)
	return nil
}

// listenUnix listens on a path, and takes the place of a socket behind which
// nobody listens any more.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("cannot listen on %s: there is a file that is no socket", path)
		}
		if c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("cannot listen on %s: another process does", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("cannot replace the dead socket: %v", err)
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot start the egress proxy: %v (a socket's path may have 107 bytes; this has %d)", err, len(path))
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("cannot make %s private: %v", path, err)
	}
	return l, nil
}

// TCPAddr is the loopback address that the proxy listens on; invalid when it
// has none.
func (p *Proxy) TCPAddr() netip.AddrPort {
	for _, l := range p.listeners {
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			return a.AddrPort()
		}
	}
	return netip.AddrPort{}
}

// Close shuts the doors and ends all connections. It does not wait; Serve does.
func (p *Proxy) Close() {
	for _, l := range p.listeners {
		_ = l.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}

// Serve lets clients in until ctx is done or Close is called, ends what is
// open then, and returns when nothing of the proxy runs any more. Its error is
// that of a door that broke; nil at an end that was asked for. A proxy serves
// once.
func (p *Proxy) Serve(ctx context.Context) error {
	if p.served.Swap(true) {
		return errors.New("cannot serve: the egress proxy was served already")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var doors sync.WaitGroup
	broken := make(chan error, len(p.listeners))
	for _, l := range p.listeners {
		doors.Go(func() {
			broken <- p.accept(ctx, l)
			cancel() // one broken door is the end: half a proxy would hang its clients
		})
	}
	<-ctx.Done()
	p.Close()
	doors.Wait()
	p.works.Wait()
	var first error
	for range p.listeners {
		if err := <-broken; first == nil {
			first = err
		}
	}
	return first
}

// accept lets clients in, each on a goroutine of its own, at most
// Limits.Connections of them.
func (p *Proxy) accept(ctx context.Context, l net.Listener) error {
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if c != nil {
				_ = c.Close()
			}
			return nil
		case passes(err):
			pause(ctx, 100*time.Millisecond)
			continue
		case err != nil:
			return fmt.Errorf("the egress proxy cannot accept connections any more: %v", err)
		case !p.track(c):
			return nil
		}
		select {
		case p.slots <- struct{}{}:
		default:
			p.full(c)
			continue
		}
		p.works.Go(func() {
			defer func() { <-p.slots }()
			defer p.drop(c)
			p.handle(ctx, c)
		})
	}
}

// passes is whether accepting failed for a while only: there is no room for one
// more file, or the client was gone already.
func passes(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}

// full turns a client away without waiting for what it wants.
func (p *Proxy) full(c net.Conn) {
	defer p.drop(c)
	r := &refusal{status: 503, why: fmt.Sprintf("more than %d connections at once", p.limits.Connections)}
	p.counts.refuse("", r.why)
	_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = c.Write(r.answer())
}

// track remembers a connection, so that the proxy's end is its end. It is
// false, and the connection closed, when the proxy has ended.
func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		_ = c.Close()
		return false
	}
	p.open[c] = struct{}{}
	return true
}

func (p *Proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// Counts is what passed so far, and what did not.
func (p *Proxy) Counts() Counts { return p.counts.all() }

// pause waits, not longer than ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

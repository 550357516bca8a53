package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config has a proxy's listener, the endpoints that it allows, and its limits.
type Config struct {
	// Listener is where clients come from. The proxy closes it.
	Listener net.Listener

	Allow    []Endpoint
	Upstream Upstream
	Limits   Limits

	// Resolve looks up a name; nil asks the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address that was checked; nil dials it by TCP.
	Dial func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
	// Refused gets the refusals, one at a time and the first [MaxRefusals] of a
	// proxy. It must return soon. nil is not called.
	Refused func(Refusal)
}

// Limits bound what a client can cost. All must be positive.
type Limits struct {
	Connections int           // at once; more are refused
	HeaderBytes int64         // of a request or response up to its body, about
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

// Proxy lets clients out. [New] makes one.
type Proxy struct {
	config   Config
	limits   Limits
	slots    chan struct{}
	refusals refusals
	bytes    atomic.Int64
	quiet    *log.Logger

	mu   sync.Mutex
	open map[net.Conn]struct{} // tunnels, both sides of them; nil when the proxy ends
}

// New makes a proxy. Clients wait until [Proxy.Serve] is called.
func New(config Config) *Proxy {
	if config.Resolve == nil {
		config.Resolve = systemResolve
	}
	if config.Dial == nil {
		config.Dial = dialTCPAddress
	}
	return &Proxy{
		config: config, limits: config.Limits, slots: make(chan struct{}, config.Limits.Connections),
		open: map[net.Conn]struct{}{}, refusals: refusals{tell: config.Refused}, quiet: log.New(io.Discard, "", 0),
	}
}

// Serve lets clients in until ctx is done, ends what is open then, and returns
// when nothing of the proxy runs any more. Its error is that of a listener that
// broke. A proxy serves once.
func (p *Proxy) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var working sync.WaitGroup
	server := &http.Server{
		ReadHeaderTimeout: p.limits.HeaderTime, MaxHeaderBytes: int(p.limits.HeaderBytes), ErrorLog: p.quiet,
		BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			working.Add(1)
			defer working.Done()
			p.handleRequest(ctx, w, r)
		}),
	}
	stop := context.AfterFunc(ctx, func() { p.closeAll(server) })
	err := server.Serve(p.config.Listener)
	cancel()
	if stop() {
		p.closeAll(server)
	}
	working.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("the egress proxy cannot accept connections any more: %v", err)
}

// closeAll ends the listening and all connections.
func (p *Proxy) closeAll(server *http.Server) {
	_ = server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}

// trackTunnel remembers a connection of a tunnel, so that the proxy's end is its end. It
// is false, and the connection closed, when the proxy has ended.
func (p *Proxy) trackTunnel(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		_ = c.Close()
		return false
	}
	p.open[c] = struct{}{}
	return true
}

func (p *Proxy) dropTunnel(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// Refusal is something that was not let through.
type Refusal struct {
	When time.Time `json:"when"`
	// Host is host:port as the client asked for it, at most 300 bytes that can
	// be printed; "" when it did not come to that.
	Host string `json:"host,omitempty"`
	Why  string `json:"why"`
}

// MaxRefusals is how many refusals one proxy reports.
const MaxRefusals = 1000

const maxHostText = 300

// refusals reports them one at a time. It is safe for concurrent use.
type refusals struct {
	tell func(Refusal) // nil is not called

	mu   sync.Mutex
	told int
}

func (r *refusals) addRefusal(host, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tell != nil && r.told < MaxRefusals {
		r.told++
		r.tell(Refusal{When: time.Now(), Host: printableHost(host), Why: why})
	}
}

// printableHost makes what a client sent fit for a terminal: ASCII, without spaces.
// What looks like a user and a password before an @ is left out.
func printableHost(s string) string {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:]
	}
	s = s[:min(len(s), maxHostText)]
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, s)
}

// Out makes proxies as a supervisor asks for them: one that serves what comes
// to listener, to the endpoints of reach, until ctx is done, and reports what it
// refuses. getenv says which proxy of the user stands before it.
func Out(getenv func(string) string) func(context.Context, net.Listener, []string, func(host, why string),
) (func() error, error) {
	return func(ctx context.Context, listener net.Listener, reach []string, refused func(host, why string),
	) (func() error, error) {
		p, err := makeProxy(listener, reach, refused, getenv)
		if err != nil {
			_ = listener.Close()
			return nil, err
		}
		return func() error { return p.Serve(ctx) }, nil
	}
}

func makeProxy(
	listener net.Listener, reach []string, refused func(host, why string), getenv func(string) string,
) (*Proxy, error) {
	c := Config{Listener: listener, Limits: DefaultLimits(), Refused: func(r Refusal) { refused(r.Host, r.Why) }}
	for _, text := range reach {
		endpoint, err := ParseEndpoint(text)
		if err != nil {
			return nil, err
		}
		c.Allow = append(c.Allow, endpoint)
	}
	var err error
	if c.Upstream, err = UpstreamFrom(getenv); err != nil {
		return nil, err
	}
	return New(c), nil
}

// errBytes ends a connection when the proxy's bytes are used up.
var errBytes = errors.New("the limit on bytes is reached")

// pair is shared by two connected sides: they are idle together.
type pair struct {
	proxy *Proxy
	start time.Time
	last  atomic.Int64 // when something moved, in nanoseconds after start
}

func (p *Proxy) newConnectionPair() *pair { return &pair{proxy: p, start: time.Now()} }

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
			if over := s.countMoved(n); over != nil {
				return 0, over
			}
		}
		return n, err
	}
}

func (s *side) Write(b []byte) (int, error) {
	if over := s.countMoved(len(b)); over != nil {
		return 0, over
	}
	_ = s.SetWriteDeadline(time.Now().Add(s.pair.proxy.limits.Idle))
	return s.Conn.Write(b)
}

// countMoved notes that n bytes move.
func (s *side) countMoved(n int) error {
	s.pair.last.Store(int64(time.Since(s.pair.start)))
	if s.counted && s.pair.proxy.bytes.Add(int64(n)) > s.pair.proxy.limits.Bytes {
		return errBytes
	}
	return nil
}

// closeWrite ends the writing side; the peer can still write.
func (s *side) closeWrite() {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = s.Close()
}

// joinSides passes bytes on in both directions until both have ended. An end on one
// side is passed on as such; an error ends both. It returns the first error
// that is more than an end.
func joinSides(a, b *side) error {
	var back error
	var wait sync.WaitGroup
	wait.Go(func() { back = copySide(b, a) })
	there := copySide(a, b)
	wait.Wait()
	if errors.Is(back, errBytes) {
		return back
	}
	return there
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// copySide copies what one side says to the other.
func copySide(from, to *side) error {
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

package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Limits of what connects.
const (
	maxConnections = 256
	// nextPorts is how many ports after a busy default one are tried.
	nextPorts = 20
)

// Address says where to listen.
type Address struct {
	Address string // host:port; no host, or 0.0.0.0, is every interface
	// Named: a person chose the address, so a busy port is an error.
	Named bool
	// Insecure allows other interfaces than loopback without TLS.
	Insecure  bool
	Cert, Key string // PEM files
	// Hosts are further names under which the server is reached.
	Hosts []string
}

// ErrExposed is that an address can be reached from other machines, and nothing
// protects what is said.
var ErrExposed = errors.New("the address can be reached from other machines")

// ErrPortInUse is that another program listens there.
var ErrPortInUse = errors.New("the port is in use")

// Listener is where a server listens, and which names it answers to.
type Listener struct {
	listener net.Listener
	scheme   string
	shown    string // host:port for the URL
	hosts    []string
	port     string
	anyIP    bool // any literal address is ours: we listen on every interface
	local    bool // only this machine reaches it, by names of its own
}

// URL is the server's address, without a slash at its end.
func (d *Listener) URL() string { return d.scheme + "://" + d.shown }

// Close stops listening.
func (d *Listener) Close() error { return d.listener.Close() }

// Open listens. A busy port that nobody named is passed over for the next free
// one. ErrExposed and ErrPortInUse can be told apart.
func Open(ctx context.Context, a Address) (*Listener, error) {
	host, port, err := net.SplitHostPort(a.Address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: write HOST:PORT, e.g. 127.0.0.1:7295", a.Address)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: %q is no port", a.Address, port)
	}
	if (a.Cert == "") != (a.Key == "") {
		return nil, errors.New("cannot use TLS: server.tls_cert and server.tls_key belong together")
	}
	if !isLoopback(host) && a.Cert == "" && !a.Insecure {
		return nil, fmt.Errorf("cannot listen on %s: %w", a.Address, ErrExposed)
	}
	certificate, err := loadTLS(a)
	if err != nil {
		return nil, err
	}
	l, err := listen(ctx, host, int(number), a.Named)
	if err != nil {
		return nil, err
	}
	d := newListener(l, host, a.Hosts)
	d.listener = bound(d.listener, maxConnections)
	if certificate != nil {
		d.scheme = "https"
		d.listener = tls.NewListener(d.listener, certificate)
	}
	return d, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func loadTLS(a Address) (*tls.Config, error) {
	if a.Cert == "" {
		return nil, nil //nolint:nilnil // without TLS there is no configuration of it
	}
	pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot use TLS: %v", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"}}, nil
}

func listen(ctx context.Context, host string, port int, named bool) (net.Listener, error) {
	var lc net.ListenConfig
	last := port
	if !named && port != 0 {
		last = min(port+nextPorts, 65535)
	}
	for p := port; ; p++ {
		address := net.JoinHostPort(host, strconv.Itoa(p))
		l, err := lc.Listen(ctx, "tcp", address)
		switch {
		case err == nil:
			return l, nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("cannot listen on %s: %v", address, reason(err))
		case p >= last:
			return nil, fmt.Errorf("cannot listen on %s: %w", address, ErrPortInUse)
		}
	}
}

// reason is the system's error without the address, which the message has already.
func reason(err error) error {
	var op *net.OpError
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		return sys.Err
	}
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

func newListener(l net.Listener, host string, hosts []string) *Listener {
	d := &Listener{listener: l, scheme: "http"}
	_, d.port, _ = net.SplitHostPort(l.Addr().String())
	ip, _ := netip.ParseAddr(host) // of a name there is none
	switch {
	case host == "", ip.IsUnspecified():
		d.anyIP, host = true, "127.0.0.1"
		d.hosts = []string{"localhost"}
		if name, err := os.Hostname(); err == nil {
			d.hosts = append(d.hosts, strings.ToLower(name))
		}
	case ip.IsLoopback():
		d.hosts = []string{host, "localhost", "127.0.0.1", "::1"}
		d.local = len(hosts) == 0
	default:
		d.hosts = []string{strings.ToLower(host)}
	}
	for _, h := range hosts {
		d.hosts = append(d.hosts, strings.ToLower(h))
	}
	d.shown = net.JoinHostPort(host, d.port)
	return d
}

// answers is true when a Host header names this server. A name that somebody
// else gave to our address does not: a page of theirs would else be of the same
// origin as ours.
func (d *Listener) answers(hostHeader string) bool {
	host, port, err := net.SplitHostPort(hostHeader)
	if err != nil {
		host, port = strings.Trim(hostHeader, "[]"), map[string]string{"http": "80", "https": "443"}[d.scheme]
	}
	if port != d.port {
		return false
	}
	if slices.Contains(d.hosts, strings.ToLower(host)) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return d.anyIP && err == nil && ip.Zone() == ""
}

// sameOrigin is true when an Origin header is a page of this server under the
// very name that the request has.
func (d *Listener) sameOrigin(origin, hostHeader string) bool {
	return d.answers(hostHeader) && strings.EqualFold(origin, d.scheme+"://"+hostHeader)
}

// bounded is a listener with a limit on open connections. At the limit, a new one
// takes the place of the one that has been without a request for the longest time,
// so that idle connections keep nobody out. While all have a request, it is closed.
type bounded struct {
	net.Listener
	most int

	mu   sync.Mutex
	open map[*counted]bool
	turn int // counts what happens
}

func bound(l net.Listener, most int) *bounded {
	return &bounded{Listener: l, most: most, open: map[*counted]bool{}}
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		inner, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &counted{Conn: inner, of: b}
		if b.admit(c) {
			return c, nil
		}
		_ = inner.Close() // nothing was sent
	}
}

// admit reports whether there is room for a connection.
func (b *bounded) admit(c *counted) bool {
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
		_ = quiet.Close() // nobody waits for an answer there
	}
	return fits
}

// counted is a connection of a bounded listener, whose lock guards it.
type counted struct {
	net.Conn
	of       *bounded
	requests int // that are being answered
	turn     int // when it was opened, or the last answer ended
}

func (c *counted) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// asks notes that a request begins, by 1, or ends, by -1.
func (c *counted) asks(by int) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.turn++
	c.requests, c.turn = c.requests+by, c.of.turn
}

// connKey is where the connection of a request is in its context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// answering notes which connections have a request.
func answering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*counted); ok {
			c.asks(1)
			defer c.asks(-1)
		}
		next.ServeHTTP(w, r)
	})
}

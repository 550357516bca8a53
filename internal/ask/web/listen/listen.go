// Package listen opens the port of a server, and knows by which names the server may be
// reached there: everything else is refused by who asks it.
package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/pawl-dev/pawl/internal/ask/web/bounds"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Limits of what connects.
const (
	// MaxConnections is how many connections are open at once.
	MaxConnections = 256
	// NextPorts is how many ports after a busy default one are tried.
	NextPorts = 20
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
	net.Listener
	Scheme   string
	Shown    string // host:port for the URL
	hosts    []string
	Port     string
	anyIP    bool // any literal address is ours: we listen on every interface
	Local    bool // only this machine reaches it, by names of its own
	Loopback bool // only this machine reaches it, but other names may lead here
}

// URL is the server's address, without a slash at its end.
func (d *Listener) URL() string { return d.Scheme + "://" + d.Shown }

// Open listens. If no port was named and the default is busy, it takes the next free
// one. Callers can distinguish ErrExposed and ErrPortInUse.
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
	certificate, err := loadCertificate(a)
	if err != nil {
		return nil, err
	}
	l, err := listenOn(ctx, host, int(number), a.Named)
	if err != nil {
		return nil, err
	}
	d := newListener(l, host, a.Hosts)
	d.Listener = bounds.New(d.Listener, MaxConnections)
	if certificate != nil {
		d.Scheme = "https"
		d.Listener = tls.NewListener(d.Listener, certificate)
	}
	return d, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func loadCertificate(a Address) (*tls.Config, error) {
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

func listenOn(ctx context.Context, host string, port int, named bool) (net.Listener, error) {
	var lc net.ListenConfig
	last := port
	if !named && port != 0 {
		last = min(port+NextPorts, 65535)
	}
	for p := port; ; p++ {
		address := net.JoinHostPort(host, strconv.Itoa(p))
		l, err := lc.Listen(ctx, "tcp", address)
		switch {
		case err == nil:
			return l, nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("cannot listen on %s: %w", address, withoutAddress(err))
		case p >= last:
			return nil, fmt.Errorf("cannot listen on %s: %w", address, ErrPortInUse)
		}
	}
}

// withoutAddress returns the system's error without the address, which the message has already.
func withoutAddress(err error) error {
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		return sys.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

func newListener(l net.Listener, host string, hosts []string) *Listener {
	d := &Listener{Listener: l, Scheme: "http"}
	_, d.Port, _ = net.SplitHostPort(l.Addr().String())
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
		d.Local, d.Loopback = len(hosts) == 0, true
	default:
		d.hosts = []string{strings.ToLower(host)}
	}
	d.hosts = append(d.hosts, lists.Each(hosts, strings.ToLower)...)
	d.Shown = net.JoinHostPort(host, d.Port)
	return d
}

// AcceptsHost reports whether a Host header names this server. A name that somebody
// else gave to our address does not: a page of theirs would else be of the same
// origin as ours.
func (d *Listener) AcceptsHost(hostHeader string) bool {
	host, port, err := net.SplitHostPort(hostHeader)
	if err != nil {
		host, port = strings.Trim(hostHeader, "[]"), map[string]string{"http": "80", "https": "443"}[d.Scheme]
	}
	if port != d.Port {
		return false
	}
	if slices.Contains(d.hosts, strings.ToLower(host)) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return d.anyIP && err == nil && ip.Zone() == ""
}

// SameOrigin is true when an Origin header is a page of this server under the
// very name that the request has.
func (d *Listener) SameOrigin(origin, hostHeader string) bool {
	return d.AcceptsHost(hostHeader) && strings.EqualFold(origin, d.Scheme+"://"+hostHeader)
}

package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// public is the address that names of these tests have.
const public = "93.184.216.34"

// rig is a proxy with a name service and a network of its own.
type rig struct {
	t      *testing.T
	proxy  *Proxy
	socket string
	told   chan Refusal

	mu      sync.Mutex
	names   map[string][]string // what a name resolves to, lookup after lookup; the last stays
	lookups []string
	routes  map[string]string // address:port that is dialled, to where it leads
	dialled []string
}

// start runs a proxy that allows what is listed, until the test ends.
func start(t *testing.T, allow []string, change func(*Config)) *rig {
	t.Helper()
	r := &rig{
		t: t, socket: filepath.Join(t.TempDir(), "s"), told: make(chan Refusal, 2000),
		names: map[string][]string{}, routes: map[string]string{},
	}
	listener, err := net.Listen("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Listener: listener, Limits: DefaultLimits(), Resolve: r.resolve, Dial: r.dial, Refused: func(no Refusal) { r.told <- no }}
	for _, s := range allow {
		e, err := ParseEndpoint(s)
		if err != nil {
			t.Fatal(err)
		}
		config.Allow = append(config.Allow, e)
	}
	if change != nil {
		change(&config)
	}
	p := New(config)
	r.proxy = p
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the proxy ended with %v", err)
		}
	})
	return r
}

func (r *rig) resolve(_ context.Context, host string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookups = append(r.lookups, host)
	answers := r.names[host]
	if len(answers) == 0 {
		return nil, errors.New("no such host")
	}
	if len(answers) > 1 {
		r.names[host] = answers[1:]
	}
	var addrs []netip.Addr
	for text := range strings.FieldsSeq(answers[0]) {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs, nil
}

func (r *rig) dial(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	r.mu.Lock()
	r.dialled = append(r.dialled, addr.String())
	to := r.routes[addr.String()]
	r.mu.Unlock()
	if to == "" {
		return nil, errors.New("connection refused")
	}
	return new(net.Dialer).DialContext(ctx, "tcp", to)
}

// lead makes host a name of the public address, behind which server listens.
func (r *rig) lead(host, port, server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[host] = []string{public}
	r.routes[net.JoinHostPort(public, port)] = server
}

// conn is a raw connection to the proxy.
func (r *rig) conn() *net.UnixConn {
	r.t.Helper()
	c, err := net.Dial("unix", r.socket)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c.(*net.UnixConn)
}

// say sends text as it is, and returns all that comes back.
func (r *rig) say(text string) string {
	r.t.Helper()
	c := r.conn()
	_, _ = io.WriteString(c, text)
	b, _ := io.ReadAll(c)
	return string(b)
}

// tunnel opens a tunnel; status is the proxy's answer.
func (r *rig) tunnel(target string) (c *net.UnixConn, br *bufio.Reader, status int) {
	r.t.Helper()
	c = r.conn()
	_, _ = io.WriteString(c, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n")
	br = bufio.NewReader(c)
	resp, err := http.ReadResponse(br, &http.Request{Method: http.MethodConnect})
	if err != nil {
		r.t.Fatalf("CONNECT %s: %v", target, err)
	}
	return c, br, resp.StatusCode
}

// client is an HTTP client behind the proxy, that takes any certificate.
func (r *rig) client() *http.Client {
	tr := &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy"}),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", r.socket)
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	r.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// refused waits for the next refusal, and checks that it is about host and
// says why.
func (r *rig) refused(host, why string) {
	r.t.Helper()
	no := <-r.told
	if no.Host != host || !strings.Contains(no.Why, why) || no.When.IsZero() {
		r.t.Errorf("told %+v, want host %q and %q", no, host, why)
	}
}

// quiet checks that nothing was dialled.
func (r *rig) quiet() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.dialled) > 0 {
		r.t.Errorf("dialled %v", r.dialled)
	}
}

// secure is a TLS server that echoes the request's body after its path.
func secure(t *testing.T) string {
	s := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func echo(w http.ResponseWriter, req *http.Request) {
	b, _ := io.ReadAll(req.Body)
	_, _ = io.WriteString(w, req.Host+" "+req.RequestURI+" "+string(b))
}

// lines is a TCP server that does what serve says with each connection.
func lines(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				serve(c)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}

// helloFor is a ClientHello for a name, as crypto/tls writes it.
func helloFor(t testing.TB, name string) []byte {
	t.Helper()
	near, far := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = tls.Client(near, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
	})
	head := make([]byte, 5)
	if _, err := io.ReadFull(far, head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, int(head[3])<<8|int(head[4]))
	if _, err := io.ReadFull(far, body); err != nil {
		t.Fatal(err)
	}
	_ = far.Close()
	wg.Wait()
	return slices.Concat(head, body)
}

// soon is a limit that a test lets run out.
const soon = 30 * time.Millisecond

// inTime is a limit that runs out as well, after something that a busy machine has to
// do within it.
const inTime = 2 * time.Second

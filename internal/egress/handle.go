package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// refusal is an answer of the proxy's own to what it does not let through.
type refusal struct {
	status int
	why    string
}

func (r *refusal) Error() string { return r.why }

// answer is the whole response, whose text the agent may read.
func (r *refusal) answer() []byte {
	text := "pawl: " + r.why + "\n"
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"+
		"X-Pawl-Egress: refused\r\nConnection: close\r\n\r\n%s", r.status, http.StatusText(r.status), len(text), text)
}

// client is a connection from the inside.
type client struct {
	net.Conn

	limit *limited
	r     *bufio.Reader
}

// limited reads at most n bytes, and remembers how reading ended: who reads a
// request is told of a malformed one only.
type limited struct {
	from io.Reader
	n    int64
	err  error
}

func (l *limited) Read(b []byte) (int, error) {
	if l.n <= 0 {
		return 0, io.EOF
	}
	n, err := l.from.Read(b[:min(int64(len(b)), l.n)])
	l.n -= int64(n)
	l.err = err
	return n, err
}

// handle serves one client: one tunnel, or one request.
func (p *Proxy) handle(ctx context.Context, c net.Conn) {
	limit := &limited{from: c}
	cl := &client{Conn: c, limit: limit, r: bufio.NewReaderSize(limit, 4<<10)}
	req, err := p.readRequest(cl)
	switch {
	case errors.Is(err, io.EOF): // it said nothing at all
	case err != nil:
		p.refuse(cl, "", err)
	case req.Method == http.MethodConnect:
		p.connect(ctx, cl, req)
	default:
		p.plain(ctx, cl, req)
	}
}

// refuse answers and tells what was refused. Errors that are no
// refusal are failures on the way: the client is told, and nobody else.
func (p *Proxy) refuse(c *client, host string, err error) {
	no := &refusal{}
	if !errors.As(err, &no) {
		no = &refusal{status: http.StatusBadGateway, why: err.Error()}
	} else {
		p.refusals.add(host, no.why)
	}
	_ = c.SetWriteDeadline(time.Now().Add(p.limits.HeaderTime))
	if _, err := c.Write(no.answer()); err != nil {
		return
	}
	p.linger(c)
}

// linger ends a connection after an answer. What was not read would make TCP
// reset it, and the answer would be lost.
func (p *Proxy) linger(c *client) {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(min(p.limits.HeaderTime, time.Second)))
		_, _ = io.CopyN(io.Discard, c.Conn, 256<<10)
	}
}

// readRequest reads a request up to its body, in bounded time and size. io.EOF
// is a client that left without a word.
func (p *Proxy) readRequest(c *client) (*http.Request, error) {
	c.limit.n = p.limits.HeaderBytes
	_ = c.SetReadDeadline(time.Now().Add(p.limits.HeaderTime))
	req, err := http.ReadRequest(c.r)
	full := c.limit.n <= 0
	c.limit.n = unlimited
	switch {
	case err == nil:
		return req, nil
	case full:
		why := fmt.Sprintf("the request's header is longer than %d bytes", p.limits.HeaderBytes)
		return nil, &refusal{http.StatusRequestHeaderFieldsTooLarge, why}
	case errors.Is(err, io.EOF) && !isTimeout(c.limit.err):
		return nil, io.EOF
	case isTimeout(c.limit.err):
		why := fmt.Sprintf("the request was not complete after %v", p.limits.HeaderTime)
		return nil, &refusal{http.StatusRequestTimeout, why}
	}
	// The error may quote the request, and so a secret.
	return nil, &refusal{http.StatusBadRequest, "the request is malformed"}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// connect serves a CONNECT.
func (p *Proxy) connect(ctx context.Context, c *client, req *http.Request) {
	asked := req.RequestURI
	e, host, err := p.tunnelTo(req)
	if err != nil {
		p.refuse(c, asked, err)
		return
	}
	server, from, err := p.reach(ctx, e, host)
	if err != nil {
		p.refuse(c, asked, err)
		return
	}
	if !p.track(server) {
		return
	}
	defer p.drop(server)
	if err := established(c, p.limits.HeaderTime); err != nil {
		return
	}
	name := place(host, e.Port)
	pair := p.newPair()
	inner := &side{Conn: c.Conn, from: c.r, pair: pair}
	outer := &side{Conn: server, from: from, pair: pair, counted: true}
	if !e.Plain {
		var raw []byte
		if raw, err = p.checkHello(c, host); err == nil {
			_, err = outer.Write(raw)
		}
	}
	if err == nil {
		err = join(inner, outer)
	}
	p.endTunnel(c, name, err)
}

// endTunnel tells why a tunnel was ended, if it was ended by the proxy.
func (p *Proxy) endTunnel(c *client, host string, err error) {
	var no *refusal
	switch {
	case errors.As(err, &no):
		p.refusals.add(host, no.why)
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = c.Write([]byte{21, 3, 3, 0, 2, 2, 112}) // alert: fatal, unrecognized_name
	case errors.Is(err, errBytes):
		p.refusals.add(host, fmt.Sprintf("more than %d bytes went through the proxy", p.limits.Bytes))
	}
}

// tunnelTo is what a CONNECT asks for, if it may be had.
func (p *Proxy) tunnelTo(req *http.Request) (Endpoint, string, error) {
	if req.ContentLength > 0 || len(req.TransferEncoding) > 0 {
		return Endpoint{}, "", &refusal{http.StatusBadRequest, "a CONNECT has no body"}
	}
	host, port, err := authority(req.RequestURI)
	if err == nil {
		host, err = hostName(host)
	}
	if err != nil {
		return Endpoint{}, "", &refusal{http.StatusBadRequest, "a CONNECT names host:port"}
	}
	for _, plain := range []bool{false, true} {
		if e, ok := find(p.config.Allow, host, port, plain); ok {
			return Endpoint{Host: e.Host, Port: port, Plain: plain, Addrs: e.Addrs}, host, nil
		}
	}
	return Endpoint{}, "", notListed(host)
}

func notListed(host string) error {
	if isIP(host) {
		return &refusal{http.StatusForbidden, "an address is not an endpoint of this agent"}
	}
	return &refusal{http.StatusForbidden, "the host is not an endpoint of this agent"}
}

// established tells the client that the tunnel is there.
func established(c *client, limit time.Duration) error {
	_ = c.SetWriteDeadline(time.Now().Add(limit))
	_, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
	return err
}

// checkHello reads the ClientHello, which must name the host; raw is to be
// passed on. An address has no name to be called by.
func (p *Proxy) checkHello(c *client, host string) (raw []byte, err error) {
	_ = c.SetReadDeadline(time.Now().Add(p.limits.HeaderTime))
	raw, name, err := readHello(c.r)
	switch {
	case errors.Is(err, io.EOF) && len(raw) == 0:
		return nil, io.EOF
	case isTimeout(err):
		return nil, &refusal{0, fmt.Sprintf("the ClientHello was not complete after %v", p.limits.HeaderTime)}
	case err != nil:
		return nil, &refusal{0, err.Error()}
	case name == "" && isIP(host):
	case name == "":
		return nil, &refusal{0, "the ClientHello names no host"}
	case name != host:
		return nil, &refusal{0, "the ClientHello names another host: " + printable(name)}
	}
	return raw, nil
}

func place(host string, port uint16) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

// plain serves a request in absolute form.
func (p *Proxy) plain(ctx context.Context, c *client, req *http.Request) {
	if req.URL.Scheme == "" {
		p.refuse(c, "", &refusal{http.StatusBadRequest, "this is a proxy; a request to it names the whole URL"})
		return
	}
	asked := req.URL.Host
	if req.URL.Scheme != "http" {
		p.refuse(c, asked, &refusal{http.StatusForbidden, "the proxy passes on http only; use CONNECT for anything else"})
		return
	}
	host, port, err := splitPort(asked, 80)
	if err == nil {
		host, err = hostName(host)
	}
	if err != nil {
		p.refuse(c, asked, &refusal{http.StatusBadRequest, "the request's URL names no host"})
		return
	}
	e, ok := find(p.config.Allow, host, port, true)
	if !ok {
		p.refuse(c, asked, notListed(host))
		return
	}
	e.Port = port
	p.exchange(ctx, c, req, e, host)
}

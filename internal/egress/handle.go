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

// handle serves one request: a tunnel, or plain http. ctx ends with the proxy: a
// client that has said all that it has to say still waits for its tunnel.
func (p *Proxy) handle(ctx context.Context, w http.ResponseWriter, req *http.Request) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	default:
		why := fmt.Sprintf("more than %d connections at once", p.limits.Connections)
		p.refuse(w, "", &refusal{http.StatusServiceUnavailable, why})
		return
	}
	if req.Method == http.MethodConnect {
		p.connect(ctx, w, req)
		return
	}
	p.plain(w, req)
}

// refuse answers, with a text that the agent may read, and tells what was refused.
// Errors that are no refusal are failures on the way: the client is told, and
// nobody else.
func (p *Proxy) refuse(w http.ResponseWriter, host string, err error) {
	no := &refusal{}
	if !errors.As(err, &no) {
		no = &refusal{status: http.StatusBadGateway, why: err.Error()}
	} else {
		p.refusals.add(host, no.why)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second)) // nobody reads what it still says
	w.Header().Set("X-Pawl-Egress", "refused")
	w.Header().Set("Connection", "close")
	http.Error(w, "pawl: "+no.why, no.status)
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// connect serves a CONNECT.
func (p *Proxy) connect(ctx context.Context, w http.ResponseWriter, req *http.Request) {
	asked := req.RequestURI
	e, host, err := p.tunnelTo(req)
	if err != nil {
		p.refuse(w, asked, err)
		return
	}
	server, from, err := p.reach(ctx, e, host)
	if err != nil {
		p.refuse(w, asked, err)
		return
	}
	if !p.track(server) {
		return
	}
	defer p.drop(server)
	client, ahead, err := http.NewResponseController(w).Hijack()
	if err != nil || !p.track(client) {
		return
	}
	defer p.drop(client)
	_ = client.SetWriteDeadline(time.Now().Add(p.limits.HeaderTime))
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	pair := p.newPair()
	inner := &side{Conn: client, from: ahead.Reader, pair: pair}
	outer := &side{Conn: server, from: from, pair: pair, counted: true}
	if !e.Plain {
		var raw []byte
		if raw, err = p.checkHello(client, ahead.Reader, host); err == nil {
			_, err = outer.Write(raw)
		}
	}
	if err == nil {
		err = join(inner, outer)
	}
	p.endTunnel(client, ahead.Reader, place(host, e.Port), err)
}

// endTunnel tells why a tunnel was ended, if it was ended by the proxy.
func (p *Proxy) endTunnel(c net.Conn, from *bufio.Reader, host string, err error) {
	var no *refusal
	switch {
	case errors.As(err, &no):
		p.refusals.add(host, no.why)
		_ = c.SetDeadline(time.Now().Add(time.Second))
		_, _ = c.Write([]byte{21, 3, 3, 0, 2, 2, 112}) // alert: fatal, unrecognized_name
		if half, ok := c.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
			_, _ = io.CopyN(io.Discard, from, 256<<10) // else the alert would be lost with what nobody read
		}
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

// checkHello reads the ClientHello, which must name the host; raw is to be
// passed on. An address has no name to be called by.
func (p *Proxy) checkHello(c net.Conn, from io.Reader, host string) (raw []byte, err error) {
	_ = c.SetReadDeadline(time.Now().Add(p.limits.HeaderTime))
	raw, name, err := readHello(from)
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

package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// hopHeaders are about one connection and end at a proxy.
var hopHeaders = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// maxInterim is how many 1xx responses may precede the real one.
const maxInterim = 8

// exchange passes one request on and its response back. Both connections end
// with it: there is no next request to be smuggled in.
func (p *Proxy) exchange(ctx context.Context, c *client, req *http.Request, e Endpoint, host string) {
	name := place(host, e.Port)
	server, from, err := p.reach(ctx, e, host)
	if err != nil {
		p.refuse(c, name, err)
		return
	}
	if !p.track(server) {
		return
	}
	defer p.drop(server)
	tally := p.counts.host(name)
	tally.connections.Add(1)
	tally.requests.Add(1)

	pair := p.newPair()
	inner := &side{Conn: c.Conn, from: c.Conn, pair: pair}
	outer := &side{Conn: server, from: from, pair: pair, in: &tally.in, out: &tally.out}
	c.limit.from = inner // the body comes through what was read ahead
	if !p.invite(c, req) {
		return
	}
	rewrite(req, hostHeader(req.Host, host, e))
	var sent error
	var sending sync.WaitGroup
	sending.Go(func() { sent = p.send(c, outer, req) })
	err = p.respond(inner, outer, req)
	// The response is over: what the client still says has no reader any more.
	_ = server.Close()
	inner.stop()
	sending.Wait()
	if errors.Is(sent, errBytes) {
		err = errBytes
	}
	if bad := new(badResponseError); errors.As(err, bad) {
		p.refuse(c, name, err)
		return
	}
	p.endTunnel(c, name, err)
	p.linger(c)
}

// send passes the request on, then waits for the client to leave: a response
// that nobody waits for any more is given up.
func (p *Proxy) send(c *client, outer *side, req *http.Request) error {
	if err := req.Write(outer); err != nil {
		return err
	}
	if _, err := c.r.Peek(1); err != nil {
		_ = outer.Close()
	}
	return nil
}

// hostHeader is the Host that the endpoint gets: what the client wrote, which
// was found to mean host, or made from the URL.
func hostHeader(asked, host string, e Endpoint) string {
	if asked != "" {
		return asked
	}
	if e.Port == 80 {
		return strings.TrimSuffix(place(host, e.Port), ":80")
	}
	return place(host, e.Port)
}

// rewrite makes the request one for the endpoint itself.
func rewrite(req *http.Request, host string) {
	req.URL.Scheme, req.URL.Host, req.Host = "http", "", host
	strip(req.Header)
	if len(req.Header.Values("User-Agent")) == 0 {
		req.Header.Set("User-Agent", "") // net/http names itself otherwise
	}
	req.Close = true
}

// invite answers a client that wants to be asked for its body.
func (p *Proxy) invite(c *client, req *http.Request) bool {
	if !strings.EqualFold(req.Header.Get("Expect"), "100-continue") {
		return true
	}
	req.Header.Del("Expect")
	_ = c.SetWriteDeadline(time.Now().Add(p.limits.HeaderTime))
	_, err := io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
	return err == nil
}

// badResponseError is an answer that was not begun to be passed on.
type badResponseError struct{ why string }

func (b badResponseError) Error() string { return b.why }

// respond passes the response on as it comes.
func (p *Proxy) respond(inner, outer *side, req *http.Request) error {
	limit := &io.LimitedReader{R: outer}
	br := bufio.NewReader(limit)
	for range maxInterim {
		limit.N = p.limits.HeaderBytes
		resp, err := http.ReadResponse(br, req) //nolint:bodyclose // the body is the connection, which the caller closes
		if err != nil {
			if errors.Is(err, errBytes) {
				return err
			}
			return badResponseError{"the endpoint gives no valid answer"}
		}
		limit.N = unlimited
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return badResponseError{"the endpoint wants another protocol"}
		}
		if resp.StatusCode < 200 {
			continue
		}
		strip(resp.Header)
		resp.Close = true
		return resp.Write(inner)
	}
	return badResponseError{fmt.Sprintf("the endpoint gives more than %d answers before the real one", maxInterim)}
}

// strip takes out headers that end here, those that Connection names too.
func strip(h http.Header) {
	for _, line := range h.Values("Connection") {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopHeaders {
		h.Del(name)
	}
}

package egress

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
)

// hopHeaders are about one connection and end at a proxy.
var hopHeaders = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// exchange passes one request on, and back whatever the endpoint says. Both
// connections end with it: there is no next request to be smuggled in.
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
	pair := p.newPair()
	inner := &side{Conn: c.Conn, from: c.Conn, pair: pair}
	outer := &side{Conn: server, from: from, pair: pair, counted: true}
	c.limit.from = inner // the body comes through what was read ahead
	address(req, host, e)
	var sent error
	var sending sync.WaitGroup
	sending.Go(func() {
		if sent = req.Write(outer); sent == nil {
			_, _ = io.Copy(io.Discard, c.r) // until the client leaves
		}
		_ = server.Close()
	})
	err = pass(outer, inner)
	inner.stop() // what the client still says has no reader any more
	sending.Wait()
	for _, err := range []error{sent, err} {
		p.endTunnel(c, name, err)
	}
	p.linger(c)
}

// address makes the request one for the endpoint itself.
func address(req *http.Request, host string, e Endpoint) {
	req.URL.Scheme, req.URL.Host, req.URL.User = "http", place(host, e.Port), nil
	if req.Host == "" {
		req.Host = strings.TrimSuffix(req.URL.Host, ":80")
	}
	req.Close = true
	for _, line := range req.Header.Values("Connection") {
		for name := range strings.SplitSeq(line, ",") {
			req.Header.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopHeaders {
		req.Header.Del(name)
	}
	if len(req.Header.Values("User-Agent")) == 0 {
		req.Header.Set("User-Agent", "") // net/http names itself otherwise
	}
}

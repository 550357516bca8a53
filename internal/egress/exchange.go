package egress

import (
	"context"
	"errors"
	"io"
	"net"
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

// exchange passes one request on and its response back. Both connections end
// with it: there is no next request to be smuggled in.
func (p *Proxy) exchange(ctx context.Context, c *client, req *http.Request, e Endpoint, host string) {
	if !p.invite(c, req) {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	pair := p.newPair()
	inner := &side{Conn: c.Conn, from: c.Conn, pair: pair}
	c.limit.from = inner // the body comes through what was read ahead
	// A response that nobody waits for any more is given up. The client is
	// listened to when it has sent its body.
	var watching sync.WaitGroup
	watch := sync.OnceFunc(func() {
		watching.Go(func() {
			if _, err := c.r.Peek(1); err != nil {
				cancel()
			}
		})
	})
	resp, server, err := p.forward(ctx, pair, e, host, outgoing(req, host, e, watch))
	if err == nil {
		strip(resp.Header)
		resp.Close = true
		err = resp.Write(inner)
		_ = resp.Body.Close()
	}
	if server != nil {
		p.drop(server)
	}
	// What the client still says has no reader any more.
	inner.stop()
	cancel()
	watching.Wait()
	name := place(host, e.Port)
	if resp == nil && !errors.Is(err, errBytes) {
		p.refuse(c, name, err)
		return
	}
	p.endTunnel(c, name, err)
	p.linger(c)
}

// forward sends a request to its endpoint. server is the connection, nil when
// there is none.
func (p *Proxy) forward(ctx context.Context, pair *pair, e Endpoint, host string, req *http.Request) (
	resp *http.Response, server net.Conn, err error,
) {
	transport := &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: p.limits.HeaderBytes,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, from, err := p.reach(ctx, e, host)
			if err != nil {
				return nil, err
			}
			if !p.track(c) {
				return nil, net.ErrClosed
			}
			server = c
			return &side{Conn: c, from: from, pair: pair, counted: true}, nil
		},
	}
	resp, err = transport.RoundTrip(req.WithContext(ctx))
	switch tells := server == nil || errors.Is(err, errBytes); {
	case err != nil && tells:
	case err != nil:
		err = errors.New("the endpoint gives no valid answer")
	case resp.StatusCode == http.StatusSwitchingProtocols:
		_ = resp.Body.Close()
		resp, err = nil, errors.New("the endpoint wants another protocol")
	}
	return resp, server, err
}

// sentBody tells when it was read.
type sentBody struct {
	io.ReadCloser
	read func()
}

func (b sentBody) Close() error {
	err := b.ReadCloser.Close()
	b.read()
	return err
}

// outgoing makes the request one for the endpoint itself. The Host that the
// endpoint gets is what the client wrote, which was found to mean host.
func outgoing(req *http.Request, host string, e Endpoint, sent func()) *http.Request {
	out := *req
	u := *req.URL
	u.Scheme, u.Host, u.User = "http", place(host, e.Port), nil
	out.URL, out.RequestURI, out.Close = &u, "", true
	if out.Host == "" {
		out.Host = strings.TrimSuffix(u.Host, ":80")
	}
	strip(out.Header)
	if len(out.Header.Values("User-Agent")) == 0 {
		out.Header.Set("User-Agent", "") // net/http names itself otherwise
	}
	if req.Body == http.NoBody {
		sent()
	} else {
		out.Body = sentBody{req.Body, sent}
	}
	return &out
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

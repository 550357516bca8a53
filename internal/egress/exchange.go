package egress

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
)

// plain passes on a request in absolute form, and back what the endpoint says.
func (p *Proxy) plain(w http.ResponseWriter, req *http.Request) {
	if req.URL.Scheme == "" {
		p.refuse(w, "", &refusal{http.StatusBadRequest, "this is a proxy; a request to it names the whole URL"})
		return
	}
	asked := req.URL.Host
	if req.URL.Scheme != "http" {
		p.refuse(w, asked, &refusal{http.StatusForbidden, "the proxy passes on http only; use CONNECT for anything else"})
		return
	}
	host, port, err := splitPort(asked, 80)
	if err == nil {
		host, err = hostName(host)
	}
	if err != nil {
		p.refuse(w, asked, &refusal{http.StatusBadRequest, "the request's URL names no host"})
		return
	}
	e, ok := find(p.config.Allow, host, port, true)
	if !ok {
		p.refuse(w, asked, notListed(host))
		return
	}
	e.Port = port
	p.exchange(w, req, e, host)
}

// exchange passes one request on, by a connection of its own.
func (p *Proxy) exchange(w http.ResponseWriter, req *http.Request, e Endpoint, host string) {
	name := place(host, e.Port)
	defer func() {
		if p.bytes.Load() > p.limits.Bytes {
			p.endTunnel(nil, nil, name, errBytes)
		}
	}()
	w.Header().Set("Connection", "close")
	transport := &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: p.limits.HeaderBytes,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, from, err := p.reach(ctx, e, host)
			if err != nil {
				return nil, err
			}
			return &side{Conn: c, from: from, pair: p.newPair(), counted: true}, nil
		},
	}
	(&httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: p.quiet,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.URL.User = "http", name, nil
			r.Out.Host = strings.TrimSuffix(r.In.Host, ":80")
			for _, header := range []string{"Proxy-Authorization", "Proxy-Connection"} {
				r.Out.Header.Del(header)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { p.refuse(w, name, err) },
	}).ServeHTTP(w, req)
}

package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// refusal is an answer of the proxy's own to what it does not let through.
type refusal struct {
	status int
	why    string
}

func (r *refusal) Error() string { return r.why }

// handleRequest serves one request: a tunnel, or plain http. ctx ends with the proxy: a
// client that has said all that it has to say still waits for its tunnel.
func (p *Proxy) handleRequest(ctx context.Context, w http.ResponseWriter, req *http.Request) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	default:
		why := fmt.Sprintf("more than %d connections at once", p.limits.Connections)
		p.refuseRequest(w, "", &refusal{http.StatusServiceUnavailable, why})
		return
	}
	if req.Method == http.MethodConnect {
		p.serveConnect(ctx, w, req)
		return
	}
	p.servePlain(w, req)
}

// refuseRequest answers, with a text that the agent may read, and reports the refusal.
// Errors that are no refusal are failures on the way: only the client gets them.
func (p *Proxy) refuseRequest(w http.ResponseWriter, host string, err error) {
	no := &refusal{}
	if !errors.As(err, &no) {
		no = &refusal{status: http.StatusBadGateway, why: err.Error()}
	} else {
		p.refusals.addRefusal(host, no.why)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second)) // what it still sends is not read
	w.Header().Set("X-Pawl-Egress", "refused")
	w.Header().Set("Connection", "close")
	http.Error(w, "pawl: "+no.why, no.status)
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// serveConnect serves a CONNECT.
func (p *Proxy) serveConnect(ctx context.Context, w http.ResponseWriter, req *http.Request) {
	asked := req.RequestURI
	e, host, err := p.allowedTunnel(req)
	if err != nil {
		p.refuseRequest(w, asked, err)
		return
	}
	server, from, err := p.connectTo(ctx, e, host)
	if err != nil {
		p.refuseRequest(w, asked, err)
		return
	}
	if !p.trackTunnel(server) {
		return
	}
	defer p.dropTunnel(server)
	client, ahead, err := http.NewResponseController(w).Hijack()
	if err != nil || !p.trackTunnel(client) {
		return
	}
	defer p.dropTunnel(client)
	_ = client.SetWriteDeadline(time.Now().Add(p.limits.HeaderTime))
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	pair := p.newConnectionPair()
	inner := &side{Conn: client, from: ahead.Reader, pair: pair}
	outer := &side{Conn: server, from: from, pair: pair, counted: true}
	if !e.Plain {
		var raw []byte
		if raw, err = p.checkHello(client, ahead.Reader, host); err == nil {
			_, err = outer.Write(raw)
		}
	}
	if err == nil {
		err = joinSides(inner, outer)
	}
	p.endTunnel(client, ahead.Reader, joinPort(host, e.Port), err)
}

// endTunnel reports why a tunnel was ended, if it was ended by the proxy.
func (p *Proxy) endTunnel(c net.Conn, from *bufio.Reader, host string, err error) {
	var no *refusal
	switch {
	case errors.As(err, &no):
		p.refusals.addRefusal(host, no.why)
		_ = c.SetDeadline(time.Now().Add(time.Second))
		_, _ = c.Write([]byte{21, 3, 3, 0, 2, 2, 112}) // alert: fatal, unrecognized_name
		if half, ok := c.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
			_, _ = io.CopyN(io.Discard, from, 256<<10) // else the alert would be lost with what was not read
		}
	case errors.Is(err, errBytes):
		p.refusals.addRefusal(host, fmt.Sprintf("more than %d bytes went through the proxy", p.limits.Bytes))
	}
}

// allowedTunnel returns the endpoint that a CONNECT asks for, if it is allowed.
func (p *Proxy) allowedTunnel(req *http.Request) (Endpoint, string, error) {
	if req.ContentLength > 0 || len(req.TransferEncoding) > 0 {
		return Endpoint{}, "", &refusal{http.StatusBadRequest, "a CONNECT has no body"}
	}
	host, port, err := splitAuthority(req.RequestURI)
	if err == nil {
		host, err = hostName(host)
	}
	if err != nil {
		return Endpoint{}, "", &refusal{http.StatusBadRequest, "a CONNECT names host:port"}
	}
	for _, plain := range []bool{false, true} {
		if e, ok := findEndpoint(p.config.Allow, host, port, plain); ok {
			return Endpoint{Host: e.Host, Port: port, Plain: plain, Addrs: e.Addrs}, host, nil
		}
	}
	return Endpoint{}, "", notListed(host)
}

func notListed(host string) error {
	if isIPAddress(host) {
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
	case name == "" && isIPAddress(host):
	case name == "":
		return nil, &refusal{0, "the ClientHello names no host"}
	case name != host:
		return nil, &refusal{0, "the ClientHello names another host: " + printableHost(name)}
	}
	return raw, nil
}

func joinPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// servePlain passes on a request in absolute form, and back what the endpoint says.
func (p *Proxy) servePlain(w http.ResponseWriter, req *http.Request) {
	if req.URL.Scheme == "" {
		p.refuseRequest(w, "", &refusal{http.StatusBadRequest, "this is a proxy; a request to it names the whole URL"})
		return
	}
	asked := req.URL.Host
	if req.URL.Scheme != "http" {
		const httpOnly = "the proxy passes on http only; use CONNECT for anything else"
		p.refuseRequest(w, asked, &refusal{http.StatusForbidden, httpOnly})
		return
	}
	host, port, err := splitPort(asked, 80)
	if err == nil {
		host, err = hostName(host)
	}
	if err != nil {
		p.refuseRequest(w, asked, &refusal{http.StatusBadRequest, "the request's URL names no host"})
		return
	}
	e, ok := findEndpoint(p.config.Allow, host, port, true)
	if !ok {
		p.refuseRequest(w, asked, notListed(host))
		return
	}
	e.Port = port
	p.exchangeOne(w, req, e, host)
}

// exchangeOne passes one request on, by a connection of its own.
func (p *Proxy) exchangeOne(w http.ResponseWriter, req *http.Request, e Endpoint, host string) {
	name := joinPort(host, e.Port)
	defer func() {
		if p.bytes.Load() > p.limits.Bytes {
			p.endTunnel(nil, nil, name, errBytes)
		}
	}()
	w.Header().Set("Connection", "close")
	transport := &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: p.limits.HeaderBytes,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, from, err := p.connectTo(ctx, e, host)
			if err != nil {
				return nil, err
			}
			return &side{Conn: c, from: from, pair: p.newConnectionPair(), counted: true}, nil
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
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { p.refuseRequest(w, name, err) },
	}).ServeHTTP(w, req)
}

// maxHello is how much is read to find a ClientHello, in bytes.
const maxHello = 128 << 10

// errRead ends a handshake of which nothing but its beginning is wanted.
var errRead = errors.New("the ClientHello was read")

// readHello reads a whole ClientHello, over several records if need be, and
// returns the name of the server in it, as [hostName] writes it; "" is none.
// raw is everything that was read: it has to be passed on.
func readHello(r io.Reader) (raw []byte, name string, err error) {
	var read bytes.Buffer
	peer := listening{r: io.TeeReader(io.LimitReader(r, maxHello), &read)}
	config := &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name = hello.ServerName
		return nil, errRead
	}}
	err = tls.Server(peer, config).HandshakeContext(context.Background()) // reading has its deadline
	raw = read.Bytes()
	switch {
	case errors.Is(err, errRead):
		name, err = serverName(name)
	case errors.As(err, new(tls.RecordHeaderError)):
		err = errors.New("what follows is not TLS")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isTimeout(err):
		err = fmt.Errorf("the ClientHello did not come: %w", err)
	default:
		err = fmt.Errorf("the ClientHello is malformed: %v", err)
	}
	return raw, name, err
}

// serverName brings a name in a ClientHello into its usual form.
func serverName(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	name, err := hostName(text)
	if err != nil || strings.HasSuffix(text, ".") {
		return "", errors.New("the ClientHello is malformed: its name is invalid")
	}
	return name, nil
}

// listening is a connection that is read and never answered.
type listening struct {
	net.Conn // nil: only what is here is used

	r io.Reader
}

func (l listening) Read(b []byte) (int, error)  { return l.r.Read(b) }
func (l listening) Write(b []byte) (int, error) { return len(b), nil }
func (l listening) Close() error                { return nil }

// Endpoint is a place that may be reached.
type Endpoint struct {
	// Host is a name in lower case, "*.suffix" for all names below a suffix, or
	// an IP address.
	Host string
	Port uint16
	// Plain is http without TLS.
	Plain bool
	// Addrs are addresses that Host may have though they are not public.
	Addrs []netip.Addr
}

// ParseEndpoint reads "host", "host:port", "*.suffix:port", an IP address
// ("[::1]:8080") or a base URL, of which path and user are ignored. Without a
// scheme it is https. Addresses that are not public and that the host may have
// follow a "=": "llm.example.net:443=10.0.0.5,10.0.0.6". An error never shows the
// path, query or user of a URL.
func ParseEndpoint(s string) (Endpoint, error) {
	place, addrs, _ := cutAddrs(strings.TrimSpace(s))
	e := Endpoint{Port: 443, Addrs: addrs}
	if scheme, _, ok := strings.Cut(place, "://"); ok {
		u, err := url.Parse(place)
		if err != nil {
			return Endpoint{}, errors.New("cannot read an endpoint: it is not a valid URL")
		}
		switch strings.ToLower(scheme) {
		case "https":
		case "http":
			e.Plain, e.Port = true, 80
		default:
			return Endpoint{}, fmt.Errorf("cannot use %s://%s as an endpoint: write https:// or http://",
				u.Scheme, u.Host)
		}
		place = u.Host
	}
	host, port, err := splitPort(place, e.Port)
	if err != nil {
		return Endpoint{}, fmt.Errorf("cannot use %q as an endpoint: %v", place, err)
	}
	e.Port = port
	suffix, wild := strings.CutPrefix(host, "*.")
	name, err := hostName(suffix)
	switch {
	case err != nil:
		return Endpoint{}, fmt.Errorf("cannot use %q as an endpoint: %v", place, err)
	case wild && isIPAddress(name):
		return Endpoint{}, fmt.Errorf("cannot use %q as an endpoint: an address has no names below it", place)
	case wild && !strings.Contains(name, "."):
		return Endpoint{}, fmt.Errorf("cannot use %q as an endpoint: it is a whole top-level domain", place)
	case wild:
		name = "*." + name
	}
	e.Host = name
	return e, nil
}

// String is the endpoint as [ParseEndpoint] reads it.
func (e Endpoint) String() string {
	s := net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
	if e.Plain {
		s = "http://" + s
	}
	for i, a := range e.Addrs {
		s += map[bool]string{true: "=", false: ","}[i == 0] + a.String()
	}
	return s
}

// matchesHost reports whether the endpoint covers a host, as [hostName] writes it.
func (e Endpoint) matchesHost(host string, port uint16) bool {
	if e.Port != port {
		return false
	}
	if suffix, wild := strings.CutPrefix(e.Host, "*"); wild {
		return strings.HasSuffix(host, suffix) && len(host) > len(suffix) && !isIPAddress(host)
	}
	return e.Host == host
}

// cutAddrs splits "place=addr,addr". A "=" that no addresses follow belongs to
// the place.
func cutAddrs(s string) (place string, addrs []netip.Addr, ok bool) {
	i := strings.LastIndexByte(s, '=')
	if i < 0 {
		return s, nil, false
	}
	for text := range strings.SplitSeq(s[i+1:], ",") {
		a, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil || a.Zone() != "" {
			return s, nil, false
		}
		addrs = append(addrs, a)
	}
	return s[:i], addrs, true
}

// splitPort splits "host", "host:port", "[v6]" and "[v6]:port".
func splitPort(s string, otherwise uint16) (host string, port uint16, err error) {
	if _, err := netip.ParseAddr(s); err == nil {
		return s, otherwise, nil
	}
	if v6, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(v6, "]") {
		return strings.TrimSuffix(v6, "]"), otherwise, nil
	}
	if !strings.Contains(s, ":") {
		return s, otherwise, nil
	}
	return splitAuthority(s)
}

// splitAuthority splits "host:port", both of which must be there.
func splitAuthority(s string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, errors.New("it is not host:port")
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '+' {
		return "", 0, errors.New("the port is not a number from 1 to 65535")
	}
	return host, uint16(n), nil
}

// hostName brings a host into the one form in which hosts are compared: lower
// case, no dot at the end, an address as netip writes it. Names are ASCII, and
// none that a resolver could take for a number.
func hostName(s string) (string, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		if a.Zone() != "" {
			return "", errors.New("an address with a zone is not accepted")
		}
		return a.String(), nil
	}
	s = strings.ToLower(strings.TrimSuffix(s, "."))
	if s == "" || len(s) > 253 {
		return "", errors.New("it has no host, or a name longer than 253 characters")
	}
	labels := strings.Split(s, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notInName) {
			return "", errors.New("it is not a host name")
		}
	}
	last := labels[len(labels)-1]
	if _, err := strconv.ParseUint(last, 0, 64); err == nil || strings.Trim(last, "0123456789") == "" {
		return "", errors.New("it is not a name or an address in the usual form")
	}
	return s, nil
}

func notInName(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", r)
}

func isIPAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// findEndpoint is the first endpoint of a list that covers a host.
func findEndpoint(list []Endpoint, host string, port uint16, plain bool) (Endpoint, bool) {
	i := slices.IndexFunc(list, func(e Endpoint) bool { return e.Plain == plain && e.matchesHost(host, port) })
	if i < 0 {
		return Endpoint{}, false
	}
	return list[i], true
}

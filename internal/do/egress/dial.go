package egress

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"
)

const (
	// maxAddrs is how many addresses of a name are tried.
	maxAddrs  = 8
	unlimited = math.MaxInt64
)

// connectTo connects to an endpoint's host, by an address that was checked.
func (p *Proxy) connectTo(ctx context.Context, e Endpoint, host string) (net.Conn, io.Reader, error) {
	ctx, cancel := context.WithTimeout(ctx, p.limits.DialTime)
	defer cancel()
	relayed := !e.Plain && p.config.Upstream.coversHost(host, e.Port)
	addrs, err := p.addressesOf(ctx, e, host)
	var no *refusal
	final := !relayed || errors.As(err, &no) // else the upstream may know the name
	if err != nil && final {
		return nil, nil, err
	}
	if relayed {
		return p.dialUpstream(ctx, net.JoinHostPort(host, strconv.Itoa(int(e.Port))))
	}
	c, err := p.dialFirst(ctx, addrs, e.Port)
	return c, c, err
}

// addressesOf a host that may be dialled. None of them is a refusal; a failed
// lookup is another error.
func (p *Proxy) addressesOf(ctx context.Context, e Endpoint, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil // it is on the list itself
	}
	if host == "localhost" {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	found, err := p.lookUpHost(ctx, host)
	if err != nil {
		return nil, err
	}
	var good []netip.Addr
	why := ""
	for _, a := range found {
		if wrong := notPublic(a); wrong != "" && !p.isAllowed(e, a) {
			why = fmt.Sprintf("its address %v is %s; if that is right, allow %s=%v", a, wrong, e, a)
			continue
		}
		good = append(good, a)
	}
	if len(good) == 0 {
		return nil, &refusal{status: 403, why: why}
	}
	return good[:min(len(good), maxAddrs)], nil
}

// isAllowed reports whether an address that is not public was listed by itself.
func (p *Proxy) isAllowed(e Endpoint, a netip.Addr) bool {
	if slices.Contains(e.Addrs, a) {
		return true
	}
	_, ok := findEndpoint(p.config.Allow, a.String(), e.Port, e.Plain)
	return ok
}

// lookUpHost finds at least one address of a host.
func (p *Proxy) lookUpHost(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	found, err := p.config.Resolve(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("cannot look up its name: %v", err)
	}
	if len(found) == 0 {
		return nil, errors.New("cannot look up its name: it has no address")
	}
	return found, nil
}

// dialFirst connects to the first address that answers. Each gets its share of
// the time, so that a dead one does not use all of it.
func (p *Proxy) dialFirst(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, error) {
	var last error
	for i, a := range addrs {
		c, err := p.dialWithShare(ctx, netip.AddrPortFrom(a, port), len(addrs)-i)
		if err == nil {
			return c, nil
		}
		last = err
	}
	return nil, fmt.Errorf("cannot connect: %v", last)
}

func (p *Proxy) dialWithShare(ctx context.Context, addr netip.AddrPort, left int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok {
		share, cancel := context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
		ctx = share
	}
	return p.config.Dial(ctx, addr)
}

func dialTCPAddress(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr.String())
}

// systemResolve asks the system's resolver. It writes IPv4 addresses as IPv6
// ones, which is undone here: from another resolver they are suspect.
func systemResolve(ctx context.Context, host string) ([]netip.Addr, error) {
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host+".")
	for i, a := range found {
		found[i] = a.Unmap()
	}
	return found, err
}

//go:embed special.txt
var specialText string

// special are ranges of addresses that no public service has, with what they
// are called in messages. The first match counts.
var special = sync.OnceValue(func() (all []specialRange) {
	for line := range strings.Lines(specialText) {
		prefix, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, specialRange{netip.MustParsePrefix(prefix), name})
	}
	return all
})

type specialRange struct {
	prefix netip.Prefix
	name   string
}

var (
	global6 = netip.MustParsePrefix("2000::/3")
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
)

// notPublic is the reason not to dial an address for a name from outside; ""
// when there is none.
func notPublic(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "no address"
	case a.Zone() != "":
		return "an address with a zone"
	case a.Is4In6():
		return "an IPv4 address in IPv6 form"
	case nat64.Contains(a):
		b := a.As16()
		return notPublic(netip.AddrFrom4([4]byte(b[12:])))
	}
	for _, s := range special() {
		if s.prefix.Contains(a) {
			return s.name
		}
	}
	if a.Is6() && !global6.Contains(a) {
		return "a reserved address"
	}
	return ""
}

// Upstream is the user's own proxy, through which TLS leaves the machine. The
// zero value is none. It looks names up itself: a name that this machine can
// resolve is still refused when its address is not public, one that it cannot
// is left to the upstream. Plain http is always dialled directly.
type Upstream struct {
	URL    *url.URL // http:// or https://; a user in it is sent to the proxy only
	Except string   // hosts that are dialled directly, in the words of NO_PROXY
}

// UpstreamFrom reads HTTPS_PROXY, ALL_PROXY and NO_PROXY, in upper or lower
// case. An error shows no user or password.
func UpstreamFrom(getenv func(string) string) (Upstream, error) {
	name, text := firstSetVariable(getenv, "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
	if text == "" {
		return Upstream{}, nil
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "":
		return Upstream{}, fmt.Errorf("cannot use %s: it is not the URL of a proxy", name)
	case u.Scheme != "http" && u.Scheme != "https":
		const message = "cannot use %s: a proxy by %s is not supported; name one by http:// or https://"
		return Upstream{}, fmt.Errorf(message, name, u.Scheme)
	}
	_, except := firstSetVariable(getenv, "NO_PROXY", "no_proxy")
	items := strings.Split(except, ",")
	for i, item := range items { // an address may stand in brackets, as in a URL
		if a, err := netip.ParseAddr(strings.Trim(strings.TrimSpace(item), "[]")); err == nil {
			items[i] = a.String()
		}
	}
	return Upstream{URL: u, Except: strings.Join(items, ",")}, nil
}

func firstSetVariable(getenv func(string) string, names ...string) (name, value string) {
	for _, name := range names {
		if v := getenv(name); v != "" {
			return name, v
		}
	}
	return "", ""
}

// coversHost reports whether the host goes through the upstream.
func (u Upstream) coversHost(host string, port uint16) bool {
	if u.URL == nil {
		return false
	}
	asked := httpproxy.Config{HTTPSProxy: u.URL.String(), NoProxy: u.Except}
	by, err := asked.ProxyFunc()(&url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(int(port)))})
	return by != nil || err != nil
}

// dialUpstream opens a tunnel through the user's proxy.
func (p *Proxy) dialUpstream(ctx context.Context, target string) (net.Conn, io.Reader, error) {
	c, err := p.reachUpstream(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot reach the proxy of HTTPS_PROXY: %v", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	r, err := p.askUpstream(c, target)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return c, r, nil
}

// reachUpstream connects to the user's proxy, whose address is the user's word.
func (p *Proxy) reachUpstream(ctx context.Context) (net.Conn, error) {
	u := p.config.Upstream.URL
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return nil, errors.New("its port is not a number from 1 to 65535")
	}
	addrs, err := p.lookUpHost(ctx, u.Hostname())
	if err != nil {
		return nil, err
	}
	c, err := p.dialFirst(ctx, addrs, uint16(n))
	if err != nil || u.Scheme == "http" {
		return c, err
	}
	secure := tls.Client(c, &tls.Config{ServerName: u.Hostname()})
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return secure, nil
}

// askUpstream asks for the tunnel, and returns what to read its bytes from.
func (p *Proxy) askUpstream(c net.Conn, target string) (io.Reader, error) {
	ask := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n"
	if user := p.config.Upstream.URL.User; user != nil {
		password, _ := user.Password()
		secret := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
		ask += "Proxy-Authorization: Basic " + secret + "\r\n"
	}
	if _, err := io.WriteString(c, ask+"\r\n"); err != nil {
		return nil, fmt.Errorf("cannot ask the proxy of HTTPS_PROXY: %v", err)
	}
	limited := &io.LimitedReader{R: c, N: p.limits.HeaderBytes}
	br := bufio.NewReader(limited)
	asked := &http.Request{Method: http.MethodConnect}
	resp, err := http.ReadResponse(br, asked) //nolint:bodyclose // it has none: the tunnel follows
	if err != nil {
		return nil, errors.New("the proxy of HTTPS_PROXY gives no valid answer")
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the proxy of HTTPS_PROXY answers with status %d", resp.StatusCode)
	}
	limited.N = unlimited
	return br, nil
}

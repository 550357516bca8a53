package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

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
	name, text := firstSet(getenv, "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
	if text == "" {
		return Upstream{}, nil
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "":
		return Upstream{}, fmt.Errorf("cannot use %s: it is no URL of a proxy", name)
	case u.Scheme != "http" && u.Scheme != "https":
		const message = "cannot use %s: a proxy by %s is not supported; name one by http:// or https://"
		return Upstream{}, fmt.Errorf(message, name, u.Scheme)
	}
	_, except := firstSet(getenv, "NO_PROXY", "no_proxy")
	items := strings.Split(except, ",")
	for i, item := range items { // an address may stand in brackets, as in a URL
		if a, err := netip.ParseAddr(strings.Trim(strings.TrimSpace(item), "[]")); err == nil {
			items[i] = a.String()
		}
	}
	return Upstream{URL: u, Except: strings.Join(items, ",")}, nil
}

func firstSet(getenv func(string) string, names ...string) (name, value string) {
	for _, name := range names {
		if v := getenv(name); v != "" {
			return name, v
		}
	}
	return "", ""
}

// covers is whether host goes through the upstream.
func (u Upstream) covers(host string, port uint16) bool {
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
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return nil, errors.New("its port is not a number from 1 to 65535")
	}
	addrs, err := p.lookup(ctx, u.Hostname())
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

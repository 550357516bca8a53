package egress

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestAllowedHost(t *testing.T) {
	t.Parallel()
	r := start(t, []string{"api.example.com", "*.models.example.com:8443"}, nil)
	server := secure(t)
	r.lead("api.example.com", "443", server)
	r.lead("eu.models.example.com", "8443", server)
	for url, want := range map[string]string{
		"https://api.example.com/v1?key=hidden":     "api.example.com /v1?key=hidden body",
		"https://API.example.com/v1":                "API.example.com /v1 body",
		"https://eu.models.example.com:8443/v1/x/y": "eu.models.example.com:8443 /v1/x/y body",
	} {
		resp, err := r.client().Post(url, "text/plain", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(b) != want {
			t.Errorf("%s: got %q", url, b)
		}
	}
	if len(r.told) > 0 {
		t.Errorf("told %+v", <-r.told)
	}
}

// Whatever is not on the list is refused before it is looked up.
func TestNotListed(t *testing.T) {
	t.Parallel()
	r := start(t, []string{"api.example.com", "*.models.example.com", "http://plain.example.com"}, nil)
	for _, target := range []string{
		"evil.example.com:443", "api.example.com:80", "api.example.com:22", "api.example.com.evil.org:443", "models.example.com:443",
		"evilmodels.example.com:443", "api.example.com.:8443", "localhost:443", "plain.example.com:443",
		"127.0.0.1:443", "[::1]:443", "93.184.216.34:443", "[::ffff:93.184.216.34]:443", "169.254.169.254:80",
	} {
		if _, _, status := r.tunnel(target); status != http.StatusForbidden {
			t.Errorf("%s: status %d", target, status)
		}
		r.refused(target, "not an endpoint of this agent")
	}
	for _, target := range []string{
		"api.example.com", "api.example.com:", "api.example.com:0", "api.example.com:65979", "api.example.com:+443", "api.example.com:443:443",
		"user@api.example.com:443", "api.example.com:443/x", "api.example.com%2eevil.org:443", "2130706433:443", "0x7f.1:443", "127.1:443", "[fe80::1%25lo]:443", "[::1:443", "*.models.example.com:443",
	} {
		answer := r.say("CONNECT " + target + " HTTP/1.1\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 400 ") {
			t.Errorf("%s: answer %q", target, answer)
		}
		select { // what is no request at all is not told
		case no := <-r.told:
			if no.Why == "" || strings.Contains(no.Host, "user") {
				t.Errorf("%s: told %+v", target, no)
			}
		default:
		}
	}
	r.quiet()
	if len(r.lookups) > 0 {
		t.Errorf("looked up %v", r.lookups)
	}
}

func TestAddressesBehindAllowedNames(t *testing.T) {
	t.Parallel()
	r := start(t, []string{"api.example.com"}, nil)
	for addr, why := range map[string]string{
		"127.0.0.1": "loopback", "::1": "loopback", "10.1.2.3": "private", "172.31.0.1": "private", "192.168.1.1": "private", "fd12::1": "private",
		"169.254.1.1": "link-local", "fe80::1": "link-local", "169.254.169.254": "metadata", "fd00:ec2::254": "metadata", "168.63.129.16": "metadata",
		"100.64.0.1": "carrier", "100.100.100.200": "metadata", "0.0.0.0": "this host", "::": "this host", "0.1.2.3": "this host",
		"224.0.0.1": "multicast", "ff02::1": "multicast", "255.255.255.255": "reserved", "192.0.2.1": "documentation",
		"::ffff:93.184.216.34": "IPv6 form", "::ffff:127.0.0.1": "IPv6 form", "::127.0.0.1": "reserved", "64:ff9b::10.0.0.1": "private",
		"64:ff9b:1::1": "reserved", "2002:7f00:1::": "relay", "2001:0:7f00:1::": "protocol", "fe80::1%1": "zone",
	} {
		r.mu.Lock()
		r.names["api.example.com"] = []string{addr}
		r.mu.Unlock()
		if _, _, status := r.tunnel("api.example.com:443"); status != http.StatusForbidden {
			t.Errorf("%s: status %d", addr, status)
		}
		r.refused("api.example.com:443", why)
	}
	r.quiet()
}

// An address that is not public may be reached when it was listed by itself,
// and a mixed answer is used without its bad part.
func TestListedAddresses(t *testing.T) {
	t.Parallel()
	server := secure(t)
	for _, test := range []struct {
		allow  []string
		answer string
		target string
		want   string // dialled; "" is refused
	}{
		{[]string{"llm.example.net:443=10.0.0.5"}, "10.0.0.5", "llm.example.net:443", "10.0.0.5:443"},
		{[]string{"llm.example.net:443=10.0.0.5,fd00::5"}, "fd00::5", "llm.example.net:443", "[fd00::5]:443"},
		{[]string{"llm.example.net:443=10.0.0.5"}, "10.0.0.6", "llm.example.net:443", ""},
		{[]string{"llm.example.net:443", "10.0.0.5:443"}, "10.0.0.5", "llm.example.net:443", "10.0.0.5:443"},
		{[]string{"llm.example.net:443", "10.0.0.5:80"}, "10.0.0.5", "llm.example.net:443", ""},
		{[]string{"llm.example.net:443", "http://" + "10.0.0.5:443"}, "10.0.0.5", "llm.example.net:443", ""},
		{[]string{"llm.example.net"}, "10.0.0.5 " + public, "llm.example.net:443", public + ":443"},
		{[]string{"llm.example.net"}, "64:ff9b::" + public, "llm.example.net:443", "[64:ff9b::5db8:d822]:443"},
		{[]string{"10.0.0.5"}, "", "10.0.0.5:443", "10.0.0.5:443"},
		{[]string{"localhost:8443"}, "", "localhost:8443", "127.0.0.1:8443"},
	} {
		r := start(t, test.allow, nil)
		r.names["llm.example.net"] = []string{test.answer}
		r.routes[test.want] = server
		_, _, status := r.tunnel(test.target)
		if (status == http.StatusOK) != (test.want != "") {
			t.Errorf("%v, %s: status %d", test.allow, test.answer, status)
		}
		if got := strings.Join(r.dialled, " "); got != test.want {
			t.Errorf("%v, %s: dialled %q, want %q", test.allow, test.answer, got, test.want)
		}
	}
}

// A name is looked up once, and what was checked is what is dialled.
func TestRebinding(t *testing.T) {
	t.Parallel()
	r := start(t, []string{"api.example.com"}, nil)
	server := secure(t)
	r.lead("api.example.com", "443", server)
	r.names["api.example.com"] = []string{public, "127.0.0.1"}
	if _, _, status := r.tunnel("api.example.com:443"); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	if len(r.lookups) != 1 || len(r.dialled) != 1 || r.dialled[0] != public+":443" {
		t.Errorf("looked up %v, dialled %v", r.lookups, r.dialled)
	}
	if _, _, status := r.tunnel("api.example.com:443"); status != http.StatusForbidden || len(r.dialled) != 1 {
		t.Errorf("status %d, dialled %v", status, r.dialled)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	r := start(t, []string{"api.example.com", "unknown.example.com"}, nil)
	r.names["api.example.com"] = []string{public}
	for _, target := range []string{"api.example.com:443", "unknown.example.com:443"} {
		if _, _, status := r.tunnel(target); status != http.StatusBadGateway {
			t.Errorf("%s: status %d", target, status)
		}
	}
	if len(r.told) > 0 {
		t.Errorf("told of what only failed: %+v", <-r.told)
	}
}

func TestManyTunnels(t *testing.T) {
	t.Parallel()
	const n = 500
	r := start(t, []string{"api.example.com"}, func(c *Config) { c.Limits.Connections = n })
	r.lead("api.example.com", "443", lines(t, func(c net.Conn) { _, _ = io.Copy(c, c) }))
	hello := helloFor(t, "api.example.com")
	var wg sync.WaitGroup
	ready, all := make(chan bool, n), make(chan struct{})
	for range n {
		wg.Go(func() {
			c, br, status := r.tunnel("api.example.com:443")
			_, _ = c.Write(hello)
			back := make([]byte, len(hello))
			_, err := io.ReadFull(br, back)
			ready <- status == http.StatusOK && err == nil && bytes.Equal(back, hello)
			<-all
			_ = c.CloseWrite()
			if rest, err := io.ReadAll(br); err != nil || len(rest) > 0 {
				t.Errorf("%d bytes more, %v", len(rest), err)
			}
		})
	}
	for range n {
		if !<-ready {
			t.Error("a tunnel does not echo")
		}
	}
	if answer := r.say("CONNECT api.example.com:443 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 503 ") {
		t.Errorf("one more: %q", answer)
	}
	r.refused("", "more than 500 connections")
	close(all)
	wg.Wait()
}

// The end of a proxy is the end of all that it holds open.
func TestEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	path := filepath.Join(t.TempDir(), "s")
	gone := make(chan struct{})
	server := lines(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c); close(gone) })
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	p := New(Config{
		Listener: l, Limits: DefaultLimits(), Allow: []Endpoint{{Host: "10.0.0.1", Port: 443}},
		Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", server)
		},
	})
	done := make(chan error)
	go func() { done <- p.Serve(ctx) }()
	silent, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "CONNECT 10.0.0.1:443 HTTP/1.1\r\n\r\n")
	if _, err := io.ReadFull(c, make([]byte, 12)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("ended with %v", err)
	}
	<-gone
	_, _ = io.ReadAll(c)
	_, _ = io.ReadAll(silent)
	if _, err := net.Dial("unix", path); err == nil {
		t.Error("it still listens")
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	told := 0
	r := refusals{tell: func(Refusal) { told++ }}
	for i := range 2 * MaxRefusals {
		r.addRefusal(fmt.Sprint("host", i), "why")
	}
	if told != MaxRefusals {
		t.Errorf("told %d", told)
	}
	if got := printableHost("us:pw@a b\x1b[31mö" + strings.Repeat("x", 1000)); !strings.HasPrefix(got, "a?b?[31m??x") && !strings.HasPrefix(got, "a?b?[31m?x") || len(got) > maxHostText {
		t.Errorf("printable is %q", got)
	}
}

// BenchmarkTunnel is bytes through one tunnel, echoed by the endpoint.
func BenchmarkTunnel(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	path := filepath.Join(b.TempDir(), "s")
	door, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	p := New(Config{
		Listener: door, Limits: DefaultLimits(), Allow: []Endpoint{{Host: "localhost", Port: 443}},
		Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		},
	})
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- p.Serve(ctx) }()
	c, err := net.Dial("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	_, _ = io.WriteString(c, "CONNECT localhost:443 HTTP/1.1\r\n\r\n")
	head := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
	_, _ = io.ReadFull(c, head)
	hello := helloFor(b, "localhost")
	_, _ = c.Write(hello)
	_, _ = io.ReadFull(c, hello)
	block, back := make([]byte, 64<<10), make([]byte, 64<<10)
	b.SetBytes(int64(len(block)))
	for b.Loop() {
		if _, err := c.Write(block); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, back); err != nil {
			b.Fatal(err)
		}
	}
	cancel()
	<-done
	_ = l.Close()
}

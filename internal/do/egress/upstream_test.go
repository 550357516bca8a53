package egress

import (
	"bufio"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// relay is a proxy of the user's, that leads every tunnel to server and tells
// what it was asked for.
func relay(t *testing.T, server, answer string) (addr string, asked chan string) {
	t.Helper()
	asked = make(chan string, 10)
	return lines(t, func(c net.Conn) {
		br := bufio.NewReader(c)
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		asked <- req.Method + " " + req.RequestURI + " " + req.Header.Get("Proxy-Authorization")
		_, _ = io.WriteString(c, answer)
		out, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(out, br); _ = out.Close() }()
		_, _ = io.Copy(c, out)
	}), asked
}

func TestUpstream(t *testing.T) {
	t.Parallel()
	server := secure(t)
	addr, asked := relay(t, server, "HTTP/1.1 200 OK\r\nX: y\r\n\r\n")
	r := start(t, []string{"api.example.com", "unknown.example.com", "direct.example.com", "inner.example.com"}, func(c *Config) {
		c.Upstream = Upstream{URL: &url.URL{Scheme: "http", Host: "proxy.example.net:3128", User: url.UserPassword("user", "pw")}, Except: "direct.example.com"}
	})
	r.lead("direct.example.com", "443", server)
	r.names["api.example.com"] = []string{public}
	r.names["inner.example.com"] = []string{"10.0.0.1"}
	r.names["proxy.example.net"] = []string{"10.0.0.9"}
	r.routes["10.0.0.9:3128"] = addr
	basic := " Basic " + base64.StdEncoding.EncodeToString([]byte("user:pw"))
	for _, host := range []string{"api.example.com", "unknown.example.com"} {
		resp, err := r.client().Get("https://" + host + "/x")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := <-asked; got != "CONNECT "+host+":443"+basic {
			t.Errorf("asked for %q", got)
		}
	}
	if _, _, status := r.tunnel("direct.example.com:443"); status != http.StatusOK || len(asked) > 0 {
		t.Errorf("direct: status %d, asked %d", status, len(asked))
	}
	if _, _, status := r.tunnel("inner.example.com:443"); status != http.StatusForbidden || len(asked) > 0 {
		t.Errorf("private: status %d, asked %d", status, len(asked))
	}
	r.refused("inner.example.com:443", "private")
}

func TestUpstreamRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ scheme, answer, want string }{
		{"http", "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "status 407"},
		{"http", "SSH-2.0\r\n", "no valid answer"},
		{"http", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", "no valid answer"},
		{"https", "HTTP/1.1 400 Bad Request\r\n\r\n", "cannot reach the proxy of HTTPS_PROXY"},
	} {
		addr, _ := relay(t, "127.0.0.1:1", c.answer)
		r := start(t, []string{"api.example.com"}, func(o *Config) {
			o.Upstream = Upstream{URL: &url.URL{Scheme: c.scheme, Host: "10.0.0.9", User: url.UserPassword("user", "hidden")}}
		})
		r.routes["10.0.0.9:80"], r.routes["10.0.0.9:443"] = addr, addr
		got := r.say("CONNECT api.example.com:443 HTTP/1.1\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 502 ") || !strings.Contains(got, c.want) || strings.Contains(got, "hidden") {
			t.Errorf("a proxy by %s that says %.40q: got %q", c.scheme, c.answer, got)
		}
	}
}

func TestUpstreamFrom(t *testing.T) {
	t.Parallel()
	env := func(kv ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(kv); i += 2 {
				if kv[i] == name {
					return kv[i+1]
				}
			}
			return ""
		}
	}
	for _, test := range []struct {
		env    []string
		url    string
		failed string
	}{
		{nil, "", ""},
		{[]string{"HTTP_PROXY", "http://a"}, "", ""},
		{[]string{"https_proxy", "proxy.example.net:3128"}, "http://proxy.example.net:3128", ""},
		{[]string{"HTTPS_PROXY", "https://a:b@proxy.example.net", "https_proxy", "x"}, "https://a:b@proxy.example.net", ""},
		{[]string{"ALL_PROXY", "socks5://a:hidden@proxy.example.net"}, "", "by socks5 is not supported"},
		{[]string{"HTTPS_PROXY", "http://a:hidden@pro xy"}, "", "cannot use HTTPS_PROXY"},
	} {
		up, err := UpstreamFrom(env(test.env...))
		got := ""
		if up.URL != nil {
			got = up.URL.String()
		}
		if got != test.url || (err != nil) != (test.failed != "") || err != nil && (!strings.Contains(err.Error(), test.failed) || strings.Contains(err.Error(), "hidden")) {
			t.Errorf("%v: %q, %v", test.env, got, err)
		}
	}
	up, err := UpstreamFrom(env("HTTPS_PROXY", "http://p", "no_proxy", " .a.com, b.com,10.0.0.0/8,[fd00::1],*.c.com, D.com:444,"))
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"x.a.com": false, "a.com": true, "b.com": false, "x.b.com": false, "xb.com": true, "10.1.1.1": false, "11.1.1.1": true,
		"fd00::1": false, "fd00::2": true, "x.c.com": false, "d.com": true, "localhost": false, "127.0.0.1": false, "::1": false,
	} {
		if got := up.coversHost(host, 443); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
	if up.coversHost("d.com", 444) {
		t.Error("d.com:444 goes through the proxy")
	}
	if up.Except = "*"; up.coversHost("x.com", 1) {
		t.Error("* covers not all")
	}
}

func TestParseEndpoint(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"api.example.com": "api.example.com:443", "API.example.com.:8443": "api.example.com:8443", "*.example.com": "*.example.com:443",
		"http://127.0.0.1:8080/s/x?key=1": "http://127.0.0.1:8080", "https://user:pw@h.example.com/v1": "h.example.com:443", "http://h.example.com": "http://h.example.com:80",
		"[::1]:8080": "[::1]:8080", "[::1]": "[::1]:443", "::1": "[::1]:443", "HTTP://localhost:11434": "http://localhost:11434",
		"llm.example.net:443=10.0.0.5,::1": "llm.example.net:443=10.0.0.5,::1", "https://h/x=10.0.0.5": "h:443=10.0.0.5", "a.b\t": "a.b:443",
	} {
		e, err := ParseEndpoint(in)
		if err != nil || e.String() != want {
			t.Errorf("%q: %q, %v", in, e.String(), err)
		}
		if again, err := ParseEndpoint(e.String()); err != nil || again.String() != want {
			t.Errorf("%q again: %q, %v", in, again.String(), err)
		}
	}
	for _, in := range []string{"", "*", "*.com", "*.10.0.0.1", "a b", "ftp://user:hidden@x.y", "https://user:hidden@x.y:0/hidden", "https://%zz:hidden@", "a:b:c", "a.b:99999", "127.1", "0x7f000001", "a..b", "ä.example.com", "x*.example.com", "*.*.example.com", "a.b=10.0.0", "[fe80::1%lo]:80"} {
		if e, err := ParseEndpoint(in); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q: %v, %v", in, e, err)
		}
	}
}

package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

const alert = "\x15\x03\x03\x00\x02\x02\x70"

// rest is what the client still gets, the proxy having ended the tunnel.
func rest(br *bufio.Reader) string {
	b, _ := io.ReadAll(br)
	return string(b)
}

// What is said in a tunnel must be TLS for the host that it was opened for.
func TestHelloMustNameTheHost(t *testing.T) {
	t.Parallel()
	good := helloFor(t, "api.example.com")
	long := []byte{22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff}
	for name, test := range map[string]struct {
		sent []byte
		why  string // "" passes
	}{
		"the host":             {good, ""},
		"in small records":     {split(good, 7), ""},
		"another host":         {helloFor(t, "evil.example.com"), "names another host: evil.example.com"},
		"a host below":         {helloFor(t, "x.api.example.com"), "names another host"},
		"nobody":               {helloFor(t, "127.0.0.1"), "names no host"},
		"http":                 {[]byte("GET / HTTP/1.1\r\nHost: evil.example.com\r\n\r\n"), "not TLS"},
		"ssh":                  {[]byte("SSH-2.0-OpenSSH_9.2\r\n"), "not TLS"},
		"another TLS message":  {[]byte{23, 3, 3, 0, 1, 0}, "not TLS"},
		"another handshake":    {[]byte{22, 3, 3, 0, 4, 2, 0, 0, 0}, "malformed"},
		"an empty record":      {[]byte{22, 3, 3, 0, 0}, "malformed"},
		"a hello without end":  {append(long, make([]byte, 1<<20)...), "exceeds maximum"},
		"an endless hello":     {endless(), "exceeds maximum"},
		"a malformed hello":    {[]byte{22, 3, 1, 0, 8, 1, 0, 0, 4, 3, 3, 0, 0}, "malformed"},
		"two names":            {doubled(good), "malformed"},
		"half a hello, an end": {good[:50], "did not come"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make(chan []byte, 1)
			r := start(t, []string{"api.example.com"}, nil)
			r.lead("api.example.com", "443", lines(t, func(c net.Conn) {
				b, _ := io.ReadAll(c)
				got <- b
			}))
			c, br, status := r.tunnel("api.example.com:443")
			if status != http.StatusOK {
				t.Fatalf("status %d", status)
			}
			_, _ = c.Write(test.sent)
			_ = c.CloseWrite()
			if after := rest(br); test.why != "" && after != alert {
				t.Errorf("the client gets %q", after)
			}
			if test.why != "" {
				r.refused("api.example.com:443", test.why)
				if b := <-got; len(b) > 0 {
					t.Errorf("%d bytes went out", len(b))
				}
				return
			}
			if b := <-got; !bytes.Equal(b, test.sent) {
				t.Errorf("the server got %d bytes of %d", len(b), len(test.sent))
			}
		})
	}
}

// split writes a ClientHello in records of n bytes.
func split(hello []byte, n int) []byte {
	var out []byte
	for body := hello[5:]; len(body) > 0; {
		n = min(n, len(body))
		out = append(out, 22, 3, 1, 0, byte(n))
		out = append(out, body[:n]...)
		body = body[n:]
	}
	return out
}

// endless is records of one hello that says it has 16 MB.
func endless() []byte {
	var out []byte
	record := append([]byte{22, 3, 1, 0x40, 0}, make([]byte, 1<<14)...)
	for range 6 {
		out = append(out, record...)
	}
	copy(out[5:], []byte{1, 0xff, 0xff, 0xff})
	return out
}

// doubled adds a second name to a hello.
func doubled(hello []byte) []byte {
	second := []byte{0, 0, 0, 6, 0, 4, 0, 0, 1, 'x'}
	out := append(bytes.Clone(hello), second...)
	add := func(at, size int) {
		n := 0
		for i := range size {
			n = n<<8 | int(out[at+i])
		}
		n += len(second)
		for i := range size {
			out[at+size-1-i] = byte(n >> (8 * i))
		}
	}
	add(3, 2) // record
	add(6, 3) // handshake
	at := 5 + 4 + 34
	at += 1 + int(out[at])
	at += 2 + int(out[at])<<8 + int(out[at+1])
	at += 1 + int(out[at])
	add(at, 2) // extensions
	return out
}

func TestAddressNeedsNoName(t *testing.T) {
	t.Parallel()
	r := start(t, []string{"127.0.0.1:8443"}, nil)
	r.routes["127.0.0.1:8443"] = secure(t)
	resp, err := r.client().Get("https://127.0.0.1:8443/x")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	c, br, _ := r.tunnel("127.0.0.1:8443")
	_, _ = c.Write(helloFor(t, "evil.example.com"))
	if after := rest(br); after != alert {
		t.Errorf("the client gets %q", after)
	}
	r.refused("127.0.0.1:8443", "another host")
}

func TestServerNames(t *testing.T) {
	t.Parallel()
	got, err := named(body(extension(0xfe0d, "\x00\x00\x01\x00\x01\x07\x00\x01e\x00\x01p")))
	if err != nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	name := "\x00\x12\x00\x00\x0fapi.example.com"
	got, err = named(body(extension(0, name), extension(0xfe0d, "")))
	if err != nil || got != "api.example.com" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", "\x00\x00", "\x00\x03\x00\x00\x00", "\x00\x04\x01\x00\x01x", "\x00\x04\x00\x00\x01!", "\x00\x05\x00\x00\x02x.", "\x00\x08\x00\x00\x01x\x00\x00\x01y", name + "x"} {
		if got, err := named(body(extension(0, bad))); err == nil && got != "" {
			t.Errorf("%q: %q", bad, got)
		}
	}
}

func extension(kind int, data string) string {
	return string([]byte{byte(kind >> 8), byte(kind), byte(len(data) >> 8), byte(len(data))}) + data
}

func body(extensions ...string) []byte {
	all := strings.Join(extensions, "")
	b := append(make([]byte, 34), 0, 0, 2, 0x13, 1, 1, 0, byte(len(all)>>8), byte(len(all)))
	return append(b, all...)
}

// named is the name in a ClientHello with that body.
func named(body []byte) (string, error) {
	message := append([]byte{1, 0, byte(len(body) >> 8), byte(len(body))}, body...)
	_, name, err := readHello(bytes.NewReader(append([]byte{22, 3, 1, byte(len(message) >> 8), byte(len(message))}, message...)))
	return name, err
}

func FuzzHello(f *testing.F) {
	f.Add(helloFor(f, "api.example.com"))
	f.Add(endless())
	f.Fuzz(func(t *testing.T, b []byte) {
		raw, got, err := readHello(bytes.NewReader(b))
		if len(raw) > maxHello || !bytes.HasPrefix(b, raw) {
			t.Errorf("%d bytes are read of %d", len(raw), len(b))
		}
		if name, bad := hostName(got); err == nil && got != "" && (bad != nil || name != got) {
			t.Errorf("the name is %q", got)
		}
	})
}

// A client that takes its time is turned away, in each phase.
func TestSlow(t *testing.T) {
	t.Parallel()
	r := start(t, nil, func(c *Config) { c.Limits.HeaderTime = soon })
	for _, text := range []string{"", "C", "CONNECT api.example.com:443 HTTP/1.1\r\nX: "} {
		if answer := r.say(text); answer != "" && !strings.HasPrefix(answer, "HTTP/1.1 400 ") {
			t.Errorf("%q: %q", text, answer)
		}
	}
	// The tunnels themselves have to be asked for in time.
	r = start(t, []string{"api.example.com"}, func(c *Config) { c.Limits.HeaderTime = inTime })
	r.lead("api.example.com", "443", lines(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }))
	c, br, _ := r.tunnel("api.example.com:443")
	_, _ = c.Write(helloFor(t, "api.example.com")[:20])
	if after := rest(br); after != alert {
		t.Errorf("half a hello: the client gets %q", after)
	}
	r.refused("api.example.com:443", "ClientHello was not complete")
}

func TestGiantHeader(t *testing.T) {
	t.Parallel()
	r := start(t, []string{"api.example.com"}, func(c *Config) { c.Limits.HeaderBytes = 16 << 10 })
	for _, text := range []string{
		"CONNECT api.example.com:443 HTTP/1.1\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n",
		"GET /" + strings.Repeat("x", 100<<10),
		"CONNECT api.example.com:443 HTTP/1.1\r\n" + strings.Repeat("X: y\r\n", 20<<10) + "\r\n",
	} {
		if answer := r.say(text); !strings.HasPrefix(answer, "HTTP/1.1 431 ") {
			t.Errorf("answer %.80q", answer)
		}
	}
	r.quiet()
}

// Nothing of a secret is ever told.
func TestSecretsAreNotTold(t *testing.T) {
	t.Parallel()
	r := start(t, []string{"api.example.com"}, nil)
	for _, text := range []string{
		"GET http://user:hidden@evil.example.com/hidden?key=hidden HTTP/1.1\r\nHost: a\r\nAuthorization: hidden\r\n\r\n",
		"GET http://evil.example.com:99999/hidden HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET https://api.example.com/hidden HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /hidden HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
		"CONNECT user:hidden@evil.example.com:443 HTTP/1.1\r\n\r\n",
		"GET /hidden\x00 hidden\r\nhidden\r\n\r\n",
		"GET /x HTTP/1.1\r\nhidden hidden\r\n\r\n",
	} {
		answer, no := r.say(text), Refusal{}
		select { // what is no request at all is not told
		case no = <-r.told:
		default:
		}
		if strings.Contains(no.Host+no.Why+answer, "hidden") || !strings.HasPrefix(answer, "HTTP/1.1 40") {
			t.Errorf("%q: told %+v, answered %q", text, no, answer)
		}
	}
	r.quiet()
}

func TestConnectHasNoBody(t *testing.T) {
	t.Parallel()
	r := start(t, []string{"api.example.com"}, nil)
	for _, header := range []string{"Content-Length: 5", "Transfer-Encoding: chunked"} {
		answer := r.say("CONNECT api.example.com:443 HTTP/1.1\r\n" + header + "\r\n\r\nhello")
		if !strings.HasPrefix(answer, "HTTP/1.1 400 ") {
			t.Errorf("%s: %q", header, answer)
		}
	}
	r.quiet()
}

// A hello that comes with the CONNECT, before its answer, is passed on.
func TestEagerClient(t *testing.T) {
	t.Parallel()
	r := start(t, []string{"api.example.com"}, nil)
	r.lead("api.example.com", "443", lines(t, func(c net.Conn) { _, _ = io.Copy(c, c) }))
	hello := string(helloFor(t, "api.example.com"))
	c := r.conn()
	_, _ = io.WriteString(c, "CONNECT api.example.com:443 HTTP/1.1\r\n\r\n"+hello+"more")
	_ = c.CloseWrite()
	b, err := io.ReadAll(c)
	if want := "HTTP/1.1 200 Connection established\r\n\r\n" + hello + "more"; string(b) != want || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
}

// Each side may end its half; the other half goes on.
func TestHalfClose(t *testing.T) {
	t.Parallel()
	hello := helloFor(t, "api.example.com")
	got := make(chan string, 1)
	r := start(t, []string{"api.example.com"}, nil)
	r.lead("api.example.com", "443", lines(t, func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, len(hello)))
		_, _ = io.WriteString(c, "first")
		_ = c.(*net.TCPConn).CloseWrite()
		b, _ := io.ReadAll(c)
		got <- string(b)
	}))
	c, br, _ := r.tunnel("api.example.com:443")
	_, _ = c.Write(hello)
	if got := rest(br); got != "first" {
		t.Errorf("the client got %q", got)
	}
	_, _ = io.WriteString(c, "second")
	_ = c.CloseWrite()
	if got := <-got; got != "second" {
		t.Errorf("the server got %q", got)
	}
}

// A side that breaks off ends the other.
func TestAbruptClose(t *testing.T) {
	t.Parallel()
	hello := helloFor(t, "api.example.com")
	gone, drop := make(chan bool), make(chan bool)
	r := start(t, []string{"api.example.com"}, nil)
	r.lead("api.example.com", "443", lines(t, func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, len(hello)))
		if <-drop {
			_ = c.(*net.TCPConn).SetLinger(0)
			return
		}
		_, _ = io.Copy(io.Discard, c)
		gone <- true
	}))
	c, br, _ := r.tunnel("api.example.com:443")
	_, _ = c.Write(hello)
	drop <- true
	if got := rest(br); got != "" {
		t.Errorf("the client got %q", got)
	}
	c, _, _ = r.tunnel("api.example.com:443")
	_, _ = c.Write(hello)
	drop <- false
	_ = c.Close()
	<-gone
}

func TestIdleTunnel(t *testing.T) {
	t.Parallel()
	gone := make(chan bool, 1)
	hello := helloFor(t, "api.example.com")
	r := start(t, []string{"api.example.com"}, func(c *Config) { c.Limits.Idle = inTime })
	r.lead("api.example.com", "443", lines(t, func(c net.Conn) { _, _ = io.Copy(c, c); gone <- true }))
	c, br, _ := r.tunnel("api.example.com:443")
	_, _ = c.Write(hello)
	if got := rest(br); got != string(hello) {
		t.Errorf("the client got %d bytes", len(got))
	}
	<-gone
}

// One direction that moves keeps the other alive.
func TestIdleIsOfBothDirections(t *testing.T) {
	t.Parallel()
	hello := helloFor(t, "api.example.com")
	r := start(t, []string{"api.example.com"}, func(c *Config) { c.Limits.Idle = inTime })
	r.lead("api.example.com", "443", lines(t, func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, len(hello)))
		const ticks = 30
		tick := time.NewTicker(inTime * 3 / 2 / ticks)
		defer tick.Stop()
		for range ticks {
			<-tick.C
			_, _ = c.Write([]byte("x"))
		}
		b := make([]byte, 1)
		_, _ = io.ReadFull(c, b)
		_, _ = c.Write(b)
	}))
	c, br, _ := r.tunnel("api.example.com:443")
	_, _ = c.Write(hello)
	_, _ = io.ReadFull(br, make([]byte, 30))
	_, _ = c.Write([]byte("y"))
	if got := rest(br); got != "y" {
		t.Errorf("the client got %q", got)
	}
}

func TestBytesAreLimited(t *testing.T) {
	t.Parallel()
	r := start(t, []string{"api.example.com"}, func(c *Config) { c.Limits.Bytes = 1 << 20 })
	r.lead("api.example.com", "443", lines(t, func(c net.Conn) { _, _ = io.Copy(c, c) }))
	c, br, _ := r.tunnel("api.example.com:443")
	_, _ = c.Write(helloFor(t, "api.example.com"))
	go func() { _, _ = c.Write(make([]byte, 4<<20)) }()
	if got := rest(br); len(got) > 1<<20 {
		t.Errorf("%d bytes came back", len(got))
	}
	r.refused("api.example.com:443", "more than 1048576 bytes")
}

func TestParallelTLS(t *testing.T) {
	t.Parallel()
	r := start(t, []string{"api.example.com"}, nil)
	r.lead("api.example.com", "443", secure(t))
	c, br, _ := r.tunnel("api.example.com:443")
	if br.Buffered() != 0 {
		t.Fatal("the server spoke first")
	}
	secured := tls.Client(c, &tls.Config{ServerName: "api.example.com", InsecureSkipVerify: true})
	text := strings.Repeat("x", 1<<20)
	req, _ := http.NewRequest(http.MethodPost, "https://api.example.com/", strings.NewReader(text))
	done := make(chan error, 1)
	go func() { done <- req.Write(secured) }()
	resp, err := http.ReadResponse(bufio.NewReader(secured), req)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if !strings.HasSuffix(string(b), text) || err != nil || <-done != nil {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

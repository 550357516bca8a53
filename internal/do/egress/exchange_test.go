package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// recorded is a plain server that keeps what it got.
func recorded(t *testing.T, answer string) (addr string, got chan string) {
	t.Helper()
	got = make(chan string, 100)
	return lines(t, func(c net.Conn) {
		br := bufio.NewReader(c)
		req, err := http.ReadRequest(br)
		if err != nil {
			got <- err.Error()
			return
		}
		b, _ := io.ReadAll(req.Body)
		got <- fmt.Sprintf("%s %s host=%s %v body=%s", req.Method, req.RequestURI, req.Host, req.Header, b)
		_, _ = io.WriteString(c, answer)
		_ = c.(*net.TCPConn).CloseWrite()
		if extra, _ := br.Peek(1); len(extra) > 0 {
			got <- "a second request"
		}
	}), got
}

const okay = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: 5\r\nX: y\r\n\r\nok"

func TestPlainRequests(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ sent, want string }{
		{"GET http://plain.example.com/v1/x?q=1 HTTP/1.1\r\nHost: evil.example.com\r\nProxy-Authorization: p\r\nConnection: x-hop\r\nX-Hop: z\r\nUpgrade: websocket\r\nX-Api-Key: k\r\n\r\n",
			"GET /v1/x?q=1 host=plain.example.com map[Connection:[close] X-Api-Key:[k]] body="},
		{"POST http://plain.example.com:80/ HTTP/1.1\r\nHost: a\r\nUser-Agent: u\r\nContent-Length: 5\r\n\r\nhelloGET /smuggled HTTP/1.1\r\n\r\n",
			"POST / host=plain.example.com map[Connection:[close] Content-Length:[5] User-Agent:[u]] body=hello"},
		{"POST http://plain.example.com/ HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET http://plain.example.com/smuggled HTTP/1.1\r\n\r\n",
			"POST / host=plain.example.com map[Connection:[close]] body=hello"},
		{"POST http://user:pw@plain.example.com//evil.example.com/x HTTP/1.0\r\nContent-Length: 1\r\n\r\n1",
			"POST //evil.example.com/x host=plain.example.com map[Connection:[close] Content-Length:[1]] body=1"},
	} {
		addr, got := recorded(t, okay)
		r := start(t, []string{"http://plain.example.com"}, nil)
		r.lead("plain.example.com", "80", addr)
		answer := r.say(test.sent)
		if !strings.Contains(answer, " 200 OK\r\n") || !strings.Contains(answer, "\r\nX: y\r\n") || !strings.HasSuffix(answer, "\r\n\r\nok") ||
			strings.Contains(answer, "Keep-Alive") {
			t.Errorf("answer %q", answer)
		}
		if g := <-got; g != test.want {
			t.Errorf("the server got\n%s, want\n%s", g, test.want)
		}
		if len(got) > 0 {
			t.Error(<-got)
		}
	}
}

func TestPlainIsForListedEndpoints(t *testing.T) {
	t.Parallel()
	r := start(t, []string{"http://plain.example.com:8080", "api.example.com", "https://api.example.com:80"}, nil)
	for _, url := range []string{
		"http://api.example.com/", "http://api.example.com:443/", "http://plain.example.com/", "http://evil.example.com:8080/", "http://127.0.0.1/",
		"https://api.example.com/", "ftp://plain.example.com:8080/",
	} {
		if answer := r.say("GET " + url + " HTTP/1.1\r\nHost: a\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 403 ") {
			t.Errorf("%s: %q", url, answer)
		}
		if no := <-r.told; no.Host == "" {
			t.Errorf("told %+v", no)
		}
	}
	r.names["plain.example.com"] = []string{"127.0.0.1"}
	if answer := r.say("GET http://plain.example.com:8080/ HTTP/1.1\r\nHost: a\r\n\r\n"); !strings.Contains(answer, "loopback address; if that is right, allow http://plain.example.com:8080=127.0.0.1") {
		t.Errorf("answer %q", answer)
	}
	r.quiet()
}

// Clients that tunnel everything reach the endpoint, and no other.
func TestPlainTunnel(t *testing.T) {
	t.Parallel()
	addr, got := recorded(t, okay)
	r := start(t, []string{"http://plain.example.com:8080"}, nil)
	r.lead("plain.example.com", "8080", addr)
	c, br, status := r.tunnel("plain.example.com:8080")
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	_, _ = io.WriteString(c, "GET /x HTTP/1.1\r\nHost: plain.example.com:8080\r\n\r\n")
	_ = c.CloseWrite()
	if after := rest(br); after != okay || len(got) != 1 {
		t.Errorf("got %q", after)
	}
	if _, _, status := r.tunnel("plain.example.com:443"); status != http.StatusForbidden {
		t.Errorf("another port: status %d", status)
	}
}

// A stream of events arrives piece by piece, with the body still being sent.
func TestPlainStreams(t *testing.T) {
	t.Parallel()
	next := make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		for range 3 {
			_, _ = io.WriteString(w, "data: x\n\n")
			w.(http.Flusher).Flush()
			<-next
		}
	}))
	defer s.Close()
	r := start(t, []string{"http://plain.example.com"}, nil)
	r.lead("plain.example.com", "80", s.Listener.Addr().String())
	req, _ := http.NewRequest(http.MethodPost, "http://plain.example.com/", io.LimitReader(zeros{}, 1<<20))
	req.Header.Set("Expect", "100-continue")
	resp, err := r.client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	for range 3 {
		if _, err := io.ReadFull(resp.Body, make([]byte, 9)); err != nil {
			t.Fatal(err)
		}
		next <- true
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// A client that leaves takes its request with it.
func TestPlainClientLeaves(t *testing.T) {
	t.Parallel()
	asked, gone := make(chan bool), make(chan bool)
	r := start(t, []string{"http://plain.example.com"}, nil)
	r.lead("plain.example.com", "80", lines(t, func(c net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(c))
		asked <- true
		_, _ = io.Copy(io.Discard, c)
		gone <- true
	}))
	c := r.conn()
	_, _ = io.WriteString(c, "GET http://plain.example.com/ HTTP/1.1\r\nHost: a\r\n\r\n")
	<-asked
	_ = c.Close()
	<-gone
}

// An endpoint that says no HTTP is none that answers.
func TestOddResponses(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"":              "HTTP/1.1 502 ",
		"hello\r\n\r\n": "HTTP/1.1 502 ",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n":               "HTTP/1.1 502 ",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n":             "HTTP/1.1 502 ",
		"HTTP/1.0 200 OK\r\n\r\nuntil the end":                                         "HTTP/1.1 200 ",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n": "HTTP/1.1 200 ",
	} {
		addr, _ := recorded(t, answer)
		r := start(t, []string{"http://plain.example.com"}, nil)
		r.lead("plain.example.com", "80", addr)
		if got := r.say("GET http://plain.example.com/ HTTP/1.1\r\nHost: a\r\n\r\n"); !strings.HasPrefix(got, want) {
			t.Errorf("%.80q: got %.200q", answer, got)
		}
	}
}

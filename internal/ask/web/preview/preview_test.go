package preview

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// rig is a server of previews, and one of a task.
type rig struct {
	t     *testing.T
	s     *Server
	task  *httptest.Server
	port  int
	host  string // of the preview
	boxed bool   // who asks is in a box
}

// newRig makes a preview of what a task serves. task-007 has ten ports around it, and
// task-008 none.
func newRig(t *testing.T, serve http.HandlerFunc) *rig {
	t.Helper()
	r := &rig{t: t, task: httptest.NewServer(serve)}
	t.Cleanup(r.task.Close)
	u, _ := url.Parse(r.task.URL)
	r.port, _ = strconv.Atoi(u.Port())
	r.s = &Server{
		Allows: func(context.Context) bool { return !r.boxed },
		Port:   "7295", Secret: func(name string) string { return "secret of " + name },
		Reserved: func(_ context.Context, task string) (int, int, error) {
			if task != "task-007" {
				return 0, 0, nil
			}
			return r.port - 5, 10, nil
		},
		Log: slog.New(slog.DiscardHandler),
	}
	r.s.Start()
	t.Cleanup(r.s.Close)
	r.host = net.JoinHostPort(target{"task-007", r.port}.hostName(), "7295")
	return r
}

// asking is a request of a browser that was let in.
func (r *rig) asking(method, path string) *http.Request {
	q := httptest.NewRequestWithContext(r.t.Context(), method, path, nil)
	q.Host = r.host
	q.AddCookie(&http.Cookie{Name: cookie, Value: r.s.Secret(target{"task-007", r.port}.hostName())})
	return q
}

func (r *rig) send(q *http.Request) *http.Response {
	w := httptest.NewRecorder()
	r.s.ServeHTTP(w, q)
	return w.Result()
}

func TestNames(t *testing.T) {
	t.Parallel()
	s := &Server{Port: "7295"}
	for host, want := range map[string]bool{
		"p20001-task-007.localhost:7295":          true,
		"P20001-Task-007.LOCALHOST:7295":          true,
		"p20001-task-7.localhost:7295":            false,
		"p20001-op-007.localhost:7295":            false,
		"p020001-task-007.localhost:7295":         false,
		"p+20001-task-007.localhost:7295":         false,
		"p20001-task-007.localhost":               false,
		"p20001-task-007.localhost:7296":          false,
		"x.p20001-task-007.localhost:7295":        false,
		"p20001-task-007.localhost.example:7295":  false,
		"p20001-task-007.attacker.localhost:7295": false,
		"localhost:7295":                          false,
		"127.0.0.1:7295":                          false,
		"":                                        false,
	} {
		if got := s.IsPreviewHost(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}

// TestEnter: a link lets in once, soon, and at its own name.
func TestEnter(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the page") })
	follow := func(link, host string) *http.Response {
		u, err := url.Parse(link)
		if err != nil {
			t.Fatal(err)
		}
		q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, u.RequestURI(), nil)
		q.Host = host
		return r.send(q)
	}
	link := r.s.Link("task-007", r.port)
	if !strings.HasPrefix(link, "http://"+r.host+"/") {
		t.Errorf("the link is %s", link)
	}
	res := follow(link, r.host)
	c := res.Cookies()
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/" || len(c) != 1 {
		t.Fatalf("%d to %q with %v", res.StatusCode, res.Header.Get("Location"), c)
	}
	if !c[0].HttpOnly || c[0].SameSite != http.SameSiteLaxMode || c[0].Domain != "" || c[0].MaxAge != 0 {
		t.Errorf("the cookie is %v", c[0])
	}
	other := net.JoinHostPort(target{"task-007", r.port + 1}.hostName(), "7295")
	for what, res := range map[string]*http.Response{
		"a used link":           follow(link, r.host),
		"a link of another one": follow(r.s.Link("task-007", r.port), other),
		"no ticket":             follow("http://"+r.host+enterPath, r.host),
	} {
		if res.StatusCode != http.StatusForbidden || len(res.Cookies()) != 0 {
			t.Errorf("%s: %d", what, res.StatusCode)
		}
	}
	r.boxed = true
	for what, res := range map[string]*http.Response{
		"a box with a link": follow(r.s.Link("task-007", r.port), r.host), "a box with the cookie": r.send(r.asking(http.MethodGet, "/")),
	} {
		if res.StatusCode != http.StatusForbidden || len(res.Cookies()) != 0 {
			t.Errorf("%s: %d", what, res.StatusCode)
		}
	}
	r.boxed = false
	q := r.asking(http.MethodGet, "/")
	q.Header.Del("Cookie")
	if res := r.send(q); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the cookie: %d", res.StatusCode)
	}
	q.AddCookie(&http.Cookie{Name: cookie, Value: r.s.Secret(target{"task-007", r.port + 1}.hostName())})
	if res := r.send(q); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("with the cookie of another port: %d", res.StatusCode)
	}
}

// TestPorts: only reserved ports of the workspace that the task has now are reached.
func TestPorts(t *testing.T) {
	t.Parallel()
	reached := false
	r := newRig(t, func(http.ResponseWriter, *http.Request) { reached = true })
	ask := func(task string, port int) int {
		of := target{task, port}
		q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		q.Host = net.JoinHostPort(of.hostName(), "7295")
		q.AddCookie(&http.Cookie{Name: cookie, Value: r.s.Secret(of.hostName())})
		return r.send(q).StatusCode
	}
	for what, c := range map[string]struct {
		task string
		port int
	}{"below": {"task-007", r.port - 6}, "above": {"task-007", r.port + 5}, "of another task": {"task-008", r.port}, "ssh": {"task-007", 22}} {
		if status := ask(c.task, c.port); status != http.StatusNotFound || reached {
			t.Errorf("%s: %d", what, status)
		}
	}
	if status := ask("task-007", r.port); status != http.StatusOK || !reached {
		t.Errorf("its own: %d", status)
	}
	r.task.Close()
	if status := ask("task-007", r.port); status != http.StatusBadGateway {
		t.Errorf("where nothing listens: %d", status)
	}
	// The address of a request names no other host.
	r = newRig(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the task's") })
	q := r.asking(http.MethodGet, "http://127.0.0.1:22/x")
	q.Host = r.host
	if body, _ := io.ReadAll(r.send(q).Body); string(body) != "the task's" {
		t.Errorf("it came to %q", body)
	}
}

// TestForeign: pages of others get nothing, whatever the browser holds.
func TestForeign(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(http.ResponseWriter, *http.Request) {})
	for name, c := range map[string]struct {
		method string
		header map[string]string
		status int
	}{
		"its own page":          {"POST", map[string]string{"Origin": "http://" + r.host, "Sec-Fetch-Site": "same-origin"}, 200},
		"a followed link":       {"GET", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		"a frame":               {"GET", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403},
		"a form":                {"POST", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403},
		"a script":              {"GET", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403},
		"a page of the server":  {"GET", map[string]string{"Origin": "http://127.0.0.1:7295"}, 403},
		"another preview":       {"GET", map[string]string{"Origin": "http://p1-task-001.localhost:7295"}, 403},
		"an origin of its port": {"GET", map[string]string{"Origin": r.task.URL}, 403},
		"a hidden origin":       {"POST", map[string]string{"Origin": "null"}, 403},
	} {
		q := r.asking(c.method, "/")
		for k, v := range c.header {
			q.Header.Set(k, v)
		}
		if res := r.send(q); res.StatusCode != c.status {
			t.Errorf("%s: %d, want %d", name, res.StatusCode, c.status)
		}
	}
}

// TestHeaders: what goes out and comes back is of this one name.
func TestHeaders(t *testing.T) {
	t.Parallel()
	var got *http.Request
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		got = q
		for _, c := range []string{"a=1; Domain=localhost; Path=/", "b=2; HttpOnly", cookie + "=mine", "pawl_7295=x; Domain=127.0.0.1", ";;broken"} {
			w.Header().Add("Set-Cookie", c)
		}
		w.Header().Set("Content-Security-Policy", "default-src *")
		w.Header().Set("Location", q.URL.Query().Get("to"))
		w.WriteHeader(http.StatusFound)
	})
	q := r.asking(http.MethodPost, "/")
	q.Header.Set("Origin", "http://"+r.host)
	q.Header.Set("X-Forwarded-Host", "attacker.example")
	q.AddCookie(&http.Cookie{Name: "own", Value: "1"})
	res := r.send(q)
	at := "localhost:" + strconv.Itoa(r.port)
	if got.Host != at || got.Header.Get("Origin") != "http://"+at || got.Header.Get("Cookie") != "own=1" || got.Header.Get("X-Forwarded-Host") != "" {
		t.Errorf("the task gets Host %s, %v", got.Host, got.Header)
	}
	if set := fmt.Sprint(res.Header.Values("Set-Cookie")); set != "[a=1; Path=/ b=2; HttpOnly pawl_7295=x]" {
		t.Errorf("it sets %s", set)
	}
	if p := fmt.Sprint(res.Header.Values("Content-Security-Policy")); p != "[default-src * frame-ancestors 'self']" {
		t.Errorf("its policy is %s", p)
	}
	for to, want := range map[string]string{
		"/x":                              "/x",
		"http://" + at + "/x?y=1":         "/x?y=1",
		r.task.URL + "//attacker.example": "/attacker.example",
		"http://127.0.0.1:22/":            "http://127.0.0.1:22/", // the browser goes there by itself
		"http://localhost/":               "http://localhost/",
		"https://example.org/":            "https://example.org/",
	} {
		if res := r.send(r.asking(http.MethodGet, "/?to="+url.QueryEscape(to))); res.StatusCode != http.StatusFound || res.Header.Get("Location") != want {
			t.Errorf("%s: %d to %s", to, res.StatusCode, res.Header.Get("Location"))
		}
	}
}

// TestStreams: an upgraded connection and a stream work, end with the server, and have a
// limit together.
func TestStreams(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Upgrade") != "" {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_, _ = io.Copy(conn, rw)
			return
		}
		_, _ = io.WriteString(w, "begun\n")
		_ = http.NewResponseController(w).Flush()
		<-q.Context().Done()
	})
	web := httptest.NewServer(r.s)
	defer web.Close()
	ask := func(header string) *bufio.ReadWriter {
		c, err := net.Dial("tcp", web.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_, _ = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nCookie: %s=%s\r\n%s\r\n", r.host, cookie, r.s.Secret(target{"task-007", r.port}.hostName()), header)
		return bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c))
	}
	until := func(in *bufio.ReadWriter, text string) {
		t.Helper()
		for {
			line, err := in.ReadString('\n')
			if strings.Contains(line, text) {
				return
			}
			if err != nil {
				t.Fatalf("%v, want %q", err, text)
			}
		}
	}
	upgraded, stream := ask("Connection: Upgrade\r\nUpgrade: echo\r\n"), ask("")
	until(upgraded, "101")
	until(upgraded, "\r\n") // of its headers
	until(upgraded, "\r\n")
	_, _ = upgraded.WriteString("hello\n")
	_ = upgraded.Flush()
	until(upgraded, "hello")
	until(stream, "begun")
	for range maxAsked - 2 {
		until(ask(""), "begun")
	}
	until(ask(""), "503")
	r.s.Close()
	if _, err := io.ReadAll(upgraded); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	_, _ = io.ReadAll(stream) // it ends
}

package web

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
)

// route is one operation of the API, with an address that could be asked.
type route struct{ id, method, path string }

// routesOf are all operations that the description has.
func routesOf(t *testing.T, r *rig) []route {
	t.Helper()
	data, err := r.s.Description()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("{run}", "abc123", "{number}", "1", "{id}", "task-001", "{file}", "agent.out")
	list := []route{{"describe", http.MethodGet, rest.Base + "/openapi.json"}, {"page", http.MethodGet, "/"}, {"asset", http.MethodGet, "/theme.js"}, {"tools", http.MethodPost, toolsPath}, {"nothing", http.MethodGet, "/api/v1/nothing"}}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			list = append(list, route{op.OperationID, strings.ToUpper(method), fill.Replace(path)})
		}
	}
	if len(list) < 40 {
		t.Fatalf("only %d operations", len(list))
	}
	return list
}

// Without the token nothing answers, whatever is asked.
func TestNothingWithoutToken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, o := range routesOf(t, r) {
		for name, change := range map[string]func(*http.Request){
			"none":  func(req *http.Request) { req.Header.Del("Authorization") },
			"wrong": func(req *http.Request) { req.Header.Set("Authorization", "Bearer "+strings.Repeat("0", 64)) },
			"empty": func(req *http.Request) { req.Header.Set("Authorization", "Bearer ") },
			"basic": func(req *http.Request) { req.Header.Set("Authorization", "Basic "+testToken) },
			"wrong cookie": func(req *http.Request) {
				req.Header.Del("Authorization")
				req.AddCookie(&http.Cookie{Name: r.s.cookieName(), Value: testToken})
				req.Header.Set(pageKeyHeader, makeKey("page", testToken))
			},
			"cookie without the pages' key, as another port gets it": func(req *http.Request) {
				req.Header.Del("Authorization")
				if isAPIRequest(req) {
					req.AddCookie(&http.Cookie{Name: r.s.cookieName(), Value: makeKey("cookie", testToken)})
				}
			},
			"cookie with a wrong key": func(req *http.Request) {
				req.Header.Del("Authorization")
				if isAPIRequest(req) {
					req.AddCookie(&http.Cookie{Name: r.s.cookieName(), Value: makeKey("cookie", testToken)})
					req.Header.Set(pageKeyHeader, makeKey("cookie", testToken))
				}
			},
			"the pages' key without the cookie": func(req *http.Request) {
				req.Header.Del("Authorization")
				req.Header.Set(pageKeyHeader, makeKey("page", testToken))
			},
			"token in URL": func(req *http.Request) {
				req.Header.Del("Authorization")
				if isAPIRequest(req) {
					req.URL.RawQuery = "token=" + testToken
				}
			},
		} {
			req := r.asking(o.method, o.path, "{}")
			change(req)
			w := r.send(req)
			if w.Code != http.StatusUnauthorized {
				t.Errorf("%s %s (%s), token %s: %d", o.method, o.path, o.id, name, w.Code)
			}
			if strings.Contains(w.Body.String(), testToken) || len(w.Result().Cookies()) > 0 {
				t.Errorf("%s: the answer to a stranger has a secret", o.id)
			}
		}
	}
	if did := r.did(); did != "" {
		t.Errorf("strangers did something: %s", did)
	}
}

// Every route refuses a name that is not ours, pages of others, and what is no
// JSON, also from somebody with the token.
func TestEveryRouteIsGuarded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, o := range routesOf(t, r) {
		change := o.method != http.MethodGet
		for _, c := range []struct {
			name   string
			ask    func(*http.Request)
			status int
			code   string
			skip   bool
		}{
			{"rebound name", func(q *http.Request) { q.Host = "attacker.example:" + r.s.listener.Port }, 421, "HOST_REFUSED", false},
			{"no name", func(q *http.Request) { q.Host = "" }, 421, "HOST_REFUSED", false},
			{"other port", func(q *http.Request) { q.Host = "127.0.0.1:1" }, 421, "HOST_REFUSED", false},
			{"name with a suffix", func(q *http.Request) { q.Host = "localhost.attacker.example:" + r.s.listener.Port }, 421, "HOST_REFUSED", false},
			{"other origin", func(q *http.Request) { q.Header.Set("Origin", "http://attacker.example") }, 403, "ORIGIN_REFUSED", false},
			{"origin of another port", func(q *http.Request) { q.Header.Set("Origin", "http://127.0.0.1:1") }, 403, "ORIGIN_REFUSED", false},
			{"origin null", func(q *http.Request) { q.Header.Set("Origin", "null") }, 403, "ORIGIN_REFUSED", false},
			{"origin with our name in it", func(q *http.Request) { q.Header.Set("Origin", "http://"+r.host+".attacker.example") }, 403, "ORIGIN_REFUSED", false},
			{"two origins", func(q *http.Request) { q.Header["Origin"] = []string{"http://" + r.host, "http://attacker.example"} }, 403, "ORIGIN_REFUSED", false},
			{"https origin", func(q *http.Request) { q.Header.Set("Origin", "https://"+r.host) }, 403, "ORIGIN_REFUSED", false},
			{"fetched by another site", func(q *http.Request) {
				q.Header.Set("Sec-Fetch-Site", "cross-site")
				q.Header.Set("Sec-Fetch-Mode", "no-cors")
			}, 403, "ORIGIN_REFUSED", false},
			{"fetched by a sibling", func(q *http.Request) {
				q.Header.Set("Sec-Fetch-Site", "same-site")
				q.Header.Set("Sec-Fetch-Mode", "cors")
			}, 403, "ORIGIN_REFUSED", false},
			{"a form", func(q *http.Request) { q.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, 415, "JSON_REQUIRED", !change},
			{"plain text", func(q *http.Request) { q.Header.Set("Content-Type", "text/plain; charset=application/json") }, 415, "JSON_REQUIRED", !change},
			{"no type", func(q *http.Request) { q.Header.Del("Content-Type") }, 415, "JSON_REQUIRED", !change},
			{"TRACE", func(q *http.Request) { q.Method = "TRACE" }, 405, "METHOD_NOT_ALLOWED", false},
			{"PUT", func(q *http.Request) { q.Method = "PUT" }, 405, "METHOD_NOT_ALLOWED", false},
			{"OPTIONS", func(q *http.Request) { q.Method = "OPTIONS" }, 405, "METHOD_NOT_ALLOWED", false},
		} {
			if c.skip {
				continue
			}
			req := r.asking(o.method, o.path, "{}")
			c.ask(req)
			w := r.send(req)
			if p := r.problem(w, c.status); p.Code != c.code {
				t.Errorf("%s, %s: %s", o.id, c.name, p.Code)
			}
			if got := w.Header().Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("%s allows the origin %s", o.id, got)
			}
		}
	}
	if did := r.did(); did != "" {
		t.Errorf("something was done: %s", did)
	}
}

// What may be asked from our own pages, and by scripts.
func TestOwnPagesGetIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, ask := range map[string]func(*http.Request){
		"a script": func(*http.Request) {},
		"our own page": func(q *http.Request) {
			q.Header.Set("Origin", "http://"+r.host)
			q.Header.Set("Sec-Fetch-Site", "same-origin")
		},
		"by another name": func(q *http.Request) {
			q.Host = "localhost:" + r.s.listener.Port
			q.Header.Set("Origin", "http://localhost:"+r.s.listener.Port)
		},
		"IPv6":            func(q *http.Request) { q.Host = "[::1]:" + r.s.listener.Port },
		"capital letters": func(q *http.Request) { q.Host = "LOCALHOST:" + r.s.listener.Port },
		"JSON with a set": func(q *http.Request) { q.Header.Set("Content-Type", "application/json; charset=utf-8") },
		"cookie and key, no token": func(q *http.Request) {
			q.Header.Del("Authorization")
			q.AddCookie(&http.Cookie{Name: r.s.cookieName(), Value: makeKey("cookie", testToken)})
			q.Header.Set(pageKeyHeader, makeKey("page", testToken))
		},
	} {
		req := r.asking(http.MethodPost, rest.Base+"/cases", `{"title":"x"}`)
		ask(req)
		if w := r.send(req); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// Events and downloads have the pages' key in their address; a change has not.
func TestKeyInAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for method, want := range map[string]int{http.MethodGet: http.StatusOK, http.MethodPost: http.StatusUnauthorized} {
		req := r.asking(method, rest.Base+"/cases?limit=1&key="+makeKey("page", testToken), `{"title":"x"}`)
		req.Header.Del("Authorization")
		req.AddCookie(&http.Cookie{Name: r.s.cookieName(), Value: makeKey("cookie", testToken)})
		if w := r.send(req); w.Code != want {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
}

// The URL with the token gives the cookie and the pages' key once, and leads to
// an address without the token.
func TestEntry(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	req := r.asking(http.MethodGet, "/runs/abc?token="+testToken+"&tab=diff", "")
	req.Header.Del("Authorization")
	w := r.send(req)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/runs/abc?tab=diff#key="+makeKey("page", testToken) || len(cookies) != 1 {
		t.Fatalf("got %d to %q with %v", w.Code, w.Header().Get("Location"), cookies)
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure || c.Value == testToken || c.MaxAge != 0 {
		t.Errorf("the cookie is %v", c)
	}
	again := r.asking(http.MethodGet, "/", "")
	again.Header.Del("Authorization")
	again.AddCookie(c)
	if w := r.send(again); w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Errorf("with the cookie: %d", w.Code)
	}
	for what, ask := range map[string][2]string{
		"a wrong token": {http.MethodGet, "/?token=" + strings.Repeat("0", 64)}, "no token": {http.MethodGet, "/?token="}, "half a token": {http.MethodGet, "/?token=" + testToken[:32]},
		"HEAD": {http.MethodHead, "/?token=" + testToken}, "a change": {http.MethodPost, "/?token=" + testToken}, "the API": {http.MethodGet, rest.Base + "/overview?token=" + testToken},
		"the cookie's value": {http.MethodGet, "/?token=" + c.Value},
	} {
		req := r.asking(ask[0], ask[1], "{}")
		req.Header.Del("Authorization")
		if w := r.send(req); w.Code != http.StatusUnauthorized || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s is let in: %d with %v", what, w.Code, w.Result().Cookies())
		}
	}
	for _, path := range []string{"//attacker.example/?token=", "/\\attacker.example?token=", "///attacker.example?token="} {
		req := r.asking(http.MethodGet, "/", "")
		req.URL.Path, req.URL.RawQuery = strings.SplitN(path, "?", 2)[0], "token="+testToken
		to := r.send(req).Header().Get("Location")
		if strings.HasPrefix(to, "//") || strings.HasPrefix(to, "/\\") || !strings.HasPrefix(to, "/") {
			t.Errorf("%s leads to %s", path, to)
		}
	}
}

// Every answer has the headers that keep a page from being misused.
func TestHeaders(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	answers := map[string]*httptest.ResponseRecorder{"page": r.send(r.asking("GET", "/", "")), "api": r.send(r.asking("GET", rest.Base+"/overview", "")), "missing": r.send(r.asking("GET", rest.Base+"/x", ""))}
	stranger := r.asking("GET", "/", "")
	stranger.Header.Del("Authorization")
	answers["stranger"] = r.send(stranger)
	rebound := r.asking("GET", "/", "")
	rebound.Host = "x.example"
	answers["rebound"] = r.send(rebound)
	for name, w := range answers {
		h := w.Header()
		csp := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy lacks %s", name, want)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") {
			t.Errorf("%s: the policy is %s", name, csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("X-Frame-Options") != "DENY" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s: %v", name, h)
		}
	}
}

// No GET changes anything: the database is as it was, and nothing was done.
func TestGetChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	if _, err := r.store.DataVersion(t.Context()); err != nil {
		t.Fatal(err)
	}
	var added view.CaseDetail
	r.ask(http.MethodPost, "/cases", `{"title":"x"}`, &added)
	before, err := r.store.DataVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range routesOf(t, r) {
		if strings.HasPrefix(o.id, "follow-") {
			continue // they do not end by themselves
		}
		if o.method == http.MethodGet {
			r.send(r.asking(http.MethodGet, o.path, ""))
			continue
		}
		// What has an effect cannot be had by a GET with the same address.
		w := r.send(r.asking(http.MethodGet, o.path+"?_method="+o.method, `{"title":"y"}`))
		if w.Code == http.StatusOK {
			t.Errorf("GET %s answers %d", o.path, w.Code)
		}
	}
	after, err := r.store.DataVersion(t.Context())
	if err != nil || after != before {
		t.Errorf("something was written: %v", err)
	}
	if did := r.did(); did != "" {
		t.Errorf("something was done: %s", did)
	}
}

// Hostile ids and names reach no file and no row.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	r.left("abc123", 1, map[string]string{"agent.out": "said", "begun.json": `{"attempt":1,"job":{"env":["KEY=hush-hush"]}}`, "agent.result.json": "{}"})
	if err := os.WriteFile(filepath.Join(r.dir, "secret.txt"), []byte("hush-hush"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(r.dir, "runs", "abc123", "1", "agent.err")
	if err := os.Symlink(filepath.Join(r.dir, "secret.txt"), link); err != nil {
		t.Fatal(err)
	}
	names := []string{
		"begun.json", "agent.result.json", "..%2f..%2f..%2fsecret.txt", "../../../secret.txt", "%2e%2e/secret.txt", "agent.out%00", "agent.err", "/etc/passwd", "%2fetc%2fpasswd",
		"agent.out%0d%0aX-Evil:1", strings.Repeat("a", 5000),
	}
	for _, name := range names {
		for _, end := range []string{"", "/raw"} {
			req := r.asking(http.MethodGet, rest.Base+"/runs/abc123/iterations/1/files/x"+end, "")
			req.URL.Opaque = ""
			req.URL.RawPath = rest.Base + "/runs/abc123/iterations/1/files/" + name + end
			req.URL.Path = strings.NewReplacer("%2f", "/", "%2e", ".", "%00", "\x00", "%0d", "\r", "%0a", "\n").Replace(req.URL.RawPath)
			w := r.send(req)
			if w.Code == http.StatusOK || strings.Contains(w.Body.String(), "hush-hush") || w.Header().Get("X-Evil") != "" {
				t.Errorf("%.40s%s: %d %.200s", name, end, w.Code, w.Body)
			}
		}
	}
	for _, id := range []string{"..", "%2e%2e", "a'b", "a%20OR%201=1", "*", "a/b", strings.Repeat("a", 100), "%F0%9F%98%80"} {
		w := r.send(r.asking(http.MethodGet, rest.Base+"/runs/"+id, ""))
		if w.Code == http.StatusOK || w.Code >= 500 {
			t.Errorf("run %s: %d %s", id, w.Code, w.Body)
		}
	}
	for _, path := range []string{
		"/cases/%2e%2e%2f%2e%2e", "/cases/task-001%00", "/cases/task-001%0a", "/cases/-1", "/cases/task-999999999999999999999", "/cases/" + strings.Repeat("9", 5000), "/cases/%2fetc%2fpasswd/diff",
		"/runs/abc123/iterations/-1", "/runs/abc123/iterations/1e9", "/runs/abc123/iterations/99999999999999999999", "/runs/abc123/iterations/..%2f..%2f1",
		"/runs/abc123/diff/file?path=..%2f..%2fetc%2fpasswd", "/runs/abc123/diff/file?path=%00", "/runs/abc123/diff/file?path=:(top)secret.txt", "/runs/abc123/diff?from=--output=x&to=HEAD",
		"/runs/abc123/iterations/1/conversation?from=-9", "/runs/abc123/iterations/1/files/agent.out?offset=x", "/events?after=1%0a-1", "/events?run=..%2f..",
	} {
		if w := r.send(r.asking(http.MethodGet, rest.Base+path, "")); w.Code < 400 || w.Code >= 500 || strings.Contains(w.Body.String(), "hush-hush") {
			t.Errorf("%.60s: %d %.200s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/cases/..%2f../actions", "/cases/task-001%00/clean", "/runs/..%2f../stop", "/runs/a%20b/rollback", "/queue/entries/..%2f../actions", "/queue/entries/--all/actions"} {
		if w := r.send(r.asking(http.MethodPost, rest.Base+path, `{"action":"drop"}`)); w.Code < 400 || w.Code >= 500 {
			t.Errorf("%s: %d %.200s", path, w.Code, w.Body)
		}
	}
	if did := r.did(); did != "" {
		t.Errorf("something was done: %s", did)
	}
	var list view.RunPage
	r.get("/runs?q="+"%27%3B%20DROP%20TABLE%20runs%3B--", &list)
	r.get("/runs", &list)
	if len(list.Runs) != 1 {
		t.Errorf("there are %d runs", len(list.Runs))
	}
}

// A body, and a header, have a limit.
func TestLimitsOfRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	for _, c := range []struct {
		name, path, body string
		status           []int
	}{
		{"body", "/runs/abc123/message", `{"text":"` + strings.Repeat("a", maxBody) + `"}`, []int{http.StatusRequestEntityTooLarge}},
		{"text", "/runs/abc123/message", `{"text":"` + strings.Repeat("a", 30000) + `"}`, []int{http.StatusUnprocessableEntity}},
		{"depth", "/runs/abc123/message", strings.Repeat("[", 100_000), []int{http.StatusBadRequest, http.StatusUnprocessableEntity}},
		{"no JSON", "/runs/abc123/message", `{"text":`, []int{http.StatusBadRequest}},
		{"unknown field", "/runs/abc123/message", `{"text":"a","admin":true}`, []int{http.StatusUnprocessableEntity}},
		{"wrong type", "/runs/abc123/rollback", `{"to":"0"}`, []int{http.StatusUnprocessableEntity}},
		{"no body", "/runs/abc123/message", ``, []int{http.StatusBadRequest}},
	} {
		w := r.send(r.asking(http.MethodPost, rest.Base+c.path, c.body))
		if !slices.Contains(c.status, w.Code) {
			t.Errorf("%s: %d %.300s", c.name, w.Code, w.Body)
		}
		if p := r.problem(w, w.Code); c.name == "body" && (!strings.Contains(p.Message, "1 MiB") || len(p.Suggestions) == 0) {
			t.Errorf("too much is told as %+v", p)
		}
	}
	r.serve()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.s.listener.URL()+rest.Base+"/overview", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	req.Header.Set("X-Long", strings.Repeat("a", 2*maxHeader))
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("long header: %d", res.StatusCode)
	}
}

// An action knows which way it was asked for: by a page, a program with the token, or a tool.
func TestWayOfARequest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var way action.Way
	note := http.NewServeMux()
	note.HandleFunc("/", func(_ http.ResponseWriter, req *http.Request) { way = action.WayOf(req.Context()) })
	r.s.mux = note
	page := r.asking(http.MethodPost, rest.Base+"/cases", "{}")
	page.Header.Del("Authorization")
	page.Header.Set(pageKeyHeader, makeKey("page", testToken))
	cookie := entryCookie(r.s.listener.Port, testToken, false)
	page.AddCookie(&cookie)
	for want, ask := range map[action.Way]struct {
		handler http.Handler
		req     *http.Request
	}{
		action.API:     {r.s.guardRequests(note), r.asking(http.MethodPost, rest.Base+"/cases", "{}")},
		action.Browser: {r.s.guardRequests(note), page},
		action.MCP:     {r.s.API(), r.asking(http.MethodPost, rest.Base+"/cases", "{}")},
	} {
		if ask.handler.ServeHTTP(httptest.NewRecorder(), ask.req); way != want {
			t.Errorf("it came %q, want %q", way, want)
		}
	}
}

// Who sends its request byte by byte is cut off by the server; others are
// answered meanwhile.
func TestSlowRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	slow, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Close() }()
	if _, err := io.WriteString(slow, "GET / HTTP/1.1\r\nHost: "+r.host+"\r\nX-Slow: "); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.s.listener.URL()+rest.Base+"/overview", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	res, err := client.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("others wait: %v %v", res, err)
	}
	_ = res.Body.Close()
	if err := slow.SetReadDeadline(time.Now().Add(6 * headerTime)); err != nil {
		t.Fatal(err)
	}
	if got := read(t, slow); got != "" && !strings.Contains(got, "408") && !strings.Contains(got, "400") {
		t.Errorf("the slow one got %q", got)
	}
}

// The token is in no log and no error.
func TestTokenIsNotLogged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	end := r.serve()
	for _, path := range []string{"/?token=" + testToken, "/?token=" + testToken + "x", rest.Base + "/runs?token=" + testToken, "/%zz?token=" + testToken} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.host)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: "+r.host+"\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if got := read(t, c); strings.Contains(got, testToken) {
			t.Errorf("%s is answered with the token: %s", path, got)
		}
		_ = c.Close()
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if strings.Contains(r.log.String(), testToken) {
		t.Errorf("the log has the token: %s", r.log)
	}
}

// Who is in a box is refused with all that opens the server, and nothing is looked up for
// who has nothing.
func TestNoBoxIsAnswered(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("who speaks is known on Linux only")
	}
	r := newRig(t)
	looks := 0
	r.s.peers.Accepts = func(int) bool { looks++; return false }
	r.serve()
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer stay.CloseIdleConnections()
	ask := func(path string, change func(*http.Request)) (status int, said string, cookies int) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		change(req)
		req.Close = true
		res, err := stay.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		text, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(text), len(res.Cookies())
	}
	nothing := func(*http.Request) {}
	for _, path := range []string{rest.Base + "/overview", "/", toolsPath} {
		if status, said, _ := ask(path, nothing); status != http.StatusUnauthorized || looks != 0 {
			t.Errorf("without the token: %s: %d, %d looks, %s", path, status, looks, said)
		}
	}
	bearer := func(req *http.Request) { req.Header.Set("Authorization", "Bearer "+testToken) }
	cookie := func(req *http.Request) {
		req.AddCookie(&http.Cookie{Name: r.s.cookieName(), Value: makeKey("cookie", testToken)})
		req.Header.Set(pageKeyHeader, makeKey("page", testToken))
	}
	for _, one := range []struct {
		path   string
		change func(*http.Request)
	}{{rest.Base + "/overview", bearer}, {rest.Base + "/overview", cookie}, {"/", cookie}, {toolsPath, bearer}, {"/?token=" + testToken, nothing}} {
		status, said, cookies := ask(one.path, one.change)
		if status != http.StatusForbidden || !strings.Contains(said, `"SANDBOX_REFUSED"`) || cookies != 0 {
			t.Errorf("%s: %d, %d cookies, %s", one.path, status, cookies, said)
		}
	}
	if looks != 5 {
		t.Errorf("%d looks at 5 connections", looks)
	}
}

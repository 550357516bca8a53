package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/web/listen"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// beside makes another repository of the same user.
func (r *rig) beside(name string) (root, dir string) {
	r.t.Helper()
	root = filepath.Join(r.dir, "work", name)
	dir = statedir.Of(root, r.s.o.Env)
	for _, d := range []string{root, dir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := statedir.KeepRoot(root, r.s.o.Env, nil); err != nil {
		r.t.Fatal(err)
	}
	return root, dir
}

// servedAt says that a server runs at an address, as one that this process serves.
func servedAt(t *testing.T, dir, url string) {
	t.Helper()
	servedBy(t, dir, url, func(*process.Identity) {})
}

func servedBy(t *testing.T, dir, url string, change func(*process.Identity)) {
	t.Helper()
	owner, err := process.Self()
	change(&owner)
	if err == nil {
		err = Session{URL: url, Token: testToken, Owner: owner}.Save(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) list() map[string]view.Repository {
	r.t.Helper()
	var got view.Repositories
	r.get("/repositories", &got)
	by := map[string]view.Repository{}
	for _, one := range got.Repositories {
		by[one.Name] = one
	}
	return by
}

// The list has the inboxes of those that have a server, and says of others why not.
func TestOtherRepositories(t *testing.T) {
	t.Parallel()
	r, other := newRig(t), newRig(t)
	if got := r.list(); len(got) != 0 {
		t.Fatalf("without any others there are %v", got)
	}
	other.serve()
	other.run("abc123", func(row *store.Run, _ *loop.State) { row.Status, row.Why = string(loop.Blocked), "<b>no token</b>" })
	_, dir := r.beside("served")
	servedAt(t, dir, other.s.listener.URL())
	r.beside("closed")
	_, ended := r.beside("ended")
	servedBy(t, ended, other.s.listener.URL(), func(owner *process.Identity) { owner.Boot = "an earlier one" })
	odd := map[string]http.HandlerFunc{
		"elsewhere": func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, other.s.listener.URL()+q.URL.Path, http.StatusFound)
		},
		"rubbish": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"entries": [{"kind": 1}]}`)) },
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write([]byte(`{"entries": [`))
			for err == nil {
				_, err = w.Write([]byte(strings.Repeat(" ", 1<<16)))
			}
		},
		"strange": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
	}
	for name, handler := range odd {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		_, dir := r.beside(name)
		servedAt(t, dir, server.URL)
	}
	for name, url := range map[string]string{"far": "http://192.0.2.1:80", "named": "http://localhost:80", "tls": "https://127.0.0.1:80", "file": "file:///etc/passwd", "none": ""} {
		_, dir := r.beside(name)
		servedAt(t, dir, url)
	}
	got := r.list()
	if len(got) != 12 {
		t.Errorf("%d repositories", len(got))
	}
	for name, one := range got {
		served := name != "closed" && name != "ended"
		if one.Served != served || (one.Problem != "") != (served && name != "served") || one.Entries == nil {
			t.Errorf("%s: %+v", name, one)
		}
	}
	if e := got["served"].Entries; len(e) != 1 || e[0].Why != "<b>no token</b>" || e[0].Run == nil || e[0].Run.ID != "abc123" {
		t.Errorf("got %+v", e)
	}
}

// Who was let into one repository from elsewhere was let into no other.
func TestNoOthersFromElsewhere(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]listen.Address{
		"a further name": {Address: "127.0.0.1:0", Hosts: []string{"pawl.example"}}, "every interface": {Address: "0.0.0.0:0", Insecure: true},
	} {
		r := newRigAt(t, a)
		_, dir := r.beside("other")
		if got := r.list(); len(got) != 0 {
			t.Errorf("%s: lists %v", name, got)
		}
		if p := r.refused(http.MethodPost, "/repositories/"+filepath.Base(dir)+"/open", "{}", http.StatusNotFound); p.Code != "NO_SUCH_REPOSITORY" {
			t.Errorf("%s: %s", name, p.Code)
		}
	}
}

// To open a repository starts its server once, and lets the browser in there with
// cookie and key, and no token.
func TestOpenRepository(t *testing.T) {
	t.Parallel()
	r, other := newRig(t), newRig(t)
	other.s.o.Token = strings.Repeat("ab", 32)
	root, dir := r.beside("other")
	started := ""
	r.s.o.ServeRoot = func(_ context.Context, at string) error {
		started += at
		owner, err := process.Self()
		return errors.Join(err, Session{URL: other.s.listener.URL(), Token: other.s.o.Token, Owner: owner}.Save(dir))
	}
	path := rest.Base + "/repositories/" + filepath.Base(dir) + "/open"
	for range 2 {
		w := r.send(r.asking(http.MethodPost, path, "{}"))
		var entry view.Admission
		if err := json.Unmarshal(w.Body.Bytes(), &entry); w.Code != http.StatusOK || err != nil {
			t.Fatalf("%d %s %v", w.Code, w.Body, err)
		}
		cookies := w.Result().Cookies()
		if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Path != "/" || cookies[0].Domain != "" {
			t.Fatalf("cookies: %v", cookies)
		}
		if entry.URL != other.s.listener.URL() || strings.Contains(w.Body.String()+cookies[0].Value, other.s.o.Token) {
			t.Errorf("got %+v", entry)
		}
		req := other.asking(http.MethodGet, rest.Base+"/overview", "")
		req.Header.Del("Authorization")
		req.AddCookie(cookies[0])
		if w := other.send(req); w.Code != http.StatusUnauthorized {
			t.Errorf("the cookie alone: %d", w.Code)
		}
		req.Header.Set(pageKeyHeader, entry.Key)
		if w := other.send(req); w.Code != http.StatusOK {
			t.Errorf("cookie and key: %d", w.Code)
		}
	}
	if started != root {
		t.Errorf("started %q, want %q once", started, root)
	}
	for _, c := range []struct {
		name, path string
		change     func(*http.Request)
		status     int
	}{
		{"no token", path, func(q *http.Request) { q.Header.Del("Authorization") }, 401},
		{"another page", path, func(q *http.Request) { q.Header.Set("Origin", "http://127.0.0.1:1") }, 403},
		{"another id", rest.Base + "/repositories/none/open", nil, 404},
		{"a way up", rest.Base + "/repositories/..%2f" + filepath.Base(dir) + "/open", nil, 404},
		{"read", path, func(q *http.Request) { q.Method = http.MethodGet }, 404},
		{"PUT", path, func(q *http.Request) { q.Method = http.MethodPut }, 405},
		{"a form", path, func(q *http.Request) { q.Header.Set("Content-Type", "text/plain") }, 415},
	} {
		req := r.asking(http.MethodPost, c.path, "{}")
		if c.change != nil {
			c.change(req)
		}
		if w := r.send(req); w.Code != c.status || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s: %d, want %d", c.name, w.Code, c.status)
		}
	}
	servedAt(t, dir, "https://127.0.0.1:80")
	if p := r.refused(http.MethodPost, strings.TrimPrefix(path, rest.Base), "{}", http.StatusConflict); p.Code != "ANOTHER_ADDRESS" {
		t.Errorf("with TLS: %s", p.Code)
	}
	if err := (Session{}).Save(dir); err != nil {
		t.Fatal(err)
	}
	r.s.o.ServeRoot = func(context.Context, string) error { return fault.Refuse("the port is in use") }
	if p := r.refused(http.MethodPost, strings.TrimPrefix(path, rest.Base), "{}", http.StatusConflict); p.Message != "the port is in use" {
		t.Errorf("a server that does not start: %s", p.Message)
	}
}

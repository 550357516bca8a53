package web

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/web/listen"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// A terminal is opened by a change, and only where there is a workspace. Its page, and no
// other, may have styles of its own.
func TestTerminal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ask(http.MethodPost, "/cases", `{"title":"Send mails"}`, &view.Case{})
	r.refused(http.MethodPost, "/cases/task-009/terminal", "{}", http.StatusNotFound)
	r.refused(http.MethodPost, "/cases/task-001/terminal", "{}", http.StatusConflict)
	if err := r.store.EditWorkspaces(t.Context(), func([]store.Workspace) (store.WorkspaceChange, error) {
		return store.WorkspaceChange{Put: []store.Workspace{{ID: "task-001", Kind: "task", State: "kept", Dir: "/w", Repo: "/repo/.git", Ports: 20000}}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	var c view.CaseDetail
	if r.ask(http.MethodGet, "/cases/task-001", "", &c); c.Workspace == nil || *c.Workspace != (view.Workspace{FirstPort: 20000, Ports: 20}) {
		t.Errorf("its workspace is %+v", c.Workspace)
	}
	var got view.Terminal
	r.ask(http.MethodPost, "/cases/1/terminal", "{}", &got)
	if got.Ticket == "" {
		t.Error("there is no ticket")
	}
	for path, want := range map[string]bool{"/terminal/task-001": true, "/terminal": false, "/terminal.html": false, "/terminals/x": false, "/": false} {
		w := r.send(r.asking(http.MethodGet, path, ""))
		policy := w.Header().Get("Content-Security-Policy")
		if w.Code != http.StatusOK || strings.Contains(policy, "unsafe-inline") != want || !strings.Contains(policy, "script-src 'self';") {
			t.Errorf("%s: %d, policy %s", path, w.Code, policy)
		}
	}
	if w := r.send(r.asking(http.MethodGet, rest.Base+"/terminal?ticket=x", "")); w.Code != http.StatusForbidden {
		t.Errorf("with a ticket that nobody issued: %d", w.Code)
	}
}

// A preview is one of the task's own ports, opened by a browser on this machine; the pages
// answer at no preview's name, and a preview at none of theirs.
func TestPreview(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ask(http.MethodPost, "/cases", `{"title":"Send mails"}`, &view.Case{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	port := l.Addr().(*net.TCPAddr).Port
	if err := r.store.EditWorkspaces(t.Context(), func([]store.Workspace) (store.WorkspaceChange, error) {
		w := store.Workspace{ID: "task-001", Kind: "task", State: "kept", Dir: "/w", Repo: "/repo/.git", Ports: port}
		return store.WorkspaceChange{Put: []store.Workspace{w}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	var got view.Preview
	r.ask(http.MethodPost, "/cases/task-001/preview", fmt.Sprintf(`{"port":%d}`, port), &got)
	link, err := url.Parse(got.URL)
	name := fmt.Sprintf("p%d-task-001.localhost:%s", port, r.s.listener.Port)
	if err != nil || link.Host != name || !slices.Contains(got.Listening, port) {
		t.Errorf("the preview is %+v", got)
	}
	r.refused(http.MethodPost, "/cases/task-001/preview", fmt.Sprintf(`{"port":%d}`, port-1), http.StatusConflict)
	r.refused(http.MethodPost, "/cases/task-001/preview", fmt.Sprintf(`{"port":%d}`, port+20), http.StatusConflict)
	// With all that opens the pages, the API has no address there.
	q := r.asking(http.MethodGet, rest.Base+"/overview", "")
	q.Host = name
	if w := r.send(q); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "/repo") {
		t.Errorf("the API at a preview's name: %d %s", w.Code, w.Body)
	}
	q = r.asking(http.MethodPost, rest.Base+"/cases", `{"title":"x"}`)
	q.Header.Set("Origin", "http://"+name)
	r.problem(r.send(q), http.StatusForbidden)

	// A server that other machines reach has none.
	far := newRigAt(t, listen.Address{Address: "0.0.0.0:0", Insecure: true})
	if far.s.previews != nil {
		t.Error("there are previews for other machines")
	}
	q = far.asking(http.MethodGet, "/", "")
	q.Host = fmt.Sprintf("p%d-task-001.localhost:%s", port, far.s.listener.Port)
	far.problem(far.send(q), http.StatusMisdirectedRequest)
}

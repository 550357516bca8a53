package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/store"
)

// A terminal is opened by a change, and only where there is a workspace. Its page, and no
// other, may have styles of its own.
func TestTerminal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ask(http.MethodPost, "/cases", `{"title":"Send mails"}`, &Case{})
	r.refused(http.MethodPost, "/cases/task-009/terminal", "{}", http.StatusNotFound)
	r.refused(http.MethodPost, "/cases/task-001/terminal", "{}", http.StatusConflict)
	if err := r.store.EditWorkspaces(t.Context(), func([]store.Workspace) (store.WorkspaceChange, error) {
		return store.WorkspaceChange{Put: []store.Workspace{{ID: "task-001", Kind: "task", State: "kept", Dir: "/w", Repo: "/repo/.git", Ports: 20000}}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	var c CaseDetail
	if r.ask(http.MethodGet, "/cases/task-001", "", &c); c.Workspace == nil || *c.Workspace != (Workspace{20000, 20}) {
		t.Errorf("its workspace is %+v", c.Workspace)
	}
	var got Terminal
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
	if w := r.send(r.asking(http.MethodGet, base+"/terminal?ticket=x", "")); w.Code != http.StatusForbidden {
		t.Errorf("with a ticket that nobody issued: %d", w.Code)
	}
}

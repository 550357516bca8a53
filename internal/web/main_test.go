package web

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
)

var rewrite = flag.Bool("rewrite", false, "write docs/openapi.json anew")

// rig is a server with a database of its own.
type rig struct {
	t     *testing.T
	s     *Server
	store *sqlite.Store
	hands *hands
	dir   string // the state folder
	log   *buffer
	host  string
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const testToken = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func newRig(t *testing.T) *rig { return newRigAt(t, Address{Address: "127.0.0.1:0"}) }

func newRigAt(t *testing.T, a Address) *rig {
	t.Helper()
	dir := t.TempDir()
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	listener, err := Open(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	r := &rig{t: t, store: store, dir: dir, hands: &hands{store: store}, log: &buffer{}, host: listener.shown}
	r.s = New(listener, Options{
		Root: "/repo", StateDir: dir, Version: "test", Token: testToken, Store: store, Actions: r.hands, Log: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Config: func() (*config.Config, error) {
			c := &config.Config{}
			c.Verification.Commands = []config.Gate{{Name: "tests", Command: "true", Required: true, Timeout: config.Duration(time.Minute)}}
			return c, nil
		},
	})
	return r
}

// serve answers on the network until the test ends.
func (r *rig) serve() (end func() error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(r.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- r.s.Serve(ctx) }()
	end = sync.OnceValue(func() error { stop(); return <-ended })
	r.t.Cleanup(func() {
		if err := end(); err != nil {
			r.t.Error(err)
		}
	})
	return end
}

// asking is a request of somebody who has the token.
func (r *rig) asking(method, path, body string) *http.Request {
	req := httptest.NewRequestWithContext(r.t.Context(), method, path, strings.NewReader(body))
	req.Host = r.host
	req.Header.Set("Authorization", "Bearer "+testToken)
	if method != http.MethodGet && method != http.MethodHead {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

func (r *rig) send(req *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r.s.Handler().ServeHTTP(w, req)
	return w
}

// get asks and reads the answer.
func (r *rig) get(path string, to any) {
	r.t.Helper()
	r.ask(http.MethodGet, path, "", to)
}

func (r *rig) ask(method, path, body string, to any) {
	r.t.Helper()
	w := r.send(r.asking(method, base+path, body))
	if w.Code != http.StatusOK {
		r.t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), to); err != nil {
		r.t.Fatalf("%s %s: %v in %s", method, path, err, w.Body)
	}
}

// refused asks and returns the problem that is the answer.
func (r *rig) refused(method, path, body string, status int) Details {
	r.t.Helper()
	w := r.send(r.asking(method, base+path, body))
	return r.problem(w, status)
}

func (r *rig) problem(w *httptest.ResponseRecorder, status int) Details {
	r.t.Helper()
	var p struct{ Error *Details }
	if w.Code != status || json.Unmarshal(w.Body.Bytes(), &p) != nil || p.Error == nil {
		r.t.Fatalf("got %d %s, want a problem with %d", w.Code, w.Body, status)
	}
	if p.Error.Code == "" || p.Error.Message == "" || p.Error.Severity == "" || p.Error.Details == nil || p.Error.Suggestions == nil {
		r.t.Errorf("a problem without all its parts: %s", w.Body)
	}
	if len(p.Error.Suggestions) == 0 && p.Error.Code != "REFUSED" { // what a deed refuses says in its message why
		r.t.Errorf("a problem that does not say what to do next: %s", w.Body)
	}
	return *p.Error
}

// run stores a run that nobody drives.
func (r *rig) run(id string, change func(*sqlite.Run, *loop.State)) {
	r.t.Helper()
	state := loop.State{Status: loop.Running, Strategy: "default"}
	row := sqlite.Run{
		ID: id, Kind: "procedure", Name: "build", Root: "/repo", Status: string(loop.Running), StartedAt: noon, Setup: json.RawMessage(`{}`),
		Owner: sqlite.Owner{PID: 1 << 30, Start: "1", Boot: "b", Host: "h"},
	}
	if change != nil {
		change(&row, &state)
	}
	text, err := json.Marshal(state)
	if err != nil {
		r.t.Fatal(err)
	}
	row.State = text
	e, err := journal.New(id, 1, row.StartedAt, journal.RunCreated, journal.Created{Kind: row.Kind, Name: row.Name})
	if err == nil {
		err = r.store.Create(r.t.Context(), row, e, func(sqlite.Owner) bool { return false })
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// left writes files of an iteration.
func (r *rig) left(run string, n int, files map[string]string) {
	r.t.Helper()
	dir := filepath.Join(r.dir, "runs", run, fmt.Sprint(n))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

// hands note what they are asked to do.
type hands struct {
	mu     sync.Mutex
	asked  []string
	refuse error
	goesOn bool
	store  *sqlite.Store // cases are moved in it
	tree   *workspace.Checkout
}

func (h *hands) note(format string, args ...any) (Result, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, fmt.Sprintf(format, args...))
	return Result{Lines: []string{"Done."}}, h.refuse
}

func (h *hands) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.asked, "; ")
}

func (h *hands) Start(_ context.Context, w StartWish) (string, Result, error) {
	said, err := h.note("start %v", w)
	return "new", said, err
}

func (h *hands) Resume(_ context.Context, run string, r Raise) (Result, error) {
	return h.note("resume %s %v", run, r)
}
func (h *hands) Pause(_ context.Context, run string) (Result, error) { return h.note("pause %s", run) }
func (h *hands) Stop(_ context.Context, run string) (Result, error)  { return h.note("stop %s", run) }
func (h *hands) Redirect(_ context.Context, run, task string) (Result, error) {
	return h.note("redirect %s %s", run, task)
}
func (h *hands) Message(_ context.Context, run, text string) (Result, error) {
	return h.note("message %s %q", run, text)
}
func (h *hands) Apply(_ context.Context, run string) (Result, error) { return h.note("apply %s", run) }
func (h *hands) StartAutopilot(_ context.Context, w PilotWish) (Result, error) {
	return h.note("autopilot start %v", w)
}
func (h *hands) AskAutopilot(_ context.Context, wish, text string) (Result, error) {
	return h.note("autopilot %s %s", wish, text)
}
func (h *hands) StartSprint(_ context.Context, w SprintWish) (Result, error) {
	return h.note("sprint %v", w)
}
func (h *hands) Tree(context.Context, sqlite.Run) (*workspace.Checkout, error) {
	return h.tree, h.refuse
}
func (h *hands) AskQueue(_ context.Context, wish, id, why string) (Result, error) {
	return h.note("queue %s %s %q", wish, id, why)
}
func (h *hands) Case(ctx context.Context, verb, id string, w CaseWish) (Result, error) {
	if slices.Contains(personal, board.Action(verb)) {
		_, err := h.store.MoveCase(ctx, id, board.Change{Action: board.Action(verb), By: board.Person, Why: w.Text, At: time.Now()})
		return Result{}, err
	}
	return h.note("case %s %s %v", verb, id, w)
}
func (h *hands) Gather(context.Context, string) error { return errors.New("nothing to gather") }

func (h *hands) Answer(_ context.Context, run, _ string, choice int, text string) (Result, bool, error) {
	said, err := h.note("answer %s %d %q", run, choice, text)
	return said, h.goesOn, err
}

func (h *hands) Rollback(_ context.Context, run string, to int, undo bool) (Result, error) {
	return h.note("rollback %s %d %v", run, to, undo)
}

// buffer is a log that several goroutines write.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func read(t *testing.T, from io.Reader) string {
	t.Helper()
	data, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// newRecorder is a recorder that can be flushed.
func newRecorder() *httptest.ResponseRecorder { return httptest.NewRecorder() }

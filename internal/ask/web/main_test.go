package web

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/ask/web/listen"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

var rewrite = flag.Bool("rewrite", false, "write docs/openapi.json anew")

// client is of this package alone: a test server of another test that ends closes
// the idle connections of http.DefaultClient.
var client = &http.Client{Transport: &http.Transport{}}

// rig is a server with a database of its own.
type rig struct {
	t     *testing.T
	s     *Server
	store *store.Store
	asked *wishes
	dir   string // the state folder
	log   *buffer
	host  string
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const testToken = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func newRig(t *testing.T) *rig { return newRigAt(t, listen.Address{Address: "127.0.0.1:0"}) }

func newRigAt(t *testing.T, a listen.Address) *rig {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	listener, err := listen.Open(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	r := &rig{t: t, store: db, dir: dir, asked: &wishes{store: db}, log: &buffer{}, host: listener.Shown}
	c := &config.Config{Procedures: map[string]config.Procedure{"build": {}}}
	c.Verification.Commands = []config.Gate{{Name: "tests", Command: "true", Required: true, Timeout: quantity.Duration(time.Minute)}}
	r.s = New(listener, Options{
		Operator: action.New(action.Options{
			Store: db, Root: "/repo", Env: []string{"HOME=" + dir, "XDG_STATE_HOME=" + dir},
			Planner: func(string, planner.Flags) (*planner.Planner, error) { return &planner.Planner{Config: c}, nil },
			Log: func(string) *slog.Logger {
				return slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			},
		}),
		StateDir: dir, Version: "test", Token: testToken, Launch: r.asked.launch, AskQueue: r.asked.queue,
		OpenQueue: func(context.Context, func(*merge.Queue) error) error {
			return fault.Refuse("there is no merge queue in this test").Hint("Set OpenQueue")
		},
	})
	r.s.ServeTools(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}))
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
	r.s.handler.ServeHTTP(w, req)
	return w
}

// get asks and reads the answer.
func (r *rig) get(path string, to any) {
	r.t.Helper()
	r.ask(http.MethodGet, path, "", to)
}

func (r *rig) ask(method, path, body string, to any) {
	r.t.Helper()
	w := r.send(r.asking(method, rest.Base+path, body))
	if w.Code != http.StatusOK {
		r.t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), to); err != nil {
		r.t.Fatalf("%s %s: %v in %s", method, path, err, w.Body)
	}
}

// refused asks and returns the problem that is the answer.
func (r *rig) refused(method, path, body string, status int) rest.Details {
	r.t.Helper()
	w := r.send(r.asking(method, rest.Base+path, body))
	return r.problem(w, status)
}

func (r *rig) problem(w *httptest.ResponseRecorder, status int) rest.Details {
	r.t.Helper()
	var p struct{ Error *rest.Details }
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
func (r *rig) run(id string, change func(*store.Run, *loop.State)) {
	r.t.Helper()
	state := loop.State{Status: loop.Running, Choosing: loop.Choosing{Strategy: "default"}}
	row := store.Run{
		ID: id, Kind: "procedure", Name: "build", Root: "/repo", Status: string(loop.Running), StartedAt: noon, Setup: json.RawMessage(`{}`),
		Owner: store.Owner{PID: 1 << 30, Start: "1", Boot: "b", Host: "h"},
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
		err = r.store.Create(r.t.Context(), row, e, func(store.Owner) bool { return false })
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

// wishes are what was asked for: pawls in the background, which are not started,
// and rows for those that drive runs, the queue and the autopilot.
type wishes struct {
	mu    sync.Mutex
	list  []string
	fails error // what a start comes to
	store *store.Store
	last  int64 // the control of a run that was seen last
}

func (a *wishes) launch(_ context.Context, args []string, _ Begun) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, "pawl "+strings.Join(args, " "))
	if strings.Contains(a.list[len(a.list)-1], "\x00") {
		return "", syscall.EINVAL // as the system says
	}
	return "new", a.fails
}

func (a *wishes) queue(_ context.Context, ask queue.Ask) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, fmt.Sprintf("queue %s %s %q", ask.Wish, ask.ID, ask.Why))
	return nil
}

// did is what was asked for since it was called last.
func (r *rig) did() string {
	r.t.Helper()
	r.asked.mu.Lock()
	defer r.asked.mu.Unlock()
	list := r.asked.list
	r.asked.list = nil
	rows, err := r.store.Controls(r.t.Context(), "abc123")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, row := range rows {
		if row.ID > r.asked.last {
			list = append(list, strings.TrimSpace(row.Kind+" "+row.Text))
			r.asked.last = row.ID
		}
	}
	rest, err := r.store.TakeAutopilotControls(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, w := range rest {
		list = append(list, strings.TrimSpace("autopilot "+w.Kind+" "+w.Text))
	}
	return strings.Join(list, "; ")
}

// workspaces are those of a repository of its own.
func (r *rig) workspaces() {
	r.t.Helper()
	root := filepath.Join(r.dir, "repo")
	if out, err := exec.CommandContext(r.t.Context(), "git", "init", "-q", root).CombinedOutput(); err != nil {
		r.t.Fatalf("git init: %s", out)
	}
	r.s.o.Pool = func(ctx context.Context) (*pool.Pool, error) {
		return pool.Open(ctx, pool.Options{Root: root, StateDir: r.dir, Store: r.store})
	}
}

// self is this process as the owner of something.
func (r *rig) self() store.Owner {
	r.t.Helper()
	id, err := process.Self()
	if err != nil {
		r.t.Fatal(err)
	}
	return storedrun.OwnerOf(id)
}

// nobody is a process of an earlier boot of this machine.
func (r *rig) nobody() store.Owner {
	o := r.self()
	o.Boot = "an earlier one"
	return o
}

// autopilot stores one that this process drives.
func (r *rig) autopilot(phase string) {
	r.t.Helper()
	a := store.Autopilot{Session: "s", Phase: phase, Owner: r.self(), StartedAt: noon, State: json.RawMessage(`{}`)}
	if _, err := r.store.TakeAutopilot(r.t.Context(), a, func(store.Owner) bool { return false }); err != nil {
		r.t.Fatal(err)
	}
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

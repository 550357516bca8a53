package merge

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/boxnet"
	"github.com/pawl-dev/pawl/internal/do/egress"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/netstack"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/reexec"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// landCommand makes the test binary a pawl that lands and can be killed.
const landCommand = "__land"

// The test binary is also the supervisor of gates.
func TestMain(m *testing.M) {
	if code, ok := reexec.Finish(supervisor.Rest{Ways: boxnet.Ways{Proxy: egress.Out(os.Getenv), Stack: netstack.Serve}}); ok {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == landCommand {
		os.Exit(landAndDie(os.Args[2:]))
	}
	os.Exit(gittest.Run(m, "GORACE=atexit_sleep_ms=0"))
}

// rig is a repository with a queue.
type rig struct {
	t     testing.TB
	dir   string // the user's checkout
	state string
	store *store.Store
	o     Options

	mu    sync.Mutex
	notes []queue.Note
}

func newRig(t testing.TB) *rig {
	t.Helper()
	return newRigIn(t, folder(t))
}

// newRigIn is a rig whose repository and checkout are in a folder.
func newRigIn(t testing.TB, dir string) *rig {
	t.Helper()
	r := &rig{t: t, dir: dir, state: folder(t)}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	r.git("init", "-q", "-b", "main")
	r.write("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
	r.write("b.txt", "b\n")
	r.git("add", ".")
	r.git("commit", "-qm", "base")
	r.open()
	return r
}

func folder(t testing.TB) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// open opens database and repository, as a pawl does at its start.
func (r *rig) open() {
	db, err := store.Open(r.t.Context(), filepath.Join(r.state, "pawl.db"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = db.Close() })
	repo, err := git.OpenStore(r.t.Context(), r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	r.store = db
	r.o = options(r.state, repo, db)
	r.o.Notify = r.note
}

// integration makes a clone for gates, which is removed after them.
func integration(state string, repo *git.Repo) func(context.Context, string, bool) (Workspace, error) {
	return func(ctx context.Context, commit string, _ bool) (Workspace, error) {
		dir, err := os.MkdirTemp(state, "integration-*")
		if err != nil {
			return Workspace{}, err
		}
		for _, args := range [][]string{
			{"clone", "-q", "--shared", "--no-checkout", repo.Common, dir},
			{"-C", dir, "checkout", "-q", "--detach", commit},
		} {
			if out, err := exec.CommandContext(ctx, "git", args...).CombinedOutput(); err != nil {
				return Workspace{}, fmt.Errorf("git %s: %w: %s", args[0], err, out)
			}
		}
		return Workspace{Dir: dir, Done: func(context.Context) { _ = os.RemoveAll(dir) }}, nil
	}
}

// options are those of a pawl that works in a state folder.
func options(state string, repo *git.Repo, db *store.Store) Options {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	self, err := process.Self()
	if err != nil {
		panic(err)
	}
	return Options{
		Store: db, Repo: repo, Dir: filepath.Join(state, "queue"), Target: "main", Verifying: Verifying{Environ: os.Environ()},
		Integration: integration(state, repo),
		Policy:      queue.Policy{Batch: 8, Retries: 2, Timeout: time.Hour, Action: queue.Defer},
		Exe:         exe, Args: []string{reexec.Supervise}, Lease: 2 * time.Second,
		Owner: store.Owner{PID: self.PID, Start: fmt.Sprint(self.Start), Boot: self.Boot, Host: self.Host},
		Alive: func(o store.Owner) bool {
			id := process.Identity{PID: o.PID, Boot: o.Boot, Host: o.Host, Space: self.Space}
			_, _ = fmt.Sscan(o.Start, &id.Start)
			return process.Alive(id)
		},
	}
}

func (r *rig) note(n queue.Note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, n)
}

// said is what the queue told of a kind.
func (r *rig) said(kind queue.NoteKind) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, n := range r.notes {
		if n.Kind == kind {
			list = append(list, strings.TrimSpace(n.ID+" "+n.Text))
		}
	}
	return list
}

func (r *rig) git(args ...string) string { r.t.Helper(); return gittest.Git(r.t, r.dir, args...) }

func (r *rig) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) read(name string) string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

// task makes a task in review on the board, and a commit on top of a base that
// changes files: names and texts in turn. "-" as text deletes a file.
func (r *rig) task(title, base string, files ...string) (id, commit string) {
	r.t.Helper()
	cases, err := r.store.AddCases(r.t.Context(), []board.Draft{{Case: board.Case{Type: board.Task, Title: title}}}, board.Person, time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	id = cases[0].ID
	return id, r.commit(title, base, files...)
}

// commits counts those of tests: each has a ref of its own, so that git keeps it.
var commits atomic.Int64

// commit makes a commit in the repository without touching its checkout.
func (r *rig) commit(title, base string, files ...string) string {
	r.t.Helper()
	return gittest.Commit(r.t, r.dir, fmt.Sprintf("refs/commits/%d", commits.Add(1)), title, base, files...)
}

func (r *rig) queue() *Queue {
	r.t.Helper()
	q, err := Open(r.t.Context(), r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	return q
}

func (r *rig) add(q *Queue, id, commit, title string) {
	r.t.Helper()
	if err := q.Add(r.t.Context(), Entry{ID: id, Commit: commit, Title: title, Run: "r-" + id}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) drain(q *Queue) {
	r.t.Helper()
	if err := q.Drain(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) status(id string) board.Status {
	r.t.Helper()
	c, err := r.store.Case(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return c.Status
}

// left is the queue's entries, with their statuses.
func (r *rig) left() []string {
	r.t.Helper()
	row, _, err := r.store.Queue(r.t.Context(), "refs/heads/main")
	if err != nil {
		r.t.Fatal(err)
	}
	var list []string
	for _, e := range row.State.Entries {
		list = append(list, e.ID+" "+string(e.Status)+": "+e.Why)
	}
	return list
}

// audit holds the promises against the repository: every value that the target
// held since a commit has a green record of its tree, and tasks are done if and
// only if their landing is an ancestor.
func (r *rig) audit(since string) {
	r.t.Helper()
	for _, commit := range strings.Fields(r.git("rev-list", "--first-parent", "main", "^"+since)) {
		tree := r.git("rev-parse", commit+"^{tree}")
		ok, err := r.store.GreenTree(r.t.Context(), tree)
		if err != nil {
			r.t.Fatal(err)
		}
		if !ok {
			r.t.Errorf("the target held %s, whose tree has no green record", commit)
		}
	}
	landed, err := r.store.Landings(r.t.Context(), "refs/heads/main", "", 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	done := map[string]int{}
	for _, l := range landed {
		done[l.Task]++
		r.git("merge-base", "--is-ancestor", l.Commit, "main")
		if s := r.status(l.Task); s != board.Done {
			r.t.Errorf("%s landed and is %s", l.Task, s)
		}
	}
	all, err := r.store.Cases(r.t.Context(), store.CaseFilter{Status: []board.Status{board.Done}})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, c := range all {
		if done[c.ID] != 1 {
			r.t.Errorf("%s is done and has %d landings", c.ID, done[c.ID])
		}
	}
	if locks, _ := filepath.Glob(filepath.Join(r.dir, ".git", "*.lock")); len(locks) > 0 {
		r.t.Errorf("locks are left: %v", locks)
	}
	if rest, _ := filepath.Glob(filepath.Join(r.dir, ".git", "pawl*")); len(rest) > 0 {
		r.t.Errorf("files are left: %v", rest)
	}
}

func equal(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func gates(commands ...string) []gate.Spec {
	var list []gate.Spec
	for _, c := range commands {
		list = append(list, gate.Spec{Name: c, Command: c, Required: true, Timeout: time.Minute})
	}
	return list
}

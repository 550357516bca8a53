package retention_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/retention"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

var now = time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC)

// rig is a state folder with a database, and a repository.
type rig struct {
	t *testing.T
	o retention.Options
}

func newRig(t *testing.T) *rig {
	t.Helper()
	top, state := t.TempDir(), t.TempDir()
	gittest.Git(t, top, "init", "-q", "-b", "main")
	gittest.Git(t, top, "commit", "-q", "--allow-empty", "-m", "one")
	tree, err := workspace.Open(t.Context(), top, workspace.Options{StateDir: state})
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), filepath.Join(state, "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	const day = 24 * time.Hour
	return &rig{t, retention.Options{
		StateDir: state, Store: db, Tree: tree, Runs: 30 * day, Most: 200, Output: 7 * day, Events: 30 * day, Now: now,
	}}
}

// run stores a run that ended some days ago, with an iteration's output. Zero days: it
// rests, and has not ended.
func (r *rig) run(id, kind, name, status string, days int) {
	r.t.Helper()
	r.store(id, kind, name, status, now.AddDate(0, 0, -max(days, 1)), days > 0, true)
}

// killed stores a run of a task whose pawl was killed some time ago.
func (r *rig) killed(id, name string, ago time.Duration) {
	r.t.Helper()
	r.store(id, "task", name, "running", now.Add(-ago), false, false)
}

func (r *rig) store(id, kind, name, status string, at time.Time, ended, released bool) {
	r.t.Helper()
	ctx := r.t.Context()
	host, err := os.Hostname()
	if err != nil {
		r.t.Fatal(err)
	}
	one := store.Run{ID: id, Kind: kind, Name: name, Root: "/r", Status: status, State: []byte(`{}`), StartedAt: at, UpdatedAt: at,
		Owner: store.Owner{PID: 1, Start: "1", Boot: "an earlier one", Host: host}}
	e, err := journal.New(id, 1, at, journal.RunCreated, journal.Created{Kind: kind, Name: name})
	if err == nil {
		err = r.o.Store.Create(ctx, one, e, func(store.Owner) bool { return false })
	}
	if err != nil {
		r.t.Fatal(err)
	}
	if ended {
		one.EndedAt = at
	}
	e, err = journal.New(id, 2, at, journal.Finished, journal.End{Status: status})
	if err == nil {
		err = r.o.Store.Commit(ctx, store.Step{Run: one, Event: e, Release: released})
	}
	dir := filepath.Join(r.o.StateDir, "runs", id, "1")
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agent.out"), make([]byte, 1000), 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) sweep() retention.Report {
	r.t.Helper()
	report, err := retention.Sweep(r.t.Context(), r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	return report
}

// left says which runs are known, and of which there is output ("+").
func (r *rig) left() string {
	r.t.Helper()
	runs, err := r.o.Store.Runs(r.t.Context(), store.RunQuery{})
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, run := range runs {
		plus := ""
		if _, err := os.Stat(filepath.Join(r.o.StateDir, "runs", run.ID, "1", "agent.out")); err == nil {
			plus = "+"
		}
		out = append(out, run.ID+plus)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// Runs and their output go when they are old enough; what may go on, what waits, and
// what has snapshots stays.
func TestSweep(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := t.Context()
	cases, err := r.o.Store.AddCases(ctx, []board.Draft{{Case: board.Case{Type: board.Task, Title: "open", Status: board.Pending}}}, board.Person, now)
	if err != nil {
		t.Fatal(err)
	}
	r.run("fresh", "procedure", "a", "completed", 2)
	r.run("week", "procedure", "b", "completed", 8)
	r.run("month", "procedure", "c", "failed", 31)
	r.run("rests", "procedure", "d", "blocked", 0)
	r.run("snap", "procedure", "e", "completed", 31)
	gittest.Git(t, r.o.Tree.Repo.Top, "update-ref", "refs/pawl/runs/snap/1", "HEAD")
	r.run("earlier", "task", cases[0].ID, "timeout", 33)
	r.run("waits", "task", cases[0].ID, "timeout", 32)
	r.run("gone", "task", "task-099", "timeout", 32)
	before := r.left()

	r.o.Dry = true
	would := r.sweep()
	if got := r.left(); got != before {
		t.Errorf("a dry run left %s of %s", got, before)
	}
	r.o.Dry = false
	did := r.sweep()
	if got, want := r.left(), "fresh+ rests+ snap waits+ week"; got != want {
		t.Errorf("left %s, want %s", got, want)
	}
	if would != did || did.Runs != 3 || did.Outputs != 2 || did.Bytes != 5000 {
		t.Errorf("would %+v, did %+v", would, did)
	}
	if again := r.sweep(); again != (retention.Report{}) {
		t.Errorf("and again %+v", again)
	}

	r.o.Keep = 24 * time.Hour
	if r.sweep(); r.left() != "fresh+ rests+ waits+ week" {
		t.Errorf("with old snapshots %s stay", r.left())
	}

	if _, err := os.Stat(r.o.Store.Path() + ".backup"); err != nil {
		t.Errorf("the database has no copy: %v", err)
	}
	// The newest stay when there are too many, and what may be taken up again: not
	// what a task left that is done.
	r.run("last", "procedure", "f", "exhausted", 3)
	r.run("merge", "task", cases[0].ID+"-merge", "failed", 3)
	r.run("merged", "task", "task-099-merge", "failed", 3)
	r.o.Most = 1
	r.sweep()
	if got, want := r.left(), "fresh+ last+ merge+ rests+ waits+"; got != want {
		t.Errorf("of too many %s stay, want %s", got, want)
	}
}

// Snapshots go before their run does. A copy with work that nobody applied keeps its own.
func TestSweepOfSnapshots(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.Keep = 24 * time.Hour
	for run, days := range map[string]int{"young": 1, "old": 3, "copied": 3} {
		r.run(run, "procedure", run, "completed", days)
		gittest.Git(t, r.o.Tree.Repo.Top, "update-ref", "refs/pawl/runs/"+run+"/1", "HEAD")
	}
	copied := engine.CopyDir(r.o.StateDir, "copied")
	if err := os.MkdirAll(copied, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(copied, "done"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.sweep()
	refs := gittest.Git(t, r.o.Tree.Repo.Top, "for-each-ref", "--format=%(refname)", "refs/pawl/runs")
	if want := "refs/pawl/runs/copied/1\nrefs/pawl/runs/young/1"; strings.TrimSpace(refs) != want {
		t.Errorf("these are left: %s", refs)
	}
	if got, want := r.left(), "copied+ old young+"; got != want || !workspace.HasCopy(copied) {
		t.Errorf("left %s, want %s", got, want)
	}
}

// A pawl that is killed leaves runs that never end. Those go that nobody takes up again:
// another one has taken their place, or their task is done.
func TestSweepOfWhatWasKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cases, err := r.o.Store.AddCases(t.Context(),
		[]board.Draft{{Case: board.Case{Type: board.Task, Title: "open", Status: board.Pending}}}, board.Person, now)
	if err != nil {
		t.Fatal(err)
	}
	r.killed("before", cases[0].ID, 3*time.Hour)
	r.killed("last", cases[0].ID, 2*time.Hour)
	r.killed("merge", "task-099-merge", 2*time.Hour)
	r.killed("now", "task-098-merge", 30*time.Second)
	r.o.Most = 1
	r.sweep()
	if got, want := r.left(), "last+ now+"; got != want {
		t.Errorf("left %s, want %s", got, want)
	}
}

// What was collected for merging goes with its task, and many loose objects are packed.
func TestSweepOfTheRepository(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	top := r.o.Tree.Repo.Top
	cases, err := r.o.Store.AddCases(t.Context(),
		[]board.Draft{{Case: board.Case{Type: board.Task, Title: "open", Status: board.Pending}}}, board.Person, now)
	if err != nil {
		t.Fatal(err)
	}
	done, err := r.o.Store.AddCases(t.Context(),
		[]board.Draft{{Case: board.Case{Type: board.Task, Title: "done", Status: board.Done}}}, board.Person, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"task-099-merge", "task-099", cases[0].ID + "-merge", cases[0].ID, done[0].ID} {
		gittest.Git(t, top, "update-ref", "refs/pawl/tasks/"+id, "HEAD")
	}
	dir := t.TempDir()
	args := []string{"hash-object", "-w", "--"}
	for i := range 1001 {
		name := filepath.Join(dir, strconv.Itoa(i))
		if err := os.WriteFile(name, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, name)
	}
	objects := strings.Fields(gittest.Git(t, top, args...))
	if got := r.sweep(); got.Refs != 2 || got.Packed < 1001 {
		t.Errorf("did %+v", got)
	}
	refs := gittest.Git(t, top, "for-each-ref", "--format=%(refname)", "refs/pawl")
	if want := "refs/pawl/tasks/" + cases[0].ID + "\nrefs/pawl/tasks/" + cases[0].ID + "-merge\nrefs/pawl/tasks/task-099"; strings.TrimSpace(refs) != want {
		t.Errorf("refs\n%s\nwant\n%s", refs, want)
	}
	if n, err := r.o.Tree.Repo.Loose(t.Context()); err != nil || n > 100 {
		t.Errorf("%d objects are loose, %v", n, err)
	}
	gittest.Git(t, top, "cat-file", "-e", objects[0]) // which nothing leads to
}

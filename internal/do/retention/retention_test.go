package retention_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
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

// snapshot takes one of a run.
func (r *rig) snapshot(run string) {
	r.t.Helper()
	if _, err := r.o.Tree.Snapshot(r.t.Context(), run, 1, workspace.SnapshotOptions{}); err != nil {
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
	r.snapshot("snap")
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

// A task that is done is no reason to keep the snapshots of its runs: they go with the run, and so the number of runs
// holds on a board, too.
func TestSweepOfLandedTasks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.Most, r.o.Keep = 2, 30*24*time.Hour
	for i := range 5 {
		id := "run" + strconv.Itoa(i)
		r.run(id, "task", "task-10"+strconv.Itoa(i), "completed", i+1)
		r.snapshot(id)
	}
	r.sweep()
	refs := gittest.Git(t, r.o.Tree.Store.Dir, "--git-dir=.", "for-each-ref", "--format=%(refname)", "refs/pawl/runs")
	if got, want := r.left(), "run0+ run1+"; got != want || strings.Count(refs, "\n") > 2 {
		t.Errorf("left %s with %s, want %s", got, refs, want)
	}
}

// Each landing leaves a pack in the repository: many become few, and nothing in them is lost.
func TestSweepJoinsPacks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	top := r.o.Tree.Repo.Top
	var lone string
	for i := range 60 {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, []byte(strconv.Itoa(i)), 0o600); err != nil {
			t.Fatal(err)
		}
		lone = strings.TrimSpace(gittest.Git(t, top, "hash-object", "-w", name)) // no ref leads to it
		gittest.Git(t, top, "commit", "-q", "--allow-empty", "-m", strconv.Itoa(i))
		list := filepath.Join(t.TempDir(), "list")
		if err := os.WriteFile(list, []byte(lone+"\n"+strings.TrimSpace(gittest.Git(t, top, "rev-parse", "HEAD"))+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(list)
		if err != nil {
			t.Fatal(err)
		}
		pack := exec.CommandContext(t.Context(), "git", "-C", top, "pack-objects", "-q", ".git/objects/pack/pack")
		pack.Stdin = in
		if out, err := pack.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_ = in.Close()
	}
	gittest.Git(t, top, "prune-packed")
	r.sweep()
	packs, _ := filepath.Glob(filepath.Join(top, ".git", "objects", "pack", "*.pack"))
	if len(packs) > 10 {
		t.Errorf("%d packs are left", len(packs))
	}
	if gittest.Git(t, top, "cat-file", "-t", lone); strings.TrimSpace(gittest.Git(t, top, "rev-list", "--count", "HEAD")) != "61" {
		t.Error("commits are lost")
	}
}

// Snapshots go before their run does.
func TestSweepOfSnapshots(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.Keep = 24 * time.Hour
	for run, days := range map[string]int{"young": 1, "old": 3} {
		r.run(run, "procedure", run, "completed", days)
		r.snapshot(run)
	}
	r.sweep()
	refs := gittest.Git(t, r.o.Tree.Store.Dir, "--git-dir=.", "for-each-ref", "--format=%(refname)", "refs/pawl/runs")
	if want := "refs/pawl/runs/young/1"; strings.TrimSpace(refs) != want {
		t.Errorf("these are left: %s", refs)
	}
	if got, want := r.left(), "old young+"; got != want {
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

// What was collected for merging goes with its task, and the many loose objects of pawl's
// own repository are packed: those of the user's are the user's.
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
	args := []string{"--git-dir=" + r.o.Tree.Store.Dir, "hash-object", "-w", "--"}
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
	if n, err := r.o.Tree.Store.Loose(t.Context()); err != nil || n > 100 {
		t.Errorf("%d objects are loose, %v", n, err)
	}
	gittest.Git(t, top, "--git-dir="+r.o.Tree.Store.Dir, "cat-file", "-e", objects[0]) // which nothing leads to
}

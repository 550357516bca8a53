package pool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	task := store.Workspace{ID: "task-001", Kind: kindTask, State: kept, Why: "it failed", KeepUntil: now.Add(time.Hour)}
	with := func(change func(*store.Workspace)) store.Workspace {
		r := task
		change(&r)
		return r
	}
	for _, c := range []struct {
		name   string
		row    store.Workspace
		q      question
		remove bool
		why    string
	}{
		{"live", with(func(r *store.Workspace) { r.State, r.Owner.PID = leased, 7 }), question{busy: "used by process 7", named: true, landed: true}, false, "used by process 7"},
		{"half made by a live one", with(func(r *store.Workspace) { r.State = making }), question{busy: "used by process 7"}, false, "used by"},
		{"half made", with(func(r *store.Workspace) { r.State = making }), question{proof: errors.New("no folder")}, true, "never finished"},
		{"half removed", with(func(r *store.Workspace) { r.State = removing }), question{proof: errors.New("no folder")}, true, "all of it is kept"},
		{"not proved", task, question{named: true, landed: true, proof: errors.New("another folder")}, false, "cannot be proved to be the folder that was made: another folder"},
		{"warm", store.Workspace{Kind: kindWarm, State: warm}, question{}, true, "nothing is in it"},
		{"integration", store.Workspace{Kind: kindIntegration, State: kept}, question{}, true, "has ended"},
		{"removed by hand", task, question{gone: true}, false, "its folder no longer exists; to remove the entry: pawl case clean task-001"},
		{"removed by hand and named", task, question{gone: true, named: true}, true, "you named it"},
		{"named", task, question{named: true}, true, "you named it"},
		{"landed", task, question{landed: true}, true, "has landed"},
		{"failed", task, question{}, false, "it failed; kept until"},
		{"failed long ago", task, question{now: now.Add(2 * time.Hour)}, true, "workspace.retention"},
		{"without end", with(func(r *store.Workspace) { r.KeepUntil = time.Time{} }), question{now: now.Add(1e6 * time.Hour)}, false, "it failed; to remove it now: pawl case clean task-001"},
	} {
		if c.q.now.IsZero() {
			c.q.now = now
		}
		if remove, why := judgeRow(c.row, c.q); remove != c.remove || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v, %q; want %v, %q", c.name, remove, why, c.remove, c.why)
		}
	}
}

func TestJudgeTheDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		free uint64
		want Room
	}{
		{0, RoomStop}, {100*mb - 1, RoomStop}, {100 * mb, RoomClean}, {500*mb - 1, RoomClean}, {500 * mb, RoomWarn},
		{1000*mb - 1, RoomWarn}, {1000 * mb, RoomEnough}, {1 << 62, RoomEnough},
	} {
		if got, why := Judge(c.free, "/work"); got != c.want || (why == "") != (got == RoomEnough) {
			t.Errorf("%d bytes: %d, %q; want %d", c.free, got, why, c.want)
		}
	}
}

// A disk that is nearly full: idle workspaces go, those that wait first, then
// the oldest, until there is room; their work is kept. What is in use stays.
func TestLowDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var p *Pool
	freeFor := 3 // of the workspaces, this many must be gone
	r.o.Free = func(dir string) (uint64, error) {
		if dir != p.o.Dir {
			return 1 << 40, nil
		}
		there, err := os.ReadDir(dir)
		if err != nil || len(there) > 4-freeFor {
			return 400 * mb, err
		}
		return 600 * mb, nil
	}
	low := r.o.Free
	r.o.Free = func(string) (uint64, error) { return 1 << 40, nil }
	p = r.open()
	for _, id := range []string{"task-001", "task-002", "task-003", "task-004"} {
		w := r.take(p, id)
		r.put(w.Dir, "work", id)
		switch id {
		case "task-003": // in use
		case "task-004":
			r.release(p, w, Landed)
		default:
			r.release(p, w, Keep("it failed"))
		}
	}
	p.o.Free = low
	if _, err := p.Take(t.Context(), "task-005", "HEAD"); err != nil {
		t.Errorf("with room made: %v", err)
	}
	all, err := p.List(t.Context())
	if err != nil || len(all) != 2 || all[0].ID != "task-003" || all[1].ID != "task-005" {
		t.Errorf("left %+v, %v", all, err)
	}
	for _, id := range []string{"task-001", "task-002"} {
		if kept, err := p.Recoveries(t.Context(), id); err != nil || len(kept) != 1 || r.git(r.top, "show", kept[0].Commit+":work") != id {
			t.Errorf("recoveries of %s: %v, %v", id, kept, err)
		}
	}
	for _, dir := range []string{p.o.StateDir, p.repo.Common} { // every disk that is written to counts
		p.o.Free = func(of string) (uint64, error) {
			if of == dir {
				return 99 * mb, nil
			}
			return 1 << 40, nil
		}
		if room, why := p.Room(); room != RoomStop || !strings.Contains(why, dir) {
			t.Errorf("with little room for %s: %v, %q", dir, room, why)
		}
	}
	p.o.Free = low
	freeFor = 5
	if _, err := p.Take(t.Context(), "task-006", "HEAD"); !errors.Is(err, ErrDisk) || !strings.Contains(err.Error(), "400 MB are free") {
		t.Errorf("without room: %v", err)
	}
	if !pathExists(p.DirOf("task-003")) {
		t.Error("a workspace in use is gone")
	}
}

// What an agent left that brought a task's work together with the target is
// the task's too, and each attempt is kept beside those before.
func TestEachAttemptToMergeIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	for i, text := range []string{"one", "two", "three"} {
		w := r.take(p, "task-001"+MergeSuffix)
		r.put(w.Dir, "work", text)
		r.release(p, w, GivenUp("a new attempt begins"))
		own, err := p.Recoveries(t.Context(), "task-001"+MergeSuffix)
		if err != nil || len(own) != i+1 || own[i].N != i+1 || r.git(r.top, "show", own[i].Commit+":work") != text {
			t.Fatalf("attempt %d: %v, %v", i+1, own, err)
		}
	}
	all, err := p.Recoveries(t.Context(), "")
	if err != nil || len(all) != 3 || all[2].Task != "task-001" {
		t.Errorf("all: %v, %v", all, err)
	}
}

func TestSweepKeepsWorkAndWhatIsInUse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	r.release(p, r.take(p, "task-001"), Keep("fresh"))
	w := r.take(p, "task-002")
	r.put(w.Dir, "work", "work\n")
	p.o.Retention = -time.Second
	r.release(p, w, Keep("old"))
	v := r.take(p, "task-003")
	r.git(v.Dir, "init", "-q", "nested")
	r.put(v.Dir, "nested/f", "1\n")
	r.put(v.Dir, ".pawl/log.jsonl", "{}\n") // pawl's own is no loss
	r.release(p, v, Keep("holds what no ref can hold"))
	all, err := p.Sweep(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if !all[0].Remove || all[0].Ref == "" || r.git(r.top, "show", all[0].Ref+":work") != "work" {
		t.Errorf("the old one: %+v", all[0])
	}
	if all[1].Remove || !strings.Contains(all[1].Reason, `"nested/" cannot be saved`) || !pathExists(v.Dir) {
		t.Errorf("the one with a repository in it: %+v", all[1])
	}
	// A person may give it up all the same, and is told what went.
	all, err = p.Clean(t.Context(), []string{"task-003"}, false)
	if err != nil || len(all) != 1 || !all[0].Remove || len(all[0].Lost) != 1 || pathExists(v.Dir) {
		t.Errorf("%+v, %v", all, err)
	}
	if !pathExists(p.DirOf("task-001")) {
		t.Error("the fresh one is gone")
	}
}

// A folder that is not the one that was made is never removed.
func TestAnotherFolderIsNotRemoved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	w := r.take(p, "task-001")
	r.release(p, w, Keep("it failed"))
	if err := os.Rename(w.Dir, w.Dir+".mine"); err != nil {
		t.Fatal(err)
	}
	r.put(w.Dir, "precious", "mine\n")
	all, err := p.Clean(t.Context(), []string{"task-001"}, false)
	if err != nil || len(all) != 1 || all[0].Remove || !strings.Contains(all[0].Reason, "another folder than the one that was made") {
		t.Errorf("%+v, %v", all, err)
	}
	if !pathExists(filepath.Join(w.Dir, "precious")) {
		t.Error("a folder that pawl did not make is gone")
	}
	r.remove(w.Dir)
	r.link(r.top, w.Dir)
	if all, err := p.Clean(t.Context(), []string{"task-001"}, false); err != nil || all[0].Remove ||
		!pathExists(r.top) {
		t.Errorf("%+v, %v", all, err)
	}
	// Nor is one that no row names.
	r.put(p.DirOf("task-009"), "mine", "1\n")
	if v := r.take(p, "task-009"); v.Dir == p.DirOf("task-009") || !pathExists(filepath.Join(p.DirOf("task-009"), "mine")) {
		t.Errorf("%+v", v)
	}
}

// A folder that somebody removed is made again, from the base that is wanted now.
func TestAFolderThatIsGone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	w := r.take(p, "task-001")
	r.release(p, w, Keep("it failed"))
	r.remove(w.Dir)
	r.git(r.top, "commit", "-q", "--allow-empty", "-m", "next")
	v := r.take(p, "task-001")
	if v.Kept || v.Base == w.Base || r.git(v.Dir, "status", "--porcelain") != "" {
		t.Errorf("%+v", v)
	}
	r.release(p, v, Keep("again"))
	r.remove(v.Dir)
	if all, err := p.Clean(t.Context(), []string{"task-001"}, false); err != nil || len(all) != 1 || !all[0].Remove {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestKeepOnSuccess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.KeepOnSuccess = true
	p := r.open()
	w := r.take(p, "task-001")
	r.release(p, w, Landed)
	if e, ok, err := find(t, p, "task-001"); err != nil || !ok || e.State != kept || e.Why != "its work has landed" || !pathExists(w.Dir) {
		t.Errorf("%+v, %v, %v", e, ok, err)
	}
}

// Of many that want one task at once, one gets it; different ones do not wait
// for each other's luck.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	q := &Pool{works: works{clones{rows{o: p.o, repo: p.repo, me: p.me, step: p.step}}}}
	q.o.Store = r.store() // as another process would
	const many = 6
	var wg sync.WaitGroup
	errs := make([]error, many)
	spaces := make([]Workspace, many)
	for i := range many {
		wg.Go(func() { _, errs[i] = []*Pool{p, q}[i%2].Take(context.WithoutCancel(t.Context()), "task-001", "HEAD") })
	}
	wg.Wait()
	got := 0
	for _, err := range errs {
		switch {
		case err == nil:
			got++
		case !errors.Is(err, ErrTaken):
			t.Error(err)
		}
	}
	if got != 1 {
		t.Errorf("%d have it", got)
	}
	for i := range many {
		wg.Go(func() {
			spaces[i], errs[i] = []*Pool{p, q}[i%2].Take(context.WithoutCancel(t.Context()), "task-10"+strconv.Itoa(i), "HEAD")
		})
	}
	wg.Wait()
	ports := map[int]bool{}
	for i, w := range spaces {
		if errs[i] != nil || ports[w.Ports] || r.git(w.Dir, "status", "--porcelain") != "" {
			t.Errorf("%+v, %v", w, errs[i])
		}
		ports[w.Ports] = true
	}
}

// Ports are a workspace's own, among all repositories of the user, and stay its
// own; one on which somebody listens is not given.
func TestPorts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	w := r.take(p, "task-001")
	if w.Ports < firstPort || w.Ports+PortsIn-1 > lastPort || len(w.Env()) != 1 || w.Env()[0] != "PAWL_PORT_BASE="+strconv.Itoa(w.Ports) {
		t.Errorf("%+v, %v", w, w.Env())
	}
	ctx := t.Context()
	if got, err := p.takePorts(ctx, filepath.Join(r.dir, "another"), w.Ports); err != nil || got == w.Ports {
		t.Errorf("another workspace gets %d, %v", got, err)
	}
	r.release(p, w, Keep("later"))
	q := r.open()
	if v := r.take(q, "task-001"); v.Ports != w.Ports {
		t.Errorf("after a restart %d, was %d", v.Ports, w.Ports)
	}
	free := nextBlock("x", 0, func(b int) bool { return arePortsUnused(ctx, b) })
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(free+7)))
	if err != nil {
		t.Skip("somebody was faster:", err)
	}
	defer l.Close()
	if got, err := p.takePorts(ctx, filepath.Join(r.dir, "x"), free); err != nil || got == free {
		t.Errorf("a block with a listener is given: %d, %v", got, err)
	}
	r.put(r.dir, "state/ports.json", "{broken")
	if _, err := p.takePorts(ctx, filepath.Join(r.dir, "y"), 0); err != nil {
		t.Errorf("a broken file: %v", err)
	}
	if got := nextBlock("x", 0, func(int) bool { return false }); got != 0 {
		t.Errorf("a block where none is free: %d", got)
	}
	all := map[int]bool{}
	nextBlock("x", 0, func(b int) bool { all[b] = true; return false })
	if want := (lastPort - firstPort + 1) / PortsIn; len(all) != want {
		t.Errorf("%d blocks are tried, of %d", len(all), want)
	}
}

func TestCopyBringsIgnoredFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, ".gitignore", ".env*\n/config/\n*.key\n", "a", "1\n")
	r.put(r.top, ".env", "KEY=1\n")
	r.put(r.top, ".env.local", "KEY=2\n")
	r.put(r.top, "config/deep/x", "x\n")
	r.put(r.top, "sub/b.key", "key\n")
	r.put(r.top, "other.key", "not wanted\n")
	r.link("x", filepath.Join(r.top, "config", "deep", "link"))
	r.o.Copy = []string{".env*", "config", "**/b.key", "not-there"}
	r.o.Setup = []string{"npm ci"}
	p := r.open()
	w := r.take(p, "task-001")
	r.holds(w, map[string]string{".env": "KEY=1\n", ".env.local": "KEY=2\n", "config/deep/x": "x\n", "config/deep/link": "x\n", "sub/b.key": "key\n", "other.key": ""})
	if to, err := os.Readlink(filepath.Join(w.Dir, "config", "deep", "link")); err != nil || to != "x" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if commit := r.collect(p, w); commit != w.Base {
		t.Errorf("copied files are work: %s", r.git(r.top, "diff", "--stat", w.Base, commit))
	}
	// The setup is the caller's to run, until it says that it was done.
	if len(w.Setup) != 1 || w.Setup[0] != "npm ci" {
		t.Errorf("setup %v", w.Setup)
	}
	if err := p.SetupDone(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	r.release(p, w, Keep("later"))
	if v := r.take(p, "task-001"); len(v.Setup) != 0 {
		t.Errorf("setup %v", v.Setup)
	} else {
		r.release(p, v, Keep("later"))
	}
	r.o.Setup = []string{"npm ci", "make"}
	if v := r.take(r.open(), "task-001"); len(v.Setup) != 2 {
		t.Errorf("setup after a change %v", v.Setup)
	}
}

// A pattern that was added later reaches a workspace that is kept; what is there
// already stays, and what its commit does not ignore is not copied.
func TestCopyReachesKeptWorkspaces(t *testing.T) {
	t.Parallel()
	r := newRig(t, ".gitignore", ".env*\n", "a", "1\n")
	r.put(r.top, ".env", "KEY=1\n")
	r.o.Copy = []string{".env"}
	p := r.open()
	w := r.take(p, "task-001")
	r.put(w.Dir, ".env", "the agent's\n")
	r.release(p, w, Keep("later"))

	r.put(r.top, ".gitignore", ".env*\nnew\n")
	r.put(r.top, ".env.local", "KEY=2\n")
	r.put(r.top, "new", "3\n")
	r.o.Copy = []string{".env*", "new"}
	p = r.open()
	w = r.take(p, "task-001")
	r.holds(w, map[string]string{".env": "the agent's\n", ".env.local": "KEY=2\n", "new": ""})
	if len(w.Notes) != 1 || !strings.Contains(w.Notes[0], `"new" is not ignored at the commit`) {
		t.Errorf("notes %q", w.Notes)
	}

	// It is copied once: what the agent removes is not brought back.
	if err := os.Remove(filepath.Join(w.Dir, ".env.local")); err != nil {
		t.Fatal(err)
	}
	r.release(p, w, Keep("later"))
	r.holds(r.take(p, "task-001"), map[string]string{".env.local": ""})
}

func TestCopyRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		copy       []string
		make       func(r *rig)
	}{
		{"a file that is not ignored", `"secret" is not ignored by git`, []string{"secret"}, func(r *rig) { r.put(r.top, "secret", "1\n") }},
		{"a link out", "out of the checkout", []string{".env"}, func(r *rig) { r.link("../outside", filepath.Join(r.top, ".env")) }},
		{"an absolute link", "out of the checkout", []string{".env"}, func(r *rig) { r.link(filepath.Join(r.top, "a"), filepath.Join(r.top, ".env")) }},
		{"a chain of links out", "out of the checkout", []string{".env"}, func(r *rig) {
			r.link("hop", filepath.Join(r.top, ".env"))
			r.link(r.dir, filepath.Join(r.top, "hop"))
		}},
	} {
		r := newRig(t, ".gitignore", ".env\nhop\n")
		r.put(r.dir, "outside", "not yours\n")
		c.make(r)
		r.o.Copy = c.copy
		p := r.open()
		if w, err := p.Take(t.Context(), "task-001", "HEAD"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v", c.name, w, err)
		}
		if all, err := p.List(t.Context()); err != nil || len(all) != 0 || pathExists(p.DirOf("task-001")) {
			t.Errorf("%s: left %+v, %v", c.name, all, err)
		}
	}
}

// A repository that was moved is noticed; with its state moved along, all goes on.
func TestAMovedRepository(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	w := r.take(p, "task-001")
	r.put(w.Dir, "work", "work\n")
	r.release(p, w, Keep("it failed"))
	r.release(p, r.take(p, "task-002"), Landed)
	if err := r.o.Store.Close(); err != nil {
		t.Fatal(err)
	}
	old := r.o.StateDir
	moved := filepath.Join(r.dir, "moved")
	if err := os.Rename(r.top, moved); err != nil {
		t.Fatal(err)
	}
	r.top, r.o.Root, r.o.StateDir, r.o.Store = moved, moved, filepath.Join(r.dir, "state", "moved"), nil
	if err := os.Rename(old, r.o.StateDir); err != nil {
		t.Fatal(err)
	}
	q := r.open()
	v := r.take(q, "task-001")
	r.holds(v, map[string]string{"work": "work\n", "a": "1\n"})
	r.git(v.Dir, "log", "-1")
	r.git(v.Dir, "fsck")
	commit := r.collect(q, v)
	if got := r.git(r.top, "show", commit+":work"); got != "work" {
		t.Errorf("collected %q", got)
	}
	r.release(q, v, Landed)
	if all, err := q.Clean(t.Context(), nil, false); err != nil || len(all) != 2 || !all[0].Remove || !all[1].Remove {
		t.Errorf("%+v, %v", all, err)
	}
	if there, err := os.ReadDir(q.o.Dir); err != nil || len(there) != 0 {
		t.Errorf("left %v, %v", there, err)
	}
}

// The folder of a process that lives, or of a task that the board calls active,
// is not touched, whoever asks.
func TestWhatIsInUseStays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	added, err := r.o.Store.AddCases(t.Context(), []board.Draft{{Case: board.Case{Type: board.Task, Title: "One"}}}, board.Person, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	id := added[0].ID
	w := r.take(p, id)
	r.release(p, w, Keep("its process was killed"))
	stays := func(why string) {
		t.Helper()
		all, err := p.Clean(t.Context(), []string{id}, false)
		if err != nil || len(all) != 1 || all[0].Remove || !strings.Contains(all[0].Reason, why) || !pathExists(w.Dir) {
			t.Errorf("%+v, %v; want %q", all, err, why)
		}
	}
	if _, err := r.o.Store.MoveCase(t.Context(), id, board.Change{Action: board.Start, By: board.Pawl, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	stays("the task is active")
	if _, err := r.o.Store.MoveCase(t.Context(), id, board.Change{Action: board.Stop, By: board.Pawl, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if !pathExists("/proc/self/cwd") {
		t.Skip("the machine does not tell in which folders processes are")
	}
	cmd := exec.CommandContext(t.Context(), "cat")
	cmd.Dir = filepath.Join(w.Dir, "d")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stays(fmt.Sprintf("process %d (", cmd.Process.Pid))
	if _, err := p.Rollback(t.Context(), id, Point{}); !errors.Is(err, ErrTaken) {
		t.Errorf("rolled back: %v", err)
	}
	r.release(p, r.take(p, id), Landed)
	if e, ok, err := find(t, p, id); err != nil || !ok || !strings.Contains(e.Why, "is in it") || !pathExists(w.Dir) {
		t.Errorf("%+v, %v, %v", e, ok, err)
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	if all, err := p.Clean(t.Context(), nil, false); err != nil || len(all) != 1 || !all[0].Remove ||
		pathExists(w.Dir) {
		t.Errorf("%+v, %v", all, err)
	}
}

// A workspace that could not be released is taken again by the same process, as the
// next one would do it, and with little room it can be given back.
func TestWhatCouldNotBeReleasedIsTakenAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	w := r.take(p, "task-001")
	r.put(w.Dir, "work", "mine")
	unwritable, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Release(unwritable, w, Keep("its run was stopped")); err == nil {
		t.Fatal("it was released")
	}
	again := r.take(p, "task-001")
	if !again.Kept || !pathExists(filepath.Join(again.Dir, "work")) {
		t.Errorf("taken again %+v", again)
	}
	if _, err := p.Take(t.Context(), "task-001", "HEAD"); !errors.Is(err, ErrTaken) {
		t.Errorf("taken while somebody works in it: %v", err)
	}
	if err := p.Release(unwritable, again, Landed); err == nil {
		t.Fatal("it was released")
	}
	p.o.Free = func(string) (uint64, error) { return 400 * mb, nil }
	last, err := p.Reclaim(t.Context(), "task-001", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	r.release(p, last, Landed)
	if all, err := p.List(t.Context()); err != nil || len(all) != 1 || all[0].Kind != kindWarm {
		t.Errorf("left %+v, %v", all, err)
	}
}

// What could not be released, and is not taken again, is put in order by a sweep.
func TestASweepPutsInOrderWhatCouldNotBeReleased(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	w := r.take(p, "task-001")
	unwritable, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Release(unwritable, w, Keep("its run was stopped")); err == nil {
		t.Fatal("it was released")
	}
	if _, err := p.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e, ok, err := find(t, p, "task-001"); err != nil || !ok || e.State != kept || e.Process != 0 {
		t.Errorf("it is %+v, %v", e, err)
	}
}

// A database that crashed has lost the row of a workspace, or has it as it was before it was
// taken. Who works in it goes on, and gives it back; after that it is nobody's.
func TestTheRowOfAWorkspaceIsLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, db := r.open(), r.store()
	lose := func(put ...store.Workspace) {
		err := db.EditWorkspaces(t.Context(), func([]store.Workspace) (store.WorkspaceChange, error) {
			return store.WorkspaceChange{Drop: []string{"task-001"}, Put: put}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	w := r.take(p, "task-001")
	before, _, err := db.Workspace(t.Context(), "task-001")
	if err != nil {
		t.Fatal(err)
	}
	r.put(w.Dir, "a.txt", "work")
	lose()
	first := r.collect(p, w)
	before.Owner, before.State = store.Owner{}, kept
	lose(before)
	r.put(w.Dir, "a.txt", "more")
	if second := r.collect(p, w); second == first {
		t.Errorf("the same commit %s was collected", first)
	}
	r.release(p, w, Keep("it waits"))
	if row, ok, err := db.Workspace(t.Context(), "task-001"); err != nil || !ok || row.Owner.PID != 0 || row.Why != "it waits" {
		t.Errorf("its row is %+v, %v (%v)", row, ok, err)
	}
	lose()
	if _, err := p.Collect(t.Context(), w, "nobody's"); err == nil {
		t.Error("a workspace that was given back was collected")
	}
}

// find is what the list of workspaces says of one.
func find(t *testing.T, p *Pool, id string) (e Entry, ok bool, err error) {
	all, err := p.List(t.Context())
	if i := slices.IndexFunc(all, func(e Entry) bool { return e.ID == id }); i >= 0 {
		return all[i], true, err
	}
	return e, false, err
}

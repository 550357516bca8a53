package workspace

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRollbackPutsRandomEditsBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			p := newPlace(t, "a", "1", "d/b", "2", "d/e/c", "3", ".gitignore", "*.log\n")
			p.write("keep.log", "ignored")
			var states []map[string]string
			for n := range 5 {
				if n > 0 {
					agent(p, r)
				}
				states = append(states, p.files())
				p.snap(n)
			}
			for range 6 {
				n := r.IntN(5)
				foreseen, err := p.c.Foresee(t.Context(), "r1", n)
				if err != nil {
					t.Fatal(err)
				}
				b := p.back(n)
				slices.Sort(b.Removed)
				slices.Sort(foreseen.Removed)
				if !slices.Equal(b.Removed, foreseen.Removed) || len(b.Restored) != len(foreseen.Restored) {
					t.Errorf("foreseen was %q and %q, done %q and %q", foreseen.Restored, foreseen.Removed, b.Restored, b.Removed)
				}
				if len(b.Notes) > 0 {
					t.Errorf("notes: %q", b.Notes)
				}
				sameMap(t, fmt.Sprintf("back at %d", n), p.files(), states[n])
			}
			for _, n := range p.emptyFolders() {
				t.Errorf("%q is left empty", n)
			}
		})
	}
}

// agent makes some random edits: new files, changed ones, removed ones, links,
// modes, files that become folders and the other way round, and commits.
func agent(p *place, r *rand.Rand) {
	names := []string{"a", "d", "d/b", "d/e", "d/e/c", "x", "x/y", "x/y/z", "new \n line", "\xfe\xff", "d/e/f g"}
	for range 6 {
		name := names[r.IntN(len(names))]
		p.clear(name)
		switch r.IntN(6) {
		case 0, 1, 2:
			p.write(name, strings.Repeat(fmt.Sprint(r.Uint32()), r.IntN(50)))
			if r.IntN(3) == 0 {
				p.chmod(name, 0o755)
			}
		case 3:
			if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
				p.t.Fatal(err)
			}
			p.link([]string{"a", "..", "/etc", "nowhere"}[r.IntN(4)], name)
		case 4:
			p.git("add", "-A")
			p.git("commit", "-q", "--allow-empty", "-m", "agent")
		}
	}
	for _, n := range p.emptyFolders() {
		p.remove(n)
	}
}

// clear takes away what is at a path, and any file or link on the way to it.
func (p *place) clear(name string) {
	p.t.Helper()
	parts := strings.Split(name, "/")
	for i := 1; i < len(parts); i++ {
		part := strings.Join(parts[:i], "/")
		if info, err := os.Lstat(p.path(part)); err == nil && !info.IsDir() {
			p.remove(part)
		}
	}
	p.remove(name)
}

// emptyFolders lists the folders without any file below, deepest first.
func (p *place) emptyFolders() []string {
	all := p.files()
	var empty []string
	_ = filepath.WalkDir(p.top, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() || name == p.top {
			return err
		}
		if d.Name() == ".git" {
			return filepath.SkipDir
		}
		rel, _ := filepath.Rel(p.top, name)
		for f := range all {
			if strings.HasPrefix(f, rel+"/") {
				return nil
			}
		}
		empty = append(empty, rel)
		return nil
	})
	slices.Reverse(empty)
	return empty
}

func TestRollbackIsUndoable(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", "b", "2")
	p.snap(0)
	p.write("a", "agent")
	p.write("c", "agent")
	p.git("add", "a", "c")
	p.git("commit", "-qm", "agent")
	p.write("b", "agent, not committed")
	p.write("user", "made by a person after the last snapshot")
	p.git("add", "user")
	files, head := p.files(), p.git("rev-parse", "HEAD")
	b := p.back(0)
	if !b.BranchMoved || p.read("a") != "1" || p.read("b") != "2" {
		t.Fatalf("%+v", b)
	}
	sameList(t, "removed", slices.Sorted(slices.Values(b.Removed)), "c", "user")
	if got := p.git("show", b.Recovery+"^2:0/user"); !strings.HasPrefix(got, "made by") {
		t.Errorf("staged file in the recovery: %q", got)
	}
	b, err := p.c.RollbackTo(t.Context(), b.Recovery, RollbackOptions{})
	if err != nil || !b.BranchMoved {
		t.Fatal(err, b)
	}
	sameMap(t, "undone", p.files(), files)
	if got := p.git("rev-parse", "HEAD"); got != head {
		t.Errorf("head is %s, was %s", got, head)
	}
	all, err := p.c.Recoveries(t.Context(), "r1")
	if err != nil || len(all) != 2 || all[0].Head != head || all[0].Run != "r1" {
		t.Errorf("recoveries %+v, %v", all, err)
	}
}

// A commit that a person made after the run's end stays on the branch.
func TestCommitsAfterTheEndStay(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "0")
	p.snap(0)
	p.write("a", "agent")
	p.git("commit", "-qam", "agent")
	later := gitCommand(p, "commit", "-q", "--allow-empty", "-m", "person")
	later.Env = append(os.Environ(), "GIT_COMMITTER_DATE="+time.Now().Add(time.Hour).Format(time.RFC3339))
	if err := later.Run(); err != nil {
		t.Fatal(err)
	}
	head := p.git("rev-parse", "HEAD")
	b, err := p.c.Rollback(t.Context(), "r1", 0, RollbackOptions{Ended: time.Now()})
	if err != nil || b.BranchMoved || p.git("rev-parse", "HEAD") != head || p.read("a") != "0" {
		t.Errorf("%+v, %v, a is %q", b, err, p.read("a"))
	}
	if len(b.Notes) != 1 || !strings.Contains(b.Notes[0], head+" would go") {
		t.Errorf("notes %q", b.Notes)
	}
}

func TestBranchIsMovedOnlyWhenTheRunMadeTheCommits(t *testing.T) {
	t.Parallel()
	commit := func(p *place) {
		p.write("a", "agent")
		p.git("commit", "-qam", "agent")
	}
	tests := map[string]struct {
		agent func(p *place)
		moved bool
		note  string
	}{
		"commits of the run": {commit, true, ""},
		"amended": {func(p *place) {
			p.write("a", "agent")
			p.git("commit", "-qa", "--amend", "-m", "agent")
		}, true, ""},
		"reset to before": {func(p *place) { p.git("reset", "-q", "--hard", "HEAD^") }, true, ""},
		"another branch": {func(p *place) {
			p.git("checkout", "-qb", "other")
			commit(p)
		}, false, "refs/heads/other is checked out"},
		"detached": {func(p *place) {
			p.git("checkout", "-q", "--detach")
			commit(p)
		}, false, "detached"},
		"pulled": {func(p *place) {
			commit(p)
			p.git("update-ref", "refs/remotes/origin/main", "HEAD")
		}, false, "on a remote"},
		"older commit came in": {func(p *place) {
			cmd := gitCommand(p, "commit", "-q", "--allow-empty", "-m", "old")
			cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2020-01-01T00:00:00Z")
			if err := cmd.Run(); err != nil {
				p.t.Fatal(err)
			}
			commit(p)
		}, false, "not made during the run"},
		"merge going on": {func(p *place) {
			commit(p)
			p.write(".git/MERGE_HEAD", p.git("rev-parse", "HEAD"))
		}, false, "a merge is going on"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "a", "0")
			p.write("a", "1")
			p.git("commit", "-qam", "second")
			zero := p.snap(0)
			tt.agent(p)
			head, index := p.git("rev-parse", "HEAD"), p.read(".git/index")
			b := p.back(0)
			if p.read("a") != "1" || b.BranchMoved != tt.moved {
				t.Errorf("a is %q, %+v", p.read("a"), b)
			}
			now := p.git("rev-parse", "HEAD")
			if tt.moved {
				if now != zero.Head || p.git("status", "--porcelain") != "" {
					t.Errorf("head %s, status %q", now, p.git("status", "--porcelain"))
				}
				return
			}
			if now != head || p.read(".git/index") != index {
				t.Error("HEAD or the index was touched")
			}
			if len(b.Notes) != 1 || !strings.Contains(b.Notes[0], tt.note) {
				t.Errorf("notes %q", b.Notes)
			}
		})
	}
}

func TestStagedWorkStaysStaged(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", "b", "1")
	p.write("b", "staged by a person")
	p.git("add", "b")
	p.snap(0)
	p.write("a", "agent")
	p.git("commit", "-qm", "agent", "a")
	p.back(0)
	if got := p.git("status", "--porcelain"); got != "M  b" {
		t.Errorf("status %q", got)
	}
	// Staged on top of what goes: then the index stays as it is.
	p.write("a", "agent")
	p.git("commit", "-qm", "agent", "a")
	p.write("a", "staged on top")
	p.git("add", "a")
	index := p.read(".git/index")
	b := p.back(0)
	if !b.BranchMoved || p.read(".git/index") != index || len(b.Notes) != 1 {
		t.Errorf("%+v", b)
	}
}

func TestRollbackNeverLeavesTheTree(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "d/b", "1", "e/pre-commit", "2")
	p.snap(0)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "b"), []byte("not ours"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.remove("d", "e")
	p.link(outside, "d")
	p.link(".git/hooks", "e")
	p.snap(1)
	p.back(0)
	if p.read("d/b") != "1" || p.read("e/pre-commit") != "2" {
		t.Errorf("d/b is %q", p.read("d/b"))
	}
	p.back(1)
	// Now the links are ignored, so a rollback must not replace them either.
	p.write(".gitignore", "/d\n/e\n")
	p.snap(2)
	b := p.back(0)
	if len(b.Notes) != 2 || !strings.Contains(b.Notes[0], errBlocked.Error()) {
		t.Errorf("notes %q", b.Notes)
	}
	if data, err := os.ReadFile(filepath.Join(outside, "b")); err != nil || string(data) != "not ours" {
		t.Errorf("outside: %q %v", data, err)
	}
	if _, err := os.Lstat(p.path(".git/hooks/pre-commit")); err == nil {
		t.Error("a hook was written")
	}
}

func TestRestorerRefusesOddPaths(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1")
	w := newRestorer(p.c.Repo)
	nothing := func(int, string) error { return nil }
	for _, name := range []string{"../x", "a/../../x", ".git/x", "d/.GIT/hooks/x", "/x", "", ".", "x//y", ".pawl/x"} {
		if err := w.within(name, 0o777, nothing); !errors.Is(err, errPath) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestWhatIsInNoSnapshotIsKept(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", ".gitignore", "*.tmp\n")
	p.write("private", "p")
	p.chmod("private", 0o600)
	p.snap(0)
	p.remove("a")
	p.write("a/cache.tmp", "ignored, where a file has to be")
	p.write("new/x.tmp", "ignored")
	p.write("new/y", "agent")
	p.write("private", "agent")
	p.write("user", "by a person, after the last snapshot")
	b := p.back(0)
	if p.read("a/cache.tmp") == "" || p.read("new/x.tmp") != "ignored" || p.read("new/y") != "(no such file or directory)" {
		t.Errorf("files: %q", p.files())
	}
	if len(b.Notes) != 1 || !strings.Contains(b.Notes[0], errFolder.Error()) {
		t.Errorf("notes %q", b.Notes)
	}
	if info, err := os.Stat(p.path("private")); err != nil || info.Mode().Perm() != 0o600 || p.read("private") != "p" {
		t.Errorf("private: %v %v", info, err)
	}
	if got := p.git("show", b.Recovery+":user"); got == "" {
		t.Error("the person's file is not in the recovery")
	}
}

func TestRewindOnlyWhenNothingChanged(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1")
	p.snap(0)
	p.write("a", "agent")
	left := p.snap(1)
	p.write("user", "typed meanwhile")
	b, err := p.c.Rewind(t.Context(), "r1", 0, left.Tree)
	if err != nil || !strings.HasSuffix(b.Refused, "after the agent ended (user)") || b.Recovery != "" || p.read("a") != "agent" {
		t.Errorf("%v %+v", err, b)
	}
	p.remove("user")
	b, err = p.c.Rewind(t.Context(), "r1", 0, left.Tree)
	if err != nil || b.Refused != "" || p.read("a") != "1" {
		t.Errorf("%v %+v", err, b)
	}
	if tree, _, err := p.c.Look(t.Context(), "r1"); err != nil || tree != b.To.Tree {
		t.Errorf("tree %s, %v", tree, err)
	}
	if _, err := p.c.Rewind(t.Context(), "r1", 0, ""); err == nil {
		t.Error("rewound without knowing what the agent left")
	}
}

func TestRollbackErrors(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1")
	p.snap(0)
	p.write("a", "2")
	p.snap(1)
	ctx := t.Context()
	if _, err := p.c.Rollback(ctx, "r1", 9, RollbackOptions{}); err == nil || !strings.Contains(err.Error(), "no such snapshot") {
		t.Errorf("got %v", err)
	}
	for _, ref := range []string{"refs/heads/main", "refs/pawl/runs/", "refs/pawl/runs/../x/1", "main"} {
		if _, err := p.c.RollbackTo(ctx, ref, RollbackOptions{}); err == nil {
			t.Errorf("went to %q", ref)
		}
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := p.c.Rollback(stopped, "r1", 0, RollbackOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if p.read("a") != "2" {
		t.Errorf("a is %q", p.read("a"))
	}
}

// TestKilledRollbackIsFinishedByTheNext kills a rollback at each of its git
// calls, and in the middle of writing files, and runs it again.
func TestKilledRollbackIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	for i := range 40 {
		p.write(fmt.Sprintf("d/f%d", i), strings.Repeat("one\n", 1000+i))
	}
	p.git("add", "-A")
	p.git("commit", "-qm", "one")
	want, zero := p.files(), p.snap(0)
	edit := func() {
		p.remove("d")
		for i := range 20 {
			p.write(fmt.Sprintf("d/f%d", i), strings.Repeat("two\n", 1000+i))
			p.write(fmt.Sprintf("d/g%d/h", i), "new")
		}
		p.git("add", "-A")
		p.git("commit", "-qm", "agent")
	}
	bin := filepath.Join(p.state, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	killed := 0
	for point := 1; point < 60; point++ {
		edit()
		whole := killAt(t, p, self, program, bin, point)
		if !whole {
			killed++
		}
		b := p.back(0)
		sameMap(t, fmt.Sprintf("killed at %d", point), p.files(), want)
		if got := p.git("status", "--porcelain"); got != "" || p.git("rev-parse", "HEAD") != zero.Head {
			t.Errorf("killed at %d: status %q, notes %q", point, got, b.Notes)
		}
		if t.Failed() || whole {
			break
		}
	}
	if killed < 20 {
		t.Errorf("killed at %d points only", killed)
	}
}

// killAt runs a rollback in a process that is killed at its nth git call; at
// the call that streams files, after part of the stream. It reports whether
// the rollback came to its end before.
func killAt(t *testing.T, p *place, self, program, bin string, n int) (whole bool) {
	t.Helper()
	count := filepath.Join(bin, "count")
	script := fmt.Sprintf(`#!/bin/sh
echo >> '%[1]s'
if [ "$(wc -l < '%[1]s')" -ge %[2]d ]; then
	case "$*" in *--batch*) '%[3]s' "$@" | head -c 90000;; esac
	kill -9 $PPID
	exit 1
fi
exec '%[3]s' "$@"
`, count, n, program)
	_ = os.Remove(count) // none before the first
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, p.top, p.state)
	cmd.Env = append(os.Environ(), "PAWL_TEST_ROLLBACK=r1", "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return true
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child at point %d ended with %v:\n%s", n, err, out)
	}
	return false
}

// rollbackChild is the process that is killed.
func rollbackChild(run string) int {
	ctx := context.Background()
	c, err := Open(ctx, os.Args[1], Options{StateDir: os.Args[2]})
	if err == nil {
		_, err = c.Rollback(ctx, run, 0, RollbackOptions{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

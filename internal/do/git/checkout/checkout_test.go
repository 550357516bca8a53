package checkout

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// repository makes a repository with the file a, and opens it.
func repository(t *testing.T, name string) (string, *git.Repo) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	dir = filepath.Join(dir, name)
	must(t, os.Mkdir(dir, 0o755))
	gittest.Git(t, dir, "init", "-q")
	put(t, filepath.Join(dir, "a"), "1\n")
	gittest.Git(t, dir, "add", "a")
	gittest.Git(t, dir, "commit", "-qm", "first")
	r, err := git.Open(t.Context(), dir)
	must(t, err)
	return dir, r
}

func put(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(text), 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func holdFile(t *testing.T) *os.File {
	t.Helper()
	hold, err := os.Create(filepath.Join(t.TempDir(), "hold"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hold.Close() })
	return hold
}

// The index of the paths that the move changes follows, and all else that is staged stays;
// what is staged over it is named.
func TestIndexMove(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	run := func(args ...string) string { return gittest.Git(t, dir, args...) }
	for name, text := range map[string]string{"changes": "1\n", "goes": "1\n", "mine": "1\n", "d/f": "1\n"} {
		put(t, filepath.Join(dir, name), text)
	}
	run("add", "-A")
	run("commit", "-qm", "from")
	from := run("rev-parse", "HEAD")
	to := gittest.Commit(t, dir, "refs/heads/to", "to", from, "changes", "2\n", "goes", "-", "new/x", "2\n", "d", "a file now\n")
	hold := holdFile(t)
	put(t, filepath.Join(dir, "mine"), "staged\n")
	put(t, filepath.Join(dir, "added"), "staged\n")
	run("add", "mine", "added")
	index := func() string { return run("ls-files", "-s") }

	staged := func(built map[string]git.Entry, want ...string) {
		t.Helper()
		a, err := BeginIndexMove(t.Context(), r, from, to, hold)
		must(t, err)
		defer a.End()
		if _, err := BeginIndexMove(t.Context(), r, from, to, hold); err != nil && !errors.Is(err, ErrIndexLocked) {
			t.Error(err)
		}
		got, err := a.StagedOver(t.Context(), built)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("staged over: %q, want %q, %v", got, want, err)
		}
	}
	before := index()
	staged(nil)
	put(t, filepath.Join(dir, "changes"), "the person's\n")
	put(t, filepath.Join(dir, "new", "x"), "the person's\n")
	run("add", "changes", "new/x")
	run("rm", "-q", "--cached", "goes")
	staged(nil, "changes", "new/x")
	object := run("rev-parse", ":changes")
	staged(map[string]git.Entry{"changes": {Mode: git.ModeFile, Object: object}}, "new/x")
	staged(map[string]git.Entry{"changes": {Mode: git.ModeExec, Object: object}}, "changes", "new/x")
	run("reset", "-q", "--", "changes", "new", "goes")
	must(t, os.RemoveAll(filepath.Join(dir, "new")))
	if got := index(); got != before {
		t.Fatalf("looking changed the index:\n%s\nit was\n%s", got, before)
	}

	a, err := BeginIndexMove(t.Context(), r, from, to, hold)
	must(t, err)
	if out, err := exec.CommandContext(t.Context(), "git", "-C", dir, "add", "added").CombinedOutput(); err == nil || !strings.Contains(string(out), "index.lock") {
		t.Errorf("another git has the index: %s", out)
	}
	run("update-ref", "refs/heads/main", to)
	must(t, a.MoveIndex(t.Context()))
	a.End()
	if got := run("diff", "--cached", "--name-status"); got != "A\tadded\nM\tmine" {
		t.Errorf("staged:\n%s", got)
	}
	a, err = BeginIndexMove(t.Context(), r, to, from, hold)
	must(t, err)
	run("update-ref", "refs/heads/main", from)
	must(t, a.MoveIndex(t.Context()))
	a.End()
	if got := index(); got != before {
		t.Errorf("and back the index is\n%s\nit was\n%s", got, before)
	}
	if _, err := os.Lstat(r.Index + ".lock"); err == nil {
		t.Error("the lock is left")
	}
}

// From before the first commit, and back to it.
func TestIndexMoveOfAnUnbornBranch(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	must(t, os.Mkdir(dir, 0o755))
	gittest.Git(t, dir, "init", "-q")
	put(t, filepath.Join(dir, "a"), "1\n")
	put(t, filepath.Join(dir, "staged"), "1\n")
	gittest.Git(t, dir, "add", "staged")
	r, err := git.Open(t.Context(), dir)
	must(t, err)
	tree := gittest.Import(t, dir, "commit refs/heads/side\nmark :1\ncommitter Ann <ann@example.com> 1 +0000\ndata 1\nx\nM 100644 inline a\ndata 2\n1\n\nget-mark :1\n")
	hold := holdFile(t)
	for _, step := range []struct{ from, to, status string }{
		{"", tree, "A  staged"}, {tree, "", "A  staged\n?? a"},
	} {
		a, err := BeginIndexMove(t.Context(), r, step.from, step.to, hold)
		must(t, err)
		if over, err := a.StagedOver(t.Context(), nil); err != nil || len(over) > 0 {
			t.Errorf("staged over: %q, %v", over, err)
		}
		if step.to == "" {
			gittest.Git(t, dir, "update-ref", "-d", "refs/heads/main")
		} else {
			gittest.Git(t, dir, "update-ref", "refs/heads/main", step.to)
		}
		must(t, a.MoveIndex(t.Context()))
		a.End()
		if got := gittest.Git(t, dir, "status", "--porcelain"); got != step.status {
			t.Errorf("from %q to %q: status\n%s\nwant\n%s", step.from, step.to, got, step.status)
		}
	}
}

// A conflict in the index of the person's is the person's, and a git that is at work has
// the index.
func TestIndexMoveInTheMiddleOfAMerge(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	from := gittest.Git(t, dir, "rev-parse", "HEAD")
	to := gittest.Commit(t, dir, "refs/heads/to", "to", from, "a", "2\n")
	side := gittest.Commit(t, dir, "refs/heads/side", "side", from, "a", "3\n")
	gittest.Git(t, dir, "reset", "-q", "--hard", side)
	_ = exec.CommandContext(t.Context(), "git", "-C", dir, "merge", to).Run() // a conflict
	hold := holdFile(t)
	a, err := BeginIndexMove(t.Context(), r, from, to, hold)
	must(t, err)
	over, err := a.StagedOver(t.Context(), nil)
	a.End()
	if err != nil || len(over) == 0 || over[0] != "a" {
		t.Errorf("staged over: %q, %v", over, err)
	}
	put(t, r.Index+".lock", "")
	if _, err := BeginIndexMove(t.Context(), r, from, to, hold); !errors.Is(err, ErrIndexLocked) {
		t.Errorf("the index of another git was taken: %v", err)
	}
	if _, err := os.Lstat(r.Index + ".lock"); err != nil {
		t.Error("its lock was removed")
	}
}

// The index is somebody's: its lock stays, and the message says what can be done.
func TestLockedIndexSaysWhatToDo(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "repo")
	head := gittest.Git(t, dir, "rev-parse", "HEAD")
	put(t, r.Index+".lock", "")
	_, err := BeginFastForward(t.Context(), r, head, head, holdFile(t))
	if err == nil || !strings.Contains(err.Error(), "if none runs there any more, remove "+r.Index+".lock") {
		t.Errorf("a lock of now: %v", err)
	}
	if err := os.Chtimes(r.Index+".lock", time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	_, err = BeginFastForward(t.Context(), r, head, head, holdFile(t))
	if err == nil || !strings.Contains(err.Error(), "the machine's end cut off") {
		t.Errorf("a lock from before: %v", err)
	}
}

// A pawl that died between the two names of its lock left both. The next one
// takes the lock as it is: to write it again would lose the mark for a moment,
// in which the power may fail.
func TestLockOfADeadPawlIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "repo")
	head := gittest.Git(t, dir, "rev-parse", "HEAD")
	lock := r.Index + ".lock"
	put(t, lock, lockMark)
	if err := errors.Join(os.Link(lock, filepath.Join(r.Dir, "pawl-lock")), os.Chtimes(lock, time.Unix(1, 0), time.Unix(1, 0))); err != nil {
		t.Fatal(err)
	}
	a, err := BeginFastForward(t.Context(), r, head, head, holdFile(t))
	if err != nil {
		t.Fatal(err)
	}
	defer a.End()
	if info, err := os.Stat(lock); err != nil || !info.ModTime().Equal(time.Unix(1, 0)) {
		t.Errorf("the lock was written at %v, %v", info.ModTime(), err)
	}
}

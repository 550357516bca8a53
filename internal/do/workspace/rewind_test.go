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

	"github.com/pawl-dev/pawl/internal/do/git"
)

func TestRewindPutsRandomEditsBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			person := newPlace(t, "a", "1", "d/b", "2", "d/e/c", "3", ".gitignore", "*.log\n")
			before, files := person.private(), person.files()
			p := person.clone()
			p.write("keep.log", "ignored")
			var states []map[string]string
			var snaps []Snapshot
			for n := range 5 {
				if n > 0 {
					agent(p, r)
				}
				states = append(states, p.files())
				snaps = append(snaps, p.snap(n))
			}
			for range 6 {
				n := r.IntN(5)
				if b := p.back(n); len(b.Left) > 0 {
					t.Errorf("left: %q", b.Left)
				}
				sameMap(t, fmt.Sprintf("back at %d", n), p.files(), states[n])
				if got := p.git("rev-parse", "HEAD"); got != snaps[n].Head {
					t.Errorf("back at %d: head is %s, want %s", n, got, snaps[n].Head)
				}
				if got := p.git("diff", "--cached", "--name-only"); got != "" {
					t.Errorf("back at %d these are staged: %s", n, got)
				}
			}
			for _, n := range p.emptyFolders() {
				t.Errorf("%q is left empty", n)
			}
			sameMap(t, "the person's git directory", person.private(), before)
			sameMap(t, "the person's files", person.files(), files)
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

func TestRewindNeverLeavesTheTree(t *testing.T) {
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
	// Now the links are ignored, so a way back must not replace them either.
	p.write(".gitignore", "/d\n/e\n")
	p.snap(2)
	b := p.back(0)
	if len(b.Left) != 2 || b.Left[0].Why != errBlocked.Error() {
		t.Errorf("left %q", b.Left)
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
		if err := w.inFolder(name, 0o777, nothing); !errors.Is(err, errPath) {
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
	if len(b.Left) != 1 || b.Left[0] != (Conflict{"a", errFolder.Error()}) {
		t.Errorf("left %q", b.Left)
	}
	if info, err := os.Stat(p.path("private")); err != nil || info.Mode().Perm() != 0o600 || p.read("private") != "p" {
		t.Errorf("private: %v %v", info, err)
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
	if err != nil || !strings.HasSuffix(b.Refused, "after the agent ended (user)") || p.read("a") != "agent" {
		t.Errorf("%v %+v", err, b)
	}
	p.remove("user")
	b, err = p.c.Rewind(t.Context(), "r1", 0, left.Tree)
	if err != nil || b.Refused != "" || p.read("a") != "1" {
		t.Errorf("%v %+v", err, b)
	}
	if seen, err := p.c.See(t.Context(), "r1"); err != nil || seen.Tree != b.To.Tree {
		t.Errorf("tree %s, %v", seen.Tree, err)
	}
	if _, err := p.c.Rewind(t.Context(), "r1", 0, ""); err == nil {
		t.Error("rewound without knowing what the agent left")
	}
}

// What a rewind took away can be had again, with the commits: a snapshot has it.
func TestRewindIsUndoable(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", "b", "2").clone()
	zero := p.snap(0)
	p.write("a", "agent")
	p.write("c", "agent")
	p.git("add", "a", "c")
	p.git("commit", "-qm", "agent")
	p.write("b", "agent, not committed")
	files, head := p.files(), p.git("rev-parse", "HEAD")
	p.snap(1)
	b := p.back(0)
	sameList(t, "removed", b.Removed, "c")
	if p.read("a") != "1" || p.read("b") != "2" || p.git("rev-parse", "HEAD") != zero.Head || p.git("status", "--porcelain") != "" {
		t.Fatalf("%+v, status %q", b, p.git("status", "--porcelain"))
	}
	p.back(1)
	sameMap(t, "undone", p.files(), files)
	if got := p.git("rev-parse", "HEAD"); got != head || p.git("symbolic-ref", "HEAD") != "refs/heads/main" {
		t.Errorf("head is %s, was %s", got, head)
	}
}

// Also before the first commit, and from a branch or a detached HEAD to another.
func TestRewindOfWhatIsCheckedOut(t *testing.T) {
	t.Parallel()
	bare := barePlace(t)
	bare.git("init", "-q")
	bare.write("a", "1")
	bare.open(Options{})
	for name, p := range map[string]*place{"unborn": bare.clone(), "born": newPlace(t, "a", "1").clone()} {
		zero := p.snap(0)
		p.write("a", "agent")
		p.git("checkout", "-qb", "other")
		p.git("add", "a")
		p.git("commit", "-qm", "agent")
		p.git("checkout", "-q", "--detach")
		one := p.snap(1)
		if one.Branch != "" || one.Head == zero.Head {
			t.Errorf("%s: %+v", name, one)
		}
		for _, want := range []Snapshot{zero, one, zero} {
			p.back(want.N)
			if head, err := p.c.Head(t.Context()); err != nil || head.Commit != want.Head || head.Branch != want.Branch {
				t.Errorf("%s: head is %+v, want %+v; %v", name, head, want, err)
			}
		}
		if got := p.git("symbolic-ref", "HEAD"); got != "refs/heads/main" || p.read("a") != "1" {
			t.Errorf("%s: on %s, a is %q", name, got, p.read("a"))
		}
	}
}

func TestRewindErrors(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1").clone()
	p.snap(0)
	p.write("a", "2")
	tree := p.snap(1).Tree
	ctx := t.Context()
	if _, err := p.c.Rewind(ctx, "r1", 9, tree); err == nil || !strings.Contains(err.Error(), "no such snapshot") {
		t.Errorf("got %v", err)
	}
	for _, ref := range []string{"refs/heads/main", "refs/pawl/runs/", "refs/pawl/runs/../x/1", "main"} {
		if _, err := p.c.rewindTo(ctx, "r1", ref, tree); err == nil {
			t.Errorf("went to %q", ref)
		}
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := p.c.Rewind(stopped, "r1", 0, tree); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if p.read("a") != "2" {
		t.Errorf("a is %q", p.read("a"))
	}
}

// TestKilledRewindIsFinishedByTheNext kills a rewind at each of its git calls, and in
// the middle of writing files, and runs it again.
func TestKilledRewindIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	person := newPlace(t)
	for i := range 40 {
		person.write(fmt.Sprintf("d/f%d", i), strings.Repeat("one\n", 1000+i))
	}
	person.git("add", "-A")
	person.git("commit", "-qm", "one")
	p := person.clone()
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
		whole := killAt(t, self, program, bin, point, person.top, p.top, p.state, person.c.Store.Dir)
		if !whole {
			killed++
		}
		b := p.back(0)
		sameMap(t, fmt.Sprintf("killed at %d", point), p.files(), want)
		if got := p.git("status", "--porcelain"); got != "" || p.git("rev-parse", "HEAD") != zero.Head {
			t.Errorf("killed at %d: status %q, left %q", point, got, b.Left)
		}
		if t.Failed() || whole {
			break
		}
	}
	if killed < 15 {
		t.Errorf("killed at %d points only", killed)
	}
}

// killAt runs a rewind in a process that is killed at its nth git call; at the call that
// streams files, after part of the stream. It reports whether the rewind came to its end
// before.
func killAt(t *testing.T, self, program, bin string, n int, args ...string) (whole bool) {
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
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "PAWL_TEST_REWIND=r1", "PATH="+bin+":"+os.Getenv("PATH"))
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

// rewindChild is the process that is killed. Its arguments are the person's repository,
// the clone, pawl's folder for that, and pawl's own repository.
func rewindChild(run string) int {
	ctx := context.Background()
	of, err := git.Open(ctx, os.Args[1])
	var c *Checkout
	if err == nil {
		at := Place{Top: os.Args[2], Root: os.Args[2], Own: os.Args[3]}
		c, err = OpenClone(ctx, of, at, Options{StateDir: filepath.Join(os.Args[3], "tree"), Store: os.Args[4]})
	}
	var now Seen
	if err == nil {
		now, err = c.See(ctx, run)
	}
	if err == nil {
		_, err = c.Rewind(ctx, run, 0, now.Tree)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A path is changed only if it is what the change begins with. What is as the change
// ends is no news, and any other is somebody's: it stays, and why is said.
func TestCarry(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	object := func(text string) string {
		id, err := p.c.StoreFile(t.Context(), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	edit := func(name, from, to string) git.Change {
		ch := git.Change{Path: name}
		if from != "" {
			ch.OldMode, ch.OldObject = git.ModeFile, object(from)
		}
		if to != "" {
			ch.NewMode, ch.NewObject = git.ModeFile, object(to)
		}
		return ch
	}
	for name, text := range map[string]string{
		"as it began": "1", "as it ends": "2", "somebody's": "3", "to go": "1", "to go, somebody's": "3", "mode": "1",
		"new, there": "3", "folder/in": "3", "file": "3", "hard": "1",
	} {
		p.write(name, text)
	}
	p.chmod("mode", 0o755)
	p.link("as it began", "a link")
	outside := t.TempDir()
	p.link(outside, "out")
	p.write(".git/hooks/keep", "3")
	if err := os.Link(p.path("hard"), filepath.Join(outside, "hard")); err != nil {
		t.Fatal(err)
	}
	changes := []git.Change{
		edit("as it began", "1", "2"), edit("as it ends", "1", "2"), edit("somebody's", "1", "2"), edit("to go", "1", ""),
		edit("to go, somebody's", "1", ""), edit("gone already", "1", ""), edit("gone, to change", "1", "2"), edit("mode", "1", "2"),
		edit("new, there", "", "2"), edit("new/deep", "", "2"), edit("folder", "", "2"), edit("file/in", "", "2"),
		edit("a link", "1", "2"), edit("out/x", "", "2"), edit(".git/hooks/pre-commit", "", "2"), edit(".git/hooks/keep", "3", ""),
		edit("../x", "", "2"), edit("hard", "1", "2"),
		{Path: "nested", OldMode: git.ModeNested, OldObject: p.c.Repo.Zero(), NewMode: git.ModeNested, NewObject: p.c.Repo.Zero()},
	}
	differing := p.c.Differing(changes)
	done, err := p.c.Carry(t.Context(), "r1", changes)
	if err != nil {
		t.Fatal(err)
	}
	sameList(t, "written", done.Written, "as it began", "new/deep", "hard")
	sameList(t, "removed", done.Removed, "to go")
	var left []string
	for _, l := range done.Left {
		if left = append(left, l.Path); l.Why == "" {
			t.Errorf("nobody says why %s is left", l.Path)
		}
	}
	slices.Sort(left)
	sameList(t, "left", left, "../x", ".git/hooks/keep", ".git/hooks/pre-commit", "a link", "file/in", "folder", "gone, to change",
		"mode", "nested", "new, there", "out/x", "somebody's", "to go, somebody's")
	for name, want := range map[string]string{
		"as it began": "2", "as it ends": "2", "somebody's": "3", "to go, somebody's": "3", "mode": "1", "new, there": "3", "new/deep": "2",
		"folder/in": "3", "file": "3", ".git/hooks/keep": "3", "hard": "2",
	} {
		if got := p.read(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(outside, "hard")); err != nil || string(data) != "1" {
		t.Errorf("the other name of a file has %q, %v", data, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside are %v, %v", entries, err)
	}
	for _, name := range []string{"somebody's", "gone, to change", "new, there", "mode", "a link", "to go, somebody's"} {
		if !slices.Contains(differing, name) {
			t.Errorf("nobody foresaw that %s differs", name)
		}
	}
	for _, name := range []string{"as it began", "as it ends", "to go", "gone already", "new/deep"} {
		if slices.Contains(differing, name) {
			t.Errorf("%s was said to differ", name)
		}
	}
	again, err := p.c.Carry(t.Context(), "r1", changes)
	if err != nil || len(again.Written)+len(again.Removed) > 0 || len(again.Left) != len(done.Left) {
		t.Errorf("and again: %+v, %v", again, err)
	}
}

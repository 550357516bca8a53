package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/git"
)

func TestOutsideOfARepository(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Open(t.Context(), dir, Options{StateDir: filepath.Join(dir, "s")}); !errors.Is(err, git.ErrNotRepository) {
		t.Errorf("got %v, want ErrNotRepository", err)
	}
}

func TestSnapshotTakesTheWholeTreeAndTouchesNothingOfTheUsers(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", "dir/b", "2", "gone", "3", ".gitignore", "*.log\n")
	p.write("a", "stashed")
	p.git("stash")
	p.write("staged", "s")
	p.git("add", "staged")
	p.git("add", "-N", "dir/b")
	p.write("a", "changed")
	p.write("new file\nwith a newline", "n")
	p.write("not utf8 \xff", "u")
	p.write("empty", "")
	p.git("add", "-N", "empty")
	p.write("x.log", "ignored")
	p.write(".pawl/state/x.json", "{}")
	p.write("run.sh", "#!/bin/sh\n")
	p.chmod("run.sh", 0o755)
	p.link("../outside", "dir/link")
	p.remove("gone")
	before, files := p.private(), p.files()
	s := p.snap(0)
	sameList(t, "paths", p.names(s), ".gitignore", "a", "dir/b", "dir/link", "empty", "new file\nwith a newline", "not utf8 \xff", "run.sh", "staged")
	if got := p.stored("cat-file", "blob", s.Commit+":a"); got != "changed" {
		t.Errorf("a is %q", got)
	}
	if got := p.stored("ls-tree", s.Commit, "run.sh"); !strings.HasPrefix(got, "100755") {
		t.Errorf("run.sh is %q", got)
	}
	if got := p.stored("ls-tree", s.Commit, "dir/link"); !strings.HasPrefix(got, "120000") {
		t.Errorf("dir/link is %q", got)
	}
	if s.Head != p.git("rev-parse", "HEAD") || s.Branch != "refs/heads/main" || p.stored("rev-parse", s.Commit+"^") != s.Head {
		t.Errorf("snapshot has head %s on %s", s.Head, s.Branch)
	}
	sameMap(t, "git directory", p.private(), before)
	sameMap(t, "work tree", p.files(), files)
}

func TestSameTreeIsTheSameCommit(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1")
	zero, one := p.snap(0), p.snap(1)
	if zero.Commit != one.Commit || p.stored("rev-parse", one.Ref) != one.Commit {
		t.Errorf("got %s and %s", zero.Commit, one.Commit)
	}
	p.write("a", "2")
	two := p.snap(2)
	p.write("a", "1")
	three := p.snap(3)
	if two.Tree == zero.Tree || three.Tree != zero.Tree {
		t.Errorf("trees: %s %s %s", zero.Tree, two.Tree, three.Tree)
	}
	all, err := p.c.Snapshots(t.Context(), "r1")
	if err != nil || len(all) != 4 {
		t.Fatalf("got %d snapshots, %v", len(all), err)
	}
	for i, s := range all {
		if s.N != i || s.Run != "r1" || s.Head != zero.Head || s.Branch != "refs/heads/main" || s.When.IsZero() {
			t.Errorf("snapshot %d reads as %+v", i, s)
		}
	}
}

func TestTwoProcessesOnOneRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1")
	other := reopen(t, p.top, p.state) // knows nothing of what p.c remembers
	p.snap(0)
	p.write("a", "2")
	two, err := other.See(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	if s := p.snap(1); s.Tree != two.Tree {
		t.Errorf("tree %s, the other process saw %s", s.Tree, two.Tree)
	}
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			c := p.c
			if i%2 == 0 {
				c = other
			}
			if s, err := c.Snapshot(t.Context(), "r1", i, SnapshotOptions{}); err != nil || s.Tree != two.Tree {
				t.Errorf("snapshot %d: %s, %v", i, s.Tree, err)
			}
		})
	}
	all.Wait()
}

func TestSnapshotInEveryState(t *testing.T) {
	t.Parallel()
	tests := map[string]func(p *place) (paths []string){
		"index locked": func(p *place) []string {
			p.write(".git/index.lock", "")
			return []string{"a", "b", "new"}
		},
		"stale private lock": func(p *place) []string {
			p.snap(0)
			if err := os.WriteFile(filepath.Join(p.state, "runs", "r1", "index.lock"), nil, 0o600); err != nil {
				p.t.Fatal(err)
			}
			return []string{"a", "b", "new"}
		},
		"corrupt private index": func(p *place) []string {
			p.snap(0)
			if err := os.WriteFile(filepath.Join(p.state, "runs", "r1", "index"), []byte("DIRCjunk"), 0o600); err != nil {
				p.t.Fatal(err)
			}
			return []string{"a", "b", "new"}
		},
		"private index gone": func(p *place) []string {
			p.snap(0)
			if err := os.Remove(filepath.Join(p.state, "runs", "r1", "index")); err != nil {
				p.t.Fatal(err)
			}
			return []string{"a", "b", "new"}
		},
		"corrupt user's index": func(p *place) []string {
			p.write(".git/index", "DIRCjunk")
			return []string{"a", "b", "new"}
		},
		"split index": func(p *place) []string {
			p.git("update-index", "--split-index")
			p.git("add", "new")
			return []string{"a", "b", "new"}
		},
		"index version 4": func(p *place) []string {
			p.git("update-index", "--index-version", "4")
			return []string{"a", "b", "new"}
		},
		"detached": func(p *place) []string {
			p.git("checkout", "-q", "--detach")
			return []string{"a", "b", "new"}
		},
		"merge conflict": func(p *place) []string {
			p.git("checkout", "-qb", "side")
			p.write("a", "side")
			p.git("commit", "-qam", "side")
			p.git("checkout", "-q", "main")
			p.write("a", "main")
			p.git("rm", "-q", "b")
			p.git("commit", "-qam", "main")
			_ = quiet(p, "merge", "side")
			return []string{"a", "new"}
		},
		"conflict, file deleted": func(p *place) []string {
			p.git("checkout", "-qb", "side")
			p.write("a", "side")
			p.git("commit", "-qam", "side")
			p.git("checkout", "-q", "main")
			p.write("a", "main")
			p.git("commit", "-qam", "main")
			_ = quiet(p, "merge", "side")
			p.remove("a")
			return []string{"b", "new"}
		},
		"assume-unchanged": func(p *place) []string {
			p.git("update-index", "--assume-unchanged", "a")
			p.write("a", "hidden edit")
			return []string{"a", "b", "new"}
		},
		"skip-worktree, file there": func(p *place) []string {
			p.git("update-index", "--skip-worktree", "a")
			p.write("a", "hidden edit")
			return []string{"a", "b", "new"}
		},
		"skip-worktree, file not there": func(p *place) []string {
			p.git("update-index", "--skip-worktree", "a")
			p.remove("a")
			return []string{"b", "new"}
		},
		"file becomes folder, folder becomes link": func(p *place) []string {
			p.snap(0)
			p.remove("a", "b")
			p.write("a/in", "x")
			p.link("a", "b")
			return []string{"a/in", "b", "new"}
		},
		"nothing left": func(p *place) []string {
			p.snap(0)
			p.remove("a", "b", "new")
			return nil
		},
	}
	for name, arrange := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "a", "1", "b", "2")
			p.write("new", "n")
			want := arrange(p)
			before := p.private()
			s := p.snap(1)
			sameList(t, "paths", p.names(s), want...)
			for _, n := range want {
				if got := p.read(n); !strings.HasPrefix(got, "(") && p.stored("cat-file", "blob", s.Commit+":"+n) != strings.TrimSuffix(got, "\n") && n != "b" {
					t.Errorf("%s is not what is on disk", n)
				}
			}
			sameMap(t, "git directory", p.private(), before)
		})
	}
}

// quiet runs git for its effect, whatever its status.
func quiet(p *place, args ...string) error { return gitCommand(p, args...).Run() }

func TestUnbornBranchAndHashes(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			p := barePlace(t)
			p.git("init", "-q", "--object-format="+format)
			p.open(Options{})
			p.write("a", "1")
			zero := p.snap(0)
			if zero.Head != "" || zero.Branch != "refs/heads/main" {
				t.Errorf("head is %q on %q", zero.Head, zero.Branch)
			}
			p.write("a", "2")
			p.git("add", "a")
			p.git("commit", "-qm", "first")
			if one := p.snap(1); one.Head != p.git("rev-parse", "HEAD") || one.Tree == zero.Tree {
				t.Errorf("after the first commit: %+v", one)
			}
			if p.back(0); p.read("a") != "1" {
				t.Errorf("a is %q", p.read("a"))
			}
		})
	}
}

func TestSparseCheckoutIsWhatIsThere(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "in/a", "1", "out/b", "2", "out/c", "3", "top", "t")
	p.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
	p.open(Options{})
	zero := p.snap(0)
	sameList(t, "sparse", p.names(zero), "in/a", "top")
	p.write("out/b", "agent")
	p.write("in/a", "agent")
	one := p.snap(1)
	sameList(t, "with a file outside", p.names(one), "in/a", "out/b", "top")
	if got := p.stored("cat-file", "blob", one.Commit+":out/b"); got != "agent" {
		t.Errorf("out/b is %q", got)
	}
	p.back(0)
	if got := p.read("in/a"); got != "1" {
		t.Errorf("in/a is %q", got)
	}
	if got := p.git("status", "--porcelain"); got != "" {
		t.Errorf("after the way back git says %q", got)
	}
}

func TestIgnoreRulesOfStartAndNow(t *testing.T) {
	t.Parallel()
	p := newPlace(t, ".gitignore", "*.env\n/build/\n", "sub/.gitignore", "tmp\n/only\nx/y\n!keep.env\n", "forced.env", "f", "a", "1")
	p.write("secret.env", "s")
	p.write("build/out", "o")
	p.write("venv/.gitignore", "*\n")
	p.write("venv/lib", "l")
	p.write("sub/keep.env", "k")
	p.write("sub/deep/tmp", "t")
	p.write("sub/only", "o")
	p.write(".git/info/exclude", "private\n")
	p.write("private", "p")
	p.write("plain", "p")
	base := []string{".gitignore", "a", "forced.env", "plain", "sub/.gitignore", "sub/keep.env"}
	sameList(t, "start", p.names(p.snap(0)), base...)

	// The agent takes every rule away: nothing of the past or like it comes in.
	p.write(".gitignore", "!*.env\n")
	p.write(".git/info/exclude", "")
	p.remove("sub/.gitignore", "venv/.gitignore")
	p.write("other.env", "new secret")
	p.write("sub/deep/tmp2", "x")
	p.git("add", "secret.env")
	sameList(t, "rules taken away", p.names(p.snap(1)), ".gitignore", "a", "forced.env", "plain", "sub/deep/tmp2", "sub/keep.env")

	// The agent adds rules: what is untracked is left out, what is tracked stays.
	p.write(".gitignore", "plain\na\nagent\n")
	p.write("agent", "x")
	p.write("plain", "edited while ignored")
	two := p.snap(2)
	sameList(t, "rules added", p.names(two), ".gitignore", "a", "forced.env", "sub/deep/tmp2", "sub/keep.env")
	files := p.files()
	b := p.back(0)
	sameList(t, "removed", b.Removed, "sub/deep/tmp2")
	sameList(t, "written", b.Written, ".gitignore", "sub/.gitignore")
	files[".gitignore"], files["sub/.gitignore"] = "false *.env\n/build/\n", "false tmp\n/only\nx/y\n!keep.env\n"
	delete(files, "sub/deep/tmp2")
	sameMap(t, "ignored files", p.files(), files)
	if len(b.Left) != 1 || b.Left[0].Path != "plain" {
		t.Errorf("left: %q", b.Left)
	}
}

// A file of an agent's leaves the snapshots once a rule ignores it, though nothing else has
// changed since the last look: whatever file the rule is in, and if that file is ignored itself.
func TestRuleThatComesLater(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"at the top": ".gitignore", "beside it": "new/.gitignore", "the person's": ".git/info/exclude"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "a", "1")
			p.snap(0)
			p.write("new/log", "of an agent")
			for n := range 3 {
				sameList(t, "without a rule", p.names(p.snap(n+1)), "a", "new/log")
			}
			p.write(file, "log\n.gitignore\n")
			sameList(t, "with a rule", p.names(p.snap(4)), "a")
			p.write(file, "logs\n.gitignore\n")
			for n := range 3 {
				sameList(t, "with another rule", p.names(p.snap(n+5)), "a", "new/log")
			}
		})
	}
}

func TestIgnoredFileThatWasDeletedComesBack(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", "forced.env", "f", ".gitignore", "*.env\n")
	p.snap(0)
	p.git("rm", "-qf", "a", "forced.env")
	p.write(".gitignore", "a\n*.env\n")
	sameList(t, "deleted", p.names(p.snap(1)), ".gitignore")
	p.back(0)
	if p.read("a") != "1" || p.read("forced.env") != "f" {
		t.Errorf("a is %q, forced.env is %q", p.read("a"), p.read("forced.env"))
	}
	sameList(t, "back", p.names(p.snap(2)), ".gitignore", "a", "forced.env")
}

func TestConversionsAreOff(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.git("config", "filter.shout.clean", "touch "+filepath.Join(p.state, "ran")+"; tr a-z A-Z")
	p.git("config", "filter.shout.smudge", "tr A-Z a-z")
	p.git("config", "filter.shout.required", "true")
	p.write(".gitattributes", "*.crlf text eol=crlf\n*.id ident\n*.loud filter=shout\n*.u16 text working-tree-encoding=UTF-16LE\n* text=auto\n")
	want := map[string]string{"a.crlf": "x\r\ny\r\n", "b.id": "$Id$\n", "c.loud": "abc\n", "d.txt": "lf\n", "e.u16": "h\x00i\x00", "f.txt": "x\r\n"}
	for n, v := range want {
		p.write(n, v)
	}
	p.git("add", "-A")
	p.git("commit", "-qm", "converted")
	p.remove("a.crlf", "b.id", "c.loud")
	p.git("checkout", "-q", ".")
	_ = os.Remove(filepath.Join(p.state, "ran")) // made by the user's own git add
	files := p.files()
	s := p.snap(0)
	for n := range want {
		if got, disk := p.stored("cat-file", "blob", s.Commit+":"+n), strings.TrimSuffix(p.read(n), "\n"); got != disk {
			t.Errorf("%s is stored as %q, on disk it is %q", n, got, disk)
		}
		p.write(n, "agent\r\n")
	}
	p.snap(1)
	p.back(0)
	sameMap(t, "after the way back", p.files(), files)
	if _, err := os.Stat(filepath.Join(p.state, "ran")); err == nil {
		t.Error("a filter was run")
	}
}

func TestNoProgramOfTheRepositoryRuns(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", ".gitattributes", "* diff=evil\n")
	mark := filepath.Join(p.state, "ran")
	evil := filepath.Join(p.state, "evil.sh")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\ntouch '"+mark+"'\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"core.fsmonitor", "diff.external", "diff.evil.command", "diff.evil.textconv", "core.pager", "core.editor", "core.sshCommand"} {
		p.git("config", k, evil)
	}
	for _, h := range []string{"reference-transaction", "post-index-change", "post-checkout", "pre-commit", "post-commit"} {
		if err := os.Symlink(evil, p.path(".git/hooks/"+h)); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Remove(mark) // git config does not run it, but be sure
	p.open(Options{})
	zero := p.snap(0)
	p.write("a", "2")
	one := p.snap(1)
	if diff, _, err := p.c.Diff(t.Context(), zero.Commit, one.Commit, 1<<20); err != nil || !strings.Contains(diff, "+2") {
		t.Errorf("diff: %v\n%s", err, diff)
	}
	p.back(0)
	if err := p.c.IgnoreOwnFolder(); err != nil {
		t.Error(err)
	}
	if _, err := p.c.Prune(t.Context(), "r1", Keep{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a program that the repository names was run")
	}
}

func TestLeftAloneAndListed(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", "grows", "g")
	p.open(Options{MaxFile: 100})
	p.git("init", "-q", "nested")
	p.write("nested/x", "x")
	p.git("-C", "nested", "add", "x")
	p.git("-C", "nested", "commit", "-qm", "x")
	p.write("big", strings.Repeat("b", 101))
	if err := syscall.Mkfifo(p.path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	zero := p.snap(0)
	sameList(t, "paths", p.names(zero), "a", "grows")
	sameList(t, "skipped", zero.Skipped, "big", "nested")
	p.write("grows", strings.Repeat("g", 200))
	p.write("big", "small now")
	p.write("nested/y", "y")
	one := p.snap(1)
	sameList(t, "paths", p.names(one), "a", "big", "grows")
	sameList(t, "skipped", one.Skipped, "grows", "nested")
	files := p.files()
	b := p.back(0)
	sameMap(t, "all left alone", p.files(), files)
	if len(b.Left) != 0 {
		t.Errorf("left: %q", b.Left)
	}
	all, err := p.c.Snapshots(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	sameList(t, "read back", all[0].Skipped, "big", "nested")
}

func TestSubmoduleIsLeftAlone(t *testing.T) {
	t.Parallel()
	lib := newPlace(t, "l", "1")
	p := newPlace(t, "a", "1")
	p.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.top, "lib")
	p.git("commit", "-qm", "lib")
	zero := p.snap(0)
	sameList(t, "skipped", zero.Skipped, "lib")
	p.write("lib/l", "agent")
	p.write("a", "agent")
	p.snap(1)
	p.back(0)
	if p.read("lib/l") != "agent" || p.read("a") != "1" {
		t.Errorf("lib/l is %q, a is %q", p.read("lib/l"), p.read("a"))
	}

	// And pawl works inside of it.
	in := &place{t: t, top: p.path("lib"), state: t.TempDir()}
	in.open(Options{})
	in.snap(0)
	in.write("l", "2")
	in.snap(1)
	in.back(0)
	if in.read("l") != "agent" {
		t.Errorf("in the submodule: %q", in.read("l"))
	}
}

func TestUnreadableFileIsSkipped(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root can read everything")
	}
	p := newPlace(t, "a", "1")
	p.write("locked", "x")
	p.chmod("locked", 0)
	s := p.snap(0)
	sameList(t, "skipped", s.Skipped, "locked")
	sameList(t, "paths", p.names(s), "a")
}

func TestLinkedWorktreeAndSubfolder(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", "pkg/b", "2")
	p.git("worktree", "add", "-q", "-b", "side", p.path("../linked"))
	l := &place{t: t, top: filepath.Join(filepath.Dir(p.top), "linked"), state: filepath.Join(p.state, "l")}
	l.c = reopen(t, filepath.Join(l.top, "pkg"), l.state)
	zero := l.snap(0)
	sameList(t, "whole tree", l.names(zero), "a", "pkg/b")
	if zero.Branch != "refs/heads/side" {
		t.Errorf("branch %q", zero.Branch)
	}
	l.write("a", "2")
	l.git("commit", "-qam", "agent")
	l.remove("pkg/b")
	l.snap(1)
	if b := l.back(0); len(b.Left) > 0 || l.read("a") != "1" || l.read("pkg/b") != "2" {
		t.Errorf("%+v", b)
	}
	if p.read("a") != "1" {
		t.Errorf("in the other work tree a is %q", p.read("a"))
	}
}

func reopen(t testing.TB, root, state string) *Checkout {
	t.Helper()
	c, err := Open(t.Context(), root, Options{StateDir: state})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Pawl's folder is no file of the repository's, whose own lists of what git ignores stay as they are.
func TestOwnFolderIsIgnored(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", "pkg/b", "2")
	p.write(".git/info/exclude", "mine")
	deep := reopen(t, p.path("pkg"), filepath.Join(p.state, "deep"))
	for _, c := range []*Checkout{p.c, deep, p.c} {
		if err := c.IgnoreOwnFolder(); err != nil {
			t.Fatal(err)
		}
	}
	p.write(".pawl/state/x", "x")
	p.write("pkg/.pawl/state/x", "x")
	if got := p.git("status", "--porcelain", "--untracked-files=all"); got != "" {
		t.Errorf("status %q", got)
	}
	if got := p.read(".git/info/exclude"); got != "mine" {
		t.Errorf("exclude is %q", got)
	}
	p.write(".pawl/.gitignore", "")
	if err := p.c.IgnoreOwnFolder(); err != nil || p.read(".pawl/.gitignore") != "*\n" {
		t.Errorf("rules that a power cut left empty: %v, %q", err, p.read(".pawl/.gitignore"))
	}
	p.write(".pawl/.gitignore", "theirs\n")
	if err := p.c.IgnoreOwnFolder(); err != nil || p.read(".pawl/.gitignore") != "theirs\n" {
		t.Errorf("a person's rules: %v, %q", err, p.read(".pawl/.gitignore"))
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1")
	for n := range 8 {
		p.write("a", fmt.Sprint(n))
		p.snap(n)
	}
	if _, err := p.c.Snapshot(t.Context(), "r1", 3, SnapshotOptions{Attempt: "1"}); err != nil {
		t.Fatal(err)
	}
	n, err := p.c.Prune(t.Context(), "r1", Keep{First: 1, Last: 2, Best: []int{3}})
	if err != nil || n != 4 {
		t.Fatalf("dropped %d, %v", n, err)
	}
	all, err := p.c.Snapshots(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, s := range all {
		left = append(left, strings.TrimPrefix(s.Ref, "refs/pawl/runs/r1/"))
	}
	sameList(t, "left", left, "0", "3-1", "3", "6", "7")
	p.back(6)
	for _, run := range []string{"r1", "never"} {
		if err := p.c.Forget(t.Context(), run); err != nil {
			t.Errorf("%s: %v", run, err)
		}
	}
	if got := p.stored("for-each-ref", "refs/pawl"); got != "" {
		t.Errorf("left %q", got)
	}
}

func TestChangesDiffAndStat(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "moves", strings.Repeat("line\n", 50), "edit", "1\n2\n", "del", "d\n", "kind", "k", "bin", "\x00\x01")
	zero := p.snap(0)
	p.git("mv", "moves", "moved")
	p.git("commit", "-qm", "agent")
	p.write("edit", "1\n3\n")
	p.write("new", "n\n")
	p.write("bin", "\x00\x02")
	p.remove("del", "kind")
	p.link("edit", "kind")
	one := p.snap(1)
	all, more, err := p.c.Changes(t.Context(), zero.Tree, one.Commit)
	if err != nil || more {
		t.Fatal(err, more)
	}
	var got []string
	for _, ch := range all {
		got = append(got, fmt.Sprintf("%c %s %s", ch.Status, ch.Path, ch.From))
	}
	sameList(t, "changes", got, "M bin ", "D del ", "M edit ", "T kind ", "R moved moves", "A new ")
	if n, err := p.c.Commits(t.Context(), zero.Head, one.Head); n != 1 || err != nil {
		t.Errorf("commits %d, %v", n, err)
	}
	st, err := p.c.DiffStat(t.Context(), zero.Tree, one.Tree)
	if err != nil || st.Files != 7 || st.Binary != 1 {
		t.Errorf("stat %+v, %v", st, err)
	}
	diff, cut, err := p.c.Diff(t.Context(), zero.Tree, one.Tree, 1<<20)
	if err != nil || cut || !strings.Contains(diff, "+3") || !strings.Contains(diff, "Binary files") {
		t.Errorf("diff %t %v\n%s", cut, err, diff)
	}
	short, cut, err := p.c.Diff(t.Context(), zero.Tree, one.Tree, 40)
	if err != nil || !cut || short != diff[:40] {
		t.Errorf("cut: %t %v %q", cut, err, short)
	}
}

func TestFiveThousandFiles(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes 5,000 files")
	}
	p := newPlace(t)
	many(5000, p)
	p.git("add", "-A")
	p.git("commit", "-qm", "many")
	zero := p.snap(0)
	if n := len(p.names(zero)); n != 5000 {
		t.Fatalf("snapshot has %d files", n)
	}
	files := p.files()
	p.remove("d07", "d08")
	for i := range 300 {
		p.write(fmt.Sprintf("new/%d", i), "n")
	}
	p.snap(1)
	b := p.back(0)
	if len(b.Written) != 200 || len(b.Removed) != 300 || len(b.Left) > 0 {
		t.Errorf("written %d, removed %d, left %q", len(b.Written), len(b.Removed), b.Left)
	}
	sameMap(t, "after", p.files(), files)
}

// A file that was tracked and cannot be stored any more is told, but not one of which
// that held at the start.
func TestUnread(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", "grows", "g", "large", "l")
	p.open(Options{MaxFile: 100})
	p.write("large", strings.Repeat("l", 101))
	p.snap(0)
	unread := func(want ...string) {
		t.Helper()
		got, err := p.c.Unread(t.Context(), "r1")
		if err != nil {
			t.Fatal(err)
		}
		sameList(t, "unread", got, want...)
	}
	unread()
	p.write("grows", strings.Repeat("g", 101))
	p.write("new", strings.Repeat("n", 101))
	p.snap(1)
	unread("grows")
	p.write("grows", "small now")
	p.snap(2)
	unread()
}

// What a power loss broke of the snapshots is taken away when a checkout is opened first
// after it, so that the next snapshot is whole.
func TestSnapshotsAfterAPowerLoss(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1")
	p.write("b", "2")
	zero := p.snap(0)
	object := p.stored("rev-parse", zero.Commit+":b")
	file := filepath.Join(p.c.Store.Objects, object[:2], object[2:])
	for name, text := range map[string]string{file: "", filepath.Join(p.c.Store.Dir, "boot"): "an earlier one\n"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.open(Options{})
	if len(p.c.Notes) != 2 || !strings.Contains(p.c.Notes[0], "1 objects in") || !strings.Contains(p.c.Notes[1], zero.Ref) {
		t.Errorf("told: %q", p.c.Notes)
	}
	if err := os.RemoveAll(filepath.Join(p.state, "runs")); err != nil { // the private index speaks of it
		t.Fatal(err)
	}
	if one := p.snap(1); one.Tree != zero.Tree || p.stored("cat-file", "blob", one.Commit+":b") != "2" {
		t.Errorf("%+v", one)
	}
	if p.open(Options{}); len(p.c.Notes) > 0 {
		t.Errorf("told again: %q", p.c.Notes)
	}
}

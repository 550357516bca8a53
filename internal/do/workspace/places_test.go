package workspace

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What an agent makes in .git to lead git elsewhere is undone before the user runs
// git there: the user's own git does as before, and no program of the agent's runs.
func TestPutBack(t *testing.T) {
	t.Parallel()
	evil := func(p *place) { // a copy of the repository that runs a program
		p.git("clone", "-q", ".", "evil")
		p.git("-C", "evil", "config", "core.fsmonitor", "touch '"+p.top+"/ran'; false")
	}
	for name, c := range map[string]struct {
		plant func(p *place)
		runs  bool // the attempt works: git runs the agent's program
	}{
		"commondir": {func(p *place) { evil(p); p.write(".git/commondir", "../evil/.git\n") }, true},
		"a nested repository in the index": {func(p *place) {
			evil(p)
			p.git("add", "evil")
		}, true},
		"a bare repository in a folder": {func(p *place) {
			p.git("init", "-q", "--bare", "src")
			p.git("-C", "src", "config", "core.bare", "false")
			p.git("-C", "src", "config", "core.worktree", ".")
			p.git("-C", "src", "config", "core.fsmonitor", "touch '"+p.top+"/ran'; false")
		}, true},
		"a link in the place of the index": {func(p *place) { p.plantLink("index") }, false},
		"of the commit's message":          {func(p *place) { p.plantLink("COMMIT_EDITMSG") }, false},
		"of a log":                         {func(p *place) { p.plantLink("logs/HEAD") }, false},
		"of a folder of refs":              {func(p *place) { p.plantLink("refs/pawl") }, false},
		"of HEAD":                          {func(p *place) { p.plantLink("HEAD") }, false},
		"a HEAD that is none":              {func(p *place) { p.write(".git/HEAD", "nonsense") }, false},
		"a pipe": {func(p *place) {
			p.clear(".git/HEAD")
			if err := unix.Mkfifo(filepath.Join(p.top, ".git", "HEAD"), 0o600); err != nil {
				p.t.Error(err)
			}
		}, false},
		"alternates": {func(p *place) { evil(p); p.write(".git/objects/info/alternates", p.top+"/evil/.git/objects\n") }, false},
		"the list of a rebase": {func(p *place) {
			p.git("rev-parse", "HEAD")
			for name, text := range map[string]string{
				"git-rebase-todo": "exec touch '" + p.top + "/ran'\n", "head-name": "refs/heads/main\n", "interactive": "", "done": "",
				"onto": p.git("rev-parse", "HEAD"), "orig-head": p.git("rev-parse", "HEAD"), "msgnum": "0\n", "end": "1\n",
			} {
				p.write(".git/rebase-merge/"+name, text)
			}
		}, false},
		"a series of picks": {func(p *place) {
			head := p.git("rev-parse", "HEAD")
			p.write(".git/sequencer/opts", "[options]\n\tstrategy = x/evil\n")
			p.write(".git/sequencer/todo", "pick "+head+" a\n")
			p.write(".git/sequencer/head", head+"\n")
		}, false},
		"patches to be applied": {func(p *place) { p.write(".git/rebase-apply/apply-opt", "--unsafe-paths") }, false},
		"a remote in a file":    {func(p *place) { p.write(".git/remotes/origin", "URL: ../evil\nPush: refs/heads/main\n") }, false},
		"a branch of a remote":  {func(p *place) { p.write(".git/branches/origin", "../evil\n") }, false},
		"a search for a commit": {func(p *place) { p.write(".git/BISECT_NAMES", "'--output=../x'") }, false},
		"resolved conflicts":    {func(p *place) { p.write(".git/rr-cache/"+strings.Repeat("a", 40)+"/postimage", "evil") }, false},
		"attributes":            {func(p *place) { p.write(".git/info/attributes", "* filter=evil\n") }, false},
		"the folder that takes it": {func(p *place) {
			p.plantLink(asideFolder)
			p.write(".git/commondir", "../evil/.git\n")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "a", "1", "src/b", "2")
			p.snap(0)
			before, err := p.c.ConfigFingerprint(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c.plant(p)
			ran := func() bool {
				_, err := os.Lstat(filepath.Join(p.top, "ran"))
				return err == nil
			}
			if c.runs {
				p.git("-C", "src", "status")
				if !ran() {
					t.Error("the attempt does not work without pawl")
				}
				p.clear("ran")
			}
			undone, err := p.c.PutBack(t.Context(), before)
			if err != nil || len(undone) == 0 {
				t.Fatalf("undone %q, %v", undone, err)
			}
			if out := p.git("-C", "src", "status", "--short", "--branch"); !strings.Contains(out, "##") || ran() {
				t.Errorf("git says %q, and the agent's program ran: %v", out, ran())
			}
			p.git("reset", "-q", "--hard")
			p.git("cherry-pick", "HEAD", "HEAD", "--keep-redundant-commits", "--allow-empty") // it begins
			if undone, err = p.c.PutBack(t.Context(), before); err != nil || len(undone) > 0 {
				t.Errorf("undone once more: %q, %v", undone, err)
			}
			if left, err := os.ReadDir(p.outside()); err != nil || len(left) != 1 {
				t.Errorf("outside are %v, %v", left, err)
			}
		})
	}
}

// An agent cannot have a look end before all is found: neither by more names than are
// looked at, nor by what git cannot read.
func TestPutBackInSpiteOfErrors(t *testing.T) {
	t.Parallel()
	for name, hinder := range map[string]func(p *place){
		"a folder with too many names": func(p *place) {
			for n := range 60 {
				p.write(fmt.Sprintf(".git/a/%d", n), "")
			}
		},
		"too many refs": func(p *place) {
			for n := range 60 {
				p.write(fmt.Sprintf(".git/refs/heads/a/%d", n), p.git("rev-parse", "main"))
			}
		},
		"a commit that cannot be read": func(p *place) {
			p.write("commit", "tree "+strings.Repeat("1", 40)+"\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nbroken\n")
			p.write(".git/refs/heads/broken", p.git("hash-object", "-w", "-t", "commit", "--literally", "commit"))
		},
		"a HEAD that cannot be replaced": func(p *place) {
			p.clear(".git/HEAD")
			p.write(".git/HEAD/x", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "a", "1")
			p.c.mostNames = 50
			for range 2 { // the second run of an agent finds what the first one left
				before, err := p.c.ConfigFingerprint(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				hinder(p)
				p.write(".git/info/attributes", "* filter=evil\n")
				p.write(".git/remotes/origin", "URL: ../evil\n")
				undone, err := p.c.PutBack(t.Context(), before)
				if !slices.Contains(undone, ".git/remotes/origin") || !slices.Contains(undone, ".git/info/attributes") {
					t.Errorf("undone %q, %v", undone, err)
				}
			}
		})
	}
}

// What a person or git itself does to a repository is left alone.
func TestPutBackNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1")
	p.snap(0)
	before, err := p.c.ConfigFingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.write("b", "2")
	p.git("switch", "-q", "-c", "other")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "two")
	p.git("tag", "t")
	p.git("stash", "list")
	p.git("gc", "-q")
	p.git("clone", "-q", ".", "nested")
	p.write(".git/opencode", "the id of a project")
	if undone, err := p.c.PutBack(t.Context(), before); err != nil || len(undone) > 0 {
		t.Errorf("undone %q, %v", undone, err)
	}
}

// An index that has git write outside of the work tree, or not look at files, is made
// anew. What the user staged and marked is in the new one.
func TestPutBackTheIndex(t *testing.T) {
	t.Parallel()
	rename := func(to string) func(p *place) {
		return func(p *place) {
			p.git("update-index", "--add", "--cacheinfo", "100755,"+p.id("HEAD:a")+",xxxx/hooks/post-checkout")
			data := bytes.Replace([]byte(p.read(".git/index")), []byte("xxxx/"), []byte(to), 1)
			data = data[:len(data)-sha1.Size]
			if i := bytes.Index(data, []byte("TREE")); i > 0 {
				data = data[:i]
			}
			sum := sha1.Sum(data)
			p.write(".git/index", string(append(data, sum[:]...)))
		}
	}
	for name, plant := range map[string]func(p *place){
		"a hook":              rename(".git/"),
		"a hook, in capitals": rename(".GIT/"),
		"a file outside":      rename("../x/"),
		"a file in no folder": rename("./xx/"),
		"a file not looked at": func(p *place) {
			p.git("update-index", "--assume-unchanged", "b")
			p.write("b", "evil")
		},
		"a file that need not be there": func(p *place) {
			p.git("update-index", "--skip-worktree", "b")
			p.clear("b")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "a", "1", "b", "2", "mine", "3", "sparse", "4")
			p.write("mine", "staged")
			p.git("add", "mine")
			p.git("update-index", "--skip-worktree", "sparse")
			p.snap(0)
			before, err := p.c.ConfigFingerprint(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			plant(p)
			undone, err := p.c.PutBack(t.Context(), before)
			if err != nil || strings.Join(undone, " ") != ".git/index" {
				t.Fatalf("undone %q, %v", undone, err)
			}
			if out := p.git("ls-files", "-v"); out != "H a\nH b\nH mine\nS sparse" {
				t.Errorf("the index has %q", out)
			}
			want := map[string]string{
				"a file not looked at": "b\nmine", "a file that need not be there": "b\nmine",
			}[name]
			if out := p.git("diff", "--name-only", "HEAD"); out != cmp.Or(want, "mine") {
				t.Errorf("git sees changes in %q", out)
			}
			if undone, err = p.c.PutBack(t.Context(), before); err != nil || len(undone) > 0 {
				t.Errorf("undone once more: %q, %v", undone, err)
			}
		})
	}
}

// An operation of the user's that an agent finishes is over; one that it changes is put back.
func TestPutBackUnfinished(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string]bool{"finished": false, "changed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "a", "1")
			for _, text := range []string{"2", "3"} {
				p.write("a", text)
				p.git("commit", "-qam", text)
			}
			p.git("switch", "-qc", "other", "HEAD~2")
			p.write("a", "4")
			p.git("commit", "-qam", "4")
			cmd := exec.Command("git", "cherry-pick", "main~1", "main")
			cmd.Dir = p.top
			if out, err := cmd.CombinedOutput(); err == nil {
				t.Fatalf("there is no conflict: %s", out)
			}
			p.snap(0)
			before, err := p.c.ConfigFingerprint(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if p.git("cherry-pick", "--quit"); changes {
				p.write(".git/sequencer/todo", "pick evil\n")
			}
			undone, err := p.c.PutBack(t.Context(), before)
			if err != nil || changes != (strings.Join(undone, " ") == ".git/sequencer/todo") {
				t.Errorf("undone %q, %v", undone, err)
			}
		})
	}
}

// outside is a folder with one file, beside the work tree.
func (p *place) outside() string {
	p.t.Helper()
	dir := p.top + ".outside"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rc"), []byte("mine"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// plantLink makes a name in .git a link to outside.
func (p *place) plantLink(name string) {
	p.t.Helper()
	to := filepath.Join(p.outside(), "rc")
	p.clear(".git/" + name)
	if err := os.MkdirAll(filepath.Dir(filepath.Join(p.top, ".git", name)), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Symlink(to, filepath.Join(p.top, ".git", name)); err != nil {
		p.t.Fatal(err)
	}
}

// The line for .pawl goes into no file that info/exclude leads to.
func TestExcludeThroughNoLink(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1")
	rc := filepath.Join(p.outside(), "rc")
	p.plantLink("info/exclude")
	if err := p.c.Exclude(t.Context()); err == nil {
		t.Error("a link was followed")
	}
	if data, err := os.ReadFile(rc); err != nil || string(data) != "mine" {
		t.Errorf("outside is %q, %v", data, err)
	}
}

// What makes the user's git read other objects than its refs lead to is undone, and
// what the user has of it stays.
func TestPutBackOtherObjects(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(p *place){
		"an object in the place of another": func(p *place) { p.git("replace", "HEAD:a", p.evil()) },
		"in the file with many refs": func(p *place) {
			p.git("replace", "HEAD:a", p.evil())
			p.git("pack-refs", "--all")
		},
		"the user's own, moved":  func(p *place) { p.git("replace", "-f", "HEAD:b", p.evil()) },
		"the user's own, gone":   func(p *place) { p.git("replace", "-d", p.id("HEAD:b")) },
		"a ref that is another":  func(p *place) { p.git("symbolic-ref", "refs/replace/"+p.id("HEAD:a"), "refs/tags/evil") },
		"the end of the history": func(p *place) { p.write(".git/shallow", p.id("HEAD")+"\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "a", "one", "b", "two", "c", "three")
			p.git("commit", "-q", "--allow-empty", "-m", "second")
			p.git("replace", "HEAD:b", p.id("HEAD:c"))
			p.git("tag", "evil", p.evil())
			before, err := p.c.ConfigFingerprint(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			read := func() string {
				return p.git("cat-file", "-p", "HEAD:a") + p.git("cat-file", "-p", "HEAD:b") + p.git("log", "--format=%s")
			}
			was := read()
			plant(p)
			if read() == was {
				t.Error("the attempt does not work without pawl")
			}
			undone, err := p.c.PutBack(t.Context(), before)
			if err != nil || len(undone) != 1 || read() != was {
				t.Errorf("undone %q, %v; git reads %q", undone, err, read())
			}
			if p.id("refs/tags/evil") != p.evil() {
				t.Error("the tag is another")
			}
			if undone, err = p.c.PutBack(t.Context(), before); err != nil || len(undone) > 0 {
				t.Errorf("undone once more: %q, %v", undone, err)
			}
		})
	}
}

// evil is the id of a blob that an agent made.
func (p *place) evil() string {
	p.write("evil", "evil")
	return strings.TrimSpace(p.git("hash-object", "-w", "evil"))
}

// id is the id of what a name stands for.
func (p *place) id(name string) string { return strings.TrimSpace(p.git("rev-parse", name)) }

// Locks that were made while an agent had the tree go, whatever they are; one that was
// there before it, and a pawl's, stays.
func TestDropLocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plant  func(p *place, at string)
		before bool // it was there before
		stays  bool
	}{
		"a file":       {func(p *place, at string) { p.write(at, "") }, false, false},
		"of long ago":  {func(p *place, at string) { p.write(at, ""); p.age(at) }, false, false},
		"a folder":     {func(p *place, at string) { p.write(at+"/x", "") }, false, false},
		"there before": {func(p *place, at string) { p.write(at, "") }, true, true},
		"of a pawl":    {func(p *place, at string) { p.write(at, "pawl moves this work tree\n") }, false, true},
	} {
		for lock, needs := range map[string][]string{
			"index.lock": {"add", "a"}, "HEAD.lock": {"switch", "-q", "--detach"}, "packed-refs.lock": {"pack-refs", "--all"},
			"refs/heads/main.lock": {"commit", "-q", "--allow-empty", "-m", "x"}, "config.lock": {"config", "a.b", "c"},
		} {
			t.Run(name+"/"+strings.ReplaceAll(lock, "/", "-"), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t, "a", "1")
				p.write("a", "2")
				since := time.Now()
				if c.before {
					since = since.Add(time.Minute)
				}
				c.plant(p, ".git/"+lock)
				if _, err := p.tryGit(needs...); err == nil {
					t.Error("the lock is in nobody's way")
				}
				dropped, err := p.c.DropLocks(since)
				if err != nil || (len(dropped) == 0) != c.stays {
					t.Errorf("dropped %q, %v", dropped, err)
				}
				if out, err := p.tryGit(needs...); (err != nil) != c.stays {
					t.Errorf("git says %v: %s", err, out)
				}
			})
		}
	}
}

// age gives a file a time long ago.
func (p *place) age(name string) {
	p.t.Helper()
	if err := os.Chtimes(filepath.Join(p.top, name), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		p.t.Fatal(err)
	}
}

// tryGit runs git, which waits for no lock.
func (p *place) tryGit(args ...string) (string, error) {
	args = append([]string{"-c", "core.filesRefLockTimeout=0", "-c", "core.packedRefsTimeout=0"}, args...)
	cmd := exec.CommandContext(p.t.Context(), "git", args...)
	cmd.Dir = p.top
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Nested repositories by which the user's git would run an agent's program go, wherever
// git learns of them.
func TestPutBackNested(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plant func(p *place)
		later string // what the user does
		lost  bool   // the agent took the repository itself away
	}{
		"committed and taken off the index": {func(p *place) {
			p.git("add", "evil")
			p.git("commit", "-q", "-m", "evil")
			p.git("rm", "-q", "--cached", "evil")
		}, "git reset -q --hard; git status", false},
		"on another branch": {func(p *place) {
			p.git("switch", "-q", "-c", "other")
			p.git("add", "evil")
			p.git("commit", "-q", "-m", "evil")
			p.git("rm", "-q", "--cached", "evil")
			p.git("switch", "-q", "main")
		}, "git switch -q other; git status", false},
		"in the stash": {func(p *place) {
			p.git("add", "evil")
			p.git("update-ref", "refs/stash", strings.TrimSpace(p.git("commit-tree", "-m", "x", strings.TrimSpace(p.git("write-tree")))))
			p.git("rm", "-q", "-f", "--cached", "evil")
		}, "git read-tree stash; git status", false},
		"a file in a folder of the repository": {func(p *place) { p.write("sub/.git", "gitdir: ../evil/.git\n") }, "cd sub; git status", false},
		"a folder there":                       {func(p *place) { p.copyAll("evil/.git", "sub/.git") }, "cd sub; git status", false},
		"above it":                             {func(p *place) { p.copyAll("evil/.git", "deep/.git") }, "cd deep/er; git status", false},
		"in one that is taken off the index": {func(p *place) {
			p.git("rm", "-q", "-r", "--cached", "sub")
			p.write("sub/.git", "gitdir: ../evil/.git\n")
		}, "cd sub; git status", false},
		"a file in the place of .git": {func(p *place) {
			if err := os.Rename(filepath.Join(p.top, ".git"), filepath.Join(p.top, "away")); err != nil {
				p.t.Fatal(err)
			}
			p.write(".git", "gitdir: evil/.git\n")
		}, "git status", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, undo := range []bool{false, true} {
				p := newPlace(t, "a", "1", "sub/b", "2", "deep/er/c", "3")
				p.snap(0)
				before, err := p.c.ConfigFingerprint(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				p.git("clone", "-q", ".", "evil")
				p.git("-C", "evil", "config", "core.fsmonitor", "touch '"+p.top+"/ran'; false")
				c.plant(p)
				if undo {
					undone, err := p.c.PutBack(t.Context(), before)
					if len(undone) != 1 || (err != nil) != c.lost {
						t.Errorf("undone %q, %v", undone, err)
					}
				}
				cmd := exec.CommandContext(t.Context(), "sh", "-c", c.later)
				cmd.Dir = p.top
				out, err := cmd.CombinedOutput()
				if _, rerr := os.Lstat(filepath.Join(p.top, "ran")); (rerr != nil) != undo {
					t.Errorf("undone: %v, and the agent's program ran: %v; git says %v: %s", undo, rerr == nil, err, out)
				}
			}
		})
	}
}

// copyAll copies a folder.
func (p *place) copyAll(from, to string) {
	p.t.Helper()
	if err := os.CopyFS(filepath.Join(p.top, to), os.DirFS(filepath.Join(p.top, from))); err != nil {
		p.t.Fatal(err)
	}
}

// Files in a nested repository are seen as new, but for those of one that was there.
func TestHiddenInNestedRepositories(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1")
	nest := func(dir string) {
		p.write(dir+"/sub/a_test.sh", "true")
		p.git("init", "-q", dir)
	}
	nest("old")
	p.snap(0)
	nest("tests")
	p.write("old/b_test.sh", "true")
	p.snap(1)
	hidden, err := p.c.Hidden(t.Context(), "r1")
	if got := strings.Join(hidden, " "); err != nil || got != "old tests tests/sub/a_test.sh" {
		t.Errorf("hidden is %q, %v", got, err)
	}
}

// Branches, tags and stashes that were moved or deleted are told, with where they
// were; more commits on the branch that is checked out, or on a remote's, are not.
func TestMovedRefsAreTold(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1")
	branch := strings.TrimSpace(p.git("symbolic-ref", "HEAD"))
	first := strings.TrimSpace(p.git("rev-parse", "HEAD"))
	p.git("branch", "kept")
	p.git("tag", "v1")
	p.git("update-ref", "refs/remotes/origin/main", first)
	p.git("update-ref", "refs/remotes/origin/other", first)
	before, err := p.c.ConfigFingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	moved := func() []string {
		t.Helper()
		if _, err := p.c.PutBack(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		return p.c.MovedRefs()
	}
	p.write("a", "2")
	p.git("commit", "-qam", "second")
	p.git("branch", "new")
	p.git("update-ref", "refs/remotes/origin/main", "HEAD") // fetched
	p.git("update-ref", "refs/remotes/origin/other", "HEAD")
	if got := moved(); len(got) > 0 {
		t.Errorf("told of usual work: %q", got)
	}
	second := strings.TrimSpace(p.git("rev-parse", "HEAD"))
	p.git("branch", "-f", "kept", "HEAD")
	p.git("tag", "-d", "v1")
	p.git("update-ref", "refs/remotes/origin/other", first)
	p.git("reset", "-q", "--hard", first)
	sameList(t, "moved", moved(),
		"refs/heads/kept is at "+second[:12]+"; it was at "+first+", and git update-ref puts it back",
		branch+" is at "+first[:12]+"; it was at "+second+", and git update-ref puts it back",
		"refs/remotes/origin/other is at "+first[:12]+"; it was at "+second+", and git update-ref puts it back",
		"refs/tags/v1 was deleted; it was at "+first+", and git update-ref puts it back")
	if got := moved(); len(got) > 0 {
		t.Errorf("told twice: %q", got)
	}
}

// What is checked out in the other work trees of a repository is kept: from a linked one
// that of the main one, and the linked ones beside it.
func TestOfOthers(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "one")
	main := p.top
	p.git("worktree", "add", "-q", "--detach", "one")
	p.git("worktree", "add", "-q", "--detach", "two")
	for _, c := range []struct {
		top  string
		want []string
	}{
		{main, []string{"worktrees/one", "worktrees/two"}},
		{filepath.Join(main, "one"), []string{"HEAD", "index", "worktrees/two"}},
	} {
		p.top = c.top
		p.open(Options{})
		var got []string
		for _, path := range p.c.OfOthers() {
			rel, err := filepath.Rel(filepath.Join(main, ".git"), path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, rel)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("in %s the others' are %v, want %v", c.top, got, c.want)
		}
	}
}

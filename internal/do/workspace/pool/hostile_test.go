package pool

import (
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// What an agent does to its clone, and what a collect makes of it.
func TestCollectOfAHostileClone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		harm    func(r *rig, w Workspace)
		refused string // part of the reason; empty when the work is collected
	}{
		{"branches deleted", func(r *rig, w Workspace) {
			r.git(w.Dir, "checkout", "-q", "--detach")
			r.git(w.Dir, "branch", "-D", "main", "pawl/task-001")
		}, ""},
		{"another branch", func(r *rig, w Workspace) {
			r.git(w.Dir, "checkout", "-q", "-b", "feature/x")
			r.git(w.Dir, "add", "work")
			r.git(w.Dir, "commit", "-qm", "mine")
		}, ""},
		{"no commit", func(r *rig, w Workspace) { r.git(w.Dir, "checkout", "-q", "--orphan", "new") }, "has no commit"},
		{"a blob is broken", func(r *rig, w Workspace) {
			r.git(w.Dir, "add", "work")
			r.git(w.Dir, "commit", "-qm", "mine")
			r.breakObject(w, r.git(w.Dir, "rev-parse", "HEAD:work"))
		}, "loose object"},
		{"the commit is broken", func(r *rig, w Workspace) {
			r.git(w.Dir, "commit", "-qm", "mine", "--allow-empty")
			r.breakObject(w, r.git(w.Dir, "rev-parse", "HEAD"))
		}, "cannot be read"},
		{"the commit is gone", func(r *rig, w Workspace) {
			r.git(w.Dir, "commit", "-qm", "mine", "--allow-empty")
			r.remove(r.object(w, r.git(w.Dir, "rev-parse", "HEAD")))
		}, "cannot be read"},
		{"no .git", func(r *rig, w Workspace) { r.remove(filepath.Join(w.Dir, ".git")) }, "no longer a folder"},
		{".git is the user's", func(r *rig, w Workspace) {
			r.remove(filepath.Join(w.Dir, ".git"))
			r.link(filepath.Join(r.top, ".git"), filepath.Join(w.Dir, ".git"))
		}, "no longer a folder"},
		{"the objects are the user's", func(r *rig, w Workspace) {
			r.remove(filepath.Join(w.Dir, ".git", "objects"))
			r.link(filepath.Join(r.top, ".git", "objects"), filepath.Join(w.Dir, ".git", "objects"))
		}, "clone's repository"},
		{"HEAD leads out", func(r *rig, w Workspace) {
			r.put(w.Dir, ".git/HEAD", "ref: refs/heads/../../../../the repository/.git/refs/heads/main\n")
		}, "HEAD cannot be read"},
		{"HEAD is text", func(r *rig, w Workspace) { r.put(w.Dir, ".git/HEAD", "x\n") }, "HEAD cannot be read"},
		{"the index is text", func(r *rig, w Workspace) { r.put(w.Dir, ".git/index", "x\n") }, ""},
		{"the configuration is text", func(r *rig, w Workspace) { r.put(w.Dir, ".git/config", "x\n") }, ""},
		{"objects from elsewhere", func(r *rig, w Workspace) {
			r.put(w.Dir, ".git/objects/info/alternates", "/nowhere\n")
		}, ""},
		{"the branch is a link", func(r *rig, w Workspace) {
			r.git(w.Dir, "commit", "-q", "--allow-empty", "-m", "mine")
			name := filepath.Join(w.Dir, ".git", "refs", "heads", "pawl", "task-001")
			r.remove(name)
			r.link(filepath.Join(r.top, ".git", "refs", "heads", "main"), name)
		}, "HEAD cannot be read"},
		{"a path that is none", func(r *rig, w Workspace) { r.evilTree(w, ".git") }, "hasDotgit"},
		{"a path that leads out", func(r *rig, w Workspace) { r.evilTree(w, "..") }, "hasDotdot"},
		{"a tree that is its own hundredfold", func(r *rig, w Workspace) {
			r.git(w.Dir, "update-ref", "HEAD", r.git(w.Dir, "commit-tree", "-p", w.Base, "-m", "many", gittest.ManyFiles(r.t, w.Dir)))
		}, "too many files"},
		{"a moved submodule", func(r *rig, w Workspace) {
			r.git(w.Dir, "update-index", "--add", "--cacheinfo", "160000,"+w.Base+",module")
			r.git(w.Dir, "commit", "-qm", "mine")
			r.git(w.Dir, "init", "-q", "module")
			r.git(w.Dir+"/module", "commit", "-q", "--allow-empty", "-m", "inner")
		}, "submodule"},
		{"a submodule that is staged and no more", func(r *rig, w Workspace) {
			r.git(w.Dir, "update-index", "--add", "--cacheinfo", "160000,"+w.Base+",module")
		}, "submodule"},
		{"a filter", func(r *rig, w Workspace) { r.put(w.Dir, ".gitattributes", "work filter=evil\n") }, "does not run"},
		{"a large file", func(r *rig, w Workspace) { r.put(w.Dir, "large", strings.Repeat("x", 2<<20)) }, "over 1 MiB"},
		{"a large file that was committed", func(r *rig, w Workspace) {
			r.put(w.Dir, "large", strings.Repeat("x", 2<<20))
			r.git(w.Dir, "add", "large")
			r.git(w.Dir, "commit", "-qm", "mine")
		}, "over 1 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.o.MaxFile = 1 << 20
			before := r.everything()
			p := r.open()
			w := r.take(p, "task-001")
			r.put(w.Dir, "work", "work\n")
			c.harm(r, w)
			commit, err := p.Collect(t.Context(), w, "work")
			if c.refused == "" {
				if err != nil || r.git(r.top, "show", commit+":work") != "work" || r.git(r.top, "rev-parse", "refs/pawl/tasks/task-001") != commit {
					t.Errorf("collected %s, %v", commit, err)
				}
			} else if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("collected %q, %v; want a refusal with %q", commit, err, c.refused)
			} else if out, err := tryGit(r.top, "rev-parse", "--verify", "-q", "refs/pawl/tasks/task-001"); err == nil {
				t.Errorf("a ref was made: %s", out)
			}
			r.same(before)
			// Whatever it did, its files are saved, and the folder goes.
			r.release(p, w, GivenUp("test"))
			kept, err := p.Recoveries(t.Context(), w.ID)
			if err != nil || c.refused != "" && (len(kept) != 1 || r.git(r.top, "show", kept[0].Commit+":work") != "work") {
				t.Errorf("recoveries %v, %v", kept, err)
			}
			if pathExists(w.Dir) {
				t.Error("the folder is there")
			}
			r.same(before)
			r.git(r.top, "fsck", "--strict")
		})
	}
}

// same checks that the user's repository is as it was.
func (r *rig) same(before map[string]string) {
	r.t.Helper()
	after := r.everything()
	for name, sum := range before {
		if after[name] != sum {
			r.t.Errorf("%s changed", name)
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			r.t.Errorf("%s is new", name)
		}
	}
}

func (r *rig) object(w Workspace, id string) string {
	return filepath.Join(w.Dir, ".git", "objects", id[:2], id[2:])
}

func (r *rig) breakObject(w Workspace, id string) {
	r.t.Helper()
	r.remove(r.object(w, id))
	r.put(filepath.Dir(r.object(w, id)), id[2:], "broken")
}

func (r *rig) remove(path string) {
	r.t.Helper()
	if err := os.RemoveAll(path); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) link(to, path string) {
	r.t.Helper()
	if err := os.Symlink(to, path); err != nil {
		r.t.Fatal(err)
	}
}

// evilTree commits a tree with an entry that git would not make.
func (r *rig) evilTree(w Workspace, name string) {
	r.t.Helper()
	id, err := hex.DecodeString(r.git(w.Dir, "hash-object", "-w", "work"))
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command("git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
	cmd.Dir = w.Dir
	cmd.Stdin = strings.NewReader("100644 " + name + "\x00" + string(id))
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatal(err)
	}
	tree := strings.TrimSpace(string(out))
	commit := r.git(w.Dir, "commit-tree", "-p", w.Base, "-m", "evil", tree)
	r.git(w.Dir, "update-ref", "HEAD", r.git(w.Dir, "commit-tree", "-p", commit, "-m", "innocent", "HEAD^{tree}"))
}

// Nothing that a clone's configuration or files name is run by pawl.
func TestNoProgramOfACloneIsRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	ran := filepath.Join(r.dir, "ran")
	w := r.take(p, "task-001")
	evil := filepath.Join(w.Dir, "evil.sh")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\ntouch '"+ran+"'\ncat\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	hooks := filepath.Join(w.Dir, ".git", "hooks")
	for _, name := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-commit", "fsmonitor-watchman"} {
		if err := os.Symlink(evil, filepath.Join(hooks, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, kv := range [][2]string{
		{"core.fsmonitor", evil}, {"core.hooksPath", hooks}, {"filter.evil.clean", evil}, {"filter.evil.smudge", evil}, {"filter.evil.required", "true"},
		{"uploadpack.packObjectsHook", evil}, {"core.sshCommand", evil}, {"core.pager", evil}, {"core.editor", evil}, {"gpg.program", evil},
		{"commit.gpgSign", "true"}, {"diff.external", evil}, {"core.alternateRefsCommand", evil}, {"core.attributesFile", filepath.Join(w.Dir, "attributes")},
		{"core.worktree", r.top}, {"include.path", filepath.Join(w.Dir, "more")}, {"extensions.partialClone", "origin"}, {"remote.origin.url", "ext::sh -c " + evil},
	} {
		r.git(w.Dir, "config", kv[0], kv[1])
	}
	r.put(w.Dir, "attributes", "* filter=evil\n")
	r.put(w.Dir, "more", "[core]\n\tfsmonitor = "+evil+"\n")
	r.put(w.Dir, "work", "work\n")
	commit := r.collect(p, w)
	r.release(p, w, Keep("later"))
	v := r.take(p, "task-001")
	r.put(w.Dir, "a", "more\n")
	r.release(p, v, Landed)
	if got := r.git(r.top, "show", commit+":work"); got != "work" {
		t.Errorf("collected %q", got)
	}
	r.release(p, r.take(p, "task-002"), GivenUp("test"))
	if pathExists(ran) {
		t.Error("a program of the clone was run")
	}
}

// A link that an agent put in the place of a folder is removed, not followed.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	r := newRig(t, "a", "1\n", "d/b", "2\n", "e/c", "3\n")
	outside := filepath.Join(r.dir, "outside")
	r.put(outside, "b", "precious\n")
	r.put(outside, "other", "precious\n")
	before := r.everything()
	p := r.open()
	w := r.take(p, "task-001")
	r.remove(filepath.Join(w.Dir, "d"))
	r.link(outside, filepath.Join(w.Dir, "d"))
	r.remove(filepath.Join(w.Dir, "e"))
	r.link(r.top, filepath.Join(w.Dir, "e"))
	r.link(outside, filepath.Join(w.Dir, "new"))
	commit := r.collect(p, w)
	if got := r.git(r.top, "ls-tree", "-r", commit); strings.Count(got, "120000") != 3 || strings.Count(got, "100644") != 1 {
		t.Errorf("collected\n%s", got)
	}
	r.release(p, w, Landed)
	v := r.take(p, "task-002")
	if got, err := os.ReadFile(filepath.Join(v.Dir, "d", "b")); err != nil || string(got) != "2\n" {
		t.Errorf("d/b is %q, %v", got, err)
	}
	for _, name := range []string{"b", "other"} {
		if got, err := os.ReadFile(filepath.Join(outside, name)); err != nil || string(got) != "precious\n" {
			t.Errorf("%s outside is %q, %v", name, got, err)
		}
	}
	r.release(p, v, GivenUp("test"))
	r.same(before)
}

// A folder that was made read-only, by mode, goes all the same.
func TestAReadOnlyFolderGoes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	for _, h := range []How{Landed, GivenUp("test")} {
		w := r.take(p, "task-001")
		r.put(w.Dir, "x/y/z", "1\n")
		for _, d := range []string{"x/y", "x", "d", ".git/refs", ".git", "."} {
			if err := os.Chmod(filepath.Join(w.Dir, d), 0o500); err != nil { //nolint:gosec // a folder that may be read
				t.Fatal(err)
			}
		}
		r.release(p, w, h)
		if pathExists(w.Dir) {
			t.Error("the folder is there")
		}
	}
}

func TestIDsThatCannotBePartOfAPath(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	for _, id := range []string{"", ".", "..", "../x", "a/b", "a b", "-x", "x.lock", "a..b", "a\n", "x.", "ä", "integration-1", strings.Repeat("x", 200)} {
		if w, err := p.Take(t.Context(), id, "HEAD"); err == nil {
			t.Errorf("%q is taken: %+v", id, w)
		}
	}
	for _, base := range []string{"", "-x", "nowhere", "HEAD^{tree}", "--all"} {
		if w, err := p.Take(t.Context(), "task-001", base); err == nil {
			t.Errorf("%q is a base: %+v", base, w)
		}
	}
}

// A history that does not begin at the base becomes one commit on it, with the agent's
// name and words: the files are what counts.
func TestCollectOfARewrittenHistory(t *testing.T) {
	t.Parallel()
	orphan := func(r *rig, w Workspace) {
		r.git(w.Dir, "checkout", "-q", "--orphan", "new")
		r.git(w.Dir, "add", "work")
		r.git(w.Dir, "commit", "-qm", "rewritten")
	}
	for name, rewrite := range map[string]func(*rig, Workspace){
		"an amended base": func(r *rig, w Workspace) {
			r.git(w.Dir, "add", "work")
			r.git(w.Dir, "commit", "-q", "--amend", "-m", "rewritten")
		},
		"an orphan branch": orphan,
		"a graft that hides the history": func(r *rig, w Workspace) {
			orphan(r, w)
			r.put(w.Dir, ".git/info/grafts", r.git(w.Dir, "rev-parse", "HEAD")+" "+w.Base+"\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "a", "1\n")
			p := r.open()
			w := r.take(p, "task-001")
			r.put(w.Dir, "work", "done\n")
			rewrite(r, w)
			commit := r.collect(p, w)
			if got, want := r.git(r.top, "log", "-1", "--format=%s %P", commit), "rewritten "+w.Base; got != want {
				t.Errorf("collected %q, want %q", got, want)
			}
			if got := r.git(r.top, "diff", "--name-status", w.Base, commit); got != "A\twork" {
				t.Errorf("it changes %q", got)
			}
		})
	}
}

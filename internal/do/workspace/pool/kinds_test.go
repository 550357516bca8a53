package pool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// roundTrip takes a workspace, works in it, collects, and lands it.
func (r *rig) roundTrip(p *Pool) {
	r.t.Helper()
	w := r.take(p, "task-001")
	if got := r.git(w.Dir, "status", "--porcelain"); got != "" {
		r.t.Errorf("status of a new workspace:\n%s", got)
	}
	r.put(w.Top, "work", "work\n")
	commit := r.collect(p, w)
	if got := r.git(r.top, "show", commit+":work"); got != "work" {
		r.t.Errorf("collected %q", got)
	}
	if got := r.git(r.top, "diff", "--name-only", w.Base, commit); got != "work" {
		r.t.Errorf("changed:\n%s", got)
	}
	r.release(p, w, Landed)
	v := r.take(p, "task-002")
	if got := r.git(v.Dir, "status", "--porcelain"); got != "" {
		r.t.Errorf("status of a used workspace:\n%s", got)
	}
	r.git(v.Dir, "log", "-1")
	r.release(p, v, Landed)
}

func TestKindsOfRepositories(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		make func(r *rig)
	}{
		{"plain", func(*rig) {}},
		{"packed", func(r *rig) { r.git(r.top, "gc", "-q") }},
		{"detached", func(r *rig) { r.git(r.top, "checkout", "-q", "--detach") }},
		{"a linked worktree", func(r *rig) {
			linked := filepath.Join(r.dir, "linked")
			r.git(r.top, "worktree", "add", "-q", linked)
			r.top, r.o.Root = linked, linked
		}},
		{"a folder in it", func(r *rig) { r.o.Root = filepath.Join(r.top, "d") }},
		{"a shallow clone", func(r *rig) {
			r.git(r.top, "commit", "-q", "--allow-empty", "-m", "second")
			r.another("clone", "-q", "--depth=1", "file://"+r.top)
		}},
		{"a shared clone", func(r *rig) { r.another("clone", "-q", "--shared", r.top) }},
		{"a clone of a shared clone", func(r *rig) {
			r.another("clone", "-q", "--shared", r.top)
			first := r.top
			r.git(first, "commit", "-q", "--allow-empty", "-m", "second")
			r.top = filepath.Join(r.dir, "third")
			r.git(r.dir, "clone", "-q", "--shared", first, r.top)
			r.o.Root = r.top
		}},
		{"a partial clone with all its files", func(r *rig) {
			r.git(r.top, "config", "uploadpack.allowFilter", "true")
			r.another("clone", "-q", "--filter=blob:none", "file://"+r.top)
		}},
		{"a submodule's own checkout", func(r *rig) {
			outer := filepath.Join(r.dir, "outer")
			r.git(r.dir, "init", "-q", outer)
			r.git(outer, "-c", "protocol.file.allow=always", "submodule", "-q", "add", r.top, "inner")
			r.top = filepath.Join(outer, "inner")
			r.o.Root = r.top
		}},
		{"with a submodule", func(r *rig) {
			inner := filepath.Join(r.dir, "inner")
			r.git(r.dir, "clone", "-q", r.top, inner)
			r.git(r.top, "-c", "protocol.file.allow=always", "submodule", "-q", "add", inner, "module")
			r.git(r.top, "commit", "-qm", "module")
		}},
		{"with names that are odd", func(r *rig) {
			for _, name := range []string{"a b", "line\nfeed", "tab\t", "\"quoted\"", "back\\slash", "-dash", "ümlaut", "\xff", ":colon", "*"} {
				r.put(r.top, "odd/"+name, name)
			}
			r.git(r.top, "add", "-A")
			r.git(r.top, "commit", "-qm", "odd")
		}},
		{"with line ends that are converted", func(r *rig) {
			r.put(r.top, ".gitattributes", "*.txt text eol=crlf\n*.u16 text working-tree-encoding=UTF-16\n*.id ident\n")
			r.put(r.top, "x.txt", "one\r\ntwo\r\n")
			r.put(r.top, "x.u16", "\xff\xfeo\x00n\x00e\x00\n\x00")
			r.put(r.top, "x.id", "$Id$\n")
			r.git(r.top, "add", "-A")
			r.git(r.top, "commit", "-qm", "converted")
		}},
		{"with execute bits and links", func(r *rig) {
			r.put(r.top, "run", "#!/bin/sh\n")
			if err := os.Chmod(filepath.Join(r.top, "run"), 0o755); err != nil { //nolint:gosec // a program
				r.t.Fatal(err)
			}
			r.link("run", filepath.Join(r.top, "link"))
			r.link("/nowhere", filepath.Join(r.top, "dangling"))
			r.git(r.top, "add", "-A")
			r.git(r.top, "commit", "-qm", "modes")
		}},
		{"with many refs", func(r *rig) {
			var in strings.Builder
			head := r.git(r.top, "rev-parse", "HEAD")
			for i := range 500 {
				fmt.Fprintf(&in, "create refs/heads/b/%d %s\n", i, head)
			}
			r.put(r.dir, "refs", in.String())
			r.git(r.top, "config", "alias.refs", "!git update-ref --stdin <'"+filepath.Join(r.dir, "refs")+"'")
			r.git(r.top, "refs")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c.make(r)
			before := r.git(r.top, "for-each-ref") + r.git(r.top, "status", "--porcelain")
			r.roundTrip(r.open())
			if after := r.git(r.top, "for-each-ref") + r.git(r.top, "status", "--porcelain"); after != before {
				t.Errorf("after:\n%s\nbefore:\n%s", after, before)
			}
			r.git(r.top, "fsck")
		})
	}
}

// another makes the repository that the rig is about a copy of its first one.
func (r *rig) another(args ...string) {
	r.t.Helper()
	to := filepath.Join(r.dir, "another")
	r.git(r.dir, append(args, to)...)
	r.top, r.o.Root = to, to
}

func TestSHA256(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.top = filepath.Join(r.dir, "long")
	r.o.Root = r.top
	r.git(r.dir, "init", "-q", "--object-format=sha256", r.top)
	r.put(r.top, "a", "1\n")
	r.git(r.top, "add", "a")
	r.git(r.top, "commit", "-qm", "first")
	r.roundTrip(r.open())
	r.git(r.top, "fsck")
}

// A submodule that a setup filled in is no change, and nothing of it is there for
// the next task.
func TestASubmoduleThatWasFilledIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	inner := filepath.Join(r.dir, "inner")
	r.git(r.dir, "clone", "-q", r.top, inner)
	r.git(r.top, "-c", "protocol.file.allow=always", "submodule", "-q", "add", inner, "sub/module")
	r.git(r.top, "commit", "-qm", "module")
	p := r.open()
	w := r.take(p, "task-001")
	r.git(w.Dir, "-c", "protocol.file.allow=always", "submodule", "-q", "update", "--init")
	r.put(w.Dir, "sub/module/left", "left\n")
	r.put(w.Dir, "work", "work\n")
	commit := r.collect(p, w)
	if got := r.git(r.top, "diff", "--name-only", w.Base, commit); got != "work" {
		t.Errorf("changed:\n%s", got)
	}
	r.release(p, w, Landed)
	v := r.take(p, "task-002")
	if got := r.git(v.Dir, "status", "--porcelain"); got != "" {
		t.Errorf("status:\n%s", got)
	}
	if left, err := os.ReadDir(filepath.Join(v.Dir, "sub", "module")); err != nil || len(left) != 0 {
		t.Errorf("left of the last task: %v, %v", left, err)
	}
}

// What cannot work says why and what to do.
func TestRepositoriesThatAreRefused(t *testing.T) {
	t.Parallel()
	t.Run("no commit", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.top = filepath.Join(r.dir, "new")
		r.o.Root = r.top
		r.git(r.dir, "init", "-q", r.top)
		_, err := r.open().Take(t.Context(), "task-001", "HEAD")
		if err == nil || !strings.Contains(err.Error(), "make a first one") {
			t.Error(err)
		}
	})
	t.Run("bare", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.o.Root = filepath.Join(r.dir, "bare")
		r.git(r.dir, "clone", "-q", "--bare", r.top, r.o.Root)
		r.o.Store = r.store()
		if _, err := Open(t.Context(), r.o); err == nil || !strings.Contains(err.Error(), "bare repository") {
			t.Error(err)
		}
	})
	t.Run("workspaces in the repository", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.o.Dir = filepath.Join(r.top, "ws")
		r.o.Store = r.store()
		if _, err := Open(t.Context(), r.o); err == nil || !strings.Contains(err.Error(), "workspace.root") {
			t.Error(err)
		}
	})
	t.Run("a file that was never fetched", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.git(r.top, "config", "uploadpack.allowFilter", "true")
		r.another("clone", "-q", "--no-checkout", "--filter=blob:none", "file://"+r.top)
		p := r.open()
		_, err := p.Take(t.Context(), "task-001", "HEAD")
		if err == nil || !strings.Contains(err.Error(), "partial clone") {
			t.Error(err)
		}
		if all, lerr := p.List(t.Context()); lerr != nil || len(all) != 0 || pathExists(p.DirOf("task-001")) {
			t.Errorf("left %+v, %v", all, lerr)
		}
	})
}

// LFS is not run: its files are the pointers that git holds. Content that a setup
// filled in is no change; a changed one is refused.
func TestLFS(t *testing.T) {
	t.Parallel()
	const content = "large content\n"
	sum := sha256.Sum256([]byte(content))
	pointer := fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", hex.EncodeToString(sum[:]), len(content))
	r := newRig(t, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n", "x.bin", pointer, "a", "1\n")
	p := r.open()
	w := r.take(p, "task-001")
	r.holds(w, map[string]string{"x.bin": pointer})
	r.put(w.Dir, "x.bin", content)
	r.put(w.Dir, "a", "work\n")
	commit := r.collect(p, w)
	if got := r.git(r.top, "diff", "--name-only", w.Base, commit); got != "a" {
		t.Errorf("changed: %s", got)
	}
	r.put(w.Dir, "x.bin", "other\n")
	if _, err := p.Collect(t.Context(), w, "work"); err == nil || !strings.Contains(err.Error(), `"x.bin" is filtered`) {
		t.Error(err)
	}
	r.put(w.Dir, "x.bin", pointer)
	r.put(w.Dir, "new.bin", content)
	if _, err := p.Collect(t.Context(), w, "work"); err == nil || !strings.Contains(err.Error(), `"new.bin" is filtered`) {
		t.Error(err)
	}
	r.release(p, w, GivenUp("test"))
	kept, err := p.Recoveries(t.Context(), w.ID)
	if err != nil || len(kept) != 1 || r.git(r.top, "show", kept[0].Commit+":new.bin")+"\n" != content {
		t.Errorf("recoveries %v, %v", kept, err)
	}
}

// Tags are there for "git describe", also when the user removed them since.
func TestTagsComeAlong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.git(r.top, "tag", "-am", "one", "v1")
	r.git(r.top, "tag", "light")
	p := r.open()
	w := r.take(p, "task-001")
	r.git(r.top, "tag", "-d", "v1", "light")
	r.git(r.top, "-c", "gc.pruneExpire=now", "gc", "-q", "--prune=now")
	if got := r.git(w.Dir, "describe"); got != "v1" {
		t.Errorf("git describe says %q", got)
	}
	r.git(w.Dir, "fsck", "--strict")
}

// The user rewrites, deletes and collects: a clone goes on working.
func TestTheUserCollectsGarbage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.git(r.top, "checkout", "-q", "-b", "other")
	r.put(r.top, "shared", "content on a branch that goes\n")
	r.git(r.top, "add", "-A")
	r.git(r.top, "commit", "-qm", "other")
	r.git(r.top, "checkout", "-q", "main")
	r.put(r.top, "b", "2\n")
	r.git(r.top, "add", "-A")
	r.git(r.top, "commit", "-qm", "second")
	p := r.open()
	w := r.take(p, "task-001")
	// The clone has no object of its own for this: the user's has it.
	r.put(w.Dir, "shared", "content on a branch that goes\n")
	r.git(w.Dir, "add", "-A")
	r.git(w.Dir, "commit", "-qm", "mine")
	r.put(w.Dir, "more", "more\n")
	r.collect(p, w)
	r.git(r.top, "reset", "-q", "--hard", "HEAD^")
	r.git(r.top, "branch", "-D", "other")
	r.git(r.top, "update-ref", "-d", "refs/pawl/tasks/task-001")
	r.git(r.top, "reflog", "expire", "--expire=now", "--all")
	r.git(r.top, "gc", "-q", "--prune=now")
	r.git(w.Dir, "fsck", "--strict")
	r.put(w.Dir, "last", "last\n")
	commit := r.collect(p, w)
	if got := r.git(r.top, "ls-tree", "-r", "--name-only", commit); got != "a\nb\nd/b\nlast\nmore\nshared" {
		t.Errorf("collected\n%s", got)
	}
	r.release(p, w, Landed)
	r.git(r.top, "fsck")
}

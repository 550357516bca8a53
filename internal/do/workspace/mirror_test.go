package workspace

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mirror brings into the clone q what no snapshot of p has, and returns how many times it
// was told of copies.
func (p *place) mirror(q *place) (told int) {
	p.t.Helper()
	seen, err := p.c.SeeAll(p.t.Context(), "person")
	must(p, err)
	_, left, err := q.c.Mirror(p.t.Context(), p.c, seen, "r1", nil, func(int) { told++ })
	must(p, err)
	sameList(p.t, "left out", left)
	return told
}

// What git ignores, what is too large and what is another repository comes into the clone
// as the person has it, and never as the same file.
func TestMirror(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", ".gitignore", "node_modules/\n*.env\n/cache\n")
	p.open(Options{MaxFile: 100, Hide: []string{p.path("node_modules/hidden"), p.path("secret.env")}})
	p.write("node_modules/m/index.js", "code")
	p.write("node_modules/m/run", "#!/bin/sh\n")
	p.chmod("node_modules/m/run", 0o755)
	p.write("node_modules/m/read-only", "r")
	p.chmod("node_modules/m/read-only", 0o444)
	p.link("../m/run", "node_modules/run")
	p.link("/etc/hostname", "node_modules/out")
	p.link("nowhere", "node_modules/broken")
	p.write("node_modules/hidden/x", "not for agents")
	p.write("node_modules/.pawl/x", "pawl's")
	p.write("secret.env", "not for agents")
	p.write("d/b.env", "beside what is tracked")
	p.write("odd \n\xfe name.env", "odd")
	p.write("large", strings.Repeat("l", 101))
	must(p, os.MkdirAll(p.path("node_modules/empty"), 0o755))
	must(p, os.MkdirAll(p.path("log/old"), 0o755))
	must(p, os.MkdirAll(p.path("log/.pawl/x"), 0o755))
	must(p, syscall.Mkfifo(p.path("node_modules/pipe"), 0o600))
	must(p, os.Link(p.path("node_modules/m/index.js"), p.path("node_modules/hard")))
	must(p, os.Link(p.path("a"), p.path("linked.env")))
	lib := newPlace(t, "l", "1")
	p.git("init", "-q", "nested")
	p.write("nested/x", "x")
	p.git("-C", "nested", "add", "x")
	p.git("-C", "nested", "commit", "-qm", "x")
	p.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.top, "lib")
	p.git("commit", "-qm", "lib")
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	must(p, os.Chtimes(p.path("node_modules/m/index.js"), old, old))
	before := p.files()

	q := p.clone()
	p.mirror(q)
	want := p.files()
	for _, name := range []string{"node_modules/hidden/x", "node_modules/.pawl/x", "secret.env", "node_modules/pipe"} {
		delete(want, name)
	}
	sameMap(t, "the clone", q.files(), want)
	if info, err := os.Stat(q.path("node_modules/m/index.js")); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("time of a file: %v, %v", info.ModTime(), err)
	}
	for _, name := range []string{"node_modules/empty", "log/old"} {
		if info, err := os.Stat(q.path(name)); err != nil || !info.IsDir() {
			t.Errorf("an empty folder: %v", err)
		}
	}
	if _, err := os.Lstat(q.path("log/.pawl")); err == nil {
		t.Error("a folder of pawl's own is there")
	}
	if _, err := os.Lstat(q.path("lib/.git")); err == nil {
		t.Error("a submodule's file leads to the person's .git")
	}
	if got := q.git("-C", "nested", "log", "--format=%s"); got != "x" {
		t.Errorf("the history of another repository is %q", got)
	}
	noSharedFile(t, p.top, q.top)

	// What a run did there is gone in the next, and reaches nobody.
	q.write("node_modules/m/index.js", "run")
	q.write("node_modules/new/x", "run")
	q.write("new.env", "run")
	q.write("large", "run")
	q.write("nested/x", "run")
	q.remove("node_modules/run", "node_modules/m/run", "d/b.env")
	q.write("node_modules/run/x", "a folder in the place of a link")
	q.link(p.path("node_modules/m"), "node_modules/m/run")
	sameMap(t, "the person's", p.files(), before)
	p.mirror(q)
	sameMap(t, "the next run", q.files(), want)
	sameMap(t, "the person's", p.files(), before)
	noSharedFile(t, p.top, q.top)

	// What the person did there is in the next run.
	p.remove("node_modules/m/run", "linked.env", "node_modules/out")
	p.write("node_modules/m/run/file", "a folder now")
	p.write("node_modules/m/index.js", "edit")
	p.write("node_modules/out", "a file now")
	p.mirror(q)
	if q.read("node_modules/m/run/file") != "a folder now" || q.read("node_modules/m/index.js") != "edit" || q.read("node_modules/out") != "a file now" {
		t.Errorf("the clone has %q", q.files())
	}
	if _, err := os.Lstat(q.path("linked.env")); err == nil {
		t.Error("what the person removed is there")
	}
	if names, err := os.ReadDir(q.path("node_modules")); err != nil || slices.ContainsFunc(names, func(d fs.DirEntry) bool { return d.Name() == ".pawl" }) {
		t.Errorf("node_modules has %v, %v", names, err)
	}
}

// A link that an agent left in the way leads the copy nowhere.
func TestMirrorGoesThroughNoLink(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", ".gitignore", "cache/\n*.env\n")
	p.write("cache/d/x", "cached")
	p.write("e/x.env", "1")
	q := p.clone()
	p.mirror(q)
	outside := t.TempDir()
	must(p, os.WriteFile(filepath.Join(outside, "x"), []byte("outside"), 0o600))
	q.remove("cache", "e")
	q.link(outside, "cache")
	q.link(outside, "e")
	seen, err := p.c.SeeAll(t.Context(), "person")
	must(p, err)
	if _, _, err := q.c.Mirror(t.Context(), p.c, seen, "r1", nil, nil); err == nil && q.read("e/x.env") != "1" {
		t.Errorf("e/x.env is %q", q.read("e/x.env"))
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside are %v, %v", entries, err)
	}
	if data, err := os.ReadFile(filepath.Join(outside, "x")); err != nil || string(data) != "outside" {
		t.Errorf("outside is %q, %v", data, err)
	}
	if q.read("cache/d/x") != "cached" {
		t.Errorf("cache/d/x is %q", q.read("cache/d/x"))
	}
}

// What the person changes while a run works comes in where the run changed nothing itself.
func TestMirrorAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", ".gitignore", "node_modules/\n*.env\n")
	for _, name := range []string{"mine", "agents", "both", "gone", "gone-here", "kept"} {
		p.write("node_modules/"+name+"/x", "1")
	}
	p.write("x.env", "1")
	must(p, os.MkdirAll(p.path("log/old"), 0o755))
	q := p.clone()
	again := func(was Apart) Apart {
		t.Helper()
		seen, err := p.c.SeeAll(t.Context(), "person")
		must(p, err)
		now, left, err := q.c.Mirror(t.Context(), p.c, seen, "r1", was, nil)
		must(p, err)
		sameList(t, "left out", left)
		return now
	}
	was := again(nil)
	p.write("node_modules/mine/x", "person's")
	q.write("node_modules/agents/x", "agent's")
	p.write("node_modules/both/x", "person's")
	q.write("node_modules/both/x", "the agent's")
	p.remove("node_modules/gone", "log")
	q.remove("node_modules/gone-here")
	p.write("node_modules/new/x", "new")
	q.write("node_modules/built/x", "built")
	p.write("x.env", "22")
	p.write("b", "tracked now")
	for range 2 { // the second time nothing is left to do
		was = again(was)
		got := map[string]string{}
		for _, name := range []string{"mine", "agents", "both", "kept", "new", "built"} {
			got[name] = q.read("node_modules/" + name + "/x")
		}
		want := map[string]string{"mine": "person's", "agents": "agent's", "both": "the agent's", "kept": "1", "new": "new",
			"built": "built"}
		if !maps.Equal(got, want) || q.read("x.env") != "22" {
			t.Errorf("got %v and %q", got, q.read("x.env"))
		}
		for _, name := range []string{"node_modules/gone", "node_modules/gone-here", "log"} {
			if _, err := os.Lstat(q.path(name)); err == nil {
				t.Errorf("%s is there", name)
			}
		}
	}
	p.write("node_modules/mine/x", "person's again")
	p.git("add", "-f", "node_modules/kept/x") // no ignored file any more
	again(was)
	if q.read("node_modules/mine/x") != "person's again" || q.read("node_modules/kept/x") != "1" {
		t.Errorf("%q, %q", q.read("node_modules/mine/x"), q.read("node_modules/kept/x"))
	}
}

// noSharedFile checks that no file of one folder is one of another by a second name.
func noSharedFile(t *testing.T, a, b string) {
	t.Helper()
	inodes := map[uint64]string{}
	each := func(top string, do func(name string, inode uint64)) {
		err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				do(name, info.Sys().(*syscall.Stat_t).Ino)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	each(a, func(name string, inode uint64) { inodes[inode] = name })
	each(b, func(name string, inode uint64) {
		if other, shared := inodes[inode]; shared {
			t.Errorf("%s is the same file as %s", name, other)
		}
	})
}

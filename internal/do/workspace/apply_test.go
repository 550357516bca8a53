package workspace

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/git"
)

// copied makes the copy of run r1 and a place to work in it.
func (p *place) copied() (*Copy, *place) {
	p.t.Helper()
	k, err := p.c.MakeCopy(p.t.Context(), "r1", filepath.Join(p.state, "runs", "r1", "copy"))
	if err != nil {
		p.t.Fatal(err)
	}
	return k, &place{t: p.t, top: k.Repo.Top, state: p.state, c: k.Checkout}
}

// collected is the copy's tree of now as the run's result n.
func (p *place) collected(k *Copy, in *place, n int) {
	p.t.Helper()
	if err := k.Collect(p.t.Context(), n, in.snap(n).Tree); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) apply(check bool) Applied {
	p.t.Helper()
	a, err := p.c.Apply(p.t.Context(), "r1", check)
	if err != nil {
		p.t.Fatal(err)
	}
	return a
}

// entrusted is all of a repository that apply must not change.
func (p *place) entrusted() string {
	return p.git("ls-files", "-s") + p.git("for-each-ref", "refs/heads", "refs/tags", "refs/stash") + p.git("config", "--list", "--local")
}

// Whatever an agent does in a copy: applied, the files are those of the copy,
// but for what the person did elsewhere; undone, they are the person's.
func TestApplyRandomEdits(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		p := newPlace(t, "a", "1", "d/b", "1", "d/e/c", "1", "mine", "1", ".gitignore", "*.log\n")
		p.write("x", "uncommitted")
		p.write("a", "changed")
		p.write("big.log", "ignored")
		p.git("stash", "push", "-q", "a")
		before := p.entrusted()
		k, in := p.copied()
		if in.read("big.log") != "ignored" || in.read("x") != "uncommitted" {
			t.Fatalf("the copy lacks files: %v", in.files())
		}
		agent(in, rand.New(rand.NewPCG(seed, 1)))
		in.remove("big.log")
		want := in.files()
		p.collected(k, in, 1)
		p.write("mine", "meanwhile")
		person := p.files()
		if a := p.apply(true); len(a.Conflicts) > 0 || !maps.Equal(person, p.files()) {
			t.Fatalf("seed %d: checked: %+v", seed, a)
		}
		a := p.apply(false)
		got := p.files()
		want["mine"], want["big.log"] = got["mine"], person["big.log"]
		if !maps.Equal(got, want) || p.read("mine") != "meanwhile" {
			t.Fatalf("seed %d: %+v\n got %v\nwant %v", seed, a, got, want)
		}
		if again := p.apply(false); len(again.Written)+len(again.Removed)+len(again.Conflicts) > 0 || again.Recovery != "" {
			t.Errorf("seed %d: applied twice: %+v", seed, again)
		}
		if a.Recovery != "" {
			if _, err := p.c.RollbackTo(t.Context(), a.Recovery, RollbackOptions{}); err != nil || !maps.Equal(p.files(), person) {
				t.Errorf("seed %d: undone: %v, %v", seed, err, p.files())
			}
		}
		if after := p.entrusted(); after != before {
			t.Errorf("seed %d: the repository was\n%s\nand is\n%s", seed, before, after)
		}
		p.git("fsck", "--strict", "--no-dangling")
	}
}

// A run that goes on after its result was applied is applied again; only what
// the person changed in between is in the way.
func TestApplyWhatCameLater(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", "b", "1")
	k, in := p.copied()
	in.write("a", "2")
	in.write("b", "2")
	p.collected(k, in, 1)
	p.apply(false)
	in.write("a", "3")
	in.write("b", "3")
	p.collected(k, in, 2)
	p.write("b", "person")
	a := p.apply(false)
	if len(a.Conflicts) != 1 || a.Conflicts[0].Path != "b" || p.read("a") != "2" || a.Recovery != "" {
		t.Fatalf("a is %q: %+v", p.read("a"), a)
	}
	p.write("b", "2")
	p.apply(false)
	if p.read("a") != "3" || p.read("b") != "3" {
		t.Errorf("a is %q, b is %q", p.read("a"), p.read("b"))
	}
	if done, err := p.c.Applied(t.Context(), "r1"); err != nil || !done {
		t.Errorf("applied: %t, %v", done, err)
	}
}

// When a file changes under apply's hands, what was done before is taken back.
func TestApplyAllOrNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", "b", "1", "c", "1")
	k, in := p.copied()
	in.write("a", "2")
	in.remove("b")
	in.write("c", "2")
	p.collected(k, in, 1)
	snaps, err := p.c.Snapshots(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.c.open(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	now, err := r.scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, todo, err := r.compare(t.Context(), snaps[0], now, snaps[1])
	if err != nil || len(todo) != 3 {
		t.Fatalf("%+v, %v", todo, err)
	}
	p.write("c", "person")
	a, err = r.applyAll(t.Context(), a, todo, now, snaps[1])
	if err != nil || len(a.Conflicts) != 1 || a.Conflicts[0].Path != "c" {
		t.Errorf("the error is %v: %+v", err, a)
	}
	if p.read("a") != "1" || p.read("b") != "1" || p.read("c") != "person" {
		t.Errorf("a is %q, b %q, c %q", p.read("a"), p.read("b"), p.read("c"))
	}
}

// A copy can be made of every kind of repository, and holds what it should.
func TestCopyOfEveryRepository(t *testing.T) {
	t.Parallel()
	unborn := func(format string) func(t *testing.T) *place {
		return func(t *testing.T) *place {
			p := barePlace(t)
			p.git("init", "-q", "--object-format="+format)
			p.write("a", "1")
			p.open(Options{})
			return p
		}
	}
	for name, prepare := range map[string]func(t *testing.T) *place{
		"unborn sha1": unborn("sha1"), "unborn sha256": unborn("sha256"),
		"detached": func(t *testing.T) *place {
			p := newPlace(t, "a", "1")
			p.git("checkout", "-q", "--detach")
			return p
		},
		"packed, with an ignored file that is staged": func(t *testing.T) *place {
			p := newPlace(t, "a", "1", ".gitignore", "*.log\n")
			p.git("gc", "-q")
			p.write("x.log", "1")
			p.git("add", "-f", "x.log")
			return p
		},
		"submodule and large file": func(t *testing.T) *place {
			p, lib := newPlace(t, "a", "1"), newPlace(t, "l", "1")
			p.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.top, "lib")
			p.write("large", strings.Repeat("x", 200))
			p.open(Options{MaxFile: 100})
			return p
		},
		"conflict": func(t *testing.T) *place {
			p := newPlace(t, "a", "1")
			p.git("checkout", "-qb", "other")
			p.write("a", "2")
			p.git("commit", "-qam", "2")
			p.git("checkout", "-q", "main")
			p.write("a", "3")
			p.git("commit", "-qam", "3")
			_ = quiet(p, "merge", "other")
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := prepare(t)
			files := p.files()
			k, in := p.copied()
			if got := in.files(); !maps.Equal(got, files) {
				t.Errorf("the copy has %v\nwant %v", got, files)
			}
			if got := in.git("ls-files", "-s"); got != p.git("ls-files", "-s") {
				t.Errorf("the copy's index is %s", got)
			}
			in.write("a", "agent")
			p.collected(k, in, 1)
			if a := p.apply(false); len(a.Written) != 1 || p.read("a") != "agent" {
				t.Errorf("a is %q: %+v", p.read("a"), a)
			}
		})
	}
}

// What is too large is left out, and named.
func TestCopyLacksWhatIsLarge(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", ".gitignore", "out/\nbin/\n")
	p.write("out/x", "")
	p.write("bin/x", "small")
	if err := os.Truncate(p.path("out/x"), mostBytes+1); err != nil {
		t.Fatal(err)
	}
	k, in := p.copied()
	if _, err := os.Lstat(in.path("out")); err == nil || in.read("bin/x") != "small" {
		t.Errorf("the copy has %v", in.files())
	}
	sameList(t, "left out", k.Left, "out")
	if _, err := p.c.OpenCopy(t.Context(), "r1", k.dir); err != nil {
		t.Errorf("found again: %v", err)
	}
	if err := os.Chmod(in.path("bin"), 0o500); err != nil {
		t.Fatal(err)
	}
	if err := RemoveCopy(k.dir); err != nil || HasCopy(k.dir) {
		t.Errorf("removed: %v", err)
	}
	if _, err := p.c.OpenCopy(t.Context(), "r1", k.dir); err == nil {
		t.Error("a copy that is gone was found")
	}
	if err := p.c.Repo.Take(t.Context(), &git.Repo{Top: p.top, Dir: k.dir, Common: k.dir}, "x", "y"); err == nil {
		t.Error("something was taken from nowhere")
	}
}

// A folder of pawl's inside of the repository would be copied into itself.
func TestNoCopyInsideOfTheTree(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1")
	_, err := p.c.MakeCopy(t.Context(), "r1", p.path("state/copy"))
	if err == nil || !strings.Contains(err.Error(), "inside of the repository") {
		t.Errorf("the error is %v", err)
	}
	if refs := p.git("for-each-ref", "refs/pawl"); refs != "" {
		t.Errorf("there are %s", refs)
	}
}

// A file that would make a folder a repository of the agent's is not brought.
func TestApplyNoRepository(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "src/a", "1")
	k, in := p.copied()
	in.snap(0)
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/x\n", "config": "", "refs/.k": "", "objects/.k": ""} {
		in.write("src/"+name, text)
	}
	p.collected(k, in, 1)
	if a := p.apply(false); len(a.Conflicts) != 1 || a.Conflicts[0].Path != "src/HEAD" {
		t.Errorf("got %+v", a)
	}
	if out := p.git("status", "--short"); out != "" {
		t.Errorf("changed is %q", out)
	}
}

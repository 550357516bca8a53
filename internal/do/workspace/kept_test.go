package workspace

import (
	"errors"
	"strings"
	"testing"
)

// What a snapshot is was recorded where no agent writes. Whatever became of the refs
// that keep its objects, it is the same snapshot, and the refs are put back.
func TestMovedRefs(t *testing.T) {
	t.Parallel()
	const zero, branch = "refs/pawl/runs/r1/0", "refs/heads/main"
	for name, attack := range map[string]func(p *place){
		"moved":                       func(p *place) { p.git("update-ref", zero, p.foreign()) },
		"deleted":                     func(p *place) { p.git("update-ref", "-d", zero) },
		"packed and moved":            func(p *place) { p.git("pack-refs", "--all"); p.git("update-ref", zero, p.foreign()) },
		"a link to a branch":          func(p *place) { p.git("symbolic-ref", zero, branch) },
		"an object that is not there": func(p *place) { p.write(".git/"+zero, strings.Repeat("1", 40)+"\n") },
		"no ref":                      func(p *place) { p.write(".git/"+zero, "nonsense\n") },
		"a folder": func(p *place) {
			p.clear(".git/" + zero)
			p.write(".git/"+zero+"/.keep", "")
		},
		"a later one": func(p *place) { p.git("update-ref", "refs/pawl/runs/r1/7", p.foreign()) },
		"a recovery":  func(p *place) { p.git("update-ref", "refs/pawl/recovery/r1/9", p.foreign()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "a", "1")
			was := p.snap(0)
			p.write("a", "2")
			p.snap(1)
			p.back(1)
			before := p.git("for-each-ref", "refs/pawl")
			attack(p)
			if all, err := p.c.Snapshots(t.Context(), "r1"); err != nil || len(all) != 2 || all[0].Commit != was.Commit {
				t.Errorf("snapshots %+v, %v", all, err)
			}
			if all, err := p.c.Recoveries(t.Context(), "r1"); err != nil || len(all) != 1 {
				t.Errorf("recoveries %+v, %v", all, err)
			}
			if now := p.git("for-each-ref", "refs/pawl"); now != before {
				t.Errorf("refs are\n%s, and were\n%s", now, before)
			}
			attack(p)
			if p.back(0); p.read("a") != "1" {
				t.Errorf("a is %q after a rollback", p.read("a"))
			}
			tip := p.git("rev-parse", branch)
			attack(p)
			p.write("a", "3")
			if p.snap(0); p.git("rev-parse", branch) != tip {
				t.Errorf("a snapshot moved %s", branch)
			}
		})
	}
}

// foreign is a commit that is no snapshot.
func (p *place) foreign() string {
	p.t.Helper()
	return strings.TrimSpace(p.git("commit-tree", "-m", "evil", "HEAD^{tree}"))
}

// Refs that an agent moves are put back after it, and that is tampering.
func TestPutBackRefs(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1")
	was := p.snap(0)
	p.write("a", "2")
	p.snap(1)
	before, err := p.c.ConfigFingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.git("update-ref", was.Ref, "refs/pawl/runs/r1/1")
	undone, err := p.c.PutBack(t.Context(), before)
	if err != nil || len(undone) != 1 || undone[0] != was.Ref || strings.TrimSpace(p.git("rev-parse", was.Ref)) != was.Commit {
		t.Errorf("undone %q, %v; the ref is %s", undone, err, p.git("rev-parse", was.Ref))
	}
}

// A ref that was recorded and could not be made, on a full disk or with git killed,
// is made later. Nobody has moved it.
func TestRefsThatWereNotMade(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1")
	zero := p.snap(0)
	before, err := p.c.ConfigFingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	putBack := func() []string {
		t.Helper()
		undone, err := p.c.PutBack(t.Context(), before)
		if err != nil {
			t.Error(err)
		}
		return undone
	}
	r, err := p.c.open(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	const one, gone = "refs/pawl/runs/r1/1", "refs/pawl/runs/r1/2"
	full := errors.New("no space left on device")
	for ref, commit := range map[string]string{one: zero.Commit, gone: strings.Repeat("1", len(zero.Commit))} {
		if err := r.change(t.Context(), func() error { return full }, ref, commit); !errors.Is(err, full) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	r.close()
	if undone := putBack(); len(undone) > 0 {
		t.Errorf("undone %q", undone)
	}
	if p.id(one) != zero.Commit {
		t.Error("the ref was not made")
	}
	p.git("update-ref", "-d", one)
	if undone := putBack(); len(undone) != 1 || undone[0] != one {
		t.Errorf("when it was deleted: undone %q", undone)
	}
}

// A clone that was made anew for a run does not have what its snapshots were: that is
// nobody's doing either.
func TestRefsOfACloneThatIsGone(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1")
	p.snap(0)
	p.git("update-ref", "-d", "refs/pawl/runs/r1/0")
	p.git("reflog", "expire", "--expire=now", "--all")
	p.git("gc", "-q", "--prune=now")
	p.open(Options{})
	if all, err := p.c.Snapshots(t.Context(), "r1"); err != nil || len(all) > 0 {
		t.Errorf("snapshots %+v, %v", all, err)
	}
	before, err := p.c.ConfigFingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.snap(1)
	if undone, err := p.c.PutBack(t.Context(), before); err != nil || len(undone) > 0 {
		t.Errorf("undone %q, %v", undone, err)
	}
}

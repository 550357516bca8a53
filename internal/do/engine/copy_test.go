package engine

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// The result is what was recorded last, not what waits or what git has.
func TestResultIsTheLastRecordedTree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		records []loop.Record
		n       int
		tree    string
	}{
		{},
		{records: []loop.Record{{Number: 1}}},
		{records: []loop.Record{{Number: 1, TreeAfter: "a"}, {Number: 2, TreeAfter: "b", Outcome: loop.Failed}, {Number: 3}}, n: 2, tree: "b"},
		{records: []loop.Record{{Number: 1, TreeAfter: "a"}, {Number: 2, TreeAfter: "b", Outcome: loop.Waited}}, n: 1, tree: "a"},
	} {
		n, tree, ok := Result(c.records)
		if n != c.n || tree != c.tree || ok != (c.n > 0) {
			t.Errorf("%+v: %d %q %t", c.records, n, tree, ok)
		}
	}
}

// The repository is nowhere among what may be written, and a review writes nothing.
func TestACopyTakesThePlaceOfTheWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	h := w.within()
	repo := h.opts.Tree.Repo
	k, err := h.opts.Tree.MakeCopy(t.Context(), "r", filepath.Join(w.o.State, "runs", "r", "copy"))
	if err != nil {
		t.Fatal(err)
	}
	before := sandbox.Policy{Write: []string{repo.Top, repo.Dir, "/tmp"}}
	p := throughCopy(before, k, repo.Top, repo.Dir, "/elsewhere/.git")
	if slices.Contains(p.Write, repo.Dir) || !slices.Contains(p.Keep, "/elsewhere/.git") || slices.Contains(p.Keep, repo.Dir) {
		t.Errorf("the policy is %+v", p)
	}
	if len(p.Binds) < 2 || p.Binds[0].To != repo.Top || p.Binds[0].From != k.Repo.Top || p.Binds[0].ReadOnly || p.Binds[1].From != repo.Objects || !p.Binds[1].ReadOnly {
		t.Errorf("the copy is shown as %+v", p.Binds)
	}
	d := worker{session: &session{plan: Plan{Root: repo.Top, Box: &Box{Agents: map[string]sandbox.Policy{"a": p}}}}}
	for _, b := range d.agentBox("a", "/state", agentCall{readOnly: true}).Binds {
		if !b.ReadOnly {
			t.Errorf("a review may write %s", b.To)
		}
	}
	if p.Binds[0].ReadOnly {
		t.Error("the next agent may write nothing")
	}
}

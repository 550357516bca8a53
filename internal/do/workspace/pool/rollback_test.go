package pool

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestRollbackIsUndoable(t *testing.T) {
	t.Parallel()
	r := newRig(t, "a", "1\n", "d/b", "2\n", ".gitignore", "*.o\n")
	before := r.everything()
	p := r.open()
	if _, err := p.Rollback(t.Context(), "task-001", Point{}); !errors.Is(err, ErrNone) {
		t.Errorf("without a workspace: %v", err)
	}
	w := r.take(p, "task-001")
	if _, err := p.Rollback(t.Context(), "task-001", Point{}); !errors.Is(err, ErrTaken) {
		t.Errorf("in use: %v", err)
	}
	r.put(w.Dir, "a", "committed\n")
	r.git(w.Dir, "commit", "-qam", "mine")
	r.put(w.Dir, "new", "not committed\n")
	r.put(w.Dir, "x.o", "object\n")
	r.remove(filepath.Join(w.Dir, "d"))
	r.release(p, w, Keep("it failed"))

	for range 2 { // the second time nothing is left to be taken back
		ref, err := p.Rollback(t.Context(), "task-001", Point{})
		if err != nil || ref == "" {
			t.Fatalf("ref %q, %v", ref, err)
		}
		r.holds(w, map[string]string{"a": "1\n", "d/b": "2\n", "new": "", "x.o": "object\n"})
		if got := r.git(w.Dir, "status", "--porcelain=v2", "--branch"); got != "# branch.oid "+w.Base+"\n# branch.head pawl/task-001" {
			t.Errorf("status:\n%s", got)
		}
	}
	kept, err := p.Recoveries(t.Context(), "task-001")
	if err != nil || len(kept) != 2 {
		t.Fatalf("recoveries %v, %v", kept, err)
	}
	first := Point{Head: r.git(r.top, "rev-parse", kept[0].Commit+"^"), Tree: r.git(r.top, "rev-parse", kept[0].Commit+"^{tree}")}
	if _, err := p.Rollback(t.Context(), "task-001", first); err != nil {
		t.Fatal(err)
	}
	r.holds(w, map[string]string{"a": "committed\n", "d/b": "", "new": "not committed\n", "x.o": "object\n"})
	if got := r.git(w.Dir, "log", "-1", "--format=%s"); got != "mine" {
		t.Errorf("the last commit is %q", got)
	}
	if point, last, err := p.Recovered(t.Context(), "task-001"); err != nil || last.N != 3 || point.Head != w.Base {
		t.Errorf("recovered %+v, %+v, %v", point, last, err)
	}
	r.same(before)
}

// A clone whose repository an agent broke gets a new one.
func TestRollbackOfABrokenClone(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{".git", ".git/HEAD", ".git/objects"} {
		r := newRig(t)
		p := r.open()
		w := r.take(p, "task-001")
		r.put(w.Dir, "a", "work\n")
		r.git(w.Dir, "commit", "-qam", "mine")
		r.put(w.Dir, "new", "work\n")
		r.remove(filepath.Join(w.Dir, broken))
		r.release(p, w, Keep("it failed"))
		if _, err := p.Rollback(t.Context(), "task-001", Point{}); err != nil {
			t.Errorf("without %s: %v", broken, err)
			continue
		}
		r.holds(w, map[string]string{"a": "1\n", "new": ""})
		if got := r.git(w.Dir, "status", "--porcelain=v2", "--branch"); got != "# branch.oid "+w.Base+"\n# branch.head pawl/task-001" {
			t.Errorf("without %s, status:\n%s", broken, got)
		}
		if kept, err := p.Recoveries(t.Context(), "task-001"); err != nil || len(kept) != 1 || r.git(r.top, "show", kept[0].Commit+":a") != "work" {
			t.Errorf("without %s: recoveries %v, %v", broken, kept, err)
		}
	}
}

// holds checks files of a workspace; no content is no file.
func (r *rig) holds(w Workspace, want map[string]string) {
	r.t.Helper()
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(w.Dir, name))
		if string(got) != text || (text != "") != (err == nil) {
			r.t.Errorf("%s is %q, %v; want %q", name, got, err, text)
		}
	}
}

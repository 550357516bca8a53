package pool

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/keep/store"
)

func (r *rig) takeRun(p *Pool, id string) Workspace {
	r.t.Helper()
	w, err := p.TakeRun(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

// The workspace of a run is an empty folder at first, then what the run before left; the
// user's repository has nothing of it.
func TestTheWorkspaceOfARun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.everything()
	p := r.open()
	w := r.takeRun(p, "run-build")
	if all, err := os.ReadDir(w.Dir); err != nil || len(all) > 0 || w.Kept || w.Top != w.Dir || w.Ports == 0 {
		t.Errorf("%+v has %v, %v", w, all, err)
	}
	if data, err := os.ReadFile(filepath.Join(w.Lent, "info", "alternates")); err != nil || string(data) != filepath.Join(r.top, ".git", "objects")+"\n" {
		t.Errorf("it borrows from %q, %v", data, err)
	}
	if strings.HasPrefix(w.Lent, w.Top) || strings.HasPrefix(w.Own, w.Top) {
		t.Errorf("an agent reaches %s or %s", w.Lent, w.Own)
	}
	r.put(w.Dir, "a", "work\n")
	r.put(w.Own, "agreed.json", "{}")
	if _, err := r.open().TakeRun(t.Context(), "run-build"); !errors.Is(err, ErrTaken) {
		t.Errorf("taken twice: %v", err)
	}
	other := r.takeRun(p, "run-test")
	if other.Dir == w.Dir || other.Ports == w.Ports {
		t.Errorf("%+v and %+v", w, other)
	}
	r.release(p, other, Keep("test"))
	r.release(p, w, Keep("it rests"))
	if w = r.takeRun(p, "run-build"); !w.Kept {
		t.Error("it is made anew")
	}
	r.holds(w, map[string]string{"a": "work\n"})
	if !pathExists(filepath.Join(w.Own, "agreed.json")) {
		t.Error("what was agreed is gone")
	}
	r.release(p, w, Keep("it rests"))
	if _, err := p.TakeRun(t.Context(), "../x"); err == nil {
		t.Error("an id that is a path was taken")
	}
	if all, err := p.Clean(t.Context(), []string{"run-build"}, false); err != nil || len(all) != 1 || !all[0].Remove || pathExists(w.Dir) {
		t.Errorf("%+v, %v", all, err)
	}
	r.same(before)
	if got := r.git(r.top, "for-each-ref", "refs/pawl"); got != "" {
		t.Errorf("refs: %s", got)
	}
}

// What a run left is never removed for its place: another folder that stands there is
// refused, a disk with another number is known, and a repository that was moved with its
// state has its workspaces.
func TestTheWorkspaceOfARunIsFoundAgain(t *testing.T) {
	t.Parallel()
	left := func(t *testing.T) (*rig, Workspace) {
		r := newRig(t)
		p := r.open()
		w := r.takeRun(p, "run-build")
		r.put(w.Dir, "a", "work\n")
		r.release(p, w, Keep("it rests"))
		return r, w
	}
	t.Run("another folder", func(t *testing.T) {
		t.Parallel()
		r, w := left(t)
		if err := os.Rename(w.Dir, w.Dir+".mine"); err != nil {
			t.Fatal(err)
		}
		r.put(w.Dir, "precious", "mine\n")
		p := r.open()
		if _, err := p.TakeRun(t.Context(), "run-build"); err == nil || !strings.Contains(err.Error(), "another folder") {
			t.Errorf("%v", err)
		}
		r.holds(w, map[string]string{"precious": "mine\n"})
		r.remove(w.Dir)
		if w = r.takeRun(p, "run-build"); w.Kept {
			t.Error("a folder that is gone was kept")
		}
	})
	t.Run("a disk with another number", func(t *testing.T) {
		t.Parallel()
		r, _ := left(t)
		err := r.o.Store.EditWorkspaces(t.Context(), func(all []store.Workspace) (store.WorkspaceChange, error) {
			_, inode, _ := strings.Cut(all[0].Folder, ":")
			all[0].Folder = "9999:" + inode
			return store.WorkspaceChange{Put: all}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w := r.takeRun(r.open(), "run-build")
		if !w.Kept {
			t.Error("it is made anew")
		}
		r.holds(w, map[string]string{"a": "work\n"})
	})
	t.Run("a repository that was moved", func(t *testing.T) {
		t.Parallel()
		r, w := left(t)
		r.git(r.top, "init", "-q", w.Dir)
		r.put(w.Dir, ".git/objects/info/alternates", w.Lent+"\n")
		top, state := r.top+" elsewhere", r.o.StateDir+"-elsewhere"
		for from, to := range map[string]string{r.top: top, r.o.StateDir: state} {
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
		r.top, r.o.Root, r.o.StateDir, r.o.Store = top, top, state, nil
		w = r.takeRun(r.open(), "run-build")
		if !w.Kept || !strings.HasPrefix(w.Dir, state) || !strings.HasPrefix(w.Own, state) {
			t.Errorf("%+v", w)
		}
		r.holds(w, map[string]string{"a": "work\n"})
		if got := r.git(w.Dir, "cat-file", "-t", r.git(top, "rev-parse", "HEAD")); got != "commit" {
			t.Errorf("the agent's git reads %q of the user's", got)
		}
	})
}

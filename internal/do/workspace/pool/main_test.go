package pool

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// TestMain gives git a home of its own, so that the settings of whoever runs
// the tests do not matter.
func TestMain(m *testing.M) {
	if top := os.Getenv("PAWL_TEST_POOL"); top != "" {
		os.Exit(child(top))
	}
	os.Exit(gittest.Run(m))
}

// rig is a user's repository and what a pool needs beside it.
type rig struct {
	t   testing.TB
	dir string // of everything
	top string // the repository
	o   Options
}

// newRig makes a repository with a commit; each pair is a path and its content.
func newRig(t testing.TB, pairs ...string) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: dir, top: filepath.Join(dir, "the repository")}
	if err := os.Mkdir(r.top, 0o755); err != nil {
		t.Fatal(err)
	}
	r.git(r.top, "init", "-q")
	if len(pairs) == 0 {
		pairs = []string{"a", "1\n", "d/b", "2\n"}
	}
	for i := 0; i < len(pairs); i += 2 {
		r.put(r.top, pairs[i], pairs[i+1])
	}
	r.git(r.top, "add", "-A", "-f")
	r.git(r.top, "commit", "-qm", "first")
	r.o = Options{Root: r.top, StateDir: filepath.Join(dir, "state", "repo"), Retention: time.Hour}
	return r
}

// open opens the pool with the rig's options, and a database of its own if there
// is none yet.
func (r *rig) open() *Pool {
	r.t.Helper()
	if r.o.Store == nil {
		r.o.Store = r.store()
	}
	p, err := Open(r.t.Context(), r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *rig) store() *store.Store {
	r.t.Helper()
	s, err := store.Open(r.t.Context(), filepath.Join(r.o.StateDir, "pawl.db"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			r.t.Error(err)
		}
	})
	return s
}

func (r *rig) git(dir string, args ...string) string {
	r.t.Helper()
	out, err := tryGit(dir, args...)
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (r *rig) put(dir, name, text string) {
	r.t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) take(p *Pool, id string) Workspace {
	r.t.Helper()
	w, err := p.Take(r.t.Context(), id, "HEAD")
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

func (r *rig) collect(p *Pool, w Workspace) string {
	r.t.Helper()
	commit, err := p.Collect(r.t.Context(), w, w.ID+": work")
	if err != nil {
		r.t.Fatal(err)
	}
	return commit
}

func (r *rig) release(p *Pool, w Workspace, h How) {
	r.t.Helper()
	if err := p.Release(r.t.Context(), w, h); err != nil {
		r.t.Fatal(err)
	}
}

// DirOf is where the workspace of a task is, or would be.
func (p *Pool) DirOf(id string) string { return filepath.Join(p.o.Dir, id) }

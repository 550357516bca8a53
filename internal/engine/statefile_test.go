package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-dev/pawl/internal/loop"
)

// The state file says what is used up whenever an iteration starts, also in a
// loop of many short iterations.
func TestTheStateFileIsUpToDateBeforeEachIteration(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.o.Policy.MaxIterations = 12
	h := w.within()
	for n := 2; n <= w.o.Policy.MaxIterations; n++ {
		h.on[fmt.Sprintf("iteration started %d", n)] = func() {
			f, err := ReadStateFile(StateFilePath(w.o.Root, "build"))
			if err != nil || f.Iteration != n-1 || f.Status != string(loop.Running) {
				t.Errorf("before iteration %d the state file is %+v, %v", n, f, err)
			}
		}
	}
	h.start()
	if _, _, s := w.stored(); s.Status != loop.Completed {
		t.Errorf("the run is %s", s.Status)
	}
}

// A link in the place of the folder has nothing outside of the tree renamed.
func TestKeepAsideThroughNoLink(t *testing.T) {
	t.Parallel()
	root, other := t.TempDir(), t.TempDir()
	path := StateFilePath(root, "build")
	outside := filepath.Join(other, filepath.Base(path))
	err := os.WriteFile(outside, []byte("{"), 0o600)
	if err == nil {
		err = os.Mkdir(filepath.Join(root, ".pawl"), 0o700)
	}
	if err == nil {
		err = os.Symlink(other, filepath.Dir(path))
	}
	if err != nil {
		t.Fatal(err)
	}
	if to, err := KeepAside(path); err == nil {
		t.Errorf("it was renamed to %s", to)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

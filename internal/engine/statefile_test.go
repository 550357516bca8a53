package engine

import (
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// A loop of many short iterations writes its state file a few times a second.
// Where it rests, the file is up to date.
func TestAFastLoopsStateFileIsUpToDateWhereItRests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.o.Policy.MaxIterations = 3 * stateFileBurst
	h := w.within()
	behind := 0
	var all []string
	for n := 2; n <= w.o.Policy.MaxIterations; n++ {
		h.on[fmt.Sprintf("iteration started %d", n)] = func() {
			f, err := ReadStateFile(StateFilePath(w.o.Root, "build"))
			if err != nil || f.Iteration >= n || f.Status != string(loop.Running) {
				t.Errorf("before iteration %d the state file is %+v, %v", n, f, err)
			}
			if f.Iteration < n-1 {
				behind++
			}
			if n <= stateFileBurst && f.Iteration != n-1 {
				t.Errorf("before iteration %d the state file is of %d", n, f.Iteration)
			}
			if n == w.o.Policy.MaxIterations-1 {
				h.ask(sqlite.ControlPause, "")
			}
		}
	}
	h.start()
	if _, _, s := w.stored(); s.Status == loop.Paused || s.Status == loop.Completed {
		for n := range s.Iteration {
			all = append(all, fmt.Sprintf("%d.1 success", n+1))
		}
		w.holds(s.Status, all...)
	} else {
		t.Errorf("the run is %s", s.Status)
	}
	t.Logf("behind before %d of %d iterations", behind, w.o.Policy.MaxIterations)
}

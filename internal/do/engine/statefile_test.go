package engine

import (
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/statefile"
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
			f, err := statefile.Read(statefile.Path(w.o.Root, "build"))
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

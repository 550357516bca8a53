package engine

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// A stop that comes after the agent met a limit uses the iteration up: what is
// stored of it is no wait, and the next iteration has the next number.
func TestStopAfterALimitUsesTheIterationUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
  - - write: {path: a.txt, content: "one"}
    - write: {path: "{dir}/hold", content: ""}
    - rate_limit: {retry_after: 1h}
  - - append: {path: a.txt, content: "two"}
`)
	p := w.start(w.heldGit())
	p.await(string(RunStarted))
	w.awaitHeld()
	w.within().ask(store.ControlStop, "")
	w.awaitStopAsked()
	w.letGit()
	p.await("end stopped")
	w.holds(loop.Stopped, "1.1 neutral")
	w.within().resume(loop.Event{Kind: loop.Resumed})
	w.holds(loop.Completed, "1.1 neutral", "2.1 success")
}

package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// A run that is taken up while it waits, with a clock that was set back meanwhile,
// waits as long as it was to wait, and no longer.
func TestAWaitAcrossAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		d := &Driver{session: &session{}, worker: newWorker(&session{}), state: loop.State{
			Status: loop.Waiting, LastAt: now.Add(24 * time.Hour), Command: loop.Command{Kind: loop.Wait, Resting: loop.Resting{Until: now.Add(24*time.Hour + 5*time.Second)}},
		}}
		d.forgetAbsence(true)
		d.worker.performWait(t.Context(), d.state.Command)
		if took := time.Since(now); took != 5*time.Second {
			t.Errorf("it waited %s", took)
		}
		// The next wait is its own.
		now = time.Now()
		d.worker.performWait(t.Context(),
			loop.Command{Kind: loop.Wait, Resting: loop.Resting{Until: now.Add(time.Minute)}})
		if took := time.Since(now); took != time.Minute {
			t.Errorf("it waited %s", took)
		}
	})
}

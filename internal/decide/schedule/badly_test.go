package schedule

import (
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Whatever ends a task badly pauses a sprint that asks for it, and counts as a failed task: a failure, a limit, a
// guard. A question, and a task that is stopped, do not.
func TestEndsBadly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    Outcome
		want bool
	}{
		{Outcome{Status: loop.FailedRun, Why: "a person must act"}, true},
		{Outcome{Status: loop.TimedOut, Why: "task timeout"}, true},
		{Outcome{Status: loop.Exhausted, Why: "maximum"}, true},
		{Outcome{Status: loop.Blocked, Guard: true, Why: "circuit breaker"}, true},
		{Outcome{Status: loop.Blocked, Why: "the agent says that it is blocked"}, false},
		{Outcome{Status: loop.Pending, Why: "it asks"}, false},
		{Outcome{Status: loop.Stopped, Why: "stopped"}, false},
		{Outcome{Status: loop.Completed, Why: "done"}, false},
	} {
		v := Judge(c.o, Manner{})
		if v.endsBadly() != c.want {
			t.Errorf("%s (%s): ends badly is %t", c.o.Status, v.Action, !c.want)
		}
		stats := SprintStats{}
		stats.Begun("task-001", time.Time{})
		if stats.RecordSettlement("task-001", v, 1, time.Time{}); (stats.FailedTasks == 1) != c.want {
			t.Errorf("%s: %d failed tasks", c.o.Status, stats.FailedTasks)
		}
		s := State{Phase: Running, Settings: Settings{PauseOnError: true}}
		if s.afterError(c.o, v); (s.Phase == Paused) != c.want {
			t.Errorf("%s: %s", c.o.Status, s.Phase)
		}
	}
}

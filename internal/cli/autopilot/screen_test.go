package autopilot

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/schedule"
)

// A task that cannot be started again and again, and what is waited for meanwhile, is
// told once.
func TestWhatCannotStartIsToldOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := &autopilotScreen{a: &command.App{Stderr: &out}}
	at := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	gone := schedule.Settlement{Action: board.Stop, Why: "it could not be started: the branch is not there"}
	for range 5 {
		at = at.Add(2 * time.Second)
		for _, n := range []autopilot.Notice{
			{Kind: autopilot.TaskBegan, Case: "task-001", Title: "One"},
			{Kind: autopilot.TargetRed, Text: "all 1 slots are taken"},
			{Kind: autopilot.TaskEnded, Case: "task-001", Settlement: gone},
			{Kind: autopilot.TargetRed, Text: "the branch is not there"},
		} {
			n.At = at
			s.notice(n)
		}
	}
	for text, most := range map[string]int{"task-001 starts": 2, "goes back to pending": 1, "slots are taken": 1, "Waits: the branch": 1} {
		if n := strings.Count(out.String(), text); n == 0 || n > most {
			t.Errorf("%q is told %d times:\n%s", text, n, out.String())
		}
	}
}

package overview

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/queue"
)

// All entries that wait for a person are counted, and the first few are named.
func TestReasonHeld(t *testing.T) {
	t.Parallel()
	entry := func(id string) queue.Entry { return queue.Entry{ID: id, Why: "its pull request is open"} }
	all := []queue.Entry{entry("task-001"), entry("task-002"), entry("task-003"), entry("task-004"), entry("task-005")}
	for n, want := range map[int]string{
		1: "task-001 waits in the merge queue: its pull request is open",
		2: "task-001, task-002 wait in the merge queue; task-001: its pull request is open",
		5: "task-001, task-002, task-003 and 2 more wait in the merge queue; task-001: its pull request is open",
	} {
		if got := reasonHeld(all[:n]); got != want {
			t.Errorf("of %d: %q", n, got)
		}
	}
}

package store

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/queue"
)

// Who reads a queue sees it as it is between two steps. The autopilot ends when a queue has
// no entries and nothing to push: half of one step with half of another looks like that.
func TestAQueueIsReadWhole(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	q, err := s.TakeQueue(t.Context(), "main", us, noon, nobody)
	must(t, err)
	entries := []queue.Entry{{ID: "task-001", Status: queue.Waiting}}
	waits := queue.State{Entries: entries}
	landed := queue.State{Unpushed: &queue.Unpushed{IDs: []string{"task-001"}}}
	ended := make(chan error, 1)
	go func() {
		var before []queue.Entry
		for n := range 600 {
			q.N++
			q.State = waits
			if n%2 == 1 {
				q.State = landed
			}
			if err := s.CommitQueue(t.Context(), QueueStep{Queue: q, Before: before, State: q.State, At: noon}); err != nil {
				ended <- err
				return
			}
			before = q.State.Entries
		}
		ended <- nil
	}()
	for {
		select {
		case err := <-ended:
			must(t, err)
			return
		default:
		}
		got, ok, err := s.Queue(t.Context(), "main")
		must(t, err)
		if n := len(got.State.Entries); ok && got.N > 0 && (n == 1) == (got.State.Unpushed != nil) {
			t.Fatalf("step %d has %d entries, and to push %+v", got.N, n, got.State.Unpushed)
		}
	}
}

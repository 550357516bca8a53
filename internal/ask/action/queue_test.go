package action_test

import (
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/decide/queue"
)

// An entry that waits for a person says what the queue does when the time for that is over.
func TestQueuedSaysWhatComesThen(t *testing.T) {
	t.Parallel()
	for does, want := range map[queue.Action]string{queue.Skip: "it leaves the queue", queue.Retry: "it is tried again",
		queue.Notify: "you are reminded of it", queue.Defer: "it stays parked", "": "it stays parked"} {
		s := &queue.State{Policy: queue.Policy{Action: does}}
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if q := action.Queued(s, &queue.Entry{Status: queue.Parked, Until: at}, false); q.Then != want || q.Until == nil {
			t.Errorf("%q: then %q, want %q", does, q.Then, want)
		}
		for _, e := range []queue.Entry{{Status: queue.Parked}, {Status: queue.Waiting, Until: at}} {
			if q := action.Queued(s, &e, false); q.Then != "" {
				t.Errorf("%q: %+v then %q", does, e, q.Then)
			}
		}
	}
}

package queue

import (
	"fmt"
	"testing"
	"time"
)

// Entries that come in a moment are one batch; a stream of them does not keep a
// merge that takes long from its end.
func TestAStreamOfEntries(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC)
	policy := Policy{Batch: 64}
	facts := Facts{Tip: "c1", Tree: "t1", Past: true}
	s, c := Step(State{Target: "refs/heads/main"}, Event{Kind: Opened, At: now, Policy: &policy, Facts: &facts})
	begun := map[int64]bool{}
	for i := range 60 {
		s, c = Step(s, Event{Kind: Added, At: now, Entry: &Entry{ID: fmt.Sprint("t", i), Commit: fmt.Sprint("c", i)}})
		if c.Kind != DoPrepare {
			t.Fatalf("%+v", c)
		}
		begun[c.Seq] = true
		if i == 4 && len(c.IDs) != 5 {
			t.Errorf("five that came at once are tried as %v", c.IDs)
		}
		if i >= 4 {
			now = now.Add(500 * time.Millisecond)
		}
	}
	if n := len(c.IDs); len(begun) > 10 || n > 10 {
		t.Errorf("in half a minute the merge was begun %d times, the last with %d entries", len(begun), n)
	}
}

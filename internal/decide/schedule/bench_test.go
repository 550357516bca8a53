package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
)

// BenchmarkStep is one task through a full house of 50 slots: its end, what
// becomes of it, and the next one in its slot.
func BenchmarkStep(b *testing.B) {
	at := time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC)
	s, c := schedule.Step(schedule.State{}, schedule.Event{Kind: schedule.Began, At: at, Settings: schedule.Settings{MaxParallel: 50}})
	n := 0
	for c.Kind != schedule.Rest {
		s, c = schedule.Step(s, answer(c, at, &n))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		s, c = schedule.Step(s, schedule.Event{Kind: schedule.Ended, Case: s.Slots[0].Case, At: at, Outcome: schedule.Outcome{Status: loop.Completed, Why: "COMPLETE"}})
		for c.Kind != schedule.Rest {
			s, c = schedule.Step(s, answer(c, at, &n))
		}
	}
}

// answer is a board that always has another ready task.
func answer(c schedule.Command, at time.Time, n *int) schedule.Event {
	switch c.Kind {
	case schedule.Pick:
		*n++
		return schedule.Event{Kind: schedule.Picked, Case: fmt.Sprintf("task-%03d", *n), At: at}
	case schedule.Start:
		return schedule.Event{Kind: schedule.Started, Case: c.Case, At: at}
	case schedule.Settle:
		return schedule.Event{Kind: schedule.Settled, Case: c.Case, At: at}
	}
	return schedule.Event{Kind: schedule.Did, At: at}
}

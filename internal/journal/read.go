package journal

import (
	"context"
	"iter"
	"time"
)

// Source is where events are stored.
type Source interface {
	// Events returns at most limit events with a higher Seq than after, oldest
	// first; of all runs when run is empty.
	Events(ctx context.Context, run string, after int64, limit int) ([]Event, error)
}

// Appender stores events beside a run's own story.
type Appender interface {
	// Append stores an event with N = 0 and returns its Seq.
	Append(ctx context.Context, e Event) (int64, error)
}

// Poll is how often whoever follows a run looks for new events.
const Poll = 100 * time.Millisecond

// page bounds how many events are in memory at once: one of them may carry a
// whole record with a thousand paths.
const page = 100

// Append stores an event beside the run's own story, e.g. a warning by a
// process that does not own the run. It changes no state and is no part of
// the run's numbering.
func Append(ctx context.Context, to Appender, run string, at time.Time, kind string, data any) (int64, error) {
	e, err := New(run, 0, at, kind, data)
	if err != nil {
		return 0, err
	}
	return to.Append(ctx, e)
}

// Read yields the stored events with a higher Seq than after, oldest first,
// up to the last one that is stored when it gets there; of all runs when run
// is empty. An error is yielded once, as the last thing.
func Read(ctx context.Context, from Source, run string, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			events, err := from.Events(ctx, run, after, page)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
			if len(events) < page {
				return
			}
		}
	}
}

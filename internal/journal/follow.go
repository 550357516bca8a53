package journal

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Source is where events are stored.
type Source interface {
	// Events returns at most limit events with a higher Seq than after, oldest
	// first; of all runs when run is empty.
	Events(ctx context.Context, run string, after int64, limit int) ([]Event, error)
	// LastEvent returns the run's last numbered event; ok is false when there
	// is none.
	LastEvent(ctx context.Context, run string) (e Event, ok bool, err error)
	// DataVersion returns another number whenever a process has committed
	// since the call before. It must be cheap: it is called every [Poll].
	DataVersion(ctx context.Context) (int64, error)
}

// Appender stores events beside a run's own story.
type Appender interface {
	// Append stores an event with N = 0 and returns its Seq.
	Append(ctx context.Context, e Event) (int64, error)
}

// Poll is how often [Follow] looks for commits of other processes.
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
		_, err := drain(ctx, from, run, after, yield)
		if err != nil && !errors.Is(err, errEnough) {
			yield(Event{}, err)
		}
	}
}

// Follow is [Read] that does not end at the last stored event: it waits for
// more, also for those that other processes commit, within about [Poll]. The
// caller's pace is its pace; it runs no goroutine and keeps one page of
// events.
//
// It ends after the event that ends the run, at once when the run is over
// already, and with ctx, whose error is then the last thing that it yields. A
// run that was resumed after its end is not over. A paused run is not over
// either: Follow waits for what comes. With an empty run it follows all runs
// and ends only with ctx.
func Follow(ctx context.Context, from Source, run string, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		err := follow(ctx, from, run, after, yield)
		if err != nil && !errors.Is(err, errEnough) {
			yield(Event{}, err)
		}
	}
}

func follow(ctx context.Context, from Source, run string, after int64, yield func(Event, error) bool) error {
	tick := time.NewTicker(Poll)
	defer tick.Stop()
	for {
		// The version is read before the events: a commit between the two is
		// then seen as a change, and at worst read for nothing.
		version, err := from.DataVersion(ctx)
		if err != nil {
			return err
		}
		if after, err = drain(ctx, from, run, after, yield); err != nil {
			return err
		}
		over, err := isOver(ctx, from, run, after)
		if over || err != nil {
			return err
		}
		if err := changed(ctx, from, version, tick.C); err != nil {
			return err
		}
	}
}

// errEnough says that the reader broke off its loop.
var errEnough = errors.New("the reader has enough")

// drain yields all stored events after after and returns the last Seq.
func drain(ctx context.Context, from Source, run string, after int64, yield func(Event, error) bool) (int64, error) {
	for {
		events, err := from.Events(ctx, run, after, page)
		if err != nil {
			return after, err
		}
		for _, e := range events {
			if !yield(e, nil) {
				return after, errEnough
			}
			after = e.Seq
		}
		if len(events) < page {
			return after, nil
		}
	}
}

// isOver is true when the run's last numbered event ends it and has been
// yielded. Events beside the story may come after it; they do not open it.
func isOver(ctx context.Context, from Source, run string, seen int64) (bool, error) {
	if run == "" {
		return false, nil
	}
	last, ok, err := from.LastEvent(ctx, run)
	if err != nil || !ok {
		return false, err
	}
	return last.Final() && last.Seq <= seen, nil
}

// changed waits until somebody has committed since version.
func changed(ctx context.Context, from Source, version int64, tick <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick:
		}
		now, err := from.DataVersion(ctx)
		if err != nil || now != version {
			return err
		}
	}
}

package overview

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// mostAsks is how many tasks that wait for the queue to see them are counted.
const mostAsks = 1000

// Queue is what a merge queue holds. Of the verified tasks Queued land without a person,
// and Held says why the others do not. What landed and is to be pushed counts as
// one. Green is the target's commit that is known to be green.
type Queue struct {
	Queued int
	Held   string
	Target schedule.Target
	Green  string
}

// ReadQueue reads what the queue of a target holds.
func ReadQueue(ctx context.Context, db *store.Store, target string, now time.Time) (left Queue, err error) {
	// What waits to be seen is read first: the queue may take it in just now, and
	// then it is among the entries.
	asks, err := db.QueueAsks(ctx, target, mostAsks)
	if err != nil {
		return left, err
	}
	row, _, err := db.Queue(ctx, target)
	if err != nil {
		return left, err
	}
	s := row.State
	left.Target = HealthOf(&s)
	if s.Green != "" {
		left.Green = s.Tip
	}
	added := slices.ContainsFunc(asks, func(a store.QueueAsk) bool { return a.Event.Kind == queue.Added })
	if s.Stop != nil && !s.Repairing() {
		if added || slices.ContainsFunc(s.Entries, func(e queue.Entry) bool { return e.Status != queue.Parked }) {
			left.Held = "the merge queue is blocked: " + s.Stop.Why
		} else if s.Unpushed != nil {
			left.Held = "what landed is only here, not pushed: the merge queue is blocked: " + s.Stop.Why
		}
		return left, nil
	}
	n, held := 0, []queue.Entry(nil)
	for _, a := range asks {
		if a.Event.Kind == queue.Added {
			n++
		}
	}
	works := s.Command.Kind != queue.DoWait && s.Command.Kind != ""
	busy := works || s.Stumbles > 0 || len(s.Checking) > 0
	for i := range s.Entries {
		switch e := &s.Entries[i]; {
		case e.Status == queue.Resolving,
			e.Status == queue.Waiting && busy,
			e.Status == queue.Waiting && e.Waits == 0 && e.Until.After(now):
			n++
		case e.Status != queue.Parked: // who is parked is blocked on the board
			held = append(held, *e)
		}
	}
	if s.Unpushed != nil && !s.Unpushed.Stuck() {
		n = max(n, 1)
	}
	left.Queued = n
	switch {
	case n > 0:
	case len(held) > 0:
		left.Held = reasonHeld(held)
	case s.Unpushed.Stuck():
		left.Held = "what landed is only here, not pushed: " + s.Unpushed.Why
	}
	return left, nil
}

// reasonHeld names entries that do not land without a person, of many the first, and its reason.
func reasonHeld(held []queue.Entry) string {
	const named = 3
	if len(held) == 1 {
		return fmt.Sprintf("%s waits in the merge queue: %s", held[0].ID, held[0].Why)
	}
	ids := lists.Each(held[:min(len(held), named)], func(e queue.Entry) string { return e.ID })
	text := strings.Join(ids, ", ")
	if more := len(held) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s wait in the merge queue; %s: %s", text, ids[0], held[0].Why)
}

// HealthOf the target, by its queue.
func HealthOf(s *queue.State) schedule.Target {
	switch {
	case s.Stop == nil:
		return schedule.Target{}
	case s.Stop.Cause == queue.RedTarget:
		return schedule.Target{Health: schedule.Red, Why: s.Stop.Why}
	case s.Stop.Cause == queue.Diverged, s.Stop.Cause == queue.Missing:
		return schedule.Target{Health: schedule.Diverged, Why: s.Stop.Why}
	case s.Stop.Cause == queue.Broken:
		return schedule.Target{Health: schedule.Broken, Why: s.Stop.Why}
	}
	return schedule.Target{Health: schedule.Green}
}

package fleet

import (
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
)

// late is how long a person takes to act: mostly an hour or so, sometimes a
// day.
func (w *world) late() time.Duration {
	if w.chance(100) {
		return w.random(12 * time.Hour)
	}
	return w.random(time.Hour)
}

// expect plans what a person does about a task that waits for one.
func (w *world) expect(i int) {
	it := &w.items[i]
	if !w.waitsForPerson(i) {
		return
	}
	deed := it.deed
	w.clock.after(w.late(), func() {
		if it.deed != deed || !w.waitsForPerson(i) {
			return
		}
		w.act(i)
		if it.deed == deed { // it did not help
			w.expect(i)
		}
	})
}

func (w *world) waitsForPerson(i int) bool {
	switch w.items[i].c.Status {
	case board.Blocked, board.Failed, board.Timeout, board.Deferred:
		return true
	default:
		return false
	}
}

// act is what a person does about a task that waits.
func (w *world) act(i int) {
	it := &w.items[i]
	if e, ok := w.queue.Find(it.c.ID); ok && it.c.Status == board.Blocked {
		if e.Status == queue.Parked {
			w.actOnEntry(i, &e)
			return
		}
		w.deed(i, board.Unblock)
		return
	}
	switch it.c.Status {
	case board.Blocked:
		asks := it.run != nil && slices.Contains([]loop.Status{loop.Pending, loop.Blocked}, it.run.Status)
		if asks && !w.chance(200) {
			it.answered = true
		}
		if w.chance(300) {
			w.deed(i, board.Retry)
			return
		}
		w.deed(i, board.Unblock)
	case board.Failed, board.Timeout:
		w.deed(i, []board.Action{board.Retry, board.Retry, board.Rollback}[w.pick(3)])
	case board.Deferred:
		w.deed(i, board.Undefer)
	default:
	}
}

// deed is a change of a case by a person, of which the autopilot hears.
func (w *world) deed(i int, a board.Action) {
	w.report["actions of people"]++
	if err := w.move(i, a, board.Person, "a person"); err != nil {
		w.broken(Table, []string{w.items[i].c.ID}, "%v", err)
	}
	w.pilot(schedule.Event{Kind: schedule.Changed})
}

// personOnEntry plans what a person does about an entry that needs one.
func (w *world) personOnEntry(id string) {
	w.clock.after(w.late(), func() {
		if e, ok := w.queue.Find(id); ok && e.Status == queue.Parked {
			w.actOnEntry(w.index[id], &e)
		}
	})
}

// actOnEntry tries it again, resolves it by hand, or takes it out.
func (w *world) actOnEntry(i int, e *queue.Entry) {
	w.report["actions of people"]++
	switch {
	case w.chance(300):
		w.asking(asked(queue.WishRetry, e.ID))
	case w.chance(600):
		w.enqueue(i, w.newWork(i))
	default:
		w.asking(asked(queue.WishDrop, e.ID))
	}
}

func asked(wish queue.Wish, id string) queue.Event {
	return queue.Event{Kind: queue.Asked, Ask: &queue.Ask{Wish: wish, ID: id}}
}

// personOnQueue is for a queue that stands still. A red target is repaired by
// who made it red.
func (w *world) personOnQueue() {
	if w.looking {
		return
	}
	w.looking = true
	w.clock.after(w.random(15*time.Minute), func() {
		w.looking = false
		w.report["actions of people"]++
		w.repair()
		if w.queue.Stop != nil {
			w.asking(asked(queue.WishResume, ""))
		}
	})
}

// meddle is what people do unasked.
func (w *world) meddle() {
	if w.left == 0 {
		return
	}
	w.later(6*time.Minute, w.meddle)
	i := w.pick(len(w.items))
	it := &w.items[i]
	switch w.pick(8) {
	case 0:
		w.personMoves()
	case 1:
		w.pilot(schedule.Event{Kind: schedule.Asked, Ask: schedule.AskPause})
	case 2:
		if w.chance(200) {
			w.pilot(schedule.Event{Kind: schedule.Asked, Ask: schedule.AskStop, Cause: loop.CauseStop})
		}
	case 3:
		if w.chance(200) {
			w.asking(asked(queue.WishPause, ""))
		}
	case 4:
		w.pilot(schedule.Event{Kind: schedule.Asked, Ask: schedule.AskStart, Case: it.c.ID})
	case 5:
		if it.c.Status == board.Pending {
			w.deed(i, board.Defer)
		}
	case 6: // a task is opened again, and its change stays in the queue
		if n := len(w.queue.Entries); n > 0 {
			w.reopen(w.index[w.queue.Entries[w.pick(n)].ID])
		}
	default:
		if it.c.Status == board.Pending && !it.merged {
			w.report["actions of people"]++ // done by hand, perhaps before what it needs
			w.enqueue(i, w.newWork(i))
			w.pilot(schedule.Event{Kind: schedule.Changed})
		}
	}
}

func (w *world) reopen(i int) {
	c := &w.items[i].c
	if c.Status != board.Review {
		return
	}
	w.deed(i, board.Block)
	w.later(2*time.Second, func() {
		if c.Status == board.Blocked {
			w.deed(i, board.Unblock)
		}
	})
}

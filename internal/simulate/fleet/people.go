package fleet

import (
	"time"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/schedule"
)

// late is how long a person takes to act: mostly an hour or so, sometimes a
// day.
func (w *world) late() time.Duration {
	if w.chance(100) {
		return w.random(12 * time.Hour)
	}
	return w.random(time.Hour)
}

// expect counts who waits for a person, and plans what that person does about a
// task.
func (w *world) expect(i int) {
	it := &w.items[i]
	if it.c.Type == board.Task {
		w.recount(i)
	}
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
	it := &w.items[i]
	switch it.c.Status {
	case board.Blocked, board.Failed, board.Timeout, board.Deferred:
		return true
	case board.Review:
		return it.review
	default:
		return false
	}
}

// recount keeps the sums of what waits.
func (w *world) recount(i int) {
	it := &w.items[i]
	now := uint8(0)
	switch {
	case it.c.Status == board.Review && it.review:
		now = 1
	case it.c.Status == board.Blocked:
		now = 2
	case it.c.Status == board.Done:
		now = 3
	}
	before := w.counted[i]
	w.counted[i] = now
	for _, change := range []struct {
		what uint8
		by   int
	}{{before, -1}, {now, 1}} {
		switch change.what {
		case 1:
			w.reviews += change.by
			w.persons += change.by
		case 2:
			w.persons += change.by
		case 3:
			w.left -= change.by
		}
	}
}

// act is what a person does about a task that waits.
func (w *world) act(i int) {
	it := &w.items[i]
	if e, ok := w.queue.Find(it.c.ID); ok && it.c.Status == board.Blocked {
		if e.Status == queue.Parked || e.Status == queue.OnHold {
			w.actOnEntry(i, &e)
			return
		}
		w.deed(i, board.Unblock)
		return
	}
	switch it.c.Status {
	case board.Blocked:
		if s := it.run; s != nil && (s.Status == loop.Pending || s.Status == loop.Blocked) && !w.chance(200) {
			it.answered = true
		}
		if it.c.Type == board.Task && w.chance(300) {
			w.deed(i, board.Retry)
			return
		}
		w.deed(i, board.Unblock)
	case board.Failed, board.Timeout:
		w.deed(i, []board.Action{board.Retry, board.Retry, board.Rollback}[w.pick(3)])
	case board.Deferred:
		w.deed(i, board.Undefer)
	case board.Review:
		w.review(i)
	default:
	}
}

// review is a person's word about verified work.
func (w *world) review(i int) {
	it := &w.items[i]
	switch w.pick(5) {
	case 0:
		w.deed(i, board.Redo)
	case 1:
		w.deed(i, board.Reject)
	default:
		w.report.Deeds++
		it.review = false
		it.deed++
		w.recount(i)
		w.enqueue(i, w.newWork(i))
		w.pilot(schedule.Event{Kind: schedule.Changed})
	}
}

// deed is a change of a case by a person, of which the autopilot hears.
func (w *world) deed(i int, a board.Action) {
	w.report.Deeds++
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
	it := &w.items[i]
	w.report.Deeds++
	switch {
	case e.Status == queue.OnHold:
		w.asking(asked(queue.WishRelease, e.ID))
	case w.chance(300) && !w.target.works[e.Commit].gone:
		w.asking(asked(queue.WishRetry, e.ID))
	case w.chance(600):
		it.base = w.target.commits[w.target.tip].at
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
		w.report.Deeds++
		w.repair()
		if w.queue.Stop != nil {
			w.asking(queue.Event{Kind: queue.Asked, Ask: &queue.Ask{Wish: queue.WishResume}})
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
	switch w.pick(12) {
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
			w.asking(queue.Event{Kind: queue.Asked, Ask: &queue.Ask{Wish: queue.WishPause}})
		}
	case 4, 5:
		w.meddleWithEntry()
	case 6, 7:
		w.meddleWithRun()
	case 8:
		w.pilot(schedule.Event{Kind: schedule.Asked, Ask: schedule.AskStart, Case: it.c.ID})
	case 9:
		if it.c.Status == board.Pending {
			w.deed(i, board.Defer)
		}
	case 10:
		if it.c.Status == board.Pending || it.c.Status == board.Review && !it.review {
			w.deed(i, board.Block)
		}
	default:
		if it.c.Type == board.Task && it.c.Status == board.Pending && !it.merged {
			w.report.Deeds++ // done by hand, perhaps before what it needs
			it.base = w.target.commits[w.target.tip].at
			w.enqueue(i, w.newWork(i))
			w.pilot(schedule.Event{Kind: schedule.Changed})
		}
	}
}

func (w *world) meddleWithEntry() {
	if len(w.queue.Entries) == 0 {
		return
	}
	e := w.queue.Entries[w.pick(len(w.queue.Entries))]
	switch {
	case e.Status == queue.Waiting && w.chance(500):
		w.asking(asked(queue.WishHold, e.ID))
		w.clock.after(w.late(), func() {
			if e, ok := w.queue.Find(e.ID); ok && e.Status == queue.OnHold {
				w.asking(asked(queue.WishRelease, e.ID))
			}
		})
	case w.chance(300):
		w.asking(asked(queue.WishDrop, e.ID))
	default: // the task is opened again, and its change stays in the queue
		i := w.index[e.ID]
		if w.items[i].c.Status != board.Review {
			return
		}
		w.deed(i, board.Block)
		w.later(2*time.Second, func() {
			if w.items[i].c.Status == board.Blocked {
				w.deed(i, board.Unblock)
			}
		})
	}
}

// meddleWithRun pauses or stops one run by itself.
func (w *world) meddleWithRun() {
	if len(w.sched.Slots) == 0 || !w.up || !w.working {
		return
	}
	l := w.sched.Slots[w.pick(len(w.sched.Slots))]
	e := loop.Event{Kind: loop.StopAsked, Cause: loop.CauseStop}
	if w.chance(500) {
		e = loop.Event{Kind: loop.PauseAsked}
	}
	w.control(w.index[l.Case], e)
	if e.Kind == loop.StopAsked { // it is kept out until somebody says otherwise
		w.clock.after(w.late(), func() { w.pilot(schedule.Event{Kind: schedule.Asked, Ask: schedule.AskStart, Case: l.Case}) })
	}
}

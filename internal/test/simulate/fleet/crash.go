package fleet

import (
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
)

// lease is how long an agent goes on without its pawl.
const lease = 30 * time.Second

// crashes kills pawl now and then.
func (w *world) crashes() {
	if w.left == 0 {
		return
	}
	w.later(25*time.Minute, w.crashes)
	w.crash()
}

// setClock sets the machine's clock now and then, by up to a day forward or back,
// mostly for good.
func (w *world) setClock() {
	if w.left == 0 {
		return
	}
	chance := func(n int64) time.Duration { return time.Duration(w.whims.Int64N(n)) }
	w.clock.after(time.Hour+chance(int64(5*time.Hour)), w.setClock)
	by := chance(int64(48*time.Hour)) - 24*time.Hour
	if w.clock.ahead != 0 && w.whims.IntN(3) == 0 {
		by = -w.clock.ahead
	}
	w.clock.ahead += by
	w.report["times that the clock is set"]++
	w.tell("", "the clock is set by %s", by)
}

// killed kills pawl at this very point, so many times in ten thousand. What
// was stored before it is all that is left.
func (w *world) killed(times int) bool {
	if !w.up || w.pick(10_000) >= times {
		return !w.up
	}
	w.crash()
	return true
}

// crash takes away all that is in pawl's memory.
func (w *world) crash() {
	if !w.up {
		return
	}
	w.report["crashes"]++
	w.tell("", "pawl is killed")
	w.up, w.working, w.opened, w.taking = false, false, false, false
	w.epoch++
	w.sched, w.mail, w.paused = schedule.State{}, nil, false
	left := w.clock.now
	for i := range w.items {
		w.items[i].begun = false
	}
	epoch := w.epoch
	w.clock.after(lease, func() {
		for i := range w.items {
			if it := &w.items[i]; it.alive && !it.begun && (!w.up || w.epoch == epoch) && !it.startedAfter(left) {
				w.kill(i)
			}
		}
	})
	w.clock.after(w.random(25*time.Second), w.restart)
}

// startedAfter is true for a task that was taken up since.
func (it *item) startedAfter(t time.Time) bool { return it.activeAt.After(t) }

// restart is the next pawl: it opens the queue, looks for what was left active,
// and goes on.
func (w *world) restart() {
	w.up = true
	w.clock.began = w.clock.ahead
	w.known = w.clock.ahead
	w.tell("", "pawl starts")
	w.audit()
	w.open()
	w.session()
}

// recover finds what an earlier session left active.
func (w *world) recover() {
	var found []schedule.Found
	for i := range w.items {
		it := &w.items[i]
		if it.c.Status != board.Active {
			w.kill(i) // it landed while its loop went on
			continue
		}
		found = append(found, schedule.Found{Case: it.c.ID, ActiveAt: it.marked, Run: it.run, TouchedAt: it.touched,
			Alive: it.alive})
	}
	w.adopt = nil
	for _, r := range w.rules.Recover(found, w.o.Agents) {
		i := w.index[r.Case]
		w.tell(r.Case, "recovered: adopt %t, %s (%s)", r.Adopt, r.Action, r.Why)
		if r.Adopt {
			w.adopt = append(w.adopt, r.Case)
			w.items[i].begun = true
			continue
		}
		w.kill(i)
		if err := w.move(i, r.Action, board.Pawl, r.Why); err != nil && w.items[i].c.Status == board.Active {
			w.broken(Table, []string{r.Case}, "%v", err)
		}
	}
}

// audit looks at every case: who will go on with it.
func (w *world) audit() {
	asked := map[string]bool{}
	for _, e := range w.asks {
		if e.Kind == queue.Added {
			asked[e.Entry.ID] = true
		}
	}
	queued := make(map[string]bool, len(w.queue.Entries))
	for i := range w.queue.Entries {
		queued[w.queue.Entries[i].ID] = true
	}
	slots := make(map[string]bool, len(w.sched.Slots))
	for _, l := range w.sched.Slots {
		slots[l.Case] = true
	}
	for _, id := range w.sched.Adopt {
		slots[id] = true
	}
	for i := range w.items {
		it := &w.items[i]
		id := it.c.ID
		switch {
		case it.merged && it.c.Status != board.Done && !queued[id] && !asked[id]:
			w.broken(Landed, []string{id}, "%s is on the target and %s, and nobody will say so", id, it.c.Status)
		case it.c.Status == board.Review && !queued[id] && !asked[id]:
			w.broken(Kept, []string{id}, "%s is in review and not in the queue", id)
		case it.c.Status == board.Active && w.up && w.working && !slots[id]:
			w.broken(Kept, []string{id}, "%s is active and in no slot", id)
		}
	}
}

package fleet

import (
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
)

// settings are those of the next session. Most work the board to its end, some
// are sprints.
func (w *world) settings() schedule.Settings {
	s := schedule.Settings{MaxParallel: w.o.Agents, ErrorThreshold: 5, Mode: schedule.Auto}
	switch w.pick(8) {
	case 0:
		s.Count = 1 + w.pick(w.o.Tasks)
	case 1:
		s.Until = w.clock.steady().Add(w.random(2 * time.Hour))
	case 2:
		s.Keep = true
	case 3:
		s.WIPLimit = 5 + w.pick(20)
	case 4:
		s.PauseOnError = true
	}
	return s
}

// session starts the autopilot, if nobody did.
func (w *world) session() {
	if !w.up || w.working || w.left == 0 {
		return
	}
	w.recover()
	w.working, w.unstored, w.sched = true, false, schedule.State{}
	given := w.settings()
	w.pilot(schedule.Event{Kind: schedule.Began, Settings: given, Cases: w.adopt})
	w.adopt = nil
}

// pilot hands the autopilot an event and carries out what follows, until it
// rests. What happens meanwhile waits.
func (w *world) pilot(e schedule.Event) {
	if !w.up || !w.working {
		return
	}
	w.mail = append(w.mail, e)
	if w.piloting {
		return
	}
	w.piloting = true
	for len(w.mail) > 0 && w.working && w.up {
		e := w.mail[0]
		w.mail = w.mail[1:]
		for more := true; more && w.up; {
			c := w.schedule(e)
			e, more = w.obey(&c)
		}
	}
	w.piloting = false
}

func (w *world) schedule(e schedule.Event) schedule.Command {
	e.At = w.clock.steady()
	w.report["events"]++
	s, c := w.rules.Schedule(w.sched, e)
	w.sched = s
	if len(s.Slots) > w.o.Agents {
		w.broken(Slots, []string{s.Slots[len(s.Slots)-1].Case}, "%d slots are taken of %d", len(s.Slots), w.o.Agents)
	}
	return c
}

// obey carries a command out and returns its answer; more is false when there
// is none.
func (w *world) obey(c *schedule.Command) (answer schedule.Event, more bool) {
	done := schedule.Event{Kind: schedule.Did}
	switch c.Kind {
	case schedule.Pick:
		return w.choose(c), true
	case schedule.Count:
		return schedule.Event{Kind: schedule.Counted, Counts: w.counts()}, true
	case schedule.Start:
		return w.start(c), true
	case schedule.Settle:
		return w.settle(c), true
	case schedule.Pause:
		w.tell(c.Case, "autopilot: pause (%s)", c.Why)
		w.control(w.index[c.Case], loop.Event{Kind: loop.PauseAsked})
	case schedule.Resume:
		w.tell(c.Case, "autopilot: resume (%s)", c.Why)
		w.goOn(w.index[c.Case])
	case schedule.Stop:
		w.tell(c.Case, "autopilot: stop (%s)", c.Why)
		w.control(w.index[c.Case], loop.Event{Kind: loop.StopAsked, Cause: c.Cause})
	case schedule.Alert:
		w.tell("", "autopilot: %s", c.Why)
	case schedule.Rest:
		w.rested(c)
		return done, false
	case schedule.Finish:
		w.tell("", "autopilot ends, exit %d: %s", c.Exit, c.Why)
		w.ended()
		return done, false
	}
	return done, true
}

// choose looks for the next ready task.
func (w *world) choose(c *schedule.Command) schedule.Event {
	e := schedule.Event{Kind: schedule.Picked, Named: c.Case, Counts: w.counts()}
	if c.Case != "" {
		if v := w.view(w.index[c.Case]); w.rules.Ready(v) {
			e.Case = c.Case
		} else {
			e.Why = v.NotReady()
		}
		return e
	}
	i := w.best(c.Exclude)
	if i < 0 {
		e.Why = "no task is ready"
		return e
	}
	e.Case = w.items[i].c.ID
	return e
}

// counts is what the board and the queue hold.
func (w *world) counts() schedule.Counts {
	c := schedule.Counts{Queued: len(w.asks)}
	for i := range w.items {
		switch it := &w.items[i]; {
		case it.c.Status == board.Pending && w.rules.Ready(w.view(i)):
			c.Ready++
		case it.c.Status == board.Blocked:
			c.Waiting++
		}
	}
	for i := range w.queue.Entries {
		switch w.queue.Entries[i].Status {
		case queue.Waiting, queue.Resolving:
			c.Queued++
		default:
		}
	}
	if w.queue.Stop != nil {
		c.QueueHeld = w.queue.Stop.Why
	}
	return c
}

// start takes a task up: the row first, then the workspace, then its run.
func (w *world) start(c *schedule.Command) schedule.Event {
	i := w.index[c.Case]
	it := &w.items[i]
	started := schedule.Event{Kind: schedule.Started, Case: c.Case}
	w.tell(c.Case, "autopilot: start (%s)", c.Why)
	if c.Adopt {
		w.readopt(i)
		return started
	}
	if w.rarely(3000) {
		return schedule.Event{Kind: schedule.NotStarted, Case: c.Case, Fault: schedule.OfMachine,
			Why: "the database is locked"}
	}
	if w.rarely(1000) && it.c.Status == board.Pending { // somebody was quicker
		w.deed(i, board.Defer)
	}
	if err := w.move(i, board.Start, board.Pawl, c.Why); err != nil {
		return schedule.Event{Kind: schedule.NotStarted, Case: c.Case, Fault: schedule.OfBoard, Why: err.Error()}
	}
	if open := w.unmet(i); len(open) > 0 {
		w.broken(Order, append([]string{c.Case}, open...), "%s starts before %v have landed", c.Case, open)
	}
	if w.killed(1) {
		return started
	}
	w.mine(w.random(time.Second), func() {
		switch {
		case it.c.Status != board.Active:
		case w.chance(3):
			w.pilot(schedule.Event{Kind: schedule.NotStarted, Case: c.Case, Fault: schedule.OfTask,
				Why: "the workspace cannot be made"})
		default:
			w.takeUp(i)
		}
	})
	return started
}

// settle stores what became of a task.
func (w *world) settle(c *schedule.Command) schedule.Event {
	i, v := w.index[c.Case], c.Settlement
	w.tell(c.Case, "autopilot: settle: %s %s", v.Action, v.Why)
	settled := schedule.Event{Kind: schedule.Settled, Case: c.Case}
	if w.rarely(2000) {
		w.unstored = true
		settled.Fault, settled.Why = schedule.OfMachine, "the database is locked"
		return settled
	}
	switch {
	case v.Queue && w.rules.Apart:
		w.verdict(i, v)
		if w.killed(100) {
			return settled
		}
		w.enqueue(i, w.newWork(i))
	case v.Queue:
		w.release(i)
		w.enqueue(i, w.newWork(i)) // and in review, in one transaction
	default:
		w.verdict(i, v)
	}
	w.killed(1)
	return settled
}

// verdict moves the case as a settlement says.
func (w *world) verdict(i int, v schedule.Settlement) {
	it := &w.items[i]
	w.release(i)
	if v.Action == board.Land && it.c.Status == board.Active {
		it.merged = true
		w.report["landings"]++
	}
	if v.Action == "" {
		return
	}
	if err := w.move(i, v.Action, board.Pawl, v.Why); err != nil && it.c.Status == board.Active {
		w.broken(Table, []string{it.c.ID}, "%v", err)
		return
	}
}

// release ends the driving of a task's run.
func (w *world) release(i int) {
	it := &w.items[i]
	it.begun = false
	if it.alive {
		w.broken(Once, []string{it.c.ID}, "the slot of %s is given up while its agent runs", it.c.ID)
	}
}

// rested looks at what is left undone, and plans the end of the rest.
func (w *world) rested(c *schedule.Command) {
	s := &w.sched
	if s.Phase == schedule.Running && s.Hold == "" && s.Mode == schedule.Auto && len(s.Slots) < s.Settings.MaxParallel && s.Settings.WIPLimit == 0 &&
		s.Settings.Count == 0 && s.Settings.Until.IsZero() && len(w.mail) == 0 {
		if i := w.best(s.Excluded()); i >= 0 {
			w.broken(Idle, []string{w.items[i].c.ID}, "%d of %d slots are taken and %s is ready, but the autopilot rests: %s",
				len(s.Slots), s.Settings.MaxParallel, w.items[i].c.ID, c.Why)
		}
	}
	if !c.Until.IsZero() {
		w.mine(c.Until.Sub(w.clock.steady()), func() { w.pilot(schedule.Event{Kind: schedule.Woken}) })
	}
	if s.Phase == schedule.Paused && !w.paused {
		w.paused = true
		w.later(20*time.Minute, func() {
			w.paused = false
			w.report["actions of people"]++
			w.pilot(schedule.Event{Kind: schedule.Asked, Ask: schedule.AskResume})
		})
	}
}

// ended is the end of a session; somebody starts another while there is work.
func (w *world) ended() {
	w.working = false
	for _, l := range w.sched.Slots {
		w.broken(Kept, []string{l.Case}, "the autopilot ends with %s in a slot", l.Case)
	}
	for i := range w.items {
		// What could not be stored is found by the next session, as after a crash.
		if it := &w.items[i]; it.c.Status == board.Active && !w.unstored {
			w.broken(Kept, []string{it.c.ID}, "the autopilot ends, and %s is active", it.c.ID)
		}
	}
	if w.left > 0 {
		w.later(10*time.Minute, w.session)
	}
}

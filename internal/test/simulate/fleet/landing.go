package fleet

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
)

// asking stores what is asked of the queue; who works on it takes it at once,
// or when it begins. A task that is added is in review from then on, in the
// same transaction.
func (w *world) asking(e queue.Event) {
	if e.Kind == queue.Added {
		w.moved(w.index[e.Entry.ID], queue.MoveQueued, "its change waits to be landed")
	}
	w.asks = append(w.asks, e)
	w.take()
}

// take hands the queue what it was asked, while somebody works on it.
func (w *world) take() {
	for w.up && w.opened && len(w.asks) > 0 && !w.taking {
		w.taking = true
		e := w.asks[0]
		w.asks = w.asks[1:]
		if e.Kind == queue.Added {
			it := &w.items[w.index[e.Entry.ID]]
			e.Done = it.c.Status == board.Done && it.at > 0 && w.target.holds(it.at, w.target.tip) && !w.rules.Again
		}
		w.land(e)
		w.taking = false
	}
}

// enqueue asks for a task's work to be landed.
func (w *world) enqueue(i int, work string) {
	c := &w.items[i].c
	w.asking(queue.Event{Kind: queue.Added, Entry: &queue.Entry{
		ID: c.ID, Commit: work, Title: c.Title, Priority: c.Priority, Needs: w.unmet(i),
	}})
}

// open begins the work on the queue.
func (w *world) open() {
	p := w.policy
	f := w.facts()
	w.opened = true
	w.land(queue.Event{Kind: queue.Opened, Policy: &p, Facts: &f})
	for i := range w.queue.Entries {
		if e := &w.queue.Entries[i]; e.Status == queue.Resolving {
			w.resolver(e.ID, e.Attempts)
		}
	}
	w.take()
}

// land takes one event through the queue and carries out what follows.
func (w *world) land(e queue.Event) {
	e.At, e.ClockSet = w.clock.wall(), w.clock.ahead-w.known
	w.known = w.clock.ahead
	w.report["events"]++
	before := w.queue.Command.Seq
	var chosen []string
	if b := w.queue.Batch; b != nil {
		chosen = b.IDs
	}
	s, _ := w.rules.Queue(w.queue, e)
	w.queue = s
	if e.Kind == queue.Added {
		if entry, ok := s.Find(e.Entry.ID); ok {
			w.orders[entry.ID] = entry.Order
		}
	}
	w.out(chosen)
	if c := w.queue.Command; c.Seq != before && c.Kind != "" {
		w.perform(c)
	}
}

// out stores what a step means beside its command. chosen is the batch before it.
func (w *world) out(chosen []string) {
	out := w.queue.Out
	for i := range out.Landings {
		w.landing(&out.Landings[i])
	}
	if len(out.Landings) > 0 {
		w.passed(out.Landings, chosen)
	}
	for _, m := range out.Cases {
		w.moved(w.index[m.ID], m.Move, m.Why)
	}
	for i := range out.Landings {
		w.pilot(schedule.Event{Kind: schedule.Landed, Case: out.Landings[i].Task})
	}
	for _, n := range out.Notes {
		w.noted(n)
	}
	if len(out.Cases) > 0 {
		w.pilot(schedule.Event{Kind: schedule.Changed})
	}
}

// landing holds the queue's word against the target.
func (w *world) landing(l *queue.Landing) {
	i := w.index[l.Task]
	it := &w.items[i]
	at := number(l.Commit)
	if at < 0 || !w.target.holds(at, w.target.tip) && w.target.tip == number(l.To) {
		w.broken(Landed, []string{l.Task}, "%s is said to have landed as %s, which is not on the target", l.Task, l.Commit)
	}
	if !it.merged {
		w.broken(Landed, []string{l.Task}, "%s is said to have landed and did not", l.Task)
	}
	delete(w.passes, l.Task)
}

// maxPassed is how many batches of younger entries may go before one: the
// queue's own limit, and those that are tried while a batch is being halved.
const maxPassed = queue.AgeLimit + 16

// passed counts for those who were ready and older than one that landed, and
// were not in its batch.
func (w *world) passed(landed []queue.Landing, chosen []string) {
	last := int64(0)
	for _, l := range landed {
		last = max(last, w.orders[l.Task])
		delete(w.orders, l.Task)
	}
	for i := range w.queue.Entries {
		e := &w.queue.Entries[i]
		if e.Status != queue.Waiting || len(e.Needs) > 0 || w.clock.wall().Before(e.Until) || e.Order >= last || slices.Contains(chosen, e.ID) {
			continue
		}
		w.passes[e.ID]++
		if n := w.passes[e.ID]; n > maxPassed {
			w.broken(Fair, []string{e.ID}, "%s was ready while %d batches of younger entries landed", e.ID, n)
		}
	}
}

var movements = map[queue.Movement]board.Action{queue.MoveQueued: board.Enqueue, queue.MoveLanded: board.Land,
	queue.MoveBlocked: board.Block, queue.MoveRevert: board.Revert, queue.MoveReopen: board.Reopen,
	queue.MoveKept: board.Keep, queue.MoveDropped: board.Drop}

// moved moves a case as the queue says. What the board refuses is no error: the
// case may be where it is to be.
func (w *world) moved(i int, m queue.Movement, why string) {
	err := w.move(i, movements[m], board.Pawl, why)
	var refused *board.RefusalError
	if err != nil && !errors.As(err, &refused) {
		w.broken(Table, []string{w.items[i].c.ID}, "%v", err)
	}
	if m == queue.MoveLanded && w.items[i].c.Status != board.Done {
		w.broken(Landed, []string{w.items[i].c.ID}, "%s landed and is %s: %v", w.items[i].c.ID, w.items[i].c.Status, err)
	}
}

// noted is what people and agents make of a note.
func (w *world) noted(n queue.Note) {
	w.tell(n.ID, "queue: %s: %s", n.Kind, n.Text)
	switch n.Kind {
	case queue.NoteResolving:
		if e, ok := w.queue.Find(n.ID); ok && e.Status == queue.Resolving {
			w.resolver(e.ID, e.Attempts)
		}
	case queue.NoteConflict:
		w.report["conflicts"]++
	case queue.NoteEscalated:
		w.personOnEntry(n.ID)
	case queue.NoteStopped:
		w.personOnQueue()
	case queue.NoteRed:
		if t := w.target; t.bad[t.commits[t.tip].tree] && strconv.Itoa(t.tip) == w.queue.Tip {
			w.broken(Blame, []string{n.ID}, "%s is blamed on a target that is red by itself: %s", n.ID, n.Text)
		}
	default:
	}
}

// resolver is an agent's run at an entry; it ends with this pawl.
func (w *world) resolver(id string, attempt int) {
	if !w.up {
		return
	}
	w.mine(w.random(4*time.Minute), func() {
		i := w.index[id]
		r := &queue.Resolution{ID: id, Attempt: attempt, Why: "the agent gave up"}
		if !w.chance(250) {
			r.Commit, r.Why = w.newWork(i), ""
		}
		w.land(queue.Event{Kind: queue.Resolved, Resolution: r})
	})
}

// perform carries out a command of the queue, after the time that it takes. A
// newer command replaces it.
func (w *world) perform(c queue.Command) {
	if c.Kind == queue.DoWait && c.Until.IsZero() {
		return
	}
	took := map[queue.CommandKind]time.Duration{
		queue.DoPrepare: 5 * time.Millisecond * time.Duration(1+len(c.IDs)), queue.DoVerify: 3 * time.Second,
		queue.DoLand:    10 * time.Millisecond,
		queue.DoForesee: 20 * time.Millisecond, queue.DoLook: time.Millisecond,
	}[c.Kind]
	if c.Kind == queue.DoWait {
		took = max(0, c.Until.Sub(w.clock.wall()))
		if took > w.policy.Timeout {
			w.broken(Prompt, c.IDs, "the queue waits for %s, and nothing of it takes longer than %s", took, w.policy.Timeout)
		}
	} else {
		took = w.random(took)
	}
	w.mine(took, func() {
		if w.queue.Command.Seq == c.Seq {
			w.performed(c)
		}
	})
}

func (w *world) performed(c queue.Command) {
	e := queue.Event{For: c.Seq}
	if c.Kind != queue.DoWait && w.chance(1) {
		e.Kind, e.Why = queue.Stumbled, "the disk is full"
		w.land(e)
		return
	}
	switch c.Kind {
	case queue.DoWait:
		e.Kind = queue.WaitOver
	case queue.DoPrepare:
		e.Kind, e.Prepared = queue.Prepared, w.prepare(c.IDs)
	case queue.DoVerify:
		e.Kind, e.Verdict = queue.Verified, w.verify(c)
	case queue.DoLand:
		if !w.performLand(c, &e) {
			return
		}
	case queue.DoForesee:
		e.Kind = queue.Foreseen // nothing: what is said of it is for people
	case queue.DoLook:
		f := w.facts()
		e.Kind, e.Facts = queue.Looked, &f
	default:
		w.broken(Table, c.IDs, "nobody can %s", c.Kind)
		return
	}
	w.land(e)
}

// performLand is false when pawl was killed before or after the deed.
func (w *world) performLand(c queue.Command, e *queue.Event) bool {
	if w.killed(1) {
		return false
	}
	if w.chance(3) {
		e.Kind, e.Refusal = queue.Refused, &queue.Refusal{Why: "notes.txt is changed here", IDs: c.IDs[:1]}
		return true
	}
	moved, refused := w.advance(c)
	if w.killed(1) {
		return false
	}
	e.Kind, e.Refusal = queue.Refused, refused
	if moved {
		e.Kind = queue.Landed
	}
	return true
}

package autopilot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// workQueue works the merge queue until ctx ends.
func (p *workspaces) workQueue(ctx context.Context) {
	if err := p.queue.Work(ctx); err != nil && ctx.Err() == nil {
		p.warnAbout("", fmt.Sprintf("the merge queue ended: %v", err))
	}
}

// onQueueNote takes what the queue says. It is called by the queue's goroutine.
func (p *workspaces) onQueueNote(ctx context.Context, n queue.Note) {
	e := schedule.Event{Kind: schedule.Changed}
	if n.Kind == queue.NoteLanded {
		e = schedule.Event{Kind: schedule.Landed, Case: n.ID}
	}
	p.notify(Notice{Kind: QueueNote, Case: n.ID, Text: n.Text, Note: n})
	p.sendEvent(ctx, e)
}

// landedBeside takes note of a task whose work is on its target, without letting a
// free slot wait for it.
func (p *pilot) landedBeside(ctx context.Context, id string) {
	idle := p.slots[id] == nil // else its run is being ended, and clear follows
	for other, done := range p.leaving {
		select {
		case <-done:
			delete(p.leaving, other)
		default:
		}
	}
	before, done := p.leaving[id], make(chan struct{})
	p.leaving[id] = done
	p.working.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		p.freeing.Lock()
		defer p.freeing.Unlock()
		p.recordLanded(ctx, id, idle)
	})
}

// recordLanded takes note of a task whose work is on its target, and gives its
// workspace back if it is idle.
func (p *pilot) recordLanded(ctx context.Context, id string, idle bool) {
	c, err := p.o.Store.Case(ctx, id)
	if err == nil && idle {
		err = p.freeWorkspace(ctx, id)
	}
	if err != nil {
		p.warnAbout(id, err.Error())
	}
	p.addEvent(ctx, journal.Autopilot, journal.TaskLanded, journal.Task{Case: id, Title: c.Title})
	p.notify(Notice{Kind: Landed, Case: id, Title: c.Title})
}

// mostAsks is how many tasks that wait for the queue to see them are counted.
const mostAsks = 1000

// left is what a queue holds. Of the verified tasks queued land without a person,
// and held says why the others do not. What landed and is to be pushed counts as
// one. Green is the target's commit that is known to be green.
type leftQueue struct {
	queued int
	held   string
	target schedule.Target
	green  string
}

// queueLeft reads it.
func queueLeft(ctx context.Context, db *store.Store, target string, now time.Time) (left leftQueue, err error) {
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
	left.target = healthOf(&s)
	if s.Green != "" {
		left.green = s.Tip
	}
	added := slices.ContainsFunc(asks, func(a store.QueueAsk) bool { return a.Event.Kind == queue.Added })
	if s.Stop != nil && !s.Repairing() {
		if added || slices.ContainsFunc(s.Entries, func(e queue.Entry) bool { return e.Status != queue.Parked }) {
			left.held = "the merge queue is blocked: " + s.Stop.Why
		} else if s.Unpushed != nil {
			left.held = "what landed is only here, not pushed: the merge queue is blocked: " + s.Stop.Why
		}
		return left, nil
	}
	n, held := 0, ""
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
		case e.Status != queue.Parked && held == "": // who is parked is blocked on the board
			held = fmt.Sprintf("%s waits in the merge queue: %s", e.ID, e.Why)
		}
	}
	if s.Unpushed != nil && !s.Unpushed.Stuck() {
		n = max(n, 1)
	}
	if n > 0 {
		held = ""
	}
	if n == 0 && held == "" && s.Unpushed.Stuck() {
		held = "what landed is only here, not pushed: " + s.Unpushed.Why
	}
	left.queued, left.held = n, held
	return left, nil
}

// healthOf the target, by its queue.
func healthOf(s *queue.State) schedule.Target {
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

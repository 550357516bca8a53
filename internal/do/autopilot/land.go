package autopilot

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/keep/journal"
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

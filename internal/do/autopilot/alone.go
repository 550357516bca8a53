package autopilot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Work does the work of one task, as a slot does, for an autopilot elsewhere. k
// decides for its run. run is the one that k decided for already, "" for none:
// it is gone on with, or its end is taken note of. base is the commit to begin at,
// "" for that of the checkout. The entry is what is to land. Where the run only
// waits, the outcome is that it was not started.
func Work(ctx context.Context, o Options, id, run, base string, k engine.Kernel) (schedule.Outcome, queue.Entry) {
	if o.Notify == nil {
		o.Notify = func(Notice) {}
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Elsewhere = nil
	if base != "" {
		o.orderedBase(id, base)
	}
	p := &pilot{o: o, slots: map[string]*slot{}, inbox: make(chan schedule.Event), kernel: k}
	l, err := p.slotFor(ctx, id, run)
	if errors.Is(err, errTurnOver) {
		return schedule.Outcome{Taken: true, Why: err.Error()}, queue.Entry{}
	}
	if err != nil {
		return notBegun(err), queue.Entry{}
	}
	heard, stop := context.WithCancel(ctx)
	p.working.Go(func() { p.discardInbox(heard) })
	outcome := p.workSlot(ctx, ctx, l)
	stop()
	p.working.Wait()
	if err := o.Store.DropSlot(context.WithoutCancel(ctx), id); err != nil {
		o.Log.Warn(err.Error())
	}
	return outcome, l.result
}

// errTurnOver is that a task is not to be worked.
var errTurnOver = errors.New("the autopilot that ordered it is not the board's any more")

// slotFor is the slot of a task whose autopilot is elsewhere.
func (p *pilot) slotFor(ctx context.Context, id, run string) (*slot, error) {
	var err error
	if p.queue, err = p.o.Queue(ctx, func(queue.Note) {}); err != nil {
		return nil, err
	}
	c, err := p.o.Store.Case(ctx, id)
	if err != nil {
		return nil, err
	}
	if run == "" && c.Status != board.Active { // an autopilot ordered it whose turn was over
		return nil, fmt.Errorf("%w: %s is %s", errTurnOver, id, c.Status)
	}
	adopt := false
	if run != "" {
		_, err = p.o.Store.Run(ctx, run)
		adopt = err == nil
		if errors.Is(err, store.ErrNotFound) { // decided, and not stored
			err = nil
		}
	}
	return newSlot(c, adopt), err
}

// discardInbox takes what a slot sends to its owner, which is elsewhere.
func (p *pilot) discardInbox(ctx context.Context) {
	for {
		select {
		case <-p.inbox:
		case <-ctx.Done():
			return
		}
	}
}

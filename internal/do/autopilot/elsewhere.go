package autopilot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// EngineAt is the engine that gives tasks to other processes, and what opens it. The
// first is its address, the next three are files; each may be "".
type EngineAt struct{ Address, CA, Cert, Key, APIKey string }

// EngineState is what a look at an engine finds.
type EngineState struct {
	Version string // of its server
	Workers int    // that ask for the board's tasks
}

// Offer is what a worker has for tasks.
type Offer struct {
	Slots  int      // tasks at once
	Labels []string // of the tasks that not every worker may work on, sorted; see [board.Case.Labels]
	// Drain is how long a worker that ends waits for iterations to end.
	Drain   time.Duration
	Version string // of the program
	// OwnRules says why it judges by a configuration of its own, and not by the target's; "" where it does not.
	OwnRules string
	// Begins is called when the worker has its folder for itself; nil is not called.
	Begins func() `json:"-"`
}

// Elsewhere has tasks worked by other processes, which share the database.
type Elsewhere interface {
	// Work has a task worked until its run rests, or joins a worker that works it. It
	// begins at the commit base; "" is where the worker's checkout is. It continues run,
	// or takes note of its end; "" begins anew. asked is for its plan; see [Options].
	Work(
		ctx context.Context, task board.Case, base, run string, asked map[string]string,
	) (schedule.Outcome, queue.Entry, error)
	// Look has the task's run read its requests in the database, also while it waits.
	Look(ctx context.Context, task string) error
	// Works is true while a task is worked, or waits for a worker.
	Works(ctx context.Context, task string) (bool, error)
	// Workers is how many wait for tasks.
	Workers(ctx context.Context) (int, error)
	// Kill ends the work on a task at once.
	Kill(ctx context.Context, task string) error
}

// elsewhere is the end of a task's work in another process.
type elsewhere struct {
	outcome schedule.Outcome
	err     error
}

// workElsewhere is a slot whose task is worked by another process. What is asked
// of the slot goes there by the database.
func (p *attempts) workElsewhere(ctx context.Context, l *slot) schedule.Outcome {
	if n := len(schedule.Racers(l.task.Tags, nil)); n > 1 {
		p.notify(Notice{Kind: Warning, Case: l.task.ID, Text: fmt.Sprintf(
			"%d agents should race for %s, but agents of an engine cannot: one works on it", n, l.task.ID)})
	}
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan elsewhere, 1)
	go func() {
		var e elsewhere
		e.outcome, e.err = p.orderWork(work, l)
		ended <- e
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var asked store.Control // that did not reach the run yet
	for {
		select {
		case e := <-ended:
			if e.err != nil {
				return schedule.Outcome{NotStarted: true, Machine: true, Why: e.err.Error()}
			}
			return e.outcome
		case cause := <-l.stops:
			asked = store.Control{Kind: store.ControlStop, Text: string(cause)}
		case <-l.pauses:
			asked = store.Control{Kind: store.ControlPause}
		case <-l.kill:
			return p.killRemote(ctx, l, cancel, ended)
		case <-tick.C:
			if asked.Kind == "" {
				continue
			}
			begun, err := p.forwardControl(ctx, l.task.ID, &asked)
			switch {
			case err != nil:
				p.o.Log.Warn(err.Error()) // it is asked again
			case !begun && asked.Kind == store.ControlStop:
				return p.killRemote(ctx, l, cancel, ended)
			default:
				asked = store.Control{}
			}
		}
	}
}

// orderWork has the work of a slot done, and brings it here.
func (p *attempts) orderWork(ctx context.Context, l *slot) (o schedule.Outcome, err error) {
	base, run, id := "", "", l.task.ID
	if l.adopt { // it may end before it is joined
		last, err := p.o.Store.Latest(ctx, p.o.Root, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return o, err
		}
		run = last.ID
	}
	if p.o.Remote != "" {
		if base, err = p.baseCommit(ctx); err == nil {
			err = p.o.Repo.PushWork(ctx, p.o.Remote, id, base)
		}
	}
	if err == nil {
		task := l.task
		if p.o.Store.BoardName() == "" {
			task.Tags = nil // they choose between machines, and there is one
		}
		o, l.result, err = p.o.Elsewhere.Work(ctx, task, base, run, p.o.Asked)
		if last, err := p.o.Store.Latest(ctx, p.o.Root, id); err == nil {
			l.setRunAndCount(loop.State{Iteration: last.Iteration}, last.ID)
		}
	}
	if o.Taken { // by a worker that lost the task to the engine, and so to the next worker
		o = schedule.Outcome{NotStarted: true, Machine: true, Why: o.Why}
	}
	if err != nil || p.o.Remote == "" || l.result.Commit == "" {
		return o, err
	}
	found, err := p.o.fetchWork(ctx, id, l.result.Commit)
	if err == nil && !found {
		err = fmt.Errorf("%s does not have commit %s, which is the work of %s", p.o.Remote, l.result.Commit, id)
	}
	return o, err
}

// forwardControl passes a request on to the run of a task; false when it has none that is at work. One
// that names a run is stored, and the engine does not have it yet.
func (p *attempts) forwardControl(ctx context.Context, task string, what *store.Control) (begun bool, err error) {
	if what.Run != "" {
		return true, p.o.Elsewhere.Look(ctx, task)
	}
	run, err := p.o.Store.Latest(ctx, p.o.Root, task)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil || !loop.Status(run.Status).Active() {
		return false, err
	}
	what.At = time.Now()
	stored := *what
	stored.Run, stored.Person = run.ID, store.ByPawl
	if _, err = p.o.Store.AddControl(ctx, stored); err != nil {
		return true, err
	}
	what.Run = run.ID
	return true, p.o.Elsewhere.Look(ctx, task)
}

func (p *attempts) killRemote(ctx context.Context, l *slot, cancel func(), ended <-chan elsewhere) schedule.Outcome {
	if err := p.o.Elsewhere.Kill(ctx, l.task.ID); err != nil {
		p.o.Log.Warn(err.Error())
	}
	cancel()
	<-ended
	return schedule.Outcome{Status: loop.Interrupted, Why: "the work on it was ended at once"}
}

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
	p := newAttempts(o, 0)
	p.kernel = k
	l, err := p.slotForRemoteTask(ctx, id, run)
	if errors.Is(err, errTurnOver) {
		return schedule.Outcome{Taken: true, Why: err.Error()}, queue.Entry{}
	}
	if err != nil {
		return outcomeNotBegun(err), queue.Entry{}
	}
	heard, stop := context.WithCancel(ctx)
	var discarding sync.WaitGroup
	discarding.Go(func() { p.discardInbox(heard) })
	outcome := p.workSlot(ctx, ctx, l)
	stop()
	discarding.Wait()
	if err := o.Store.DropSlot(context.WithoutCancel(ctx), id); err != nil {
		o.Log.Warn(err.Error())
	}
	return outcome, l.result
}

// errTurnOver is that a task is not to be worked.
var errTurnOver = errors.New("the autopilot that started it no longer drives the board")

// slotForRemoteTask is the slot of a task whose autopilot is elsewhere.
func (p *attempts) slotForRemoteTask(ctx context.Context, id, run string) (*slot, error) {
	var err error
	if p.queue, err = p.o.Queue(ctx, func(queue.Note) {}); err != nil {
		return nil, err
	}
	c, err := p.o.Store.Case(ctx, id)
	if err != nil {
		return nil, err
	}
	if run == "" && c.Status != board.Active { // an autopilot ordered it whose turn was over
		return nil, fmt.Errorf("%w: %s is %s", errTurnOver, id, c.Status.Phrase())
	}
	adopt := false
	if run != "" {
		_, err = p.o.Store.Run(ctx, run)
		adopt = err == nil
		if errors.Is(err, store.ErrNotFound) { // decided, and not stored
			err = nil
		}
	}
	return newSlotOfTask(c, adopt), err
}

// discardInbox takes what a slot sends to its owner, which is elsewhere.
func (p *reporter) discardInbox(ctx context.Context) {
	for {
		select {
		case <-p.inbox:
		case <-ctx.Done():
			return
		}
	}
}

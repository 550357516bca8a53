package autopilot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/merge"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/schedule"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

// Result is how an autopilot ended.
type Result struct {
	Exit  int // pawl's exit status
	Why   string
	Tally schedule.Tally
	// Sprint has the statistics, when it was one.
	Sprint *schedule.SprintStats
}

// pilot is one autopilot. The goroutine of [Run] owns it; a slot's has only
// its slot.
type pilot struct {
	o     Options
	row   sqlite.Autopilot
	state schedule.State
	saved string // the stored state, to tell whether it changed
	slots map[string]*slot
	// leaving are closed when the workspaces of tasks that landed are given back.
	leaving map[string]chan struct{}
	queue   *merge.Queue
	// inbox has what slots and queue tell.
	inbox chan schedule.Event
	// pending are events that came together with another.
	pending []schedule.Event
	version int64  // of the database, as last seen
	deaf    bool   // what is asked could not be read last time
	rested  string // why nothing was done, as last told
	sprint  *schedule.SprintStats
	room    pool.Room // on the disk, as last told

	telling sync.Mutex // over Notify
	freeing sync.Mutex // one workspace is given back at a time, beside the slots
	working sync.WaitGroup
}

// lookEvery is how soon the autopilot notices what other processes did.
const lookEvery = 100 * time.Millisecond

// Run works the board until nothing is left to do, or a person stops it. While
// another autopilot of the repository lives it refuses with a
// [sqlite.RunningError]. What a crash left is put in order first.
func Run(ctx context.Context, o Options) (Result, error) {
	p, err := begin(ctx, o)
	if err != nil {
		return Result{}, err
	}
	landing, stopLanding := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLanding()
	adopt, err := p.prepareAll(ctx, landing)
	if err != nil {
		p.leave(ctx, schedule.Command{Why: err.Error(), Exit: 1})
		return Result{}, err
	}
	p.working.Go(func() { p.land(landing) })
	p.tell(Notice{Kind: Began, Text: p.state.Why})
	c := p.drive(ctx, schedule.Event{Kind: schedule.Began, Settings: o.Settings, Cases: adopt})
	stopLanding()
	p.working.Wait()
	p.drain(context.WithoutCancel(ctx))
	return p.finish(ctx, c), nil
}

// prepareAll puts in order what a crash left, and opens the queue.
func (p *pilot) prepareAll(ctx, landing context.Context) (adopt []string, err error) {
	if p.queue, err = p.o.Queue(ctx, func(n queue.Note) { p.note(landing, n) }); err != nil {
		return nil, err
	}
	if adopt, err = p.recover(ctx); err != nil {
		return nil, err
	}
	// What waits in the queue is tried anew, and counts as on its way, before
	// anything is decided from what the queue holds.
	if _, err := p.queue.Absorb(ctx); err != nil {
		p.tell(Notice{Kind: Warning, Text: err.Error()})
	}
	p.tidy(ctx)
	return adopt, p.startSprint(ctx)
}

// begin makes this process the autopilot of the repository.
func begin(ctx context.Context, o Options) (*pilot, error) {
	self, err := process.Self()
	if err != nil {
		return nil, fmt.Errorf("cannot tell who drives the autopilot: %v", err)
	}
	if o.Notify == nil {
		o.Notify = func(Notice) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	now := time.Now()
	p := &pilot{
		o: o, slots: map[string]*slot{}, leaving: map[string]chan struct{}{}, inbox: make(chan schedule.Event, max(16, 4*o.Settings.MaxParallel)),
		row: sqlite.Autopilot{
			Session: engine.NewID(), Phase: string(schedule.Running), Mode: string(o.Settings.Mode), MaxParallel: o.Settings.MaxParallel,
			Owner: engine.OwnerOf(self), StartedAt: now, UpdatedAt: now, State: json.RawMessage(`{}`),
		},
	}
	_, err = o.Store.TakeAutopilot(ctx, p.row, engine.Alive)
	return p, err
}

// drive steps until the end, which is the command that it returns.
func (p *pilot) drive(ctx context.Context, e schedule.Event) schedule.Command {
	hard := context.WithoutCancel(ctx) // what is to be stored is stored also at the end
	for {
		e.At = time.Now()
		s, c := schedule.Step(p.state, e)
		p.state = s
		switch c.Kind {
		case schedule.Finish:
			return c
		case schedule.Rest:
			p.save(hard)
			p.rest(c)
			e = p.wait(ctx, c.Until)
		default:
			e = p.perform(hard, c)
		}
	}
}

// drain takes what landed while nobody waited for it any more: the queue tells
// of a landing after the board has it.
func (p *pilot) drain(ctx context.Context) {
	for {
		select {
		case e := <-p.inbox:
			if e.Kind == schedule.Landed {
				p.landed(ctx, e.Case, true)
				p.state, _ = schedule.Step(p.state, e)
			}
		default:
			p.tidy(ctx)
			return
		}
	}
}

// save stores the state, if it is another than the stored one.
func (p *pilot) save(ctx context.Context) {
	s := p.state
	s.At = time.Time{}
	data, err := json.Marshal(s)
	if err != nil { // our own structs always encode
		panic(err)
	}
	if string(data) == p.saved {
		return
	}
	p.turned(s)
	p.row.Phase, p.row.Mode, p.row.Why, p.row.UpdatedAt, p.row.State = string(s.Phase), string(s.Mode), s.Why, time.Now(), data
	err = p.o.Store.SaveAutopilot(ctx, p.row)
	switch {
	case err == nil:
		p.saved = string(data)
	case errors.Is(err, sqlite.ErrNotOwner):
		p.pending = append(p.pending, schedule.Event{Kind: schedule.Asked, Ask: schedule.AskStop, Cause: loop.CauseStop, Kill: true})
	default:
		p.o.Log.Warn(err.Error())
	}
}

// turned tells that the autopilot has paused, or goes on.
func (p *pilot) turned(s schedule.State) {
	was := schedule.Phase(p.row.Phase)
	switch {
	case s.Phase == schedule.Paused && was != schedule.Paused:
		p.tell(Notice{Kind: Paused, Text: s.Why})
	case s.Phase == schedule.Running && was == schedule.Paused:
		p.tell(Notice{Kind: GoesOn})
	}
}

// rest says why nothing is to be done, when the reason is another.
func (p *pilot) rest(c schedule.Command) {
	if c.Why == p.rested {
		return
	}
	p.rested = c.Why
	p.tell(Notice{Kind: Rested, Text: c.Why})
}

// wait is for the next event.
func (p *pilot) wait(ctx context.Context, until time.Time) schedule.Event {
	if len(p.pending) > 0 {
		e := p.pending[0]
		p.pending = p.pending[1:]
		return e
	}
	var over <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		over = timer.C
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	hard, ended := context.WithoutCancel(ctx), ctx.Done()
	if p.state.Phase == schedule.Stopping {
		ended = nil
	}
	for {
		select {
		case e := <-p.inbox:
			if e.Kind == schedule.Landed {
				p.landedBeside(hard, e.Case)
			}
			return e
		case <-over:
			return schedule.Event{Kind: schedule.Woken}
		case cause, open := <-p.o.Stops:
			if !open {
				p.o.Stops = nil
				continue
			}
			return schedule.Event{Kind: schedule.Asked, Ask: schedule.AskStop, Cause: cause}
		case <-p.o.Kill:
			p.o.Kill = nil
			return schedule.Event{Kind: schedule.Asked, Ask: schedule.AskStop, Cause: loop.CauseInterrupt, Kill: true}
		case <-ended:
			return schedule.Event{Kind: schedule.Asked, Ask: schedule.AskStop, Cause: loop.CauseInterrupt}
		case now := <-tick.C:
			// A timer does not know of a clock that was set past an hour of the day.
			if !until.IsZero() && !now.Before(until) {
				return schedule.Event{Kind: schedule.Woken}
			}
			if e, ok := p.look(hard); ok {
				return e
			}
		}
	}
}

// look takes what other processes stored.
func (p *pilot) look(ctx context.Context) (schedule.Event, bool) {
	v, err := p.o.Store.DataVersion(ctx)
	if err != nil || v == p.version {
		return schedule.Event{}, false
	}
	rows, err := p.o.Store.TakeAutopilotControls(ctx)
	if err == nil {
		p.version = v // else it is looked again
	} else if !p.deaf {
		p.o.Log.Warn(err.Error())
	}
	p.deaf = err != nil
	for _, r := range rows {
		p.pending = append(p.pending, asked(r))
	}
	p.lookForGone(ctx)
	if len(p.pending) == 0 {
		return schedule.Event{Kind: schedule.Changed}, p.state.Dry != "" || p.state.Stale
	}
	e := p.pending[0]
	p.pending = p.pending[1:]
	return e, true
}

// lookForGone finds slots whose task is active no more: somebody else landed
// it, or handed its work to the queue.
func (p *pilot) lookForGone(ctx context.Context) {
	if len(p.slots) == 0 {
		return
	}
	active, err := p.o.Store.ActiveTasks(ctx)
	if err != nil {
		p.o.Log.Warn(err.Error())
		return
	}
	for _, id := range slices.Sorted(maps.Keys(p.slots)) {
		if l := p.slots[id]; !l.gone && !active[id] {
			l.gone = true
			p.pending = append(p.pending, schedule.Event{Kind: schedule.Gone, Case: id, Why: p.became(ctx, id)})
		}
	}
}

// became says what somebody made of a task.
func (p *pilot) became(ctx context.Context, id string) string {
	c, err := p.o.Store.Case(ctx, id)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("it is %s by now: %s", c.Status, c.Why)
}

// asked is a wish as an event.
func asked(r sqlite.AutopilotControl) schedule.Event {
	e := schedule.Event{Kind: schedule.Asked}
	switch r.Kind {
	case sqlite.AutopilotPause:
		e.Ask = schedule.AskPause
	case sqlite.AutopilotResume:
		e.Ask = schedule.AskResume
	case sqlite.AutopilotStop:
		e.Ask, e.Cause = schedule.AskStop, loop.CauseStop
	case sqlite.AutopilotMode:
		e.Ask, e.Mode = schedule.AskMode, schedule.Mode(r.Text)
	case sqlite.AutopilotStart:
		e.Ask, e.Case = schedule.AskStart, r.Text
	case sqlite.AutopilotStay:
		e.Ask = schedule.AskStay
	}
	return e
}

// send gives an event to the owner, who takes all until the slots are empty.
func (p *pilot) send(ctx context.Context, e schedule.Event) {
	select {
	case p.inbox <- e:
		return
	default: // it is full, or nobody waits any more
	}
	select {
	case p.inbox <- e:
	case <-ctx.Done():
	}
}

// tell may be called by the owner and by slots.
func (p *pilot) tell(n Notice) {
	p.telling.Lock()
	defer p.telling.Unlock()
	n.At = time.Now()
	p.o.Notify(n)
}

// finish gives the autopilot up, and says what it came to.
func (p *pilot) finish(ctx context.Context, c schedule.Command) Result {
	p.endSprint(ctx)
	p.leave(ctx, c)
	p.tell(Notice{Kind: Over, Text: c.Why, Exit: c.Exit})
	return Result{Exit: c.Exit, Why: c.Why, Tally: p.state.Tally, Sprint: p.sprint}
}

func (p *pilot) leave(ctx context.Context, c schedule.Command) {
	ctx = context.WithoutCancel(ctx)
	now := time.Now()
	p.row.Phase, p.row.Why, p.row.Exit, p.row.UpdatedAt, p.row.EndedAt = string(schedule.Finished), c.Why, c.Exit, now, now
	if data, err := json.Marshal(p.state); err == nil {
		p.row.State = data
	}
	if err := p.o.Store.SaveAutopilot(ctx, p.row); err != nil {
		p.o.Log.Warn(err.Error())
	}
	if err := p.o.Store.DropSlot(ctx, ""); err != nil {
		p.o.Log.Warn(err.Error())
	}
}

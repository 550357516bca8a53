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

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/drive"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
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
	o       Options
	row     store.Autopilot
	state   schedule.State
	command schedule.Command // what follows from it
	steps   int              // of the kernel
	over    <-chan struct{}  // of the context; nil once the kernel knows
	left    bool             // another process goes on
	quit    func()           // leaves what the slots wait for
	saved   string           // the stored state, to tell whether it changed
	slots   map[string]*slot
	// leaving are closed when the workspaces of tasks that landed are given back.
	leaving map[string]chan struct{}
	queue   *merge.Queue
	kernel  engine.Kernel // of the slot's run, where that is elsewhere; nil is the engine's own
	green   string        // the target's commit that is known to be green; "" none
	// inbox has what slots and queue tell.
	inbox chan schedule.Event
	// pending are events of the owner's own.
	pending []schedule.Event
	version int64 // of the database, as last seen
	// verifies: the target's verdict was asked for, and a person told.
	verifies bool
	deaf     bool   // what is asked could not be read last time
	rested   string // why nothing was done, as last told
	sprint   *schedule.SprintStats
	room     pool.Room // on the disk, as last told
	lost     error     // the database was taken away
	agents   agents

	notifying sync.Mutex // over Notify
	freeing   sync.Mutex // one workspace is given back at a time, beside the slots
	working   sync.WaitGroup
}

// lookEvery is how soon the autopilot notices what other processes did.
const lookEvery = 100 * time.Millisecond

// lookIdle is the same where nothing happens.
const lookIdle = time.Second

// Run works the board until nothing is left to do, or a person stops it. While
// another autopilot of the repository lives it refuses with a
// [store.RunningError]. What a crash left is put in order first.
func Run(ctx context.Context, o Options) (Result, error) {
	p, err := begin(ctx, o)
	if err != nil {
		return Result{}, err
	}
	landing, stopLanding := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLanding()
	adopt, err := p.prepareAll(ctx, landing)
	if err != nil {
		if o.GoOn {
			p.handOn(ctx)
		} else {
			p.leave(ctx, schedule.Command{Why: err.Error(), Exit: 1})
		}
		return Result{}, err
	}
	p.working.Go(func() { p.land(landing) })
	if o.Sweep != nil {
		p.working.Go(func() { p.sweep(landing) })
	}
	if o.Sync != nil {
		p.sync(ctx, syncLimit)
		p.working.Go(func() { p.syncBeside(landing) })
	}
	p.notify(Notice{Kind: Began, Text: p.state.Why})
	c := p.drive(ctx, adopt)
	stopLanding()
	if p.left {
		p.quit()
		p.working.Wait()
		p.handOn(ctx)
		return Result{Why: "another process goes on with the autopilot"}, nil
	}
	p.working.Wait()
	p.drain(context.WithoutCancel(ctx))
	if o.Sync != nil {
		p.sync(context.WithoutCancel(ctx), lastSync)
	}
	return p.finish(ctx, c), p.lost
}

// prepareAll puts in order what a crash left, and opens the queue.
func (p *pilot) prepareAll(ctx, landing context.Context) (adopt []string, err error) {
	if p.queue, err = p.o.Queue(ctx, func(n queue.Note) { p.onQueueNote(landing, n) }); err != nil {
		return nil, err
	}
	if p.o.Remote != "" { // the target is not the branch of this clone
		p.o.Base = p.queue.Tip
	}
	if adopt, err = p.recover(ctx); err != nil {
		return nil, err
	}
	// What waits in the queue is tried anew, and counts as on its way, before
	// anything is decided from what the queue holds.
	if _, err := p.queue.Absorb(ctx); err != nil {
		p.notify(Notice{Kind: Warning, Text: err.Error()})
	}
	p.tidy(ctx)
	p.warnDisk()
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
		o: o, slots: map[string]*slot{}, leaving: map[string]chan struct{}{},
		inbox: make(chan schedule.Event, max(16, 4*o.Settings.MaxParallel)),
		row: store.Autopilot{
			Session: engine.NewID(), Phase: string(schedule.Running),
			Mode: string(o.Settings.Mode), MaxParallel: o.Settings.MaxParallel,
			Owner: engine.OwnerOf(self), StartedAt: now, UpdatedAt: now, State: json.RawMessage(`{}`),
		},
	}
	if o.GoOn {
		err = p.inherit(ctx)
		return p, err
	}
	if o.Elsewhere != nil && o.HandsOn {
		p.row.Options = encode(handed{o.Filter, o.Sprint, o.Asked})
	}
	p.row, err = o.Store.TakeAutopilot(ctx, p.row, engine.Alive)
	return p, err
}

// drive works until the end, and returns the command that ended it. What is to
// be stored is stored also at the end, so ctx ends nothing by itself.
func (p *pilot) drive(ctx context.Context, adopt []string) schedule.Command {
	began := schedule.Event{Kind: schedule.Began, Settings: p.o.Settings, Cases: adopt}
	if p.o.GoOn {
		p.state = schedule.TakenOver(p.state, adopt)
		began = schedule.Event{Kind: schedule.Changed}
	}
	p.over = ctx.Done()
	hard, quit := context.WithCancel(context.WithoutCancel(ctx))
	p.quit = quit
	err := p.Take(hard, began)
	if err == nil {
		err = drive.Run(hard, p, drive.Sources[schedule.Event]{Every: lookEvery, Idle: lookIdle, Events: p.inbox})
	}
	if err != nil {
		p.o.Log.Warn(err.Error())
	}
	return p.command
}

// Command is what the kernel wants done now. A rest is waited for beside the
// owner; anything else is done at once.
func (p *pilot) Command() (drive.Command[schedule.Event], bool) {
	c := p.command
	d := drive.Command[schedule.Event]{Seq: p.steps, Alone: c.Kind != schedule.Rest}
	d.Do = func(ctx context.Context) schedule.Event { return p.perform(ctx, c) }
	if c.Kind == schedule.Rest {
		d.Do = func(ctx context.Context) schedule.Event {
			drive.Sleep(ctx, c.Until)
			return schedule.Event{Kind: schedule.Woken}
		}
	}
	return d, c.Kind != schedule.Finish && !p.left
}

// Take hands an event to the kernel. The state is stored when nothing is to be
// done: what became of tasks is on the board by then.
func (p *pilot) Take(ctx context.Context, e schedule.Event) error {
	if e.Kind == schedule.Landed {
		p.landedBeside(ctx, e.Case)
	}
	e.At = time.Now()
	p.state, p.command = schedule.Step(p.state, e)
	p.steps++
	if p.command.Kind == schedule.Rest {
		p.save(ctx)
		p.rest(p.command)
	}
	return nil
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
	p.row.Phase, p.row.Mode, p.row.Why = string(s.Phase), string(s.Mode), s.Why
	p.row.UpdatedAt, p.row.State = time.Now(), data
	err = p.o.Store.SaveAutopilot(ctx, p.row)
	switch {
	case err == nil:
		p.saved = string(data)
	case p.replaced(err):
	case errors.Is(err, store.ErrNotOwner):
		p.pending = append(p.pending, stopEvent(loop.CauseStop, true))
	default:
		p.o.Log.Warn(err.Error())
	}
}

// turned tells that the autopilot has paused, or goes on.
func (p *pilot) turned(s schedule.State) {
	was := schedule.Phase(p.row.Phase)
	switch {
	case s.Phase == schedule.Paused && was != schedule.Paused:
		p.notify(Notice{Kind: Paused, Text: s.Why})
	case s.Phase == schedule.Running && was == schedule.Paused:
		p.notify(Notice{Kind: GoesOn})
	}
}

// rest says why nothing is to be done, when the reason is another.
func (p *pilot) rest(c schedule.Command) {
	if c.Why == p.rested {
		return
	}
	p.rested = c.Why
	kind := Rested
	if p.state.Counts.Target.Stuck() {
		kind = TargetRed
	}
	p.notify(Notice{Kind: kind, Text: c.Why})
}

// Look returns what was asked by signals and by other processes, and that the
// board is another.
func (p *pilot) Look(ctx context.Context) ([]schedule.Event, error) {
	events := p.pending
	p.pending = nil
	select {
	case cause, open := <-p.o.Stops:
		if open {
			events = append(events, stopEvent(cause, false))
		} else {
			p.o.Stops = nil
		}
	default:
	}
	select {
	case <-p.o.Kill:
		p.o.Kill = nil
		events = append(events, stopEvent(loop.CauseInterrupt, true))
	default:
	}
	select {
	case <-p.over:
		if p.over = nil; p.o.GoOn {
			p.left = true
			return nil, nil
		}
		events = append(events, stopEvent(loop.CauseInterrupt, false))
	default:
	}
	return append(events, p.lookAtBoard(ctx)...), nil
}

// lookAtBoard takes what other processes stored.
func (p *pilot) lookAtBoard(ctx context.Context) []schedule.Event {
	v, err := p.o.Store.DataVersion(ctx)
	if errors.Is(err, store.ErrGone) && p.lost == nil { // nothing that is done from here on is kept
		p.lost = err
		return []schedule.Event{stopEvent(loop.CauseStop, true)}
	}
	if err != nil || v == p.version {
		return nil
	}
	if p.beginsAnew(ctx) {
		return nil
	}
	rows, err := p.o.Store.TakeAutopilotControls(ctx)
	if err == nil {
		p.version = v // else it is looked again
	} else if !p.replaced(err) && !p.deaf {
		p.o.Log.Warn(err.Error())
	}
	p.deaf = err != nil
	events := lists.Each(rows, asked)
	events = append(events, p.lookForGone(ctx)...)
	outdated := p.state.Dry != "" || p.state.Stale
	if len(events) == 0 && outdated {
		events = []schedule.Event{{Kind: schedule.Changed}}
	}
	return events
}

// lookForGone finds slots whose task is active no more: somebody else landed
// it, or handed its work to the queue.
func (p *pilot) lookForGone(ctx context.Context) (events []schedule.Event) {
	if len(p.slots) == 0 {
		return nil
	}
	active, err := p.o.Store.ActiveTasks(ctx)
	if err != nil {
		p.o.Log.Warn(err.Error())
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(p.slots)) {
		if l := p.slots[id]; !l.gone && !active[id] {
			l.gone = true
			events = append(events, schedule.Event{Kind: schedule.Gone, Case: id, Why: p.became(ctx, id)})
		}
	}
	return events
}

// became says what somebody made of a task.
func (p *pilot) became(ctx context.Context, id string) string {
	c, err := p.o.Store.Case(ctx, id)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("it is %s by now: %s", c.Status, c.Why)
}

func stopEvent(cause loop.Cause, kill bool) schedule.Event {
	return schedule.Event{Kind: schedule.Asked, Ask: schedule.AskStop, Cause: cause, Kill: kill}
}

// asked is a wish as an event.
func asked(r store.AutopilotControl) schedule.Event {
	e := schedule.Event{Kind: schedule.Asked}
	switch r.Kind {
	case store.AutopilotPause:
		e.Ask = schedule.AskPause
	case store.AutopilotResume:
		e.Ask = schedule.AskResume
	case store.AutopilotStop:
		e = stopEvent(loop.CauseStop, false)
	case store.AutopilotMode:
		e.Ask, e.Mode = schedule.AskMode, schedule.Mode(r.Text)
	case store.AutopilotStart:
		e.Ask, e.Case = schedule.AskStart, r.Text
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

// notify may be called by the owner and by slots.
func (p *pilot) notify(n Notice) {
	p.notifying.Lock()
	defer p.notifying.Unlock()
	n.At = time.Now()
	p.o.Notify(n)
}

// finish gives the autopilot up, and says what it came to.
func (p *pilot) finish(ctx context.Context, c schedule.Command) Result {
	p.endSprint(ctx)
	p.leave(ctx, c)
	p.notify(Notice{Kind: Over, Text: c.Why, Sprint: p.o.Sprint != nil})
	return Result{Exit: c.Exit, Why: c.Why, Tally: p.state.Tally, Sprint: p.sprint}
}

func (p *pilot) leave(ctx context.Context, c schedule.Command) {
	ctx = context.WithoutCancel(ctx)
	now := time.Now()
	p.row.Phase, p.row.Why, p.row.Exit, p.row.UpdatedAt, p.row.EndedAt = string(schedule.Finished), c.Why,
		c.Exit, now, now
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

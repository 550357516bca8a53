package autopilot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/drive"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
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
	*attempts
	row     store.Autopilot
	state   schedule.State
	command schedule.Command // what follows from it
	steps   int              // of the kernel
	over    <-chan struct{}  // of the context; nil once the kernel knows
	left    bool             // another process continues
	quit    func()           // leaves what the slots wait for
	saved   string           // the stored state, to see whether it changed
	slots   map[string]*slot
	green   string // the target's commit that is known to be green; "" none
	// pending are events of the owner's own.
	pending []schedule.Event
	version int64 // of the database, as last seen
	// verifies: the target's verdict was asked for, and a notice given.
	verifies bool
	deaf     bool   // what is asked could not be read last time
	rested   string // why nothing was done, in the last notice
	sprint   *schedule.SprintStats
	lost     error // the database was taken away
	working  sync.WaitGroup

	late       chan string // the commit that the later gates are due on
	judgesLate atomic.Bool
}

// reporter notifies of what happens, and stores it.
type reporter struct {
	o         Options
	inbox     chan schedule.Event // what slots and the queue report
	notifying sync.Mutex          // over Notify
}

// workspaces gives tasks theirs, and takes them back when their work is in the queue.
type workspaces struct {
	*reporter
	queue   *merge.Queue
	freeing sync.Mutex // one workspace is given back at a time, beside the slots
	// leaving are closed when the workspaces of tasks that landed are given back.
	leaving map[string]chan struct{}
	room    pool.Room // on the disk, in the last notice
}

// attempts try tasks: each with one agent or with racers, here or on another machine.
type attempts struct {
	*workspaces
	kernel engine.Kernel // of the slot's run, where that is elsewhere; nil is the engine's own
	agents agents
}

func newAttempts(o Options, events int) *attempts {
	return &attempts{workspaces: &workspaces{
		reporter: &reporter{o: o, inbox: make(chan schedule.Event, events)},
		leaving:  map[string]chan struct{}{},
	}}
}

// lookEvery is how soon the autopilot notices what other processes did.
const lookEvery = 100 * time.Millisecond

// lookIdle is the same where nothing happens.
const lookIdle = time.Second

// Run works the board until nothing is left to do, or a person stops it. While
// another autopilot of the repository lives it refuses with a
// [store.RunningError]. What a crash left is put in order first.
func Run(ctx context.Context, o Options) (Result, error) {
	p, err := beginPilot(ctx, o)
	if err != nil {
		return Result{}, err
	}
	landing, stopLanding := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLanding()
	adopt, err := p.prepareAll(ctx, landing)
	if err != nil {
		if o.GoOn {
			p.releaseAutopilot(ctx)
		} else {
			p.storeAutopilotEnd(ctx, schedule.Command{Why: err.Error(), Exit: 1})
		}
		return Result{}, err
	}
	p.working.Go(func() { p.workQueue(landing) })
	p.working.Go(func() { p.judgeLandings(landing) })
	if o.Sweep != nil {
		p.working.Go(func() { p.sweepRegularly(landing) })
	}
	if o.Sync != nil {
		p.syncIssues(ctx, syncLimit)
		p.working.Go(func() { p.syncBeside(landing) })
	}
	p.notify(Notice{Kind: Began, Text: p.state.Why})
	c := p.driveUntilEnd(ctx, adopt)
	stopLanding()
	if err := o.Store.Same(context.WithoutCancel(ctx)); errors.Is(err, store.ErrGone) {
		p.lost = err // whatever it ended for
	}
	if p.left {
		p.quit()
		p.working.Wait()
		p.releaseAutopilot(ctx)
		return Result{Why: "another process has taken over the autopilot"}, p.lost
	}
	p.working.Wait()
	p.drainLanded(context.WithoutCancel(ctx))
	if o.Sync != nil {
		p.syncIssues(context.WithoutCancel(ctx), lastSync)
	}
	return p.finishSession(ctx, c), p.lost
}

// prepareAll puts in order what a crash left, and opens the queue.
func (p *pilot) prepareAll(ctx, landing context.Context) (adopt []string, err error) {
	if p.queue, err = p.o.Queue(ctx, func(n queue.Note) { p.onQueueNote(landing, n) }); err != nil {
		return nil, err
	}
	if p.o.Remote != "" { // the target is not the branch of this clone
		p.o.Base = p.queue.Tip
	}
	if adopt, err = p.recoverActive(ctx); err != nil {
		return nil, err
	}
	// What waits in the queue is tried anew, and counts as on its way, before
	// anything is decided from what the queue holds.
	if _, err := p.queue.Absorb(ctx); err != nil {
		p.warnAbout("", err.Error())
	}
	p.tidyWorkspaces(ctx)
	p.warnDisk()
	return adopt, p.startSprint(ctx)
}

// beginPilot makes this process the autopilot of the repository.
func beginPilot(ctx context.Context, o Options) (*pilot, error) {
	self, err := process.Self()
	if err != nil {
		return nil, fmt.Errorf("cannot tell who drives the autopilot: %v", err)
	}
	if o.Notify == nil {
		o.Notify = func(Notice) {}
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	now := time.Now()
	p := &pilot{
		attempts: newAttempts(o, max(16, 4*o.Settings.MaxParallel)),
		slots:    map[string]*slot{},
		late:     make(chan string, 1),
		row: store.Autopilot{
			Session: storedrun.NewID(), Phase: string(schedule.Running),
			Mode: string(o.Settings.Mode), MaxParallel: o.Settings.MaxParallel,
			Owner: storedrun.OwnerOf(self), StartedAt: now, UpdatedAt: now, State: json.RawMessage(`{}`),
		},
	}
	if o.GoOn {
		err = p.inheritState(ctx)
		return p, err
	}
	if o.Elsewhere != nil && o.HandsOn {
		p.row.Options = encodeJSON(handed{o.Filter, o.Sprint, o.Asked})
	}
	p.row, err = o.Store.TakeAutopilot(ctx, p.row, storedrun.Alive)
	return p, err
}

// driveUntilEnd works until the end, and returns the command that ended it. What is to
// be stored is stored also at the end, so ctx ends nothing by itself.
func (p *pilot) driveUntilEnd(ctx context.Context, adopt []string) schedule.Command {
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

// Command of the kernel that is due now. A rest is waited for beside the
// owner; anything else is done at once.
func (p *pilot) Command() (drive.Command[schedule.Event], bool) {
	c := p.command
	d := drive.Command[schedule.Event]{Seq: p.steps, Alone: c.Kind != schedule.Rest}
	d.Do = func(ctx context.Context) schedule.Event { return p.performCommand(ctx, c) }
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
		p.saveState(ctx)
		p.notifyRest(p.command)
	}
	return nil
}

// drainLanded takes the landings that came after the last command: the queue's event
// follows the change on the board.
func (p *pilot) drainLanded(ctx context.Context) {
	for {
		select {
		case e := <-p.inbox:
			if e.Kind == schedule.Landed {
				p.recordLanded(ctx, e.Case, true)
				p.state, _ = schedule.Step(p.state, e)
			}
		default:
			p.tidyWorkspaces(ctx)
			return
		}
	}
}

// saveState stores the state, if it is another than the stored one.
func (p *pilot) saveState(ctx context.Context) {
	s := p.state
	s.At = time.Time{}
	data, err := json.Marshal(s)
	if err != nil { // our own structs always encode
		panic(err)
	}
	if string(data) == p.saved {
		return
	}
	p.notifyPause(s)
	p.row.Phase, p.row.Mode, p.row.Why = string(s.Phase), string(s.Mode), s.Why
	p.row.UpdatedAt, p.row.State, p.row.MaxParallel = time.Now(), data, s.Settings.MaxParallel
	err = p.o.Store.SaveAutopilot(ctx, p.row)
	switch {
	case err == nil:
		p.saved = string(data)
	case p.isReplaced(err):
	case errors.Is(err, store.ErrNotOwner):
		p.pending = append(p.pending, stopEvent(loop.CauseStop, true))
	default:
		p.o.Log.Warn(err.Error())
	}
}

// notifyPause: the autopilot has paused, or resumes.
func (p *pilot) notifyPause(s schedule.State) {
	was := schedule.Phase(p.row.Phase)
	switch {
	case s.Phase == schedule.Paused && was != schedule.Paused:
		p.notify(Notice{Kind: Paused, Text: s.Why})
	case s.Phase == schedule.Running && was == schedule.Paused:
		p.notify(Notice{Kind: GoesOn})
	}
}

// notifyRest gives the reason why nothing is to be done, when it is another.
func (p *pilot) notifyRest(c schedule.Command) {
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
	if err != nil || v == p.version || p.beginsAnew(ctx) {
		return nil
	}
	rows, err := p.o.Store.TakeAutopilotControls(ctx)
	if err == nil {
		p.version = v // else it is looked again
	} else if !p.isReplaced(err) && !p.deaf {
		p.o.Log.Warn(err.Error())
	}
	p.deaf = err != nil
	events := lists.Each(rows, controlEvent)
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
			events = append(events, schedule.Event{Kind: schedule.Gone, Case: id, Why: p.currentStatus(ctx, id)})
		}
	}
	return events
}

// currentStatus explains how a task stands by now.
func (p *reporter) currentStatus(ctx context.Context, id string) string {
	c, err := p.o.Store.Case(ctx, id)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("it is now %s: %s", c.Status, c.Why)
}

func stopEvent(cause loop.Cause, kill bool) schedule.Event {
	return schedule.Event{Kind: schedule.Asked, Ask: schedule.AskStop, Cause: cause, Kill: kill}
}

// controlEvent makes an event of a request.
func controlEvent(r store.AutopilotControl) schedule.Event {
	e := schedule.Event{Kind: schedule.Asked}
	switch r.Kind {
	case store.AutopilotPause:
		e.Ask, e.Why = schedule.AskPause, actionByPerson("paused", r.Who)
	case store.AutopilotResume:
		e.Ask = schedule.AskResume
	case store.AutopilotStop:
		e = stopEvent(loop.CauseStop, false)
		e.Why = actionByPerson("stopped", r.Who)
	case store.AutopilotMode:
		e.Ask, e.Mode = schedule.AskMode, schedule.Mode(r.Text)
	case store.AutopilotSlots:
		e.Ask = schedule.AskSlots
		e.Settings.MaxParallel, _ = strconv.Atoi(r.Text) // what is no number is one slot
	case store.AutopilotStart:
		e.Ask, e.Case = schedule.AskStart, r.Text
	}
	return e
}

// actionByPerson says who did something to the autopilot; "" is not known.
func actionByPerson(what, who string) string {
	if who == "" {
		return ""
	}
	return what + " by " + who
}

// sendEvent gives an event to the owner, who takes all until the slots are empty.
func (p *reporter) sendEvent(ctx context.Context, e schedule.Event) {
	select {
	case p.inbox <- e:
		return
	default: // it is full, or no longer read
	}
	select {
	case p.inbox <- e:
	case <-ctx.Done():
	}
}

// notify may be called by the owner and by slots.
func (p *reporter) notify(n Notice) {
	p.notifying.Lock()
	defer p.notifying.Unlock()
	n.At = time.Now()
	p.o.Notify(n)
}

func (p *reporter) warnAbout(id, text string) { p.notify(Notice{Kind: Warning, Case: id, Text: text}) }

// finishSession gives the autopilot up, and returns its result.
func (p *pilot) finishSession(ctx context.Context, c schedule.Command) Result {
	p.endSprint(ctx)
	p.storeAutopilotEnd(ctx, c)
	p.notify(Notice{Kind: Over, Text: c.Why, Sprint: p.o.Sprint != nil})
	return Result{Exit: c.Exit, Why: c.Why, Tally: p.state.Tally, Sprint: p.sprint}
}

func (p *pilot) storeAutopilotEnd(ctx context.Context, c schedule.Command) {
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

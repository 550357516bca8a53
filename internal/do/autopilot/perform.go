package autopilot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// performCommand carries out a command, and gives the event that answers it. It never
// waits for a run.
func (p *pilot) performCommand(ctx context.Context, c schedule.Command) schedule.Event {
	switch c.Kind {
	case schedule.Pick:
		return p.pickTask(ctx, c)
	case schedule.Verify:
		if !p.verifies {
			p.verifies = true
			p.notify(Notice{Kind: Told, Text: "Running the checks on the target first"})
		}
		if err := p.queue.Ask(ctx, queue.Ask{Wish: queue.WishVerify}); err != nil {
			p.o.Log.Warn(err.Error()) // it is asked again
		}
	case schedule.Count:
		return schedule.Event{Kind: schedule.Counted, Counts: p.countBoard(ctx)}
	case schedule.Start:
		return p.startTask(ctx, c)
	case schedule.Settle:
		return p.storeOutcome(ctx, c)
	case schedule.Pause:
		p.slots[c.Case].askPause()
	case schedule.Resume:
		l := p.slots[c.Case]
		l.forgetAsks()
		p.startSlot(ctx, l)
	case schedule.Stop:
		p.stopSlot(c)
	case schedule.Tell:
		p.notify(Notice{Kind: Told, Text: c.Why})
	case schedule.Alert:
		p.raiseAlert(ctx, c.Why)
	}
	return schedule.Event{Kind: schedule.Did}
}

// countBoard counts what the board and the queue hold; what cannot be read counts as it did.
func (p *pilot) countBoard(ctx context.Context) schedule.Counts {
	n := p.state.Counts
	// The queue is read first: a task that it gives to a person just now counts twice, not never.
	left, qerr := overview.ReadQueue(ctx, p.o.Store, p.queue.Target(), time.Now())
	if qerr == nil {
		n.Queued, n.QueueHeld, n.Target, p.green = left.Queued, left.Held, left.Target, left.Green
		if left.Queued == 0 && p.beginLateJudging(ctx) {
			n.Queued = 1 // what it finds may have to be taken back
		}
	}
	n.Plans, n.Plan = p.o.Accounts.Plans(p.o.PlanAccounts, time.Now())
	reviews, waiting, failed, err := p.o.Store.Attention(ctx)
	if err == nil {
		n.Review, n.Waiting, n.Failed = reviews, waiting, failed
	}
	if err = errors.Join(err, qerr); err != nil {
		p.o.Log.Warn(err.Error())
	}
	return n
}

// pickTask looks for the task to start next.
func (p *pilot) pickTask(ctx context.Context, c schedule.Command) schedule.Event {
	e := schedule.Event{Kind: schedule.Picked, Named: c.Case, Repairs: c.Repairs, Counts: p.countBoard(ctx)}
	if c.Case != "" {
		one, err := p.o.Store.Case(ctx, c.Case)
		switch {
		case err != nil:
			e.Why = err.Error()
		case !one.IsReady():
			e.Why = reasonNotReady(one)
		default:
			e.Case = one.ID
		}
		return e
	}
	exclude, lacking, err := p.excludeUnserved(ctx, c.Exclude)
	if err != nil {
		e.Why = err.Error()
		return e
	}
	next, ok, err := p.chooseServed(ctx, exclude, &e)
	if e.Counts.Ready = 0; ok {
		e.Counts.Ready = 1
		p.compareBase(ctx, &e.Counts.Target)
	}
	if ok && c.Repairs {
		f := p.o.Filter
		f.Tag = board.RepairTag
		next, ok, err = p.o.Store.NextCaseOf(ctx, f, exclude)
	}
	switch {
	case err != nil:
		e.Why = err.Error()
	case ok:
		e.Case, e.Why = next.Case.ID, next.Why
	default:
		e.Why = cmp.Or(e.Why, lacking)
	}
	return e
}

// excludeUnserved adds to the tasks that are passed over those that no worker may work on,
// and says why.
func (p *reporter) excludeUnserved(ctx context.Context, exclude []string) (all []string, why string, err error) {
	if p.o.Elsewhere == nil {
		return exclude, "", nil
	}
	cases, err := p.o.Store.Unserved(ctx)
	for _, c := range cases {
		exclude = append(exclude, c.ID)
		why = fmt.Sprintf("%s waits for a worker with %s", c.ID, strings.Join(c.Labels(), ", "))
	}
	if len(cases) > 1 {
		why += fmt.Sprintf(", and so do %d more", len(cases)-1)
	}
	return exclude, why, err
}

// compareBase finds out whether the commit that a task would start from is the one
// that is known to be green.
func (p *pilot) compareBase(ctx context.Context, t *schedule.Target) {
	if !p.o.Settings.Verify || t.Health != schedule.Unknown || p.green == "" {
		return
	}
	base, err := p.o.Base(ctx)
	switch {
	case err != nil:
		p.o.Log.Warn(err.Error())
	case base == p.green:
		t.Health = schedule.Green
	}
}

func reasonNotReady(c board.Case) string {
	if c.Status != board.Pending {
		return "it is " + c.Status.Phrase()
	}
	return c.NotReady()
}

// startTask makes the task active, and lets its slot work.
func (p *pilot) startTask(ctx context.Context, c schedule.Command) schedule.Event {
	one, err := p.o.Store.Case(ctx, c.Case)
	if err == nil && !c.Adopt {
		change := board.Change{Action: board.Start, By: board.Pawl, Why: c.Why, At: time.Now()}
		one, err = p.o.Store.MoveCase(ctx, c.Case, change)
	}
	fault := faultOf(err)
	if fault == schedule.OfBoard {
		return schedule.Event{Kind: schedule.NotStarted, Case: c.Case, Why: err.Error(), Fault: fault}
	}
	one.ID = c.Case // also where the board could not be read
	l := newSlotOfTask(one, c.Adopt)
	p.slots[c.Case] = l
	if err != nil { // the slot ends like any other: the change may have been stored all the same
		return schedule.Event{Kind: schedule.NotStarted, Case: c.Case, Why: err.Error(), Fault: fault}
	}
	if p.sprint != nil {
		p.sprint.Begun(one.ID, l.since)
		p.saveSprint(ctx)
	}
	p.addEvent(ctx, journal.Autopilot, journal.TaskStarted, journal.Task{Case: one.ID, Title: one.Title, Why: c.Why})
	p.saveSlot(ctx, l, "starting")
	p.notify(Notice{Kind: TaskBegan, Case: one.ID, Title: one.Title, Text: c.Why})
	p.warnDisk()
	p.startSlot(ctx, l)
	return schedule.Event{Kind: schedule.Started, Case: c.Case}
}

// startSlot lets a slot work. What asks it to stop comes through the slot.
func (p *pilot) startSlot(ctx context.Context, l *slot) {
	if l.cancel != nil { // of the session before a pause
		l.cancel()
	}
	ready, cancel := context.WithCancel(ctx)
	l.cancel = cancel
	left := p.leaving[l.task.ID] // of the time before it was opened again
	delete(p.leaving, l.task.ID)
	p.working.Go(func() {
		if left != nil {
			<-left
		}
		o := p.workSlot(ctx, ready, l)
		if o.NotStarted {
			fault := schedule.OfTask
			o.Lacks = o.Lacks && p.o.Elsewhere != nil
			if o.Machine || o.Lacks {
				fault = schedule.OfMachine
			}
			e := schedule.Event{Kind: schedule.NotStarted, Case: l.task.ID, Why: o.Why, Fault: fault, Outcome: o}
			p.sendEvent(ctx, e)
			return
		}
		p.sendEvent(ctx, schedule.Event{Kind: schedule.Ended, Case: l.task.ID, Outcome: o})
	})
}

// faultOf is whose fault an error is: the machine's unless it is known to be another's.
func faultOf(err error) schedule.Fault {
	var refused *board.RefusalError
	var asks *fault.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refused), errors.Is(err, store.ErrNoCase):
		return schedule.OfBoard
	case errors.Is(err, errSetup), errors.Is(err, pool.ErrTaken), errors.As(err, &asks):
		return schedule.OfTask
	}
	return schedule.OfMachine
}

func (p *pilot) stopSlot(c schedule.Command) {
	l := p.slots[c.Case]
	cause := c.Cause
	// it is no stop of this run alone, also when that reads it late
	if cause == loop.NoCause || cause == loop.CauseStop {
		cause = loop.CauseAutopilot
	}
	l.askRunsToStop(cause, c.Kill)
}

// storeOutcome stores the decision about a task whose run ended. The order counts: what
// is to land is in the queue before the board says that it is verified.
func (p *pilot) storeOutcome(ctx context.Context, c schedule.Command) schedule.Event {
	e := schedule.Event{Kind: schedule.Settled, Case: c.Case, Counts: p.state.Counts}
	l, v := p.slots[c.Case], c.Settlement
	if err := p.storeSettlement(ctx, l, v); err != nil {
		e.Fault, e.Why = schedule.OfMachine, err.Error()
		return e
	}
	if p.sprint != nil {
		p.sprint.RecordSettlement(c.Case, v, l.iterationCount(), time.Now())
		p.saveSprint(ctx)
	}
	if l.cancel != nil { // it worked
		l.cancel()
	}
	delete(p.slots, c.Case)
	if l.gone {
		p.freeIfDone(ctx, c.Case)
	}
	if err := errors.Join(p.o.Store.DropSlot(ctx, c.Case), p.o.Store.DropOrder(ctx, c.Case)); err != nil {
		p.o.Log.Warn(err.Error())
	}
	p.addEvent(ctx, journal.Autopilot, journal.TaskSettled,
		journal.Task{Case: c.Case, Title: l.task.Title, Run: l.idOfRun(), Action: string(v.Action), Why: v.Why})
	p.notify(Notice{Kind: TaskEnded, Case: c.Case, Title: l.task.Title, Run: l.idOfRun(), Settlement: v})
	return e
}

// storeSettlement is safe to repeat. What the board refuses was decided by another
// process.
func (p *workspaces) storeSettlement(ctx context.Context, l *slot, v schedule.Settlement) error {
	change := board.Change{Action: v.Action, By: board.Pawl, Why: v.Why, At: time.Now()}
	var err error
	switch {
	case v.Review:
		r := store.CaseReview{Case: l.task.ID, Run: l.idOfRun(), Why: v.Why, AskedAt: change.At}
		r.Work = encodeJSON(l.result)
		err = p.o.Store.AskReview(ctx, r, change)
	case v.Queue:
		err = p.queue.Add(ctx, l.result) // the board follows in the same transaction
	case v.Action != "":
		_, err = p.o.Store.MoveCase(ctx, l.task.ID, change)
	}
	if err == nil && v.Action == board.Land {
		err = p.freeWorkspace(ctx, l.task.ID)
	}
	if faultOf(err) == schedule.OfBoard {
		p.o.Log.Warn(err.Error())
		return nil
	}
	return err
}

// freeIfDone gives the workspace back of a task that somebody else landed while its
// run went on; what it had not landed is under a recovery ref after.
func (p *workspaces) freeIfDone(ctx context.Context, id string) {
	c, err := p.o.Store.Case(ctx, id)
	if err == nil && c.Status == board.Done {
		err = p.freeWorkspace(ctx, id)
	}
	if err != nil && !errors.Is(err, store.ErrNoCase) {
		p.warnAbout(id, err.Error())
	}
}

func (p *reporter) raiseAlert(ctx context.Context, text string) {
	p.addEvent(ctx, journal.Autopilot, journal.Alerted, journal.Notice{Text: text})
	p.o.Log.Warn(text)
	p.notify(Notice{Kind: Alert, Text: text})
}

// addEvent stores an event of the autopilot, or of a run that this process need not own.
func (p *reporter) addEvent(ctx context.Context, of, kind string, data any) {
	if _, err := journal.Append(ctx, p.o.Store, of, time.Now(), kind, data); err != nil {
		p.o.Log.Warn(err.Error())
	}
}

// saveSlot stores what happens in a slot. It may be called by the slot too.
func (p *reporter) saveSlot(ctx context.Context, l *slot, activity string) {
	if who := l.racerLabel(); who != "" {
		activity = who + ": " + activity
	}
	row := store.Slot{
		Case: l.task.ID, Run: cmp.Or(l.lead, l).idOfRun(), Since: l.since, Activity: activity, ActivityAt: time.Now(),
	}
	if err := p.o.Store.SaveSlot(ctx, row); err != nil {
		p.o.Log.Warn(err.Error())
	}
}

// encodeJSON is for our own structs, which always encode.
func encodeJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("cannot encode: %v", err))
	}
	return data
}

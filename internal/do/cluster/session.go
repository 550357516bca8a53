package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-dev/pawl/internal/decide/flow"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/drive"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// session is one task's run in this worker. Its driver asks it as its kernel; it
// answers with what the workflow decided.
type session struct {
	w       *Worker
	first   flow.Order // that it began with
	placed  store.Order
	of      string // the execution of the workflow that gave it
	task    string
	orders  chan flow.Order  // the next one
	answers chan flow.Answer // to the order that is open
	ctx     context.Context  // done: the order is another's now
	abandon context.CancelCauseFunc
	ended   chan struct{} // closed when nothing of it runs any more

	// Under the worker's lock.
	asks    *asked   // the order that it waits for; nil is none
	seq     int      // of the decision that it carries out
	owes    bool     // it has not answered that
	carrier *carrier // who waits for the answer; nil is none

	// Of the driver's goroutine.
	run     string
	pending *loop.Decision // what was decided before the session began
	known   bool           // the workflow has a state
	strayed bool           // it has another one than the run
	pushed  *loop.Pushed   // what other machines have of the work, and its tree
	tree    string
	waits   bool // the last command was to wait
	lost    bool // it is known; no carrier waits for an answer
	told    bool // an event was sent
	refuses bool // its result is that of this machine; set before it is answered
}

// carrier waits for the answer to one order.
type carrier struct {
	again chan struct{} // closed when the same order came again
	leave func()        // closes it
	left  chan struct{} // closed when it waits no more
}

// carryOrder notes that an order is given; under the worker's lock.
func (s *session) carryOrder(o flow.Order) *carrier {
	c := &carrier{again: make(chan struct{}), left: make(chan struct{})}
	c.leave = sync.OnceFunc(func() { close(c.again) })
	s.seq, s.owes, s.carrier = -1, true, c
	if o.Decision != nil {
		s.seq = o.Decision.State.Seq
	}
	return c
}

// asked is what a session waits for: the order that follows from an event.
type asked struct {
	event time.Time // of the event
	seq   int       // of the state that it happened to; -1 while the workflow has none
}

// answeredBy reports whether the order has the decision on the event.
func (a *asked) answeredBy(o flow.Order) bool {
	return o.Decision != nil && o.Decision.Event.At.Equal(a.event)
}

// isSameOrder reports whether the event was the answer to that order, and did not reach the engine.
func (a *asked) isSameOrder(o flow.Order) bool {
	if o.Decision == nil {
		return a.seq < 0
	}
	return o.Decision.State.Seq == a.seq
}

// Why no carrier waits for an answer.
var (
	errLost  = errors.New("the engine gave the task to another worker, or ended it")
	errAgain = errors.New("the engine gave the same order again")
)

// workSession drives the run until it waits or rests, and gives the last answer.
func (s *session) workSession() {
	defer close(s.ended)
	outcome, entry := s.w.o.Work(s.ctx, s.first, s.placed, s)
	a := flow.Answer{Worker: s.w.name, Run: s.run}
	if s.waits {
		a.Waits = true
	} else {
		a.Result = &flow.Result{Outcome: outcome, Entry: entry}
		s.storeResult(a.Result)
	}
	if isMachineUnfit(outcome) && !s.waits && s.ctx.Err() == nil {
		rest := unfitFor
		if outcome.Lacks { // others need another agent
			rest = lacksFor
		}
		s.w.slots.restUntil(time.Now().Add(rest))
		s.refuses = !s.told && !slices.Contains(s.first.Unfit, s.w.name)
	}
	s.w.closeSession(s)
	if !s.lost {
		s.answerOrder(a)
	}
}

// storeResult stores what the run came to: the autopilot believes no other. Without it the task is
// ordered again, and the next session finds that the run rests.
func (s *session) storeResult(r *flow.Result) {
	if r.Outcome.NotStarted || r.Outcome.Taken || s.w.o.Ended == nil || s.ctx.Err() != nil {
		return
	}
	o := s.placed
	o.Result = encodeJSON(r)
	if err := s.w.o.Ended(s.ctx, o); err != nil {
		s.w.o.Log.Warn(err.Error(), "task", s.task)
	}
}

// isMachineUnfit reports whether the task could not be begun here, and may be on another machine.
func isMachineUnfit(o schedule.Outcome) bool {
	ofMachine := o.Machine || o.Lacks
	return ofMachine && o.NotStarted
}

// unfitFor is how long a worker takes no new task after that.
const unfitFor = time.Minute

// lacksFor is the same where it lacks the agent of one task only: time for another worker to take that.
const lacksFor = 2 * time.Second

// answerOrder ends the order that is open.
func (s *session) answerOrder(a flow.Answer) {
	select {
	case s.answers <- a:
	case <-s.ctx.Done():
	}
}

// Pending is the decision that the session began with.
func (s *session) Pending() *loop.Decision { return s.pending }

// Step asks the workflow: it answers the order that is open, and waits for the
// next one. A request while an order is carried out is sent beside it.
func (s *session) Step(ctx context.Context, run string, st loop.State, e loop.Event) (loop.State, loop.Command, error) {
	if s.ctx.Err() != nil {
		return st, loop.Command{}, context.Cause(s.ctx)
	}
	s.run, s.told = run, true
	var before *loop.State
	if !s.known || s.strayed {
		before = &st
	}
	switch e.Kind {
	case loop.StopAsked, loop.PauseAsked, loop.Raised:
		return s.forwardRequest(ctx, st, flow.Request{Run: run, State: before, Event: e, Proof: signEvent(s.placed, e)})
	}
	if e.Record != nil && s.w.o.Push != nil {
		r := *e.Record
		if s.pushed == nil || s.pushed.Commit == "" || !r.TreeKnown || r.TreeAfter != s.tree {
			s.pushed, s.tree = s.w.o.Push(s.ctx, s.task, run), r.TreeAfter
		}
		r.Pushed = s.pushed
		e.Record = &r
	}
	for a := (asked{e.At, st.Seq}); ; {
		if !s.known {
			a.seq = -1
		}
		s.w.setAsked(s, &a)
		s.answerOrder(flow.Answer{Worker: s.w.name, Run: run, Event: &e, State: before, Proof: signEvent(s.placed, e)})
		o, err := s.nextOrder()
		switch {
		case err != nil:
			return st, loop.Command{}, err
		case a.answeredBy(o):
			return s.decideAs(st, e, o.Decision)
		}
	}
}

// nextOrder is the order that the session waits for. When none comes, another worker has it: this
// one was stopped, or cut off, when it came.
func (s *session) nextOrder() (flow.Order, error) {
	late := time.NewTimer(s.w.o.Heartbeat)
	defer late.Stop()
	select {
	case o := <-s.orders:
		if s.lost = o.Case == ""; s.lost {
			return o, errLost
		}
		return o, nil
	case <-late.C:
		if s.lost = s.w.asksNoMore(s); s.lost {
			return flow.Order{}, errLost
		}
		return <-s.orders, nil
	case <-s.ctx.Done():
		return flow.Order{}, context.Cause(s.ctx)
	}
}

func (s *session) followDecision(d loop.Decision) (loop.State, loop.Command, error) {
	s.known = true
	s.waits = d.State.Status.Active() && d.State.Command.Kind == loop.Wait
	return d.State, d.Whole(), nil
}

// forwardRequest sends a request to the workflow, also when the engine is back only later.
// What the kernel has no use for changes nothing.
func (s *session) forwardRequest(ctx context.Context, st loop.State, h flow.Request) (loop.State, loop.Command, error) {
	d, err := s.updateWorkflow(ctx, h)
	for isUnanswered(err) && ctx.Err() == nil && s.ctx.Err() == nil {
		drive.Sleep(ctx, time.Now().Add(s.w.o.beatEvery()))
		d, err = s.updateWorkflow(ctx, h)
	}
	var refused *temporal.ApplicationError
	switch {
	case errors.As(err, &refused):
		return s.decideAs(st, h.Event, nil)
	case err != nil:
		return st, loop.Command{}, err
	}
	return s.decideAs(st, h.Event, &d)
}

// updateWorkflow sends a request to the workflow. Sent again it counts once.
func (s *session) updateWorkflow(ctx context.Context, h flow.Request) (d loop.Decision, err error) {
	update, err := s.w.o.Engine.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		UpdateID:   fmt.Sprintf("%s:%s:%d", h.Run, h.Event.Kind, h.Event.At.UnixNano()),
		WorkflowID: s.placed.Workflow, UpdateName: flow.HearName, Args: []any{h},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = update.Get(ctx, &d)
	}
	return d, err
}

// encodeJSON is for our own structs, which always encode.
func encodeJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// slots counts the tasks that a worker has. The engine is asked for another one
// only while there is room; the orders of tasks that are here need none. A worker
// asks several queues at once, so more than it has room for may come: it refuses
// what is too much, and another one has it.
type slots struct {
	mu    sync.Mutex
	most  int
	taken int
	rests time.Time     // none is free until then
	freed chan struct{} // closed when a slot is free
}

func newSlots(most int) *slots { return &slots{most: most, freed: make(chan struct{})} }

// newWorkerTuner the poller limits it to the slots.
func (s *slots) newWorkerTuner() (worker.WorkerTuner, error) {
	other, err := worker.NewFixedSizeSlotSupplier(1)
	if err != nil {
		return nil, err
	}
	return worker.NewCompositeTuner(worker.CompositeTunerOptions{
		WorkflowSlotSupplier: other, ActivitySlotSupplier: s, LocalActivitySlotSupplier: other,
		NexusSlotSupplier: other, SessionActivitySlotSupplier: other,
	})
}

// takeSlot takes a slot; with limited only if there is room.
func (s *slots) takeSlot(limited bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	full := s.taken >= s.most || time.Now().Before(s.rests)
	if limited && full {
		return false
	}
	s.taken++
	return true
}

func (s *slots) giveSlot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	close(s.freed)
	s.freed = make(chan struct{})
}

// restUntil leaves no room for another task until a time.
func (s *slots) restUntil(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rests = until
}

// closeSlots leaves no room for more.
func (s *slots) closeSlots() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = 0
}

// usedSlots is how many are taken.
func (s *slots) usedSlots() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// ReserveSlot waits for a free slot. Who has the task takes it.
func (s *slots) ReserveSlot(ctx context.Context, _ worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	for {
		s.mu.Lock()
		freed, room, rest := s.freed, s.taken < s.most, time.Until(s.rests)
		s.mu.Unlock()
		if room && rest <= 0 {
			return &worker.SlotPermit{}, nil
		}
		var rested <-chan time.Time
		if rest > 0 {
			rested = time.After(rest)
		}
		select {
		case <-freed:
		case <-rested:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TryReserveSlot gives none: what is eager would take the place of what waits.
func (s *slots) TryReserveSlot(worker.SlotReservationInfo) *worker.SlotPermit { return nil }

// MarkSlotUsed has nothing to note.
func (s *slots) MarkSlotUsed(worker.SlotMarkUsedInfo) {}

// ReleaseSlot has nothing to give back.
func (s *slots) ReleaseSlot(worker.SlotReleaseInfo) {}

// MaxSlots is how many there are.
func (s *slots) MaxSlots() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// owner is the file in a worker's folder that says which process it is.
const owner = "owner"

// noteOwner notes that this process is the worker of a folder, which it has locked.
func noteOwner(dir string) error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	return files.ReplaceJSON(filepath.Join(dir, owner), self, false)
}

// lastOwnerOf is the process that was the worker of a folder last.
func lastOwnerOf(dir string) (id process.Identity, err error) {
	err = files.ReadJSON(filepath.Join(dir, owner), &id)
	return id, err
}

// Kill ends the worker of a state folder at once, and the agents of the tasks that it
// has. It asks neither the engine nor the database. The tasks, which it returns, are
// another worker's when this one has been silent for [flow.Heartbeat].
func (p Program) Kill(ctx context.Context, stateDir string) (worked bool, tasks []string, err error) {
	dir := filepath.Join(stateDir, "worker")
	id, err := lastOwnerOf(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return false, nil, fmt.Errorf("cannot tell which process the worker is: %v", err)
	default:
		err := id.Signal(syscall.SIGKILL)
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return false, nil, fmt.Errorf("cannot end the worker, process %d: %v", id.PID, err)
		}
		worked = err == nil && id.AwaitEnd(ctx)
	}
	if _, err := os.Stat(dir); err != nil {
		return false, nil, nil
	}
	lock, err := lockFolder(ctx, dir)
	if err != nil {
		return worked, nil, err
	}
	defer func() { _ = lock.Close() }()
	left, err := openOrders(dir)
	for path, o := range left {
		tasks = append(tasks, o.Order.Case)
		if run := o.Order.Run; run != "" && err == nil {
			err = lanes.EndUnattended(ctx, filepath.Join(stateDir, "runs", run), run)
		}
		if err == nil {
			err = os.Remove(path)
		}
	}
	return worked, tasks, err
}

// openOrders lists those that a worker left in its folder, by their files.
func openOrders(dir string) (map[string]openOrder, error) {
	left, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	orders := map[string]openOrder{}
	for _, path := range left {
		var o openOrder
		if err := files.ReadJSON(path, &o); err != nil {
			return nil, fmt.Errorf("cannot read what the previous worker left in %s: %v", path, err)
		}
		orders[path] = o
	}
	return orders, nil
}

package flow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
)

// The names that programs of different versions have to share.
const (
	TaskName    = "Task"    // the workflow of one task
	PerformName = "perform" // the activity that carries an order out
	HearName    = "hear"    // the update by which the worker passes on a request to the run
	NoRoom      = "no room" // the error of a worker that cannot take the order
	Unfit       = "unfit"   // the same where its machine lacks what the order needs; with its name
	Refused     = "refused" // the error of a worker that was given an order which the board did not give
	LookName    = "look"    // the signal that something was asked of a run that may be waiting
)

// Queues are the names of the queues of a board.
type Queues struct {
	Board string `json:"board"` // workflows: any worker
	Slots string `json:"slots"` // orders for any worker with room
}

// For is the queue of orders for workers that have some labels, which are sorted.
func (q Queues) For(labels []string) string {
	if len(labels) == 0 {
		return q.Slots
	}
	return q.Slots + "+" + strings.Join(labels, "+")
}

// Serves are the queues that a worker with some labels takes orders from: one for each
// choice of them, since a task names all that it needs.
func (q Queues) Serves(labels []string) []string {
	queues := []string{}
	for choice := range 1 << len(labels) {
		var some []string
		for i, l := range labels {
			if choice&(1<<i) != 0 {
				some = append(some, l)
			}
		}
		queues = append(queues, q.For(some))
	}
	return queues
}

// Worker is the queue of orders for one worker.
func (q Queues) Worker(name string) string { return q.Slots + "@" + name }

// Protocol is what workflows and workers agree on. It goes up when an order holds what an
// older program does not understand, as labels are. It is in the names of the queues, so
// that such a program gets no orders.
const Protocol = 4

// QueuesOf are the queues of a repository's board.
func QueuesOf(repo string) Queues {
	return Queues{fmt.Sprintf("%s/board.%d", repo, Protocol), fmt.Sprintf("%s/slots.%d", repo, Protocol)}
}

// TaskID is the id of a workflow of a task. No other one ever has the token.
func TaskID(repo, task, token string) string { return "task:" + repo + ":" + task + ":" + token }

// Limits of a task's workflow.
const (
	// Heartbeat is how long a worker may be silent before its order is lost: longer
	// than the lease of its agents. An order waits half of it for the worker that has
	// the task's workspace, also when that was silent.
	Heartbeat = 120 * time.Second
	// longest is the time limit of one iteration with all that belongs to it.
	longest = 7 * 24 * time.Hour
	// orders in one history, before the workflow continues with an empty one.
	orders = 100
)

// Begin is what a task's workflow begins with. Run, Worker and Last are of the history
// before.
type Begin struct {
	Queues Queues         `json:"queues"`
	Case   string         `json:"case"`
	Labels []string       `json:"labels,omitempty"` // that its worker has to have, sorted
	Run    string         `json:"run,omitempty"`
	Worker string         `json:"worker,omitempty"`
	Last   *loop.Decision `json:"last,omitempty"`
	Proof  string         `json:"proof,omitempty"` // of the event that Last follows from
	// DecidedAt is when Last was decided, by the engine's clock. The times in Last are those of a worker's clock.
	DecidedAt time.Time `json:"decided_at,omitzero"`
	// Heartbeat is how long a worker may be silent; 0 is [Heartbeat].
	Heartbeat time.Duration `json:"heartbeat,omitempty"`
}

// Order asks a worker to store a decision and to carry its command out. Anybody who reaches the engine can
// write one, so it has no settings, and the worker compares it with the board.
type Order struct {
	Case string `json:"case"`
	Run  string `json:"run,omitempty"` // "" until the task has one
	// Decision is nil until something is decided: the worker takes the task up.
	Decision *loop.Decision `json:"decision,omitempty"`
	// Proof shows that a worker of the board has sent the event; a wait that is over has none.
	Proof string `json:"proof,omitempty"`
	// Unfit are workers that lacked what it needs. When one gets it again, no other took
	// it: that one answers what it lacks.
	Unfit []string `json:"unfit,omitempty"`
}

// Answer is a worker's answer to an order: one of Event, Waits and Result.
type Answer struct {
	Worker string `json:"worker"`
	Run    string `json:"run,omitempty"`
	// Event is for the kernel. State is what it happened to; nil is what the workflow has.
	Event *loop.Event `json:"event,omitempty"`
	Proof string      `json:"proof,omitempty"` // of the event
	State *loop.State `json:"state,omitempty"`
	// Waits: the run waits, and no worker drives it.
	Waits bool `json:"waits,omitempty"`
	// Result: the run rests, and what it came to is kept.
	Result *Result `json:"result,omitempty"`
}

// Request is a request to the run, as the worker found it.
type Request struct {
	Run   string      `json:"run"`
	State *loop.State `json:"state,omitempty"`
	Event loop.Event  `json:"event"`
	Proof string      `json:"proof,omitempty"` // of the event
}

// Result is the result of a task's run.
type Result struct {
	Outcome schedule.Outcome `json:"outcome"`
	Entry   queue.Entry      `json:"entry"` // what is to land, if it is complete
}

// task is one workflow.
type task struct {
	Begin
}

// Task is the workflow of one task: its run from the start to its rest.
func Task(ctx workflow.Context, b Begin) (Result, error) {
	t := &task{b}
	o := workflow.UpdateHandlerOptions{Validator: t.checkUseful}
	err := workflow.SetUpdateHandlerWithOptions(ctx, HearName, t.handleRequest, o)
	if err != nil {
		return Result{}, err
	}
	looks := workflow.GetSignalChannel(ctx, LookName)
	for range orders {
		a, err := t.performOrder(ctx)
		switch {
		case err != nil:
			return t.failedResult(err), nil
		case a.Result != nil:
			return *a.Result, nil
		}
		t.Worker, t.Run = a.Worker, a.Run
		if a.Waits {
			t.waitForOrder(ctx, looks)
		} else if a.Event != nil {
			t.stepKernel(ctx, a.State, *a.Event, a.Proof)
		}
	}
	return Result{}, workflow.NewContinueAsNewError(ctx, TaskName, t.Begin)
}

// performOrder has the last decision carried out, by the worker that has the
// workspace if it is there, else by any. A worker that was silent is asked once more:
// it may live, and the engine was away.
func (t *task) performOrder(ctx workflow.Context) (a Answer, err error) {
	var lacking []string
	for again := true; ; again = false {
		beat := cmp.Or(t.Heartbeat, Heartbeat)
		o := workflow.ActivityOptions{
			TaskQueue: t.Queues.For(t.Labels), StartToCloseTimeout: longest, HeartbeatTimeout: beat,
			RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		}
		if t.Worker != "" {
			o.TaskQueue, o.ScheduleToStartTimeout = t.Queues.Worker(t.Worker), beat/2
		}
		order := Order{Case: t.Case, Run: t.Run, Decision: t.Last, Proof: t.Proof, Unfit: lacking}
		err = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), PerformName, order).Get(ctx, &a)
		name, lacks := unfitWorker(err)
		if !lacks && !isNoWorkerError(err) {
			return a, err
		}
		if lacks && !slices.Contains(lacking, name) {
			lacking = append(slices.Clone(lacking), name)
		}
		if !again || !isHeartbeatTimeout(err) {
			t.Worker = ""
		}
	}
}

// unfitWorker names the worker that lacks what an order needs.
func unfitWorker(err error) (name string, ok bool) {
	refused, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || refused.Type() != Unfit {
		return "", false
	}
	return name, refused.Details(&name) == nil
}

// isHeartbeatTimeout reports whether the worker that had the order sends no heartbeat any more.
func isHeartbeatTimeout(err error) bool {
	late, ok := errors.AsType[*temporal.TimeoutError](err)
	return ok && late.TimeoutType() == enums.TIMEOUT_TYPE_HEARTBEAT
}

// isNoWorkerError reports whether no worker answered: it died, never took the order, or has no room.
func isNoWorkerError(err error) bool {
	var late *temporal.TimeoutError
	if refused, ok := errors.AsType[*temporal.ApplicationError](err); ok && refused.Type() == NoRoom {
		return true
	}
	if !errors.As(err, &late) {
		return false
	}
	switch late.TimeoutType() {
	case enums.TIMEOUT_TYPE_HEARTBEAT, enums.TIMEOUT_TYPE_SCHEDULE_TO_START:
		return true
	}
	return false
}

// failedResult is the result of a run that no worker could take up.
func (t *task) failedResult(err error) Result {
	why := fmt.Sprintf("no worker could do it: %v", errors.Unwrap(err))
	return Result{Outcome: schedule.Outcome{NotStarted: true, Machine: true, Why: why}}
}

// stepKernel asks the kernel, and records what it decided.
func (t *task) stepKernel(ctx workflow.Context, before *loop.State, e loop.Event, proof string) {
	s := t.sentOrLastState(before)
	var d loop.Decision
	recorded := workflow.SideEffect(ctx, func(workflow.Context) any {
		d := loop.Decide(s, e)
		d.Event = loop.Event{} // it is in the history already
		return d
	})
	if err := recorded.Get(&d); err != nil {
		panic(err) // our own structs always decode
	}
	d.Event = e
	t.Last, t.Proof, t.DecidedAt = &d, proof, workflow.Now(ctx)
}

// sentOrLastState is the state that a worker sent, or else the one that the workflow has.
func (t *task) sentOrLastState(sent *loop.State) loop.State {
	switch {
	case sent != nil:
		return *sent
	case t.Last != nil:
		return t.Last.State
	}
	return loop.State{}
}

// handleRequest takes what somebody asked of the run into account.
func (t *task) handleRequest(ctx workflow.Context, h Request) (loop.Decision, error) {
	t.Run = h.Run
	t.stepKernel(ctx, h.State, h.Event, h.Proof)
	d := *t.Last
	d.Event = loop.Event{} // who asks has it
	return d, nil
}

// checkUseful refuses what the kernel has no use for, before it is in the history.
func (t *task) checkUseful(h Request) error {
	s := t.sentOrLastState(h.State)
	if _, c := loop.Step(s, h.Event); c.Kind == loop.NoCommand {
		return fmt.Errorf("a run that is %s has no use for %q", s.Status, h.Event.Kind)
	}
	return nil
}

// waitForOrder ends with the wait, or when something was asked of the run: then a worker
// looks at it with the same order.
func (t *task) waitForOrder(ctx workflow.Context, looks workflow.ReceiveChannel) {
	c, decidedAt := t.Last.State.Command, t.Last.Event.At
	workerNow := func() time.Time { return decidedAt.Add(workflow.Now(ctx).Sub(t.DecidedAt)) }
	timing, stop := workflow.WithCancel(ctx)
	over := false
	s := workflow.NewSelector(ctx)
	s.AddReceive(looks, func(ch workflow.ReceiveChannel, _ bool) {
		for ch.ReceiveAsync(nil) {
		}
	})
	if !c.Until.IsZero() {
		s.AddFuture(workflow.NewTimer(timing, c.Until.Sub(workerNow())), func(workflow.Future) { over = true })
	}
	s.Select(ctx)
	stop()
	if over {
		now := workerNow()
		seed := uint64(now.UnixNano()) //nolint:gosec // any number will do
		t.stepKernel(ctx, nil, loop.Event{Kind: loop.WaitOver, At: now, Seed: seed, For: c.Seq}, "")
	}
}

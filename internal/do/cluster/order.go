package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/flow"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/drive"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file compares what the engine says with the board. An attacker who reaches the engine can start, end
// and signal workflows there, and answer for them; the database they do not reach. So an order counts only
// where the board has it, with the settings that are stored there; an event counts that a worker has
// proved; what follows from it each worker decides itself; and a result is the one in the database.

// mostEnds is how often others may end the workflow of a task before it counts as not begun.
const mostEnds = 5

// Work has a task worked until its run rests: by the workflow that the board has ordered already, or by a
// new one. One that ends without a result was ended by somebody else, and the task is ordered again.
func (b *Board) Work(
	ctx context.Context, task board.Case, base, last string, asked map[string]string,
) (r schedule.Outcome, e queue.Entry, err error) {
	for range mostEnds {
		var o store.Order
		var said, is flow.Result
		if o, err = b.orderOfTask(ctx, task, base, last, asked); err == nil {
			said, err = b.awaitEnd(ctx, o)
		}
		if err != nil {
			break
		}
		now, nerr := b.store.Order(ctx, task.ID)
		switch {
		case nerr == nil && now.Workflow == o.Workflow && len(now.Result) > 0:
			err = json.Unmarshal(now.Result, &is)
			return is.Outcome, is.Entry, err
		case said.Outcome.NotStarted, said.Outcome.Taken: // it says nothing of work
			n := said.Outcome
			return schedule.Outcome{NotStarted: n.NotStarted, Machine: n.Machine, Lacks: n.Lacks, Setup: n.Setup,
				Taken: n.Taken, Why: n.Why}, e, nil
		case nerr != nil || now.Workflow != o.Workflow:
			return r, e, fmt.Errorf("cannot start %s on the engine: %v", task.ID, cmp.Or(nerr, store.ErrNoOrder))
		}
		b.log.Warn("the engine ended a task that no worker ended; it is started again", "task", task.ID)
		if last, err = b.runSince(ctx, task.ID, o.At); err == nil {
			err = b.store.DropOrder(ctx, task.ID)
		}
		if err != nil {
			break
		}
		err = errors.New("somebody else keeps ending its workflow: restrict access to the engine (docs/cluster.md)")
		drive.Sleep(ctx, time.Now().Add(dialAgain))
	}
	return r, e, fmt.Errorf("cannot start %s on the engine: %w", task.ID, err)
}

// runSince is the run of a task that an order has led to; "" is none.
func (b *Board) runSince(ctx context.Context, task string, at time.Time) (string, error) {
	run, err := b.store.Latest(ctx, "", task)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if !loop.Status(run.Status).Active() && run.UpdatedAt.Before(at) {
		return "", err
	}
	return run.ID, err
}

// orderOfTask is the order that the board has for a task, or a new one.
func (b *Board) orderOfTask(
	ctx context.Context, task board.Case, base, last string, asked map[string]string,
) (store.Order, error) {
	o, err := b.store.Order(ctx, task.ID)
	isUnknown := err != nil && !errors.Is(err, store.ErrNoOrder)
	if isUnknown || o.Execution != "" {
		return o, err
	}
	o = store.Order{Case: task.ID, Workflow: flow.TaskID(b.repo, task.ID, rand.Text()), Base: base, Asked: asked,
		Secret: rand.Text(), At: time.Now()}
	if err := b.store.PlaceOrder(ctx, o); err != nil {
		return o, err
	}
	q := flow.QueuesOf(b.repo)
	run, err := b.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: o.Workflow, TaskQueue: q.Board, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
	}, flow.TaskName, flow.Begin{Queues: q, Case: task.ID, Labels: task.Labels(), Run: last, Heartbeat: b.heartbeat})
	if err != nil {
		return o, err
	}
	o.Execution = run.GetRunID()
	return o, b.store.NameExecution(ctx, o)
}

// awaitEnd waits until the workflow of an order has ended, however that was: its result is what the
// engine says. An error is that this is not known.
func (b *Board) awaitEnd(ctx context.Context, o store.Order) (said flow.Result, err error) {
	run := b.client.GetWorkflow(ctx, o.Workflow, o.Execution)
	for err = run.Get(ctx, &said); isUnanswered(err) && ctx.Err() == nil; err = run.Get(ctx, &said) {
		drive.Sleep(ctx, time.Now().Add(dialAgain)) // it continues, and is not to be given back
	}
	if _, ended := errors.AsType[*temporal.WorkflowExecutionError](err); ended || unlessGone(err) == nil {
		err = nil
	}
	return said, err
}

// errForeign: an order is not from the board.
var errForeign = errors.New("no autopilot of this board sent it")

// nameBy is how long an order may come before the board has the name of its execution.
const nameBy = 10 * time.Second

// checkOrder holds an order against the board, and puts what the board says in its place. One that a
// session has already, by the same execution, was held before.
func (w *Worker) checkOrder(ctx context.Context, o *openOrder) error {
	w.mu.Lock()
	s := w.open[o.Order.Case]
	w.mu.Unlock()
	if w.o.Placed == nil {
		return nil
	}
	if s != nil && s.placed.Workflow == o.Workflow && s.of == o.Of {
		o.placed = s.placed
		return nil
	}
	placed, err := w.o.Placed(ctx, o.Order.Case)
	isOpen := func() bool {
		isUnknown := err != nil && !errors.Is(err, store.ErrNoOrder)
		isUnnamed := placed.Workflow == o.Workflow && placed.Execution == ""
		return isUnknown || isUnnamed
	}
	for until := time.Now().Add(nameBy); isOpen(); {
		if time.Now().After(until) || ctx.Err() != nil {
			return temporal.NewNonRetryableApplicationError("the board cannot be asked", flow.NoRoom, err)
		}
		drive.Sleep(ctx, time.Now().Add(time.Second/10))
		placed, err = w.o.Placed(ctx, o.Order.Case)
	}
	first := o.Of
	if err == nil && placed.Workflow == o.Workflow && first != placed.Execution { // perhaps it continued as a new one
		if first, err = w.firstExecution(ctx, o); err != nil {
			return temporal.NewNonRetryableApplicationError("the engine cannot be asked", flow.NoRoom, err)
		}
	}
	if isOurs := placed.Workflow == o.Workflow && first == placed.Execution; err == nil && !isOurs {
		err = errForeign
	}
	if err == nil && s == nil {
		err = w.o.Believe(ctx, placed, &o.Order)
	}
	if err != nil {
		w.warnRefused(o.Order.Case)
		return temporal.NewNonRetryableApplicationError(errForeign.Error(), flow.Refused, err)
	}
	o.placed = placed
	return nil
}

// firstExecution is the engine's id of the execution that an order's workflow began with.
func (w *Worker) firstExecution(ctx context.Context, o *openOrder) (string, error) {
	d, err := w.o.Engine.DescribeWorkflowExecution(ctx, o.Workflow, o.Of)
	return d.GetWorkflowExecutionInfo().GetFirstRunId(), err
}

// mostRefused is how many tasks a person is warned of.
const mostRefused = 100

// warnRefused warns a person that an order for a task was refused, once for each task.
func (w *Worker) warnRefused(task string) {
	w.mu.Lock()
	isNew := !w.refused[task] && len(w.refused) < mostRefused
	if isNew {
		w.refused[task] = true
	}
	w.mu.Unlock()
	if !isNew {
		return
	}
	w.o.Log.Warn("refused an order that the board did not send", "task", task)
	if w.o.Warn != nil {
		w.o.Warn(fmt.Sprintf("refused an order for %.40s: %v. Somebody else reaches the engine; restrict access to it "+
			"(docs/cluster.md)", task, errForeign))
	}
}

// believeOrder puts the state of the database in the place of the engine's. What was decided and is not
// stored yet is decided again, from an event that a worker of the board has sent.
func believeOrder(ctx context.Context, db *store.Store, placed store.Order, o *flow.Order) error {
	if o.Run == "" {
		o.Decision = nil
		return nil
	}
	run, err := db.Run(ctx, o.Run)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrAmbiguous) { // nothing of it was begun
		o.Run, o.Decision = "", nil
		return nil
	}
	if isOurs := run.ID == o.Run && board.TaskOf(run.Name) == o.Case; err == nil && !isOurs {
		err = fmt.Errorf("%w: run %.20s is not one of %s", errForeign, o.Run, o.Case)
	}
	if err != nil || o.Decision == nil {
		return err
	}
	s, err := storedrun.StateOf(run)
	if err != nil {
		return err
	}
	e := o.Decision.Event
	isProved := e.Kind == loop.WaitOver || hmac.Equal([]byte(o.Proof), []byte(signEvent(placed, e)))
	is := loop.Decision{Event: e, State: s, Command: s.Command}
	if o.Decision.State.Seq > s.Seq && isProved {
		if next := loop.Decide(s, e); next.State.Seq > s.Seq {
			is = next
		}
	}
	o.Decision = &is
	return nil
}

// signEvent an event is that its sender knows the board's secret.
func signEvent(placed store.Order, e loop.Event) string {
	sum := hmac.New(sha256.New, []byte(placed.Secret))
	sum.Write([]byte(placed.Workflow))
	sum.Write(encodeJSON(e))
	return hex.EncodeToString(sum.Sum(nil))
}

// decideAs decides what follows from an event, also where the engine says otherwise: an attacker may
// have changed what the workflow knows, and another version of pawl may decide otherwise. The workflow
// gets this state with the next event.
func (s *session) decideAs(st loop.State, e loop.Event, said *loop.Decision) (loop.State, loop.Command, error) {
	d := loop.Decide(st, e)
	if s.w.o.Placed == nil && said != nil {
		return s.followDecision(*said)
	}
	if d.Command.Kind == loop.NoCommand {
		return st, loop.Command{}, nil
	}
	s.strayed = said == nil || !bytes.Equal(encodeJSON(said.State), encodeJSON(d.State))
	if s.strayed {
		s.w.o.Log.Warn("the engine disagrees about the next step; this worker decides", "task", s.task, "event", e.Kind)
	}
	return s.followDecision(d)
}

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/flow"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// beating is an engine that takes heartbeats and nothing else.
type beating struct{ client.Client }

func (beating) RecordActivityHeartbeat(context.Context, []byte, ...any) error { return nil }

// A desk is a worker, and who orders of it in the engine's place. Its tasks start, and
// then have one iteration after another.
type desk struct {
	*testing.T
	worker *Worker

	mu    sync.Mutex
	works int // how often a task was taken up
	takes time.Duration
	saw   []int
	err   error // that ended the last one
	lacks bool  // no task can be taken up
}

// pass lets time pass in a bubble, and what is due in it end.
func pass(t time.Duration) {
	time.Sleep(t) //nolint:forbidigo // it is the bubble's own
	synctest.Wait()
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{T: t, takes: time.Second}
	o := Options{
		Engine: beating{}, Offer: autopilot.Offer{Slots: 1}, Dir: t.TempDir(), Work: d.work, Heartbeat: time.Minute,
		Log: slog.New(slog.DiscardHandler),
	}
	d.worker = &Worker{o: o, name: "m1", slots: newSlots(1), open: map[string]*session{}, refused: map[string]bool{}}
	return d
}

func (d *desk) work(ctx context.Context, _ flow.Order, _ store.Order, k engine.Kernel) (schedule.Outcome, queue.Entry) {
	d.mu.Lock()
	d.works++
	lacks := d.lacks
	d.mu.Unlock()
	if lacks {
		return schedule.Outcome{NotStarted: true, Lacks: true, Why: "here: no agent"}, queue.Entry{}
	}
	state, kind := loop.State{}, loop.Started
	if p := k.Pending(); p != nil {
		state, kind = p.State, loop.IterationEnded
	}
	for {
		d.mu.Lock()
		takes := d.takes
		d.mu.Unlock()
		time.Sleep(takes) //nolint:forbidigo // of the bubble: each event has a time of its own
		var err error
		state, _, err = k.Step(ctx, "run", state, loop.Event{Kind: kind, At: time.Now()})
		d.mu.Lock()
		d.err = err
		if err == nil {
			d.saw = append(d.saw, state.Seq)
		}
		d.mu.Unlock()
		if err != nil {
			return schedule.Outcome{}, queue.Entry{}
		}
		kind = loop.IterationEnded
	}
}

// seen is how often the task was taken up, the states that were seen, and the last error.
func (d *desk) seen() (works int, saw []int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.works, slices.Clone(d.saw), d.err
}

// become changes what the next iterations are like.
func (d *desk) become(takes time.Duration, lacks bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.takes, d.lacks = takes, lacks
}

// order has an order carried out.
func (d *desk) order(decided *loop.Decision) flow.Answer {
	d.Helper()
	a, err := d.worker.carryOut(d.Context(), openOrder{Order: flow.Order{Case: "task-001", Run: "run", Decision: decided}}, false)
	if err != nil {
		d.Fatal(err)
	}
	return a
}

// decided is what follows from an answer's event.
func decided(a flow.Answer, seq int) *loop.Decision {
	return &loop.Decision{Event: *a.Event, State: loop.State{Seq: seq, Status: loop.Running}}
}

// An answer that does not reach the engine is given again to the same order, and nothing
// is done again.
func TestAnAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		started := d.order(nil)
		if again := d.order(nil); !again.Event.At.Equal(started.Event.At) {
			t.Errorf("the same order was answered by %+v", again.Event)
		}
		first := decided(started, 1)
		ended := d.order(first)
		again := d.order(first)
		if !again.Event.At.Equal(ended.Event.At) || again.Event.Kind != loop.IterationEnded {
			t.Errorf("the same order was answered by %+v", again.Event)
		}
		d.order(decided(ended, 2))
		if works, saw, _ := d.seen(); works != 1 || len(saw) != 2 || saw[1] != 2 {
			t.Errorf("it was taken up %d times, and saw the states %v", works, saw)
		}
		synctest.Wait()
		pass(2 * time.Minute)
	})
}

// A worker that was away for a while, and is given the task again, does not go on where
// it was: another one did an iteration meanwhile.
func TestAWorkerIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		ended := d.order(decided(d.order(nil), 1))
		other := decided(ended, 4)
		other.Event.At = other.Event.At.Add(time.Second)
		d.order(other)
		if works, saw, _ := d.seen(); works != 2 || len(saw) != 1 {
			t.Errorf("it was taken up %d times, and saw the states %v", works, saw)
		}
		pass(2 * time.Minute)
	})
}

// A task whose next order went elsewhere has no slot for ever.
func TestTheNextOrderWentElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.order(nil)
		synctest.Wait()
		if d.worker.slots.usedSlots() != 1 {
			t.Error("who waits for its next order has no slot")
		}
		pass(61 * time.Second)
		if _, _, err := d.seen(); d.worker.slots.usedSlots() != 0 || !errors.Is(err, errLost) {
			t.Errorf("%d slots are taken still (%v)", d.worker.slots.usedSlots(), err)
		}
	})
}

// away is an engine that is away until a time, and has given up the orders of before then.
type away struct {
	client.Client
	until  time.Time
	status enums.WorkflowExecutionStatus
}

func (e away) RecordActivityHeartbeat(_ context.Context, token []byte, _ ...any) error {
	switch {
	case time.Now().Before(e.until):
		return serviceerror.NewUnavailable("away")
	case len(token) == 0:
		return serviceerror.NewNotFound("it is given up")
	}
	return nil
}

func (e away) DescribeWorkflowExecution(
	context.Context, string, string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflow.WorkflowExecutionInfo{Status: e.status},
	}, nil
}

// The engine was away for longer than a heartbeat. It gives the order that a living worker
// is at again, and the worker goes on with it: nothing is done twice.
func TestTheEngineWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		order := openOrder{Order: flow.Order{Case: "task-001", Run: "run", Decision: decided(d.order(nil), 1)}}
		d.become(90*time.Second, false)
		d.worker.o.Engine = away{until: time.Now().Add(65 * time.Second), status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING}
		first := make(chan error)
		go func(order openOrder) {
			_, err := d.worker.carryOut(t.Context(), order, false)
			first <- err
		}(order)
		pass(70 * time.Second)
		order.Token = []byte("again")
		again := make(chan flow.Answer)
		go func() {
			a, err := d.worker.carryOut(t.Context(), order, false)
			if err != nil {
				t.Error(err)
			}
			again <- a
		}()
		if err := <-first; !errors.Is(err, errAgain) {
			t.Errorf("the order that the engine gave up ended with %v", err)
		}
		if left, err := openOrders(d.worker.o.Dir); err != nil || len(left) != 1 {
			t.Errorf("%d orders are written down (%v)", len(left), err)
		}
		a := <-again
		if works, _, err := d.seen(); works != 1 || a.Event == nil || a.Event.Kind != loop.IterationEnded {
			t.Errorf("it was taken up %d times, and answered with %+v (%v)", works, a.Event, err)
		}
		pass(2 * time.Minute)
	})
}

// What the engine gave up is ended: at once with its workflow, else when it did not come
// again for as long as the engine waits for this worker.
func TestAnOrderIsNoMore(t *testing.T) {
	for status, want := range map[enums.WorkflowExecutionStatus]time.Duration{
		enums.WORKFLOW_EXECUTION_STATUS_TERMINATED: 0,
		enums.WORKFLOW_EXECUTION_STATUS_RUNNING:    75 * time.Second,
	} {
		t.Run(status.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				order := openOrder{Order: flow.Order{Case: "task-001", Run: "run", Decision: decided(d.order(nil), 1)}}
				d.worker.o.Engine = away{status: status}
				d.become(80*time.Second, false) // the driver looks up only then
				began := time.Now()
				d.worker.sessionFor(t.Context(), order, false)
				d.worker.beatOrder(t.Context(), d.worker.open["task-001"], order)
				if took := time.Since(began); took != want {
					t.Errorf("it was given up after %s", took)
				}
				pass(2 * time.Minute)
			})
		})
	}
}

// The engine stays away. The agent goes on for two and a half minutes of the real engine's patience, and is ended then.
func TestTheEngineStaysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.worker.o.Heartbeat = flow.Heartbeat
		order := openOrder{Order: flow.Order{Case: "task-001", Run: "run", Decision: decided(d.order(nil), 1)}}
		d.worker.o.Engine = away{until: time.Now().Add(time.Hour)}
		d.become(10*time.Minute, false)
		began := time.Now()
		d.worker.sessionFor(t.Context(), order, false)
		s := d.worker.open["task-001"]
		d.worker.beatOrder(t.Context(), s, order)
		if took := time.Since(began); took != 150*time.Second || !errors.Is(context.Cause(s.ctx), errLost) {
			t.Errorf("it was given up after %s: %v", took, context.Cause(s.ctx))
		}
		pass(time.Hour)
	})
}

// The whole disk of the database's server is put back, which the board shows when a worker says that it lives: the
// worker knows it within 20 seconds, and ends.
func TestTheBoardForgotAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, began := 0, time.Now()
		w := Worker{o: Options{Seen: func(context.Context, int, bool) error {
			if n++; n < 2 {
				return nil
			}
			return store.ErrGone
		}}, slots: newSlots(1)}
		err := w.showRepeatedly(t.Context())
		if took := time.Since(began); !errors.Is(err, store.ErrGone) || took > 20*time.Second || w.slots.takeSlot(true) {
			t.Errorf("it ended after %s with %v", took, err)
		}
	})
}

// ending is an engine on which somebody ends each workflow as soon as it is there.
type ending struct {
	client.Client
	client.WorkflowRun
	began int
}

func (e *ending) ExecuteWorkflow(context.Context, client.StartWorkflowOptions, any, ...any) (client.WorkflowRun, error) {
	e.began++
	return e, nil
}

func (e *ending) GetRunID() string                                               { return fmt.Sprint("run", e.began) }
func (e *ending) GetWorkflow(context.Context, string, string) client.WorkflowRun { return e }
func (e *ending) Get(context.Context, any) error                                 { return nil }

// A task whose workflow somebody keeps ending is ordered five times. Then it counts as not begun, and the reason says
// what to do.
func TestSomebodyKeepsEndingATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "pawl.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		_, err = db.AddCases(t.Context(), []board.Draft{{Case: board.Case{Title: "One"}}}, board.Person, time.Now())
		if err == nil {
			_, err = db.MoveCase(t.Context(), "task-001", board.Change{Action: board.Start, By: board.Pawl, At: time.Now()})
		}
		if err != nil {
			t.Fatal(err)
		}
		e := &ending{}
		b := &Board{client: e, repo: "repo", store: db, log: slog.New(slog.DiscardHandler)}
		_, _, err = b.Work(t.Context(), board.Case{ID: "task-001"}, "", "", nil)
		if e.began != 5 || err == nil || !strings.Contains(err.Error(), "restrict access to the engine") {
			t.Errorf("it was ordered %d times: %v", e.began, err)
		}
	})
}

// A second worker of a folder is refused with the process that it is in the way of, and
// takes nothing from that.
func TestASecondWorker(t *testing.T) {
	dir, gone := t.TempDir(), false
	lock, err := lockFolder(t.Context(), dir)
	if err == nil {
		err = noteOwner(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	err = Run(t.Context(), Options{Dir: dir, Gone: func(context.Context) { gone = true }})
	want := fmt.Sprintf("a worker of this repository is already running here: process %d", os.Getpid())
	if err == nil || err.Error() != want || gone {
		t.Errorf("it was refused with %v, and was forgotten: %v", err, gone)
	}
}

// A worker whose name another machine has waits until that is gone, and is refused when it is
// heard of again. One that has the name already ends then.
func TestAnotherMachineHasTheName(t *testing.T) {
	twin := func(at time.Time) error {
		return &store.TwinError{Worker: store.Worker{Host: "image", PID: 7, BeatAt: at}}
	}
	first := time.Now()
	for _, c := range []struct {
		name  string
		hears []error
		want  string
		waits int
	}{
		{"it has it", []error{nil}, "", 0},
		{"the other one is gone", []error{twin(first), twin(first), nil}, "", 1},
		{"the other one is heard of again", []error{twin(first), twin(first), twin(first.Add(time.Second))},
			"another machine that is called image too has a worker of this repository: process 7", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				waits, n := 0, 0
				o := Options{
					Seen:  func(context.Context, int, bool) error { n++; return c.hears[n-1] },
					Waits: func(error) { waits++ },
				}
				err := o.announceWorker(t.Context())
				if got := fmt.Sprint(err); err == nil && c.want != "" || err != nil && got != c.want {
					t.Errorf("it arrived with %v", err)
				}
				if n != len(c.hears) || waits != c.waits {
					t.Errorf("it asked %d times and said %d times that it waits", n, waits)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		n := 0
		w := Worker{o: Options{Seen: func(context.Context, int, bool) error {
			if n++; n < 3 {
				return nil
			}
			return twin(first)
		}}, slots: newSlots(1)}
		if err := w.showRepeatedly(t.Context()); err == nil || n != 3 {
			t.Errorf("it ended with %v after it was heard of %d times", err, n)
		}
	})
}

// later is an engine that answers what it is asked the third time.
type later struct {
	client.Client
	client.WorkflowRun
	asked []string
}

func (e *later) answer() error {
	if len(e.asked) < 3 {
		return serviceerror.NewUnavailable("away")
	}
	return nil
}

func (e *later) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	e.asked = append(e.asked, o.UpdateID)
	return nil, cmp.Or(e.answer(), temporal.NewApplicationError("no use", "refused"))
}

func (e *later) GetWorkflow(context.Context, string, string) client.WorkflowRun { return e }

func (e *later) Get(context.Context, any) error {
	e.asked = append(e.asked, "")
	return e.answer()
}

// What is asked of a run while the engine is away reaches it once, and a task that is
// worked is not given back.
func TestTheEngineAnswersLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, e := newDesk(t), &later{}
		d.worker.o.Engine = e
		s := &session{w: d.worker, task: "task-001", ctx: t.Context()}
		stop := flow.Request{Run: "run", Event: loop.Event{Kind: loop.StopAsked, At: time.Now()}}
		if _, _, err := s.forwardRequest(t.Context(), loop.State{}, stop); err != nil || len(e.asked) != 3 || e.asked[0] != e.asked[2] {
			t.Errorf("it was told as %q (%v)", e.asked, err)
		}
		e.asked = nil
		b := &Board{client: e}
		if _, err := b.awaitEnd(t.Context(), store.Order{Workflow: "one", Execution: "first"}); err != nil || len(e.asked) != 3 {
			t.Errorf("it asked %d times for the end (%v)", len(e.asked), err)
		}
	})
}

// A machine that lacks the agent refuses the task, and takes no other for a moment. When
// the order comes again nobody else took it: then what is lacking is the answer.
func TestAMachineLacksTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.become(time.Second, true)
		o := openOrder{Order: flow.Order{Case: "task-001"}}
		_, err := d.worker.carryOut(t.Context(), o, true)
		refused, ok := errors.AsType[*temporal.ApplicationError](err)
		if !ok || refused.Type() != flow.Unfit || refused.Message() != "here: no agent" {
			t.Errorf("it was answered by %v", err)
		}
		o.Order.Unfit = []string{"m1"}
		_, err = d.worker.carryOut(t.Context(), o, true)
		if refused, ok = errors.AsType[*temporal.ApplicationError](err); !ok || refused.Type() != flow.NoRoom {
			t.Errorf("at once it was answered by %v", err)
		}
		began := time.Now()
		if _, err := d.worker.slots.ReserveSlot(t.Context(), nil); err != nil || time.Since(began) != lacksFor {
			t.Errorf("the next task is asked for after %s (%v)", time.Since(began), err)
		}
		a, err := d.worker.carryOut(t.Context(), o, true)
		if err != nil || a.Result == nil || !a.Result.Outcome.NotStarted {
			t.Errorf("then it was answered by %+v (%v)", a, err)
		}
	})
}

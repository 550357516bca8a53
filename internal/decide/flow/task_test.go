package flow_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/pawl-dev/pawl/internal/decide/flow"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/decide/signal"
)

// story plays the worker of a task's workflow: each order is answered by the next
// turn. Time is the workflow's own.
type story struct {
	testsuite.WorkflowTestSuite
	t      *testing.T
	env    *testsuite.TestWorkflowEnvironment
	turns  []func(flow.Order) (flow.Answer, error)
	orders []flow.Order
	queues []string
}

func newStory(t *testing.T, turns ...func(flow.Order) (flow.Answer, error)) *story {
	s := &story{t: t, turns: turns}
	s.env = s.NewTestWorkflowEnvironment()
	s.env.RegisterActivityWithOptions(s.perform, activity.RegisterOptions{Name: flow.PerformName})
	return s
}

func (s *story) perform(ctx context.Context, o flow.Order) (flow.Answer, error) {
	s.orders = append(s.orders, o)
	s.queues = append(s.queues, activity.GetInfo(ctx).TaskQueue)
	if len(s.orders) > len(s.turns) {
		return flow.Answer{}, errors.New("the story has no more turns")
	}
	a, err := s.turns[len(s.orders)-1](o)
	a.Worker, a.Run = "w1", "run00001"
	return a, err
}

func (s *story) play() flow.Result {
	s.t.Helper()
	s.env.ExecuteWorkflow(flow.Task, flow.Begin{Queues: flow.QueuesOf("repo"), Case: "task-001"})
	var r flow.Result
	if err := s.env.GetWorkflowError(); err != nil {
		s.t.Fatal(err)
	}
	if err := s.env.GetWorkflowResult(&r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

var policy = loop.Policy{
	Kind: loop.Task, MaxIterations: 3, FailureThreshold: 3, MaxWaits: 3, Costs: loop.Costs{MaxCost: loop.NoLimit, MaxIterationCost: loop.NoLimit,
		MaxIterationCalls: loop.NoLimit}, Workers: loop.Workers{Agent: "script"},
}

var began = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// started answers that the task was taken up.
func started(flow.Order) (flow.Answer, error) {
	return flow.Answer{Event: &loop.Event{Kind: loop.Started, At: began, Policy: &policy}, State: &loop.State{}}, nil
}

// ended answers that the iteration ended with a signal.
func ended(k signal.Kind) func(flow.Order) (flow.Answer, error) {
	return func(o flow.Order) (flow.Answer, error) {
		c := o.Decision.State.Command
		r := &loop.Record{
			Number: c.Iteration, Attempt: c.Attempt, StartedAt: began, Agent: c.Agent, Strategy: c.Strategy, Progress: -1, Score: -1,
			Verified: true, Signal: signal.Signal{Kind: k}, TreeKnown: true, TreeBefore: "a", TreeAfter: "b", Files: []string{"f"},
		}
		return flow.Answer{Event: &loop.Event{Kind: loop.IterationEnded, At: began.Add(time.Minute), For: c.Seq, Record: r}}, nil
	}
}

// rested answers that the run rests.
func rested(o flow.Order) (flow.Answer, error) {
	s := o.Decision.State
	return flow.Answer{Result: &flow.Result{Outcome: schedule.Outcome{Status: s.Status, Why: s.Why}}}, nil
}

func waits(flow.Order) (flow.Answer, error) { return flow.Answer{Waits: true}, nil }

// throttled answers that the agent's provider is limited.
func throttled(o flow.Order) (flow.Answer, error) {
	return flow.Answer{Event: &loop.Event{
		Kind: loop.Throttled, At: began, For: o.Decision.State.Command.Seq,
		Limited: []loop.Limited{{Agent: "script", Until: began.Add(50 * time.Second)}},
	}}, nil
}

func isSilent(flow.Order) (flow.Answer, error) {
	return flow.Answer{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_HEARTBEAT, nil)
}

// The kernel decides on the engine: each answer is an event, and each order what
// follows from it.
func TestTheWorkflowAsksTheKernel(t *testing.T) {
	s := newStory(t, started, ended(signal.None), ended(signal.Complete), rested)
	if r := s.play(); r.Outcome.Status != loop.Completed {
		t.Errorf("the task ended as %+v", r)
	}
	if o := s.orders[0]; o.Decision != nil {
		t.Errorf("the first order has a decision: %+v", o.Decision)
	}
	for i, want := range []loop.CommandKind{loop.Run, loop.Run, loop.Finish} {
		d := s.orders[i+1].Decision
		if d.Command.Kind != want || d.Event.Kind == "" {
			t.Errorf("order %d is %q after %q, not %q", i+2, d.Command.Kind, d.Event.Kind, want)
		}
	}
	if r := s.orders[3].Decision.Record; r == nil || r.Outcome != loop.Success {
		t.Errorf("the judged record is not in the order: %+v", r)
	}
	if want := flow.QueuesOf("repo"); s.queues[0] != want.Slots || s.queues[1] != want.Worker("w1") {
		t.Errorf("the orders went to %q", s.queues)
	}
}

// A wait is a timer of the engine's: no order is open meanwhile. It lasts as long, and counts as long, however the
// clocks of the engine and of the worker differ.
func TestAWaitIsTheEngines(t *testing.T) {
	for _, ahead := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute} {
		s := newStory(t, started, throttled, waits, ended(signal.Complete), rested)
		engine := began.Add(ahead)
		s.env.SetStartTime(engine)
		if r := s.play(); r.Outcome.Status != loop.Completed {
			t.Errorf("the task ended as %+v", r)
		}
		if took := s.env.Now().Sub(engine); took < 50*time.Second || took > time.Minute {
			t.Errorf("with an engine that is %s ahead the wait of 50 s took %s", ahead, took)
		}
		d := s.orders[3].Decision
		if wall := d.State.Spent.Wall; d.Event.Kind != loop.WaitOver || wall < 50*time.Second || wall > time.Minute {
			t.Errorf("with an engine that is %s ahead %q follows, after %s of the run's time", ahead, d.Event.Kind, wall)
		}
	}
}

// Somebody asked something of a run that waits: a worker looks at it at once.
func TestALookEndsAWait(t *testing.T) {
	s := newStory(t, started, throttled, waits, rested)
	s.env.SetStartTime(began)
	s.env.RegisterDelayedCallback(func() { s.env.SignalWorkflow(flow.LookName, nil) }, 20*time.Second)
	s.play()
	if took := s.env.Now().Sub(began); took >= 50*time.Second {
		t.Errorf("it took %s", took)
	}
	if e := s.orders[3].Decision.Event; e.Kind == loop.WaitOver {
		t.Error("the wait counts as over")
	}
}

// The order of a worker that was silent goes to it once more, as it was, and then to any:
// nothing is decided about it before somebody has seen what is left.
func TestALostWorker(t *testing.T) {
	late := func(flow.Order) (flow.Answer, error) {
		return flow.Answer{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
	}
	s := newStory(t, started, isSilent, late, ended(signal.Complete), rested)
	s.play()
	was, is := s.orders[1].Decision, s.orders[3].Decision
	q := flow.QueuesOf("repo")
	if was.State.Seq != is.State.Seq || s.queues[2] != q.Worker("w1") || s.queues[3] != q.Slots {
		t.Errorf("order %d went to %q as %d", was.State.Seq, s.queues[2:4], is.State.Seq)
	}
}

// A worker that takes its order again and is silent again gets it no third time.
func TestAWorkerIsSilentAgain(t *testing.T) {
	again := isSilent // the linter takes two of one for a slip
	s := newStory(t, started, isSilent, again, ended(signal.Complete), rested)
	s.play()
	if q := flow.QueuesOf("repo"); s.queues[3] != q.Slots {
		t.Errorf("the third order went to %q", s.queues[3])
	}
}

// What is asked while an iteration goes on is heard at once; what the kernel has
// no use for is refused and not in the history.
func TestHearing(t *testing.T) {
	var s *story
	heard, refused := loop.Decision{}, error(nil)
	s = newStory(t, started, func(o flow.Order) (flow.Answer, error) {
		return ended(signal.None)(o)
	}, rested)
	s.env.RegisterDelayedCallback(func() {
		s.env.UpdateWorkflow(flow.HearName, "1", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { refused = err },
			OnComplete: func(any, error) {},
		}, flow.Request{Run: "run00001", Event: loop.Event{Kind: loop.Resumed, At: began}})
	}, 0)
	s.env.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) {
		if len(s.orders) != 1 {
			return
		}
		s.env.UpdateWorkflow(flow.HearName, "2", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { t.Error(err) },
			OnComplete: func(v any, err error) {
				if err == nil {
					heard = v.(loop.Decision)
				}
			},
		}, flow.Request{Run: "run00001", Event: loop.Event{Kind: loop.StopAsked, At: began, Cause: loop.CauseStop}})
	})
	if r := s.play(); r.Outcome.Status != loop.Stopped {
		t.Errorf("the task ended as %+v", r)
	}
	if heard.State.StopAsked != loop.CauseStop {
		t.Errorf("the stop was heard as %+v", heard.Command)
	}
	if refused == nil {
		t.Error("what nobody needs was not refused")
	}
}

// An order that no worker had room for is given again, to any worker with the labels.
func TestNoRoom(t *testing.T) {
	full := func(flow.Order) (flow.Answer, error) {
		return flow.Answer{}, temporal.NewNonRetryableApplicationError("full", flow.NoRoom, nil)
	}
	again := func(o flow.Order) (flow.Answer, error) { return full(o) } // the linter takes two of one for a slip
	s := newStory(t, full, started, again, ended(signal.Complete), rested)
	if r := s.play(); r.Outcome.Status != loop.Completed {
		t.Errorf("the task ended as %+v", r)
	}
	q := flow.QueuesOf("repo")
	if s.queues[1] != q.Slots || s.queues[2] != q.Worker("w1") || s.queues[3] != q.Slots {
		t.Errorf("the orders went to %q", s.queues)
	}
	if s.orders[2].Decision.State.Seq != s.orders[3].Decision.State.Seq {
		t.Error("another order was given")
	}
}

// An order whose worker lacks what it needs goes to another one, which knows of it.
func TestUnfit(t *testing.T) {
	unfit := func(flow.Order) (flow.Answer, error) {
		return flow.Answer{}, temporal.NewNonRetryableApplicationError("no agent", flow.Unfit, nil, "w9")
	}
	s := newStory(t, unfit, started, ended(signal.Complete), rested)
	if r := s.play(); r.Outcome.Status != loop.Completed {
		t.Errorf("the task ended as %+v", r)
	}
	if got := s.orders[1].Unfit; !slices.Equal(got, []string{"w9"}) || s.orders[2].Unfit != nil {
		t.Errorf("the orders name %q and %q", got, s.orders[2].Unfit)
	}
}

// A worker serves each choice of its labels.
func TestServes(t *testing.T) {
	q := flow.Queues{Slots: "s"}
	got := q.Serves([]string{"arm", "big", "gpu"})
	want := []string{"s", "s+arm", "s+big", "s+arm+big", "s+gpu", "s+arm+gpu", "s+big+gpu", "s+arm+big+gpu"}
	if !slices.Equal(got, want) {
		t.Errorf("it serves %q", got)
	}
}

// A program from before labels asks acme/shop/board and acme/shop/slots. It must get
// nothing: it would work a task that needs a label wherever there is room.
func TestQueuesHaveTheProtocol(t *testing.T) {
	t.Parallel()
	q := flow.QueuesOf("acme/shop")
	names := []string{q.Board, q.For(nil), q.For([]string{"arm", "gpu"}), q.Worker("host-1")}
	want := []string{"acme/shop/board.4", "acme/shop/slots.4", "acme/shop/slots.4+arm+gpu", "acme/shop/slots.4@host-1"}
	if !slices.Equal(names, want) {
		t.Errorf("the queues are %q", names)
	}
}

package cluster

import (
	"context"
	"encoding/json"
	"errors"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/pawl-dev/pawl/internal/cluster/flow"
	"github.com/pawl-dev/pawl/internal/loop"
)

// session is one task's run in this worker. Its driver asks it as its kernel; it
// answers with what the workflow decided.
type session struct {
	w       *Worker
	first   flow.Order // that it began with
	task    string
	orders  chan flow.Order  // the next one
	answers chan flow.Answer // to the order that is open
	ctx     context.Context  // done: the order is another's now
	abandon context.CancelCauseFunc
	ended   chan struct{} // closed when nothing of it runs any more
	asks    bool          // it waits for an order; under the worker's lock

	// Of the driver's goroutine.
	run     string
	pending *loop.Decision // what was decided before the session began
	known   bool           // the workflow has a state
	pushed  *loop.Pushed   // what other machines have of the work, and its tree
	tree    string
	waits   bool // the last command was to wait
	lost    bool // it has been told so; nobody waits for an answer
}

// errLost is that the order of a session is another worker's now.
var errLost = errors.New("the engine gave the task to another worker, or ended it")

// work drives the run until it waits or rests, and gives the last answer.
func (s *session) work() {
	defer close(s.ended)
	outcome, entry := s.w.o.Work(s.ctx, s.first, s)
	a := flow.Answer{Worker: s.w.name, Run: s.run}
	if s.waits {
		a.Waits = true
	} else {
		a.Result = &flow.Result{Outcome: outcome, Entry: entry}
	}
	s.w.close(s)
	if !s.lost {
		s.answer(a)
	}
}

// answer ends the order that is open.
func (s *session) answer(a flow.Answer) {
	select {
	case s.answers <- a:
	case <-s.ctx.Done():
	}
}

// Pending is the decision that the session began with.
func (s *session) Pending() *loop.Decision { return s.pending }

// Step asks the workflow: it answers the order that is open, and waits for the
// next one. What somebody asked while an order is carried out is told beside it.
func (s *session) Step(ctx context.Context, run string, st loop.State, e loop.Event) (loop.State, loop.Command, error) {
	if s.ctx.Err() != nil {
		return st, loop.Command{}, context.Cause(s.ctx)
	}
	if p := s.pending; p != nil && e.Kind == loop.Started { // decided, and the worker died before it was stored
		s.run = run
		return s.follow(*p)
	}
	s.run = run
	var before *loop.State
	if !s.known {
		before = &st
	}
	switch e.Kind {
	case loop.StopAsked, loop.PauseAsked, loop.Raised:
		return s.hear(ctx, st, flow.Heard{Run: run, State: before, Event: e})
	}
	if e.Record != nil && s.w.o.Push != nil {
		r := *e.Record
		if s.pushed == nil || s.pushed.Commit == "" || !r.TreeKnown || r.TreeAfter != s.tree {
			s.pushed, s.tree = s.w.o.Push(s.ctx, s.task, run), r.TreeAfter
		}
		r.Pushed = s.pushed
		e.Record = &r
	}
	s.w.ask(s)
	s.answer(flow.Answer{Worker: s.w.name, Run: run, Event: &e, State: before})
	select {
	case o := <-s.orders:
		if s.lost = o.Decision == nil; s.lost {
			return st, loop.Command{}, errLost
		}
		return s.follow(*o.Decision)
	case <-s.ctx.Done():
		return st, loop.Command{}, context.Cause(s.ctx)
	}
}

func (s *session) follow(d loop.Decision) (loop.State, loop.Command, error) {
	s.known = true
	s.waits = d.State.Status.Active() && d.State.Command.Kind == loop.Wait
	return d.State, d.Whole(), nil
}

// hear tells the workflow what somebody asked. What the kernel has no use for
// changes nothing.
func (s *session) hear(ctx context.Context, st loop.State, h flow.Heard) (loop.State, loop.Command, error) {
	update, err := s.w.o.Engine.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: flow.TaskID(s.w.o.Repo, s.task), UpdateName: flow.HearName, Args: []any{h},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	var d loop.Decision
	if err == nil {
		err = update.Get(ctx, &d)
	}
	var refused *temporal.ApplicationError
	switch {
	case errors.As(err, &refused):
		return st, loop.Command{}, nil
	case err != nil:
		return st, loop.Command{}, err
	}
	return s.follow(d)
}

// encode is for our own structs, which always encode.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

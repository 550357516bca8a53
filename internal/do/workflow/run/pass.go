package run

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// pass is one iteration: what all its steps share.
type pass struct {
	h    *engine.StepContext
	c    loop.Command
	o    Options
	once bool
	// deadline is when the iteration's time is up; zero is never.
	deadline time.Time
	timeUp   *failure.Analysis // of a step that the deadline ended, where it is no limit of the iteration's own
	slot     chan struct{}     // holds a token for each step that runs
	limits   *budget

	mu      sync.Mutex
	history map[string][]*execution // of each step in this run, oldest first
	used    usage
	asks    []loop.Asks
	ran     int
	pausing bool // a pause kept a step from starting
	ended   loop.Ended
	err     error
}

// stepFailure is a step's failure that fails the iteration.
type stepFailure struct {
	failure *failure.Analysis
	agent   string // whose work it was; "" for a command
	exit    int    // of the program; 1 where it had none of its own
}

const maxFailed = 20

// maxHistory bounds what is kept in memory of one step, in executions: those of
// one iteration, and the failures in a row before it.
const maxHistory = 100

// readHistory reads what the run did before this session.
func readHistory(ctx context.Context, h *engine.StepContext) (map[string][]*execution, error) {
	rows, err := h.Store().StepsWithOutput(ctx, h.Run())
	if err != nil {
		return nil, err
	}
	history := map[string][]*execution{}
	for _, row := range rows {
		e, err := executionOf(row)
		if err != nil {
			return nil, err
		}
		history[row.Step] = remembered(history[row.Step], e)
	}
	return history, nil
}

// remembered adds an execution, and forgets the oldest where there are too many.
func remembered(list []*execution, e *execution) []*execution {
	if len(list) >= maxHistory {
		list = slices.Clone(list[len(list)-maxHistory/2:])
	}
	return append(list, e)
}

func newPass(h *engine.StepContext, c loop.Command, o Options, history map[string][]*execution) *pass {
	pol := h.Plan().Policy
	p := &pass{h: h, c: c, o: o, once: pol.Once, slot: make(chan struct{}, slots(o.Flow.Plan, &pol, c)), history: history}
	if c.Limits.Wall > 0 {
		p.deadline = time.Now().Add(c.Limits.Wall)
		p.timeUp = h.Plan().TimeUp(c.Limits.Wall)
	}
	for _, list := range history { // order does not show: a sum
		for _, e := range list {
			if e.Iteration == c.Iteration && e.Attempt == c.Attempt {
				p.used.add(e.record.Usage)
			}
		}
	}
	p.limits = newBudget(c.Limits, p.used)
	return p
}

// past are the executions of a step, oldest first.
func (p *pass) past(id string) []*execution {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.history[id])
}

// latest is the newest execution of a step; nil for none.
func (p *pass) latest(id string) *execution {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.history[id]
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// stops is true when nothing more is to start, whatever its needs.
func (p *pass) stops(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	pausing := p.h.Pausing(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pausing = p.pausing || pausing
	return p.pausing || p.err != nil || p.ended != loop.NotEnded
}

// givesUp is true when a failure in the scope is its last word, so that steps
// that ask for it run: there is no further iteration, and no further try of the
// step whose workflow this is.
func (s *scope) givesUp() bool {
	permanent := s.permanent()
	for at := s; at.above != nil; at = at.above {
		if at.again {
			return false
		}
		permanent = permanent || at.optional || at.above.permanent()
	}
	return s.p.once || s.p.h.Last() || permanent
}

// permanent is true when a required step failed in a way that only a person can cure.
func (s *scope) permanent() bool {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.first != nil && s.first.failure.Kind == failure.Permanent
}

// recordFailure makes the failure of required steps that of their workflow. That of a
// workflow that is a step counts for the one above when the step has failed.
func (s *scope) recordFailure(f stepFailure, ids ...string) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.first == nil {
		s.first = &f
	}
	s.wrong = append(s.wrong, ids[:min(len(ids), maxFailed-len(s.wrong))]...)
	s.halted = s.halted || !s.flow.Plan.ContinueOnError
}

// phase is where an instance is in this pass.
type phase int

const (
	pending phase = iota
	ready
	running
	settled  // with a result
	blocked  // not started, because another step failed
	deferred // not started, because of a pause or a stop; or it waits for a person
)

// node is an instance in this pass.
type node struct {
	in           *workflow.Instance
	id           string // with its workflow's before it
	phase        phase
	then         phase // what comes after running, set by who runs it; pending: settled
	result       workflow.Result
	values       workflow.Values
	failedBefore bool // it was skipped because of a failure
	given        given
	below        *scope // the workflow of the step, once it ran in this pass
	title        string
	why          string // it runs again although it was done
}

// scope is one workflow in a pass: the run's own, or that of a step.
type scope struct {
	p      *pass
	flow   *Flow
	prefix string
	above  *scope // nil for the run's own
	// Of the step that runs this workflow: whether the one above succeeds without
	// it, whether it is tried again if this fails, its execution's N, and when its
	// time is up (zero: never).
	optional, again bool
	round           int
	deadline        time.Time
	env             []string // K=V

	first  *stepFailure // the first real failure; with wrong and halted of p.mu
	wrong  []string     // the required steps that failed, at most maxFailed
	halted bool         // a failure keeps the others from starting

	nodes  []*node
	ready  []*node
	ended  chan *node
	active int
}

func newScope(p *pass, f *Flow, prefix string, env []string) *scope {
	s := &scope{p: p, flow: f, prefix: prefix, env: env, ended: make(chan *node)}
	for i := range f.Plan.Instances {
		in := &f.Plan.Instances[i]
		s.nodes = append(s.nodes, &node{in: in, id: prefix + in.ID})
	}
	return s
}

// run settles what can be settled, and waits for all that it started.
func (s *scope) run(ctx context.Context) {
	for {
		s.advance(ctx)
		if s.active == 0 && len(s.ready) == 0 {
			return
		}
		var slot chan<- struct{}
		if len(s.ready) > 0 {
			slot = s.p.slot
		}
		select {
		case slot <- struct{}{}:
			if n := s.next(ctx); n != nil {
				s.start(ctx, n, true)
				continue
			}
			<-s.p.slot
		case n := <-s.ended:
			s.active--
			s.close(n)
		}
	}
}

// stops is true when nothing more of the scope is to start, whatever its needs.
func (s *scope) stops(ctx context.Context) bool { return s.p.stops(ctx) || s.expired() }

// expired is true when the time of the step whose workflow this is is up.
func (s *scope) expired() bool { return !s.deadline.IsZero() && !time.Now().Before(s.deadline) }

// next takes the first step that is ready, and leaves all of them when nothing
// is to start any more.
func (s *scope) next(ctx context.Context) *node {
	if s.stops(ctx) {
		for _, n := range s.ready {
			n.phase = deferred
		}
		s.ready = nil
		return nil
	}
	halted := s.halts()
	for len(s.ready) > 0 {
		n := s.ready[0]
		s.ready = s.ready[1:]
		if !halted || n.in.Step.Condition.AsksStatus() {
			return n
		}
		n.phase = blocked
	}
	return nil
}

// start runs a step; slotted when it holds one of the places.
func (s *scope) start(ctx context.Context, n *node, slotted bool) {
	n.phase = running
	s.active++
	go func() {
		s.perform(ctx, n)
		if slotted {
			<-s.p.slot
		}
		s.ended <- n
	}()
}

// close takes the result of a step that ran.
func (s *scope) close(n *node) {
	n.phase = settled
	if n.then != pending {
		n.phase, n.then = n.then, pending
	}
}

// advance moves on every instance whose needs are settled, in the order of the
// plan, so that one pass over them is enough.
func (s *scope) advance(ctx context.Context) {
	for _, n := range s.nodes {
		if n.phase != pending || !s.open(n) {
			continue
		}
		s.decide(ctx, n)
	}
}

// open is true when nothing that n needs goes on in this pass.
func (s *scope) open(n *node) bool {
	for _, k := range n.in.Needs {
		if ph := s.nodes[k].phase; ph == pending || ph == ready || ph == running {
			return false
		}
	}
	return true
}

// hindered is what the needs of an instance make of it before its condition is
// asked: deferred, blocked, or pending where they leave it free.
func (s *scope) hindered(n *node) phase {
	out := pending
	for _, k := range n.in.Needs {
		switch ph := s.nodes[k].phase; {
		case ph == deferred:
			return deferred
		case ph == blocked && !n.in.Step.Condition.AsksStatus():
			out = blocked
		}
	}
	return out
}

// decide says what becomes of an instance whose needs are done with.
func (s *scope) decide(ctx context.Context, n *node) {
	st := n.in.Step
	if n.phase = s.hindered(n); n.phase != pending {
		return
	}
	v := s.values(n)
	if v.Failed && st.Condition.AsksStatus() && !s.givesUp() {
		n.phase = deferred
		return
	}
	holds, g, err := s.fill(n, v)
	switch {
	case err != nil:
		s.invalid(n, err)
	case !holds:
		s.skip(n, v, "its condition does not hold")
	case st.Optional && s.p.c.SkipOptional && !s.p.done(n, &g):
		n.result = workflow.Result{Outcome: "skipped", Conclusion: "success"}
		s.settle(n, "skipped", "the strategy leaves optional steps out")
	default:
		n.given, n.values = g, v
		s.queue(ctx, n)
	}
}

// done is true for a step whose result is kept.
func (p *pass) done(n *node, g *given) bool {
	keep, _ := kept(p.past(n.id), n.in.Hash, n.in.InputHash(g.input()), n.in.Step.Optional)
	return keep != nil
}

// queue keeps the result of a step that is done, and makes any other ready.
func (s *scope) queue(ctx context.Context, n *node) {
	past := s.p.past(n.id)
	keep, why := kept(past, n.in.Hash, n.in.InputHash(n.given.input()), n.in.Step.Optional)
	if keep != nil {
		n.result = keep.result()
		if keep.Status == store.StepFailure {
			why = "optional, and failed before"
		}
		s.settle(n, "kept", why)
		return
	}
	n.why = why
	halted := s.halts() && !n.in.Step.Condition.AsksStatus()
	switch kind := n.in.Step.Kind; {
	case s.stops(ctx):
		n.phase = deferred
	case halted:
		n.phase = blocked
	case kind == workflow.Ask:
		s.ask(ctx, n)
	case kind == workflow.Nested:
		s.start(ctx, n, false) // its own steps hold places
	default:
		n.phase = ready
		s.ready = append(s.ready, n)
	}
}

// skip settles a step whose condition does not hold.
func (s *scope) skip(n *node, v workflow.Values, why string) {
	n.result = workflow.Result{Outcome: "skipped", Conclusion: "skipped"}
	if n.in.Step.Optional {
		n.result.Conclusion = "success"
	}
	if n.failedBefore = v.Failed; n.failedBefore {
		n.phase = settled
		s.p.h.Tell(engine.StepEnded, s.notice(n, engine.StepNotice{Status: "held", Why: "a step that it needs failed"}))
		return
	}
	if v.Skipped {
		why = "a step that it needs was skipped"
	}
	s.settle(n, "skipped", why)
}

// settle gives a step a result without running it.
func (s *scope) settle(n *node, status, why string) {
	n.phase = settled
	s.p.h.Tell(engine.StepEnded, s.notice(n, engine.StepNotice{Status: status, Why: why}))
}

// invalid fails a step that cannot even be said.
func (s *scope) invalid(n *node, err error) {
	n.result = workflow.Result{Outcome: "failure", Conclusion: "failure"}
	f := invalidStep(n, err)
	f.Step = n.id
	s.finishFailed(n, stepFailure{failure: &f, exit: 1})
	n.phase = settled
	s.p.h.Tell(engine.StepEnded, s.notice(n, engine.StepNotice{Status: store.StepFailure, Failure: &f}))
}

// invalidStep is the failure of a step that only a change of its file can cure.
func invalidStep(n *node, err error) failure.Analysis {
	return failure.Analysis{
		Class: failure.Validation, Kind: failure.Permanent, Severity: failure.High,
		Fingerprint: "step-invalid-" + n.in.Hash, Summary: err.Error(),
		Actions: []string{"Correct the step in the workflow, and resume."},
	}
}

// finishFailed counts the failure of a step for the iteration, unless the
// workflow succeeds without it.
func (s *scope) finishFailed(n *node, f stepFailure) {
	if n.in.Step.Optional {
		n.result.Conclusion = "success"
		return
	}
	s.recordFailure(f, n.id)
}

// halts is true when a failure keeps steps of this scope from starting.
func (s *scope) halts() bool {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	for at := s; at != nil; at = at.above {
		if at.halted {
			return true
		}
	}
	return s.p.err != nil
}

// notice adds to what is told of a step what is always told.
func (s *scope) notice(n *node, m engine.StepNotice) engine.StepNotice {
	st := n.in.Step
	m.Step, m.Kind, m.Optional = n.id, string(st.Kind), st.Optional
	if m.Agent == "" && m.Alternate == 0 && st.Kind == workflow.Agent {
		m.Agent = s.p.agentOf(n, st.Work)
	}
	return m
}

// count sums up the scope's steps.
func (s *scope) count() *loop.Steps {
	t := &loop.Steps{Total: len(s.nodes), Complete: true}
	for _, n := range s.nodes {
		switch {
		case n.phase != settled:
			t.Complete = false
		case n.result.Outcome == "success":
			t.Done++
		case n.result.Outcome == "skipped":
			t.Skipped++
			t.Complete = t.Complete && !n.failedBefore
		case n.result.Conclusion == "success":
			t.Missed++
		default:
			t.Complete = false
		}
	}
	return t
}

// left counts the steps that are still to be done.
func (s *scope) left() int {
	left := 0
	for _, n := range s.nodes {
		if n.phase != settled || n.failedBefore || n.result.Conclusion == "failure" || n.result.Conclusion == "cancelled" {
			left++
		}
	}
	return left
}

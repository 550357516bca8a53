package run

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/keep/journal"
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

// knowHistory reads what the run did before this session, once.
func (r *Runner) knowHistory(ctx context.Context, h *engine.StepContext) error {
	if r.history != nil {
		return nil
	}
	rows, err := h.Store().StepsWithOutput(ctx, h.Run())
	if err != nil {
		return err
	}
	history := map[string][]*execution{}
	for _, row := range rows {
		e, err := executionOf(row)
		if err != nil {
			return err
		}
		history[row.Step] = withExecution(history[row.Step], e)
	}
	r.history = history
	return nil
}

// withExecution adds an execution, and forgets the oldest where there are too many.
func withExecution(list []*execution, e *execution) []*execution {
	if len(list) >= maxHistory {
		list = slices.Clone(list[len(list)-maxHistory/2:])
	}
	return append(list, e)
}

func newIterationPass(h *engine.StepContext, c loop.Command, o Options, history map[string][]*execution) *pass {
	pol := h.Plan().Policy
	p := &pass{h: h, c: c, o: o, once: pol.Once, history: history}
	p.slot = make(chan struct{}, slotCount(o.Flow.Plan, &pol, c))
	if c.Limits.Wall > 0 {
		p.deadline = time.Now().Add(c.Limits.Wall)
		p.timeUp = h.Plan().FailureOfTime(c.Limits.Wall)
	}
	for _, list := range history { // order does not show: a sum
		for _, e := range list {
			if e.Iteration == c.Iteration && e.Attempt == c.Attempt {
				p.used.addUsage(e.record.Usage)
			}
		}
	}
	p.limits = newBudget(c.Limits, p.used)
	return p
}

// executionsOf are the executions of a step, oldest first.
func (p *pass) executionsOf(id string) []*execution {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.history[id])
}

// latestOf is the newest execution of a step; nil for none.
func (p *pass) latestOf(id string) *execution {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.history[id]
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// mustStop reports whether nothing more is to start.
func (p *pass) mustStop(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	pausing := p.h.Pausing(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pausing = p.pausing || pausing
	return p.pausing || p.err != nil || p.ended != loop.NotEnded
}

// failureIsFinal is true when a failure in the scope is its last word, so that steps
// that ask for it run: there is no further iteration, and no further try of the
// step whose workflow this is.
func (s *scope) failureIsFinal() bool {
	permanent := s.failedForGood()
	for at := s; at.above != nil; at = at.above {
		if at.again {
			return false
		}
		permanent = permanent || at.optional || at.above.failedForGood()
	}
	return s.p.once || s.p.h.Last() || permanent
}

// failedForGood reports whether a required step failed in a way that only a person can cure.
func (s *scope) failedForGood() bool {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.first != nil && s.first.failure.Kind == failure.Permanent
}

// recordFailure makes the failure of required steps that of their workflow. That of a
// workflow that is a step counts for the one above when the step has failed.
func (s *scope) recordFailure(f stepFailure, ids ...string) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.first = cmp.Or(s.first, &f)
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
	then         phase // what comes after running, set by who runs it; pending: closed
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

// runSteps closes what needs not run, and waits for all that it started.
func (s *scope) runSteps(ctx context.Context) {
	for {
		s.advanceAll(ctx)
		if s.active == 0 && len(s.ready) == 0 {
			return
		}
		var slot chan<- struct{}
		if len(s.ready) > 0 {
			slot = s.p.slot
		}
		select {
		case slot <- struct{}{}:
			if n := s.nextReady(ctx); n != nil {
				s.startStep(ctx, n, true)
				continue
			}
			<-s.p.slot
		case n := <-s.ended:
			s.active--
			s.closeStep(n)
		}
	}
}

// mustStop reports whether nothing more of the scope is to start.
func (s *scope) mustStop(ctx context.Context) bool { return s.p.mustStop(ctx) || s.isExpired() }

// isExpired reports whether the time of the step whose workflow this is is up.
func (s *scope) isExpired() bool { return !s.deadline.IsZero() && !time.Now().Before(s.deadline) }

// nextReady takes the first step that is ready, and leaves all of them when nothing
// is to start any more.
func (s *scope) nextReady(ctx context.Context) *node {
	if s.mustStop(ctx) {
		for _, n := range s.ready {
			n.phase = deferred
		}
		s.ready = nil
		return nil
	}
	halted := s.isHalted()
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

// startStep runs a step; slotted when it holds one of the places.
func (s *scope) startStep(ctx context.Context, n *node, slotted bool) {
	n.phase = running
	s.active++
	go func() {
		s.performStep(ctx, n)
		if slotted {
			<-s.p.slot
		}
		s.ended <- n
	}()
}

// closeStep takes the result of a step that ran.
func (s *scope) closeStep(n *node) {
	n.phase = settled
	if n.then != pending {
		n.phase, n.then = n.then, pending
	}
}

// advanceAll moves on every instance whose needs are over, in the order of the plan,
// so that one pass over them is enough.
func (s *scope) advanceAll(ctx context.Context) {
	for _, n := range s.nodes {
		if n.phase != pending || !s.hasNeedsDone(n) {
			continue
		}
		s.decideStep(ctx, n)
	}
}

// hasNeedsDone reports whether nothing that n needs is still to run in this pass.
func (s *scope) hasNeedsDone(n *node) bool {
	return !slices.ContainsFunc(n.in.Needs, func(k int) bool {
		return slices.Contains([]phase{pending, ready, running}, s.nodes[k].phase)
	})
}

// phaseByNeeds of an instance, before its condition is asked: deferred, blocked, or
// pending where they leave it free.
func (s *scope) phaseByNeeds(n *node) phase {
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

// decideStep closes or queues an instance whose needs are over.
func (s *scope) decideStep(ctx context.Context, n *node) {
	st := n.in.Step
	if n.phase = s.phaseByNeeds(n); n.phase != pending {
		return
	}
	v := s.valuesFor(n)
	if v.Failed && st.Condition.AsksStatus() && !s.failureIsFinal() {
		n.phase = deferred
		return
	}
	holds, g, err := s.fillTexts(n, v)
	switch {
	case err != nil:
		s.failInvalid(n, err)
	case !holds:
		s.skipStep(n, v)
	case st.Optional && s.p.c.SkipOptional && !s.p.isResultKept(n, &g):
		n.result = workflow.Result{Outcome: "skipped", Conclusion: "success"}
		s.closeUnrun(n, "skipped", "the strategy skips optional steps")
	default:
		n.given, n.values = g, v
		s.queueStep(ctx, n)
	}
}

// isResultKept reports whether the result of the step is kept.
func (p *pass) isResultKept(n *node, g *given) bool {
	keep, _ := keptExecution(p.executionsOf(n.id), n.in.Hash, n.in.InputHash(g.inputKey()), n.in.Step.Optional)
	return keep != nil
}

// queueStep keeps the result of a step that is done, and makes any other ready.
func (s *scope) queueStep(ctx context.Context, n *node) {
	past := s.p.executionsOf(n.id)
	keep, why := keptExecution(past, n.in.Hash, n.in.InputHash(n.given.inputKey()), n.in.Step.Optional)
	if keep != nil {
		n.result = keep.resultOf()
		if keep.Status == store.StepFailure {
			why = "optional, and failed before"
		}
		s.closeUnrun(n, "kept", why)
		return
	}
	n.why = why
	halted := s.isHalted() && !n.in.Step.Condition.AsksStatus()
	switch kind := n.in.Step.Kind; {
	case s.mustStop(ctx):
		n.phase = deferred
	case halted:
		n.phase = blocked
	case kind == workflow.Ask:
		s.askPerson(ctx, n)
	case kind == workflow.Nested:
		s.startStep(ctx, n, false) // its own steps hold places
	default:
		n.phase = ready
		s.ready = append(s.ready, n)
	}
}

// skipStep closes a step whose condition does not hold.
func (s *scope) skipStep(n *node, v workflow.Values) {
	n.result = workflow.Result{Outcome: "skipped", Conclusion: "skipped"}
	if n.in.Step.Optional {
		n.result.Conclusion = "success"
	}
	if n.failedBefore = v.Failed; n.failedBefore {
		n.phase = settled
		s.p.h.Tell(engine.StepEnded, s.noticeOf(n, journal.Step{Status: "held", Why: "a step that it needs failed"}))
		return
	}
	why := "its condition is false"
	if v.Skipped {
		why = "a step that it needs was skipped"
	}
	s.closeUnrun(n, "skipped", why)
}

// closeUnrun closes a step with its result, without running it.
func (s *scope) closeUnrun(n *node, status, why string) {
	n.phase = settled
	s.p.h.Tell(engine.StepEnded, s.noticeOf(n, journal.Step{Status: status, Why: why}))
}

// failInvalid fails a step that cannot even be said.
func (s *scope) failInvalid(n *node, err error) {
	n.result = workflow.Result{Outcome: "failure", Conclusion: "failure"}
	f := invalidStep(n, err)
	f.Step = n.id
	s.finishFailed(n, stepFailure{failure: &f, exit: 1})
	n.phase = settled
	s.p.h.Tell(engine.StepEnded, s.noticeOf(n, journal.Step{Status: store.StepFailure, Summary: f.Summary}))
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

// isHalted reports whether a failure keeps steps of this scope from starting.
func (s *scope) isHalted() bool {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	for at := s; at != nil; at = at.above {
		if at.halted {
			return true
		}
	}
	return s.p.err != nil
}

// noticeOf adds to a notice about a step what each has.
func (s *scope) noticeOf(n *node, m journal.Step) journal.Step {
	st := n.in.Step
	m.Step, m.Kind = n.id, string(st.Kind)
	if m.Agent == "" && m.Alternate == 0 && st.Kind == workflow.Agent {
		m.Agent = s.p.agentOfStep(n, st.Work)
	}
	return m
}

// countSteps sums up the scope's steps.
func (s *scope) countSteps() *loop.Steps {
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

// countLeft counts the steps that are still to be done.
func (s *scope) countLeft() int {
	left := 0
	for _, n := range s.nodes {
		bad := n.failedBefore || n.result.Conclusion == "failure" || n.result.Conclusion == "cancelled"
		if bad || n.phase != settled {
			left++
		}
	}
	return left
}

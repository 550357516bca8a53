package run

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
)

// Flow is a workflow with those that its steps run.
type Flow struct {
	Path   string // of the file, absolute
	Plan   *workflow.Plan
	Nested map[string]*Flow // by the step's id; not there if its name has a placeholder
}

// Options is what a runner works with.
type Options struct {
	Flow *Flow
	// Context are the values of --context, by name.
	Context map[string]string
	// Load reads the workflow of a step whose file was not known before; dir is
	// the folder of the file that names it.
	Load func(dir, name string) (*Flow, error)
	// Procedure makes the plan of a procedure that a step drives.
	Procedure func(name string) (runplan.Plan, error)
}

// Runner runs a workflow. It is an [engine.Work].
type Runner struct {
	o Options
	// history is what is known of each step, oldest first; nil until it was read.
	history map[string][]*execution
}

// New makes a runner of a workflow, for one run.
func New(o Options) *Runner { return &Runner{o: o} }

// Iterate is one pass over the steps that are not done yet.
func (r *Runner) Iterate(ctx context.Context, h *engine.StepContext, c loop.Command) (*loop.Record, error) {
	if err := r.knowHistory(ctx, h); err != nil {
		return nil, err
	}
	p := newIterationPass(h, c, r.o, r.history)
	top := newScope(p, r.o.Flow, "", nil)
	p.abandonGone(ctx, top)
	top.runSteps(ctx)
	if p.err != nil {
		return nil, p.err
	}
	rec := p.recordOf(ctx, top)
	if rec.Steps.Complete {
		rec.Steps.Agent = p.agentsWorked()
		return rec, p.failTampered(ctx, rec)
	}
	return rec, nil
}

// abandonGone ends what an earlier pawl began of steps that are gone by now.
func (p *pass) abandonGone(ctx context.Context, top *scope) {
	known := lists.Set(lists.Each(top.nodes, func(n *node) string { return n.id }))
	for id, list := range p.history { // order does not show: each is ended by itself
		above, _, _ := strings.Cut(id, "/")
		if !known[id] && !known[above] {
			p.abandonExecution(ctx, list[len(list)-1])
		}
	}
}

// slotCount is how many steps run at once: the workflow's number, or a lower one of the
// strategy in force.
func slotCount(plan *workflow.Plan, pol *loop.Policy, c loop.Command) int {
	n := plan.Parallelism
	if st := strategy.At(c.Strategy, pol.Strategies); c.Strategy != strategy.Default && st.Parallelism > 0 {
		n = min(n, st.Parallelism)
	}
	if c.Parallelism > 0 {
		n = min(n, c.Parallelism)
	}
	return max(1, min(n, lanes.Most))
}

// recordOf the whole pass.
func (p *pass) recordOf(ctx context.Context, top *scope) *loop.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := top.countSteps()
	r := &loop.Record{Agent: p.c.Agent, Progress: -1, Score: -1, CostSource: "none", Steps: t}
	if t.Total > 0 {
		r.Score = (t.Total - top.countLeft()) * 1000 / t.Total
	}
	p.used.copyInto(r)
	if f := top.first; f != nil {
		r.Failure, r.Exit.Code = f.failure, f.exit
		if t.Agent = f.agent != ""; f.failure.Provider {
			t.Limited = f.agent
		}
		if pol := p.h.Plan().Policy; f.agent == pol.Agent || slices.Contains(pol.Fallback, f.agent) {
			r.Agent = f.agent // who met the limit, if it is one of a provider
		}
	}
	t.Failed = top.wrong
	t.Ran = p.ran
	switch {
	case ctx.Err() != nil:
		r.Exit = loop.Exit{Code: -1, Ended: loop.EndedStop}
	case p.ended != loop.NotEnded && !t.Complete:
		r.Exit = loop.Exit{Code: -1, Ended: p.ended}
	}
	if r.Failure == nil && len(p.asks) > 0 {
		if t.Asks = &p.asks[0]; len(p.asks) > 1 {
			t.Open = p.asks
		}
	}
	t.Pausing = p.pausing
	return r
}

// timeLimitOf a job of a step is the most that it may take; iteration is true when that
// is the rest of the iteration's time.
func (s *scope) timeLimitOf(own time.Duration) (wall time.Duration, iteration bool) {
	wall, _ = withinDeadline(own, s.deadline)
	return withinDeadline(wall, s.p.deadline)
}

// withinDeadline is the time until a deadline where that is less; 0 is no limit, and
// what is over leaves a millisecond.
func withinDeadline(limit time.Duration, deadline time.Time) (wall time.Duration, less bool) {
	if deadline.IsZero() {
		return limit, false
	}
	left := max(time.Until(deadline), time.Millisecond)
	if limit <= 0 || left < limit {
		return left, true
	}
	return limit, false
}

// timeoutOf is the limit of one attempt of a step: its own, or what the strategy
// gives those that have none, while the workflow iterates.
func (p *pass) timeoutOf(s *workflow.Planned) time.Duration {
	if s.Timeout > 0 {
		return s.Timeout * time.Duration(max(p.c.GateFactor, 1))
	}
	if p.once {
		return 0
	}
	return p.c.StepTimeout
}

func (p *pass) recordError(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = cmp.Or(p.err, err)
}

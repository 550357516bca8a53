package run

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workflow"
)

// maxDepth bounds workflows in workflows whose names are found while they run.
const maxDepth = 8

// nested runs the workflow of a step, its steps beside those of the one above.
func (s *scope) nested(ctx context.Context, n *node) {
	flow, err := s.below(n)
	if err != nil {
		s.invalid(n, err)
		return
	}
	inner := newScope(s.p, flow, n.id+"/", n.given.environ())
	inner.above, inner.optional = s, s.optional || n.in.Step.Optional
	inner.run(ctx)
	t := inner.count()
	switch {
	case t.Complete:
		s.complete(ctx, n, inner)
	case inner.broken():
		n.result = workflow.Result{Outcome: "failure", Conclusion: "failure"}
		if n.in.Step.Optional {
			n.result.Conclusion = "success"
		}
	case inner.waiting():
		n.then = left
	default:
		n.then = barred
	}
}

// waiting is true when a step of the scope waits for a person, or for the run to go on.
func (s *scope) waiting() bool {
	for _, n := range s.nodes {
		if n.phase == left {
			return true
		}
	}
	return false
}

// below is the workflow that a step runs.
func (s *scope) below(n *node) (*Flow, error) {
	if f := s.flow.Nested[n.in.Step.ID]; f != nil {
		return f, nil
	}
	if s.depth() >= maxDepth {
		return nil, fmt.Errorf("workflows are nested too deeply (over %d levels)", maxDepth)
	}
	return s.p.o.Load(filepath.Dir(s.flow.Path), n.given.content)
}

func (s *scope) depth() int {
	depth := 1
	for _, c := range s.prefix {
		if c == '/' {
			depth++
		}
	}
	return depth
}

// broken is true when a required step of the scope failed.
func (s *scope) broken() bool {
	for _, n := range s.nodes {
		if n.phase == settled && n.result.Conclusion == "failure" {
			return true
		}
	}
	return false
}

// complete stores that the workflow of a step is done: its output is that of
// its last step, its outputs are those of all.
func (s *scope) complete(ctx context.Context, n *node, inner *scope) {
	e := s.execution(n, attempt{try: 1})
	e.record.Kind = string(workflow.Nested)
	outputs := map[string]string{}
	for _, m := range inner.nodes {
		e.Output = m.result.Output
		for k, v := range m.result.Outputs {
			outputs[k] = v
		}
	}
	e.Status = sqlite.StepSuccess
	d := &doing{s: s, n: n, e: e}
	if err := d.succeed(ctx, outputs); err != nil {
		s.p.fail(err)
		n.then = left
		return
	}
	if e.Status == sqlite.StepCancelled || e.Status == sqlite.StepInterrupted {
		n.then = left
		return
	}
	if err := s.p.put(e, journal.StepStarted); err != nil {
		s.p.fail(err)
		n.then = left
		return
	}
	s.p.mu.Lock()
	s.p.history[n.id] = remembered(s.p.history[n.id], e)
	s.p.mu.Unlock()
	if err := s.p.finished(n, s, e); err != nil {
		s.p.fail(err)
		n.then = left
		return
	}
	n.result = e.result()
	if e.Status != sqlite.StepSuccess {
		s.failed(n)
	}
}

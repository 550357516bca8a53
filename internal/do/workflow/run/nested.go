package run

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// maxDepth bounds workflows in workflows whose names are found while they run.
const maxDepth = 8

// runNested runs the workflow of a step, its steps beside those of the one above.
// What is done in there stays done when the step is tried again; last is true
// when it is not.
func (d *activeAttempt) runNested(ctx context.Context, last bool) error {
	s, n := d.s, d.n
	flow, err := s.nestedFlow(n)
	if err != nil {
		return d.cannotStart(invalidStep(n, err))
	}
	if d.resumed {
		s.p.h.Tell(engine.StepStarted, s.noticeOf(n, journal.Step{Try: d.e.record.Try, Status: "adopted"}))
	} else if err := s.p.storeBegin(s, n, d.e); err != nil {
		return err
	}
	inner := newScope(s.p, flow, n.id+"/", n.given.envWith())
	inner.above, inner.optional, inner.again, inner.round = s, n.in.Step.Optional, !last, d.e.N
	limit := leastLimit(n.in.Step.Timeout*time.Duration(max(s.p.c.GateFactor, 1)), flow.Plan.Timeout)
	inner.deadline = soonerDeadline(s.deadline, time.Now(), limit)
	n.below = inner
	inner.runSteps(ctx)
	return d.endNested(ctx, inner, limit)
}

// leastLimit is the smaller of two limits of which 0 is none.
func leastLimit(a, b time.Duration) time.Duration {
	if a <= 0 || b <= 0 {
		return max(a, b)
	}
	return min(a, b)
}

// soonerDeadline is the earlier of a deadline and the end of a limit that begins now.
func soonerDeadline(deadline, now time.Time, limit time.Duration) time.Time {
	if limit <= 0 {
		return deadline
	}
	if end := now.Add(limit); deadline.IsZero() || end.Before(deadline) {
		return end
	}
	return deadline
}

// endNested makes the end of the step's workflow that of the step.
func (d *activeAttempt) endNested(ctx context.Context, inner *scope, limit time.Duration) error {
	t := inner.countSteps()
	switch {
	case t.Complete:
		return d.completeNested(ctx, inner)
	case ctx.Err() != nil:
		d.e.Status = store.StepCancelled
	case inner.isExpired():
		d.timedOut(t, limit)
	case inner.isBroken():
		d.e.Status, d.e.record.Failure = store.StepFailure, inner.first.failure
	case inner.isAsking():
		d.e.Status = store.StepAsking
	default:
		d.e.Status = store.StepCancelled
	}
	return nil
}

// timedOut fails a step whose workflow was not done in time.
func (d *activeAttempt) timedOut(t *loop.Steps, limit time.Duration) {
	f := failure.Analyse(failure.Evidence{Source: "step", Name: d.n.id, ExitCode: -1, TimedOut: true, Now: time.Now()})
	f.Summary = "out of time: " + t.String()
	if limit > 0 {
		f.Summary = "timed out after " + limit.String() + ": " + t.String()
	}
	d.failAttempt(f)
	d.e.record.Exit = loop.Exit{Code: -1, Ended: loop.EndedTimeout}
}

// completeNested makes the step done with its workflow: its output is that of the
// last step in there, its outputs are those of all.
func (d *activeAttempt) completeNested(ctx context.Context, inner *scope) error {
	outputs := map[string]string{}
	for _, m := range inner.nodes {
		d.e.Output = m.result.Output
		maps.Copy(outputs, m.result.Outputs)
	}
	d.e.Status = store.StepSuccess
	return d.completeAttempt(ctx, outputs)
}

// isWaiting reports whether a step of the scope waits for a person, or for the run to resume.
func (s *scope) isWaiting() bool {
	return slices.ContainsFunc(s.nodes, func(n *node) bool { return n.phase == deferred })
}

// isAsking reports whether a step of the scope waits for a person.
func (s *scope) isAsking() bool {
	return slices.ContainsFunc(s.nodes, func(n *node) bool {
		last := s.p.latestOf(n.id)
		return n.phase == deferred && last != nil && last.Status == store.StepAsking
	})
}

// isBroken reports whether a required step of the scope failed.
func (s *scope) isBroken() bool {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.first != nil
}

// nestedFlow is the workflow that a step runs.
func (s *scope) nestedFlow(n *node) (*Flow, error) {
	if f := s.flow.Nested[n.in.Step.ID]; f != nil {
		return f, nil
	}
	if strings.Count(s.prefix, "/")+1 >= maxDepth {
		return nil, fmt.Errorf("workflows are nested too deeply (over %d levels)", maxDepth)
	}
	return s.p.o.Load(filepath.Dir(s.flow.Path), n.given.content)
}

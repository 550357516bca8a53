package run

import (
	"context"
	"maps"
	"slices"

	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/internal/workflow"
)

// This file holds agents of steps to the protected files. What an agent finds
// is what it must leave: each of its executions is compared with the tree
// before it. One that did not leave it so is compared with that tree again, and
// so is whatever is tried in its place, until the files are put back. Commands
// are the user's own words and may change what they like; procedures are held
// to it by their own run.

// maxTampered bounds the paths that are kept of an execution.
const maxTampered = 20

// watchFiles notes what an attempt is compared with when it has ended.
func (d *activeAttempt) watchFiles(ctx context.Context, kind workflow.Kind) {
	if last := d.s.p.latest(d.n.id); last != nil {
		unknown := last.Status == store.StepCancelled || last.Status == store.StepInterrupted
		d.e.record.Watched = last.record.Watched
		open := unknown || len(last.record.Tampered) > 0
		if open && d.e.record.Watched != nil {
			return
		}
	}
	if d.e.record.Watched = nil; kind == workflow.Agent {
		d.e.record.Watched = d.s.p.h.Watch(ctx)
	}
}

// lookAtFiles fails an attempt after which a protected file is not what it was.
func (d *activeAttempt) lookAtFiles(ctx context.Context) {
	paths, f := d.s.p.h.Tampered(ctx, d.e.record.Watched)
	d.e.record.Tampered = paths[:min(len(paths), maxTampered)]
	if f != nil && d.e.Status == store.StepSuccess {
		d.e.Status, d.e.record.Failure = store.StepFailure, f
	}
}

// unprotected fails an iteration in which all is done, but for protected files
// that a step which the workflow can do without has changed. That step runs again.
func (p *pass) unprotected(ctx context.Context, r *loop.Record) error {
	for _, id := range p.ids() {
		e := p.latest(id)
		if e.Status != store.StepFailure || len(e.record.Tampered) == 0 {
			continue
		}
		paths, f := p.h.Tampered(ctx, e.record.Watched)
		if f == nil {
			continue
		}
		f.Step = id
		r.Failure, r.Tampered, r.Exit.Code, r.Steps.Complete, r.Steps.Agent = f, paths, 1, false, true
		e.Status, e.record.Failure = store.StepRefused, f
		return e.store(p.h, journal.StepEnded)
	}
	return nil
}

// agentsWorked is true when an agent did one of the steps.
func (p *pass) agentsWorked() bool {
	for _, id := range p.ids() {
		if k := p.latest(id).record.Kind; k == string(workflow.Agent) || k == string(workflow.Procedure) {
			return true
		}
	}
	return false
}

// ids are the steps that were executed in this run, in order.
func (p *pass) ids() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.history))
}

package run

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file takes back work that a gate or a review refuses when all steps are
// done. The rules are:
//   - Refused is the work of the last agents: of each agent's step, or
//     procedure's, on which no other one builds. They run again with what was
//     refused in their prompt, and so does all that builds on them.
//   - Commands are not refused: they would do the same again. Where no step is
//     an agent's, nothing is taken back, and only the gates run again.

// Refuse takes back the work that the record's gates or review refuse.
func (r *Runner) Refuse(ctx context.Context, h *engine.StepContext, rec *loop.Record) error {
	if err := r.knowHistory(ctx, h); err != nil {
		return err
	}
	b := &refusal{history: r.history, iteration: rec.Number}
	b.refuseFlow(r.o.Flow, "")
	for _, id := range b.wrong {
		if err := b.refuseStep(h, id, rec.Failure); err != nil {
			return err
		}
	}
	for _, id := range b.again {
		if err := b.refuseStep(h, id, nil); err != nil {
			return err
		}
	}
	return nil
}

// refusal says which steps' work an iteration's gates or review refuse.
type refusal struct {
	history   map[string][]*execution
	iteration int
	wrong     []string // whose own work is refused
	again     []string // that only build on it, or run the workflow that it is in
}

// refuseFlow refuses what the last agents of a workflow did, and what builds on it.
func (b *refusal) refuseFlow(f *Flow, prefix string) {
	all := f.Plan.Instances
	builds := make([]bool, len(all)) // an agent's step builds on it
	for i := len(all) - 1; i >= 0; i-- {
		if builds[i] || b.agentWorked(prefix+all[i].ID) {
			for _, k := range all[i].Needs {
				builds[k] = true
			}
		}
	}
	refused := make([]bool, len(all))
	for i := range all {
		id := prefix + all[i].ID
		if b.agentWorked(id) && !builds[i] {
			refused[i] = true
			b.lastAgent(f, all[i].Step, id)
			continue
		}
		for _, k := range all[i].Needs {
			refused[i] = refused[i] || refused[k]
		}
		if refused[i] {
			b.again = append(b.again, id)
		}
	}
}

// lastAgent refuses the work of a last agent; of a workflow that is a step,
// that of the last ones in there.
func (b *refusal) lastAgent(f *Flow, step *workflow.Planned, id string) {
	if step.Kind != workflow.Nested || b.kindOfDoneStep(id) != string(workflow.Nested) {
		b.wrong = append(b.wrong, id)
		return
	}
	b.again = append(b.again, id)
	if below := f.Nested[step.ID]; below != nil {
		b.refuseFlow(below, id+"/")
		return
	}
	b.wrong = append(b.wrong, b.nestedSteps(id)...)
}

// agentWorked reports whether the step is done, and an agent worked on it; of a workflow that
// is a step, one worked in there.
func (b *refusal) agentWorked(id string) bool {
	switch b.kindOfDoneStep(id) {
	case string(workflow.Agent), string(workflow.Procedure):
		return true
	case string(workflow.Nested):
		return slices.ContainsFunc(b.nestedSteps(id), b.agentWorked)
	}
	return false
}

// nestedSteps are the steps of a step's workflow, those of workflows in there too.
func (b *refusal) nestedSteps(id string) []string {
	var ids []string
	for inner := range b.history { // order does not show: sorted below
		if strings.HasPrefix(inner, id+"/") {
			ids = append(ids, inner)
		}
	}
	slices.Sort(ids)
	return ids
}

// newestDone is the execution of a step that is done, or that was taken back already;
// nil for none. One of a later iteration was made after the refusal.
func (b *refusal) newestDone(id string) *execution {
	list := b.history[id]
	if len(list) == 0 {
		return nil
	}
	e := list[len(list)-1]
	done := e.Status == store.StepSuccess || e.Status == store.StepRefused
	if !done || e.Iteration > b.iteration {
		return nil
	}
	return e
}

// kindOfDoneStep a step that is done; "" for one that is not.
func (b *refusal) kindOfDoneStep(id string) string {
	if e := b.newestDone(id); e != nil {
		return e.record.Kind
	}
	return ""
}

// refuseStep makes a step that is done one that runs again. why is nil for one that
// only builds on what is refused.
func (b *refusal) refuseStep(h *engine.StepContext, id string, why *failure.Analysis) error {
	e := b.newestDone(id)
	if e == nil || e.Status == store.StepRefused {
		return nil
	}
	e.Status, e.record.Failure = store.StepRefused, why
	return e.storeExecution(h, journal.StepEnded)
}

// The agent of a step must leave protected files as it found them: the tree after each of
// its executions is compared with the tree before it. When they differ, whatever is tried
// next is compared with that same tree, until the files are put back. Commands are the
// user's own words and may change what they like; procedures are held to it by their own
// run.

// maxTampered bounds the paths that are kept of an execution.
const maxTampered = 20

// watchFiles notes what an attempt is compared with when it has ended.
func (d *activeAttempt) watchFiles(ctx context.Context, kind workflow.Kind) {
	if last := d.s.p.latestOf(d.n.id); last != nil {
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

// failTampered fails an iteration in which all is done, but for protected files
// that a step which the workflow can do without has changed. That step runs again.
func (p *pass) failTampered(ctx context.Context, r *loop.Record) error {
	for _, id := range p.executedSteps() {
		e := p.latestOf(id)
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
		return e.storeExecution(p.h, journal.StepEnded)
	}
	return nil
}

// agentsWorked is true when an agent did one of the steps.
func (p *pass) agentsWorked() bool {
	return slices.ContainsFunc(p.executedSteps(), func(id string) bool {
		kind := p.latestOf(id).record.Kind
		return kind == string(workflow.Agent) || kind == string(workflow.Procedure)
	})
}

func (p *pass) executedSteps() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.history))
}

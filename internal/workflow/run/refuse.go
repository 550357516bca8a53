package run

import (
	"context"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/internal/workflow"
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
	if r.history == nil {
		var err error
		if r.history, err = readHistory(ctx, h); err != nil {
			return err
		}
	}
	b := &refusal{history: r.history, iteration: rec.Number}
	b.flow(r.o.Flow, "")
	for _, id := range b.wrong {
		if err := b.refuse(h, id, rec.Failure); err != nil {
			return err
		}
	}
	for _, id := range b.again {
		if err := b.refuse(h, id, nil); err != nil {
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

// flow refuses what the last agents of a workflow did, and what builds on it.
func (b *refusal) flow(f *Flow, prefix string) {
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
	if step.Kind != workflow.Nested || b.kind(id) != string(workflow.Nested) {
		b.wrong = append(b.wrong, id)
		return
	}
	b.again = append(b.again, id)
	if below := f.Nested[step.ID]; below != nil {
		b.flow(below, id+"/")
		return
	}
	b.wrong = append(b.wrong, b.inside(id)...)
}

// agentWorked is true for a step that is done and that an agent worked on; of
// a workflow that is a step, when one worked in there.
func (b *refusal) agentWorked(id string) bool {
	switch b.kind(id) {
	case string(workflow.Agent), string(workflow.Procedure):
		return true
	case string(workflow.Nested):
		return slices.ContainsFunc(b.inside(id), b.agentWorked)
	}
	return false
}

// inside are the steps of a step's workflow, those of workflows in there too.
func (b *refusal) inside(id string) []string {
	var ids []string
	for inner := range b.history { // order does not show: sorted below
		if strings.HasPrefix(inner, id+"/") {
			ids = append(ids, inner)
		}
	}
	slices.Sort(ids)
	return ids
}

// newest is the execution of a step that is done, or that was taken back already;
// nil for none. One of a later iteration was made after the refusal.
func (b *refusal) newest(id string) *execution {
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

// kind is what a step that is done did; "" for one that is not.
func (b *refusal) kind(id string) string {
	if e := b.newest(id); e != nil {
		return e.record.Kind
	}
	return ""
}

// refuse makes a step that is done one that runs again. why is nil for one that
// only builds on what is refused.
func (b *refusal) refuse(h *engine.StepContext, id string, why *failure.Analysis) error {
	e := b.newest(id)
	if e == nil || e.Status == store.StepRefused {
		return nil
	}
	e.Status, e.record.Failure = store.StepRefused, why
	return e.store(h, journal.StepEnded)
}

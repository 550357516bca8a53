package action

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/store"
	flow "github.com/pawl-dev/pawl/internal/workflow/run"
)

// This file answers steps of a workflow where several ask: each has a question
// of its own, and an answer that is kept until the run resumes.

// answerStep keeps an answer to one of the steps that ask. kept is true when
// none is left without one.
func (p *Operator) answerStep(ctx context.Context, r store.Run, asked []loop.Asks, step string,
	words []string) (kept bool, err error) {
	rows, err := p.Store.Controls(ctx, r.ID)
	if err != nil {
		return false, err
	}
	open := unanswered(asked, rows)
	if step == "" && len(open) == 1 {
		step = open[0].Step
	}
	i := slices.IndexFunc(asked, func(q loop.Asks) bool { return q.Step == step })
	switch {
	case len(asked) == 0:
		return false, fault.Refuse("run %s asks nothing of a step; answer it without --step", r.ID)
	case step == "":
		e := fault.Refuse("%d steps of run %s ask; say which one you answer with --step", len(asked), r.ID)
		return false, withAsked(e, r.ID, open, asked)
	case i < 0:
		return false, withAsked(fault.Refuse("step %q of run %s asks nothing", step, r.ID), r.ID, open, asked)
	}
	data, err := json.Marshal(loop.Asks{Step: step, Text: strings.TrimSpace(strings.Join(words, " "))})
	if err != nil {
		return false, err
	}
	if err := p.ask(ctx, r, store.ControlReply, string(data)); err != nil {
		return false, err
	}
	p.Say("The answer to step %s is kept.", report.Line(step, 200))
	open = slices.DeleteFunc(open, func(q loop.Asks) bool { return q.Step == step })
	if len(open) == 0 {
		return true, nil
	}
	p.Say("Not answered yet:")
	for _, q := range open {
		p.Say("  %s: %s", report.Line(q.Step, 200), report.Line(q.Text, 300))
	}
	p.Say("Answer them too, or go on as far as that leads: pawl resume %s", r.ID)
	return false, nil
}

// withAsked adds the steps that ask to an error, with how one is answered.
func withAsked(e *fault.Error, run string, open, asked []loop.Asks) *fault.Error {
	for _, q := range asked {
		state := ""
		if !slices.Contains(open, q) {
			state = " (answered)"
		}
		e = e.Hint("%s: %s%s", report.Line(q.Step, 200), report.Line(q.Text, 300), state)
	}
	if len(open) > 0 {
		asked = open
	}
	return e.Hint("For example: pawl answer %s --step %s TEXT", run, Word(asked[0].Step))
}

// unanswered are the questions of steps that no answer waits for.
func unanswered(asked []loop.Asks, rows []store.Control) []loop.Asks {
	e, _ := engine.Replies(rows, nil)
	return slices.DeleteFunc(slices.Clone(asked), func(q loop.Asks) bool {
		return slices.ContainsFunc(e.Replies, func(r loop.Asks) bool { return r.Step == q.Step })
	})
}

// Word is a step's id as it is typed.
func Word(id string) string {
	if strings.ContainsFunc(id, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./", r)
	}) {
		return "'" + strings.ReplaceAll(id, "'", `'\''`) + "'"
	}
	return id
}

// Executions are those of a workflow's steps, in the order in which they began.
func Executions(ctx context.Context, st *store.Store, run string) ([]report.Execution, error) {
	rows, err := st.StepsWithOutput(ctx, run)
	if err != nil {
		return nil, err
	}
	out := make([]report.Execution, len(rows))
	for i, row := range rows {
		if out[i], err = flow.Shown(row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

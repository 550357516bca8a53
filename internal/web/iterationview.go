package web

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/internal/control"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
)

// iteration is a record for people; those of a run are asked for in order.
func (t *history) iteration(r *loop.Record) Iteration {
	asked := t.asked[[2]int{r.Number, r.Attempt}]
	out := Iteration{
		Number: r.Number, Attempt: r.Attempt, Outcome: string(r.Outcome), Agent: r.Agent,
		Strategy: r.Strategy, StrategyWhy: asked.StrategyWhy, Instruction: instruction(asked),
		StartedAt: r.StartedAt.UTC(), Elapsed: seconds(r.Elapsed), ExitCode: r.Exit.Code,
		Ended: string(r.Exit.Ended), EndedWhy: r.Exit.Why,
		Signal: strings.ToUpper(string(r.Signal.Kind)), SignalText: r.Signal.Text, Malformed: list(r.Malformed),
		Verified: r.Verified, Gates: t.gates(r.Gates), Tampered: list(r.Tampered),
		Review: showReview(r.Review), Failure: t.failure(r.Failure),
		Secrets: append([]SecretFound{}, r.Secrets...), Files: list(r.Files), Commits: r.Commits, Snapshot: r.Snapshot,
		Diff:     r.TreeKnown && r.TreeBefore != "" && r.TreeAfter != "",
		TokensIn: r.TokensIn, TokenOut: r.TokensOut, CostUSD: dollars(int64(r.Cost),
			costKnown(r.CostSource)), Cost: r.CostSource, Calls: r.Calls, Models: list(report.Models(r.Models)),
		Output: r.Output,
	}
	out.Complete, _ = r.Completes()
	if r.Progress >= 0 {
		out.Progress = &r.Progress
	}
	if r.Score >= 0 {
		score := float64(r.Score) / 1000
		out.Score = &score
	}
	if r.Refused != nil {
		out.Refused = &Refused{Why: r.Refused.Why, Command: r.Refused.Command, Tool: r.Refused.Tool,
			Level: string(r.Refused.Level)}
	}
	out.Story = story(&out)
	return out
}

// list is a copy that is never nil: JSON has [] where there is nothing.
func list[T any](of []T) []T { return append([]T{}, of...) }

// each shows every element of a list; it is never nil.
func each[F, T any](of []F, show func(F) T) []T {
	out := make([]T, len(of))
	for i, one := range of {
		out[i] = show(one)
	}
	return out
}

func costKnown(source string) bool { return source != "none" && source != "" }

func (t *history) gates(gates []loop.Gate) []Gate {
	out := make([]Gate, len(gates))
	for i, g := range gates {
		out[i] = Gate{Name: g.Name, Status: string(g.Status), Required: g.Required, Elapsed: seconds(g.Elapsed),
			Timeout: t.timeouts[g.Name], ExitCode: g.ExitCode, Note: g.Note}
		if g.Test && g.Total >= 0 {
			out[i].Passed, out[i].Total = &gates[i].Passed, &gates[i].Total
		}
		if g.Status != loop.GateNotRun {
			out[i].File = fmt.Sprintf("gate-%d.out", i+1)
		}
	}
	return out
}

func (t *history) failure(a *failure.Analysis) *Failure {
	if a == nil {
		return nil
	}
	t.past = append(t.past, *a)
	return &Failure{
		Class: string(a.Class), Kind: string(a.Kind), Transient: a.Transient,
		Severity: string(a.Severity), Summary: a.Summary, Step: a.Step,
		Pattern: failure.Pattern(t.past), Fingerprint: a.Fingerprint, Items: list(a.Items), Actions: list(a.Actions),
	}
}

func showReview(v *loop.Review) *Review {
	if v == nil {
		return nil
	}
	return &Review{
		Verdict: string(v.Verdict), Reviewer: v.Agent, Summary: v.Summary, Elapsed: seconds(v.Elapsed), Tries: v.Tries,
		CostUSD: dollars(int64(v.Cost), costKnown(v.CostSource)), Reverted: list(v.Reverted),
		Items: each(v.Items, func(f loop.Finding) FindingItem {
			return FindingItem{Item: f.Item,
				Severity: string(f.Severity)}
		}),
	}
}

// story tells an iteration in the order in which it happened.
func story(it *Iteration) []StoryElement {
	list := []StoryElement{}
	add := func(what, mark, format string, args ...any) {
		list = append(list, StoryElement{What: what, Mark: mark, Text: fmt.Sprintf(format, args...)})
	}
	if it.StrategyWhy != "" {
		add("strategy", "note", "Strategy %s: %s", it.Strategy, it.StrategyWhy)
	}
	switch {
	case it.Ended != "":
		add("agent", "failed", "pawl ended %s (%s)", it.Agent, strings.TrimSuffix(it.Ended+": "+it.EndedWhy, ": "))
	case it.ExitCode != 0:
		add("agent", "failed", "%s exited with status %d", it.Agent, it.ExitCode)
	default:
		add("agent", "passed", "%s changed %s", it.Agent, fault.Numbered(len(it.Files), "file"))
	}
	if it.Signal != "" {
		add("signal", "note", "It said %s", strings.TrimSuffix(it.Signal+": "+it.SignalText, ": "))
	}
	for _, g := range it.Gates {
		mark := map[string]string{string(loop.GatePassed): "passed", string(loop.GateNotRun): "not run"}[g.Status]
		add("gate", cmp.Or(mark, "failed"), "%s: %s", g.Name, strings.TrimSuffix(g.Status+", "+g.Note, ", "))
	}
	if it.Review != nil {
		mark := map[string]string{string(control.Approved): "passed", string(control.Rejected): "failed"}[it.Review.Verdict]
		add("review", cmp.Or(mark, "note"), "%s: %s", it.Review.Reviewer,
			strings.TrimSuffix(it.Review.Verdict+", "+it.Review.Summary, ", "))
	}
	if it.Failure != nil {
		add("failure", "failed", "%s: %s", it.Failure.Class, it.Failure.Summary)
	}
	if it.Snapshot != "" {
		add("snapshot", "note", "Snapshot %.12s: rollback comes back to here", it.Snapshot)
	}
	return list
}

// endsRun is true for an option after which no agent works.
func endsRun(d control.Effect) bool {
	return d == control.Accept || d == control.TakeOver || d == control.GiveUp
}

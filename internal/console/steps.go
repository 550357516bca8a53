package console

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/store"
)

// This file is what a person sees of a workflow's run: plain lines, the output
// of a step with its id in front.

// stepNotice shows what happened to a step; false when the notice is none.
func (s *Screen) stepNotice(n engine.Notice) bool {
	st := n.Step
	if st == nil {
		return false
	}
	s.steps.take(n)
	switch n.Kind {
	case engine.StepStarted:
		s.stepStarted(n, st)
	case engine.StepOutput:
		s.print("%s | %s", st.Step, Printable(st.Line))
	case engine.StepWaits:
		s.line(n.At, "Step %s waits %s before try %d", st.Step, loop.Duration(st.Elapsed), st.Try)
	case engine.StepEnded:
		s.stepEnded(n, st)
	default:
		return false
	}
	return true
}

func (s *Screen) stepStarted(n engine.Notice, st *engine.StepNotice) {
	if st.Status == "adopted" {
		s.line(n.At, "Step %s goes on: it was begun before pawl was gone", st.Step)
		return
	}
	var how []string
	if st.Agent != "" {
		how = append(how, st.Agent)
	}
	if st.Alternate > 0 {
		how = append(how, fmt.Sprintf("alternative %d", st.Alternate))
	}
	if st.Try > 1 {
		how = append(how, fmt.Sprintf("try %d", st.Try))
	}
	if st.Why != "" {
		how = append(how, "again: "+st.Why)
	}
	text := ""
	if len(how) > 0 {
		text = " (" + strings.Join(how, ", ") + ")"
	}
	s.line(n.At, "Step %s starts%s", st.Step, text)
}

func (s *Screen) stepEnded(n engine.Notice, st *engine.StepNotice) {
	switch st.Status {
	case store.StepSuccess:
		s.line(n.At, "Step %s succeeded in %s", st.Step, loop.Duration(st.Elapsed))
	case store.StepFailure:
		text := ""
		if st.Failure != nil {
			text = ": " + report.Line(st.Failure.Summary, 300)
		}
		s.line(n.At, "Step %s failed after %s%s", st.Step, loop.Duration(st.Elapsed), text)
	case "held":
		s.note("step %s waits: %s", st.Step, st.Why)
	case "kept":
		if st.Why != "" {
			s.note("step %s: %s", st.Step, st.Why)
		} else {
			s.note("step %s was done before", st.Step)
		}
	case "skipped":
		s.line(n.At, "Step %s is skipped: %s", st.Step, st.Why)
	case store.StepAsking:
		s.line(n.At, "Step %s waits for a person", st.Step)
	default:
		s.line(n.At, "Step %s: %s", st.Step, st.Status)
	}
}

// Printable takes out of a line what a terminal would obey, and leaves its blanks.
func Printable(line string) string {
	return strings.Map(func(r rune) rune {
		obeyed := unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
		if obeyed && r != '\t' {
			return -1
		}
		return r
	}, line)
}

// passEnded prints the result of an iteration of a workflow: failure, analysis,
// and what is tried next.
func (s *Screen) passEnded(n engine.Notice) {
	r := n.Record
	switch {
	case r.Outcome == loop.Failed && r.Failure != nil:
		s.line(n.At, "WARNING: Iteration %s failed in %s: %s", Of(r.Number, n.State.Limit), loop.Duration(r.Elapsed),
			stepFailure(r))
		s.line(n.At, "Analysis: %s", analysis(r.Failure))
	case r.Exit.Ended != loop.EndedStop && r.Outcome != loop.Waited:
		s.line(n.At, "Iteration %s completed in %s", Of(r.Number, n.State.Limit), loop.Duration(r.Elapsed))
	}
	c := n.Command
	again, changes := c.Kind == loop.Run || c.Kind == loop.Wait, c.StrategyWhy != "" || c.Strategy != r.Strategy
	if r.Outcome == loop.Failed && again && changes {
		why := ""
		if c.StrategyWhy != "" {
			why = " (" + c.StrategyWhy + ")"
		}
		words := "New strategy"
		if c.Strategy == r.Strategy {
			words = "Retrying with same strategy"
		}
		s.line(n.At, "%s: %s%s", words, c.Strategy, why)
	}
}

func stepFailure(r *loop.Record) string {
	if word := r.StepWord(); word != "" {
		return fmt.Sprintf("%s: %s", word, report.Line(r.Failure.Summary, 300))
	}
	return report.Line(r.Failure.Summary, 300)
}

// analysis is what is known of a failure, in a line.
func analysis(f *failure.Analysis) string {
	text := fmt.Sprintf("%s, %s", f.Class, f.Kind)
	if len(f.Actions) > 0 {
		text += "; " + report.Line(f.Actions[0], 200)
	}
	return text
}

// workflowEnded is the summary of a workflow's run.
func (s *Screen) workflowEnded(n engine.Notice) {
	st := n.State
	cost := "cost unknown"
	if st.Spent.CostKnown {
		cost = st.Spent.Cost.String()
	}
	if len(st.Policy.Agent) == 0 && !st.Spent.CostKnown && st.Spent.Calls == 0 {
		cost = "no cost"
	}
	s.line(n.At, "Workflow completed after %s (%s, %s): %s", fault.Numbered(st.Iteration, "iteration"),
		allTime(st.Spent), cost, st.Why)
}

package autopilot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// earlierAttempts are prompt items about those at the task.
func (p *workspaces) earlierAttempts(ctx context.Context, t Task, past schedule.Past,
	last store.Run) ([]prompt.Item, error) {
	var items []prompt.Item
	reviews, err := p.o.Store.CaseReviews(ctx, t.Case.ID)
	if err != nil {
		return nil, err
	}
	for i, r := range reviews {
		if r.Decision == store.Redo && r.Feedback != "" {
			source := fmt.Sprintf("Previous Review Feedback (%d)", i+1)
			items = append(items, prompt.Item{Source: source, Text: r.Feedback})
		}
	}
	row, _, err := p.o.Store.Queue(ctx, p.queue.Target())
	if err != nil {
		return nil, err
	}
	if red := overview.HealthOf(&row.State); red.Health == schedule.Red {
		items = append(items, prompt.Item{Source: "The Target Is Red",
			Text: "You start from a commit whose checks fail: " + red.Why})
	}
	if past.Run == nil {
		return items, nil
	}
	if hint := lastRetryHint(past.History); hint != "" {
		items = append(items, prompt.Item{Source: "What a person said when it was to be tried again", Text: hint})
	}
	records, err := p.o.Store.LastIterations(ctx, last.ID, 1)
	if err != nil {
		return nil, err
	}
	return append(items, prompt.Item{Source: "What an earlier attempt left", Text: attemptText(t, past, records)}), nil
}

// lastRetryHint finds a person's hint with the last retry; "" for none.
func lastRetryHint(history []board.Entry) string {
	for _, e := range slices.Backward(history) {
		if e.Action == board.Retry {
			return strings.TrimSpace(strings.TrimPrefix(e.Why, board.RetryWithout))
		}
	}
	return ""
}

// attemptText describes how an earlier attempt ended, and what it left behind.
func attemptText(t Task, past schedule.Past, records []loop.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "This task was worked on before, in %s. ", fault.Numbered(past.Run.Iteration, "iteration"))
	b.WriteString(describeEnding(past))
	if t.Workspace.Kept {
		b.WriteString(" The files are as it left them: look at `git status` and `git log` before you begin.")
	} else {
		b.WriteString(" Its files are gone: you start from the target branch.")
	}
	if len(records) > 0 {
		r := records[len(records)-1]
		fmt.Fprintf(&b, "\nIteration %d was the last", r.Number)
		if n := len(r.Files); n > 0 {
			fmt.Fprintf(&b, "; it changed %s", report.Some(r.Files, 8))
		}
		if r.Failure != nil {
			fmt.Fprintf(&b, "; it failed: %s", r.Failure.Summary)
		}
		b.WriteString(".")
	}
	if t.Case.Retries > 0 {
		fmt.Fprintf(&b, "\nThis is attempt %d.", t.Case.Retries+1)
	}
	return b.String()
}

func describeEnding(past schedule.Past) string {
	for i := len(past.History) - 1; i >= 0; i-- {
		switch e := past.History[i]; e.Action {
		case board.Crash:
			return "It was cut off: pawl was gone."
		case board.Stop, board.Return:
			return "It was stopped: " + e.Why + "."
		case board.Reopen:
			return "It was complete and landed, and that was " + strings.TrimSuffix(e.Why, ".") + "."
		case board.Redo:
			return "It was complete, and the review asked for more."
		case board.Fail, board.Expire, board.Block:
			return fmt.Sprintf("It ended %s: %s.", e.To, strings.TrimSuffix(e.Why, "."))
		}
	}
	return fmt.Sprintf("It is %s.", past.Run.Status)
}

// activityOf a slot by a notice, in a few words; "" nothing.
func activityOf(n engine.Notice) string {
	switch n.Kind {
	case engine.IterationStarted:
		return fmt.Sprintf("iteration %d starts", n.Command.Iteration)
	case engine.GateStarted:
		return "check " + n.Gate.Name
	case engine.ReviewStarted:
		return "review"
	case engine.WaitStarted:
		return "waits: " + n.Command.Why
	case engine.AgentEvent:
		return agentActivity(n.Event)
	}
	return ""
}

func agentActivity(e agent.Event) string {
	switch {
	case e.Kind == agent.ToolStart && e.Command != "":
		return lastLineCut(e.Tool + ": " + e.Command)
	case e.Kind == agent.ToolStart && len(e.Files) > 0:
		return lastLineCut(e.Tool + ": " + strings.Join(e.Files, ", "))
	case e.Kind == agent.ToolStart:
		return lastLineCut(e.Tool)
	case e.Kind == agent.Text:
		return lastLineCut(e.Text)
	}
	return ""
}

// lastLineCut is the last line of a text, cut.
func lastLineCut(text string) string {
	const most = 200
	text = strings.TrimSpace(text)
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return fault.Cut(text, most)
}

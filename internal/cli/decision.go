package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/control"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
)

// decision is what check prints. docs/json.md describes the fields; they can
// be added, but names do not change.
type decision struct {
	Action    string            `json:"action"`
	TaskID    string            `json:"task_id"`
	Iteration int               `json:"iteration,omitempty"`
	Message   string            `json:"message,omitempty"`
	Feedback  *decisionFeedback `json:"feedback,omitempty"`
	Context   *decisionContext  `json:"context,omitempty"`
	Question  string            `json:"question,omitempty"`
}

type decisionFeedback struct {
	Summary  string   `json:"summary"`
	Items    []string `json:"actionable_items"`
	Dropped  int      `json:"dropped_items,omitempty"`
	Priority string   `json:"priority"`
}

type decisionContext struct {
	Attempts string `json:"attempts_summary"`
	Pattern  string `json:"pattern_detected"`
	Diff     string `json:"diff,omitempty"`
}

func (k *check) decision(ctx context.Context, o control.Outcome, action control.Action) decision {
	d := decision{Action: string(action), TaskID: k.in.TaskID}
	switch action {
	case control.Proceed:
		d.Message = "Validation passed. Proceeding to next task."
	case control.Review:
		d.Message = "Tests passed. The review has not decided: review the work, then check again with its result."
	case control.Retry:
		d.Iteration = o.Number + 1
		f := control.Advise(o, k.set)
		d.Feedback = &decisionFeedback{Summary: f.Summary, Items: []string{}, Dropped: f.Dropped, Priority: string(f.Priority)}
		for _, found := range f.Items {
			d.Feedback.Items = append(d.Feedback.Items, found.String())
		}
	case control.Escalate:
		d.Iteration = o.Number
		lines, past := k.told()
		d.Context = &decisionContext{Attempts: strings.Join(lines, "\n") + "\n", Pattern: control.Pattern(past)}
		if d.Context.Pattern == "" {
			d.Context.Pattern = "none in " + attempts(len(past))
		}
		if k.set.IncludeDiff {
			d.Context.Diff = k.diff(ctx)
		}
		q := control.Ask(o.Number, o)
		d.Question = q.Text + "\n"
		for i, c := range q.Choices {
			d.Question += fmt.Sprintf("%d. %s\n", i+1, c.Text)
		}
	}
	return d
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// diff is the beginning of what the attempts changed: the work tree against
// the commit that was checked out at the first of them. "" outside of git.
func (k *check) diff(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, diffBound)
	defer cancel()
	tree := k.a.checkTree(ctx, k.root)
	if tree == nil || k.log.Base == "" {
		return ""
	}
	now, err := tree.Now(ctx, checkRun)
	if err != nil {
		k.a.say("Warning: no diff: %v", err)
		return ""
	}
	patch, cut, err := tree.Diff(ctx, k.log.Base, now, shownDiff)
	if err != nil {
		k.a.say("Warning: no diff: %v", err)
		return ""
	}
	if cut {
		patch = strings.TrimSuffix(patch, "\n") + "\n… cut; all of it: git diff " + k.log.Base + "\n"
	}
	return patch
}

func (a *app) printDecision(d decision, asJSON bool) error {
	if !asJSON {
		a.result("decision:\n%s", d.yaml())
		return nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(map[string]decision{"decision": d}); err != nil {
		return fmt.Errorf("cannot print the decision: %v", err)
	}
	a.result("%s", b.Bytes())
	return nil
}

// yaml is the decision below its first key, in the form that documents show:
// texts in quotes, several lines as a block.
func (d decision) yaml() string {
	var b strings.Builder
	yamlText(&b, 2, "action", d.Action)
	yamlText(&b, 2, "task_id", d.TaskID)
	if d.Iteration > 0 {
		fmt.Fprintf(&b, "  iteration: %d\n", d.Iteration)
	}
	if d.Message != "" {
		yamlText(&b, 2, "message", d.Message)
	}
	if f := d.Feedback; f != nil {
		b.WriteString("  feedback:\n")
		yamlText(&b, 4, "summary", f.Summary)
		if len(f.Items) == 0 {
			b.WriteString("    actionable_items: []\n")
		} else {
			b.WriteString("    actionable_items:\n")
		}
		for _, item := range f.Items {
			b.WriteString("      - " + quoted(item) + "\n")
		}
		if f.Dropped > 0 {
			fmt.Fprintf(&b, "    dropped_items: %d\n", f.Dropped)
		}
		yamlText(&b, 4, "priority", f.Priority)
	}
	if c := d.Context; c != nil {
		b.WriteString("  context:\n")
		yamlText(&b, 4, "attempts_summary", c.Attempts)
		yamlText(&b, 4, "pattern_detected", c.Pattern)
		if c.Diff != "" {
			yamlText(&b, 4, "diff", c.Diff)
		}
	}
	if d.Question != "" {
		yamlText(&b, 2, "question", d.Question)
	}
	return b.String()
}

// yamlText writes one key. Text of several plain lines becomes a block; what a
// block cannot hold exactly is quoted.
func yamlText(b *strings.Builder, indent int, key, text string) {
	pad := strings.Repeat(" ", indent)
	if !blockable(text) {
		b.WriteString(pad + key + ": " + quoted(text) + "\n")
		return
	}
	b.WriteString(pad + key + ": |\n")
	for line := range strings.Lines(text) {
		if line == "\n" {
			b.WriteString(line)
			continue
		}
		b.WriteString(pad + "  " + line)
	}
}

// blockable is true for lines that a YAML block gives back as they are: it
// begins with a word, ends in one end of line, and holds no control character.
func blockable(text string) bool {
	if strings.Count(text, "\n") < 1 || !strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\n") || strings.HasPrefix(text, "\n") ||
		strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\t") {
		return false
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && strings.TrimSpace(line) == "" {
			return false
		}
		for _, r := range line {
			if r < ' ' && r != '\t' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffd {
				return false
			}
		}
	}
	return true
}

// quoted is text as JSON writes it, which YAML reads too.
func quoted(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil { // text always encodes
		panic(err)
	}
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}

// guardResult is document 4's combined result.
type guardResult struct {
	CanContinue bool   `json:"canContinue"`
	BlockedBy   string `json:"blockedBy,omitempty"`
	Message     string `json:"message,omitempty"`
}

// checkHistory is check --history.
func (a *app) checkHistory(from string) error {
	name, data, err := a.input(from)
	if err != nil {
		return err
	}
	h, err := config.ReadGuardHistory(name, data)
	if err != nil {
		return fault.Of(fault.Refused, err)
	}
	entries := make([]loop.Entry, len(h.History))
	for i, e := range h.History {
		entries[i].Passed = e.ValidationResult.Passed
		for _, f := range e.ValidationResult.Flags {
			entries[i].Messages = append(entries[i].Messages, f.Message)
		}
	}
	limits := loop.Thresholds{Max: h.Config.MaxIterations, Breaker: h.Config.CircuitBreakerThreshold, Thrashing: h.Config.ThrashingThreshold}
	trip, tripped := loop.CheckHistory(h.IterationNumber, limits, entries)
	out, err := json.MarshalIndent(guardResult{!tripped, trip.Guard, trip.Message}, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot print the result: %v", err)
	}
	a.result("%s\n", out)
	if tripped {
		return status(exitPerson)
	}
	return nil
}

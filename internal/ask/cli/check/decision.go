package check

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
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

func (k *check) buildDecision(ctx context.Context, o control.Outcome) decision {
	d := decision{Action: string(k.action), TaskID: k.in.TaskID, Message: k.why}
	switch k.action {
	case control.Proceed:
		d.Message = "Validation passed. Proceeding to next task."
	case control.Review:
		d.Message = "Tests passed. The review has not decided: review the work, then check again with its result."
	case control.Retry:
		d.Iteration = o.Number + 1
		f := control.Advise(o, k.set)
		d.Feedback = &decisionFeedback{Summary: f.Summary, Items: []string{}, Dropped: f.Dropped,
			Priority: string(f.Priority)}
		for _, found := range f.Items {
			d.Feedback.Items = append(d.Feedback.Items, found.String())
		}
	case control.Escalate:
		d.Iteration = o.Number
		lines, past := k.listAttempts()
		d.Context = &decisionContext{Attempts: strings.Join(lines, "\n") + "\n", Pattern: control.Pattern(past)}
		d.Context.Pattern = cmp.Or(d.Context.Pattern, "none in "+fault.Numbered(len(past), "attempt"))
		if k.set.IncludeDiff {
			d.Context.Diff = k.beginningOfDiff(ctx)
		}
		q := control.Ask(o.Number, o, control.Offer{Cured: k.cured, Elsewhere: true})
		d.Question = q.Text + "\n"
		for i, c := range q.Choices {
			d.Question += fmt.Sprintf("%d. %s\n", i+1, c.Text)
		}
	}
	return d
}

// beginningOfDiff returns the beginning of what the attempts changed: the work tree against
// the commit that was checked out at the first of them. "" outside of git.
func (k *check) beginningOfDiff(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, command.DiffBound)
	defer cancel()
	tree := checkTree(ctx, k.a, k.root)
	if tree == nil || k.log.Base == "" {
		return ""
	}
	now, err := tree.See(ctx, checkRun)
	if err != nil {
		k.a.Say("Warning: no diff: %v", err)
		return ""
	}
	patch, cut, err := tree.Diff(ctx, k.log.Base, now.Tree, command.ShownDiff)
	if err != nil {
		k.a.Say("Warning: no diff: %v", err)
		return ""
	}
	if cut {
		patch = strings.TrimSuffix(patch, "\n") + "\n… cut; all of it: git diff " + k.log.Base + "\n"
	}
	return patch
}

func printDecision(a *command.App, d decision, asJSON bool) error {
	data, err := encodeReadableJSON(map[string]decision{"decision": d}, "  ")
	if err != nil {
		return fmt.Errorf("cannot print the decision: %v", err)
	}
	if asJSON {
		a.Result("%s\n", data)
		return nil
	}
	var m yaml.MapSlice
	if err := yaml.UnmarshalWithOptions([]byte(data), &m, yaml.UseOrderedMap()); err != nil {
		return fmt.Errorf("cannot print the decision: %v", err)
	}
	var b strings.Builder
	writeYAML(&b, "", m)
	a.Result("%s", b.String())
	return nil
}

// encodeReadableJSON is v as JSON in which < and & stay as they are.
func encodeReadableJSON(v any, indent string) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// writeYAML writes a document in the form that documents show: texts in quotes,
// several plain lines as a block.
func writeYAML(b *strings.Builder, pad string, m yaml.MapSlice) {
	for _, item := range m {
		fmt.Fprintf(b, "%s%s:", pad, item.Key)
		switch v := item.Value.(type) {
		case yaml.MapSlice:
			b.WriteString("\n")
			writeYAML(b, pad+"  ", v)
		case []any:
			if len(v) == 0 {
				b.WriteString(" []")
			}
			for _, text := range v {
				b.WriteString("\n" + pad + "  - " + quoteJSON(text))
			}
			b.WriteString("\n")
		case string:
			if !isPrintableBlock(v) {
				b.WriteString(" " + quoteJSON(v) + "\n")
				continue
			}
			b.WriteString(" |\n")
			for line := range strings.Lines(v) {
				if line != "\n" {
					b.WriteString(pad + "  ")
				}
				b.WriteString(line)
			}
		default:
			fmt.Fprintf(b, " %v\n", v)
		}
	}
}

// blockForm are lines that a YAML block gives back as they are: the first begins
// with a word, one end of line is at the end, and no line is of blanks alone.
var blockForm = lazy.Regexp(`\A\S.*\n(\n*[ \t]*\S.*\n)*\z`)

func isPrintableBlock(text string) bool {
	odd := strings.ContainsFunc(text, func(r rune) bool {
		if r == '\n' || r == '\t' {
			return false
		}
		return r == utf8.RuneError || !unicode.IsPrint(r)
	})
	return !odd && blockForm().MatchString(text)
}

// quoteJSON returns text as JSON writes it, which YAML reads too.
func quoteJSON(text any) string {
	line, err := encodeReadableJSON(text, "")
	if err != nil { // text always encodes
		panic(err)
	}
	return strings.ReplaceAll(line, "\x7f", `\u007f`)
}

// guardResult is what check --history prints.
type guardResult struct {
	CanContinue bool   `json:"canContinue"`
	BlockedBy   string `json:"blockedBy,omitempty"`
	Message     string `json:"message,omitempty"`
}

// checkHistory is check --history.
func checkHistory(a *command.App, from string) error {
	name, data, err := readInput(a, from)
	if err != nil {
		return err
	}
	h, err := config.ReadGuardHistory(name, data)
	if err != nil {
		return fault.Of(fault.Refused, err)
	}
	entries := lists.Each(h.History, func(e config.GuardedEntry) loop.Entry {
		flags := e.ValidationResult.Flags
		messages := lists.Each(flags, func(f config.ValidationFlag) string { return f.Message })
		return loop.Entry{Passed: e.ValidationResult.Passed, Messages: messages}
	})
	limits := loop.Thresholds{Max: h.Config.MaxIterations, Breaker: h.Config.CircuitBreakerThreshold,
		Thrashing: h.Config.ThrashingThreshold}
	trip, tripped := loop.CheckHistory(h.IterationNumber, limits, entries)
	if err := a.Document(guardResult{!tripped, trip.Guard, trip.Message}); err != nil {
		return err
	}
	if tripped {
		return command.StatusError(command.ExitPerson)
	}
	return nil
}

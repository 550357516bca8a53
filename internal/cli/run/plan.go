package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/workflow"
)

// planWorkflow prints what a workflow would run.
func planWorkflow(a *command.App, w *config.Workflow) error {
	if a.JSON {
		return command.Usage("the plan of a workflow has no JSON").Hint("See it as text: pawl run FILE.yaml --dry-run")
	}
	for _, note := range w.Notes {
		a.Say("Warning: %s", note)
	}
	a.Result("%s", planText(w))
	return nil
}

// maxShown is how many instances of one layer the text shows.
const maxShown = 40

// planText draws the plan: a block for each layer, in it the steps with what
// they need.
func planText(w *config.Workflow) string {
	p := w.Plan
	var b strings.Builder
	fmt.Fprintf(&b, "[DRY RUN] Workflow: %s\n", console.Printable(p.Name))
	fmt.Fprintf(&b, "[DRY RUN] %s, %s, up to %d at once%s\n", fault.Numbered(len(p.Instances), "step"),
		fault.Numbered(len(p.Layers), "layer"),
		min(p.Parallelism, p.Width()), limitText(p.Timeout))
	if len(p.Context) > 0 {
		fmt.Fprintf(&b, "[DRY RUN] Needs --context: %s\n", strings.Join(p.Context, ", "))
	}
	drawPlan(&b, w, "")
	return b.String()
}

func drawPlan(b *strings.Builder, w *config.Workflow, indent string) {
	p := w.Plan
	shown := map[string]bool{}
	for i, layer := range p.Layers {
		fmt.Fprintf(b, "\n%s%d ", indent, i+1)
		if len(layer) > 1 {
			fmt.Fprintf(b, "── %d side by side", len(layer))
		} else {
			b.WriteString("──")
		}
		b.WriteByte('\n')
		for k, n := range layer {
			if k == maxShown {
				fmt.Fprintf(b, "%s  └─ … and %d more\n", indent, len(layer)-k)
				break
			}
			in := p.Instances[n]
			branch, stem := "├─ ", "│  "
			if k == len(layer)-1 {
				branch, stem = "└─ ", "   "
			}
			drawStep(b, in, indent+"  "+branch, indent+"  "+stem)
			if below := w.Nested[in.Step.ID]; below != nil && !shown[in.Step.ID] && len(indent) < 20 {
				shown[in.Step.ID] = true
				drawPlan(b, below, indent+"  "+stem+"  ")
			}
		}
	}
}

// drawStep writes a step: its id and what it does in the first line, and below
// what decides whether and how it runs.
func drawStep(b *strings.Builder, in workflow.Instance, first, more string) {
	s := in.Step
	line := func(head, text string) {
		fmt.Fprintf(b, "%s\n", ansi.Truncate(head+console.Printable(strings.Join(strings.Fields(text), " ")), 80, "…"))
	}
	what := string(s.Kind)
	if s.Kind == workflow.Agent && s.Agent != "" {
		what += " " + s.Agent
	}
	line(first, fmt.Sprintf("%s  [%s] %s", in.ID, what, s.Step.Content))
	if len(in.Needs) > 0 {
		line(more+"   needs ", strings.Join(s.Needs, ", "))
	}
	if s.If != "" {
		line(more+"   if ", s.If)
	}
	var how []string
	if s.Optional {
		how = append(how, "optional")
	}
	if s.Timeout > 0 {
		how = append(how, "timeout "+config.Duration(s.Timeout).String())
	}
	if s.Retry.Max > 0 {
		how = append(how, fmt.Sprintf("retry %d (%s from %s)", s.Retry.Max, s.Retry.Backoff, config.Duration(s.Retry.Delay)))
	}
	if n := len(s.Alternatives); n > 0 {
		how = append(how, fault.Numbered(n, "alternative"))
	}
	if n := len(s.Verify); n > 0 {
		how = append(how, fault.Numbered(n, "check"))
	}
	if len(s.Outputs) > 0 {
		var names []string
		for _, o := range s.Outputs {
			names = append(names, o.Name)
		}
		how = append(how, "outputs "+strings.Join(names, " "))
	}
	if len(how) > 0 {
		line(more+"   ", strings.Join(how, " · "))
	}
}

func limitText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return ", at most " + config.Duration(d).String()
}

package run

import (
	"encoding/json"
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
	for _, note := range w.Notes {
		a.Say("Warning: %s", note)
	}
	if a.JSON {
		data, err := json.Marshal(planJSON(w))
		if err != nil {
			return err
		}
		a.Result("%s\n", data)
		return nil
	}
	a.Result("%s", planText(w))
	return nil
}

// plannedJSON is a plan, as docs/json.md describes it.
type plannedJSON struct {
	Name            string        `json:"name"`
	Description     string        `json:"description,omitempty"`
	Hash            string        `json:"hash"`
	Parallelism     int           `json:"parallelism"`
	Timeout         float64       `json:"timeout"`
	ContinueOnError bool          `json:"continue_on_error"`
	Agents          []string      `json:"agents"`
	Context         []string      `json:"context"`
	Layers          [][]string    `json:"layers"`
	Steps           []plannedStep `json:"steps"`
	Nested          []nestedJSON  `json:"nested"`
	Warnings        []string      `json:"warnings"`
}

type nestedJSON struct {
	Step string      `json:"step"`
	Plan plannedJSON `json:"plan"`
}

type plannedStep struct {
	ID               string          `json:"id"`
	Step             string          `json:"step"`
	Name             string          `json:"name,omitempty"`
	Kind             workflow.Kind   `json:"kind"`
	Agent            string          `json:"agent,omitempty"`
	Content          string          `json:"content"`
	Layer            int             `json:"layer"`
	Needs            []string        `json:"needs"`
	If               string          `json:"if,omitempty"`
	Matrix           []workflow.Pair `json:"matrix"`
	Env              []workflow.Pair `json:"env"`
	Outputs          []string        `json:"outputs"`
	Optional         bool            `json:"optional"`
	Timeout          float64         `json:"timeout"`
	Retry            retryJSON       `json:"retry"`
	Alternatives     []workflow.Work `json:"alternatives"`
	Verify           []string        `json:"verify"`
	WorkingDirectory string          `json:"working_directory,omitempty"`
	Hash             string          `json:"hash"`
}

type retryJSON struct {
	Max     int     `json:"max"`
	Backoff string  `json:"backoff"`
	Delay   float64 `json:"delay"`
	Factor  float64 `json:"factor"`
}

func planJSON(w *config.Workflow) plannedJSON {
	p := w.Plan
	out := plannedJSON{
		Name: p.Name, Description: p.Description, Hash: p.Hash, Parallelism: p.Parallelism, Timeout: p.Timeout.Seconds(),
		ContinueOnError: p.ContinueOnError, Agents: orNone(p.Agents), Context: orNone(p.Context), Warnings: orNone(w.Notes),
		Nested: []nestedJSON{},
	}
	for i, l := range p.Layers {
		out.Layers = append(out.Layers, []string{})
		for _, n := range l {
			in := p.Instances[n]
			out.Layers[i] = append(out.Layers[i], in.ID)
			out.Steps = append(out.Steps, stepJSON(p, in))
		}
	}
	for _, s := range p.Steps {
		if below := w.Nested[s.ID]; below != nil {
			out.Nested = append(out.Nested, nestedJSON{s.ID, planJSON(below)})
		}
	}
	return out
}

func stepJSON(p *workflow.Plan, in workflow.Instance) plannedStep {
	s := in.Step
	out := plannedStep{
		ID: in.ID, Step: s.ID, Name: s.Step.Title, Kind: s.Kind, Agent: s.Agent, Content: s.Step.Content, Layer: in.Layer,
		Needs: []string{},
		If:    s.If, Matrix: orNone(in.Matrix), Env: orNone(s.Env), Outputs: []string{}, Optional: s.Optional,
		Timeout:      s.Timeout.Seconds(),
		Retry:        retryJSON{s.Retry.Max, s.Retry.Backoff, s.Retry.Delay.Seconds(), float64(s.Retry.Multiplier()) / 1000},
		Alternatives: orNone(s.Step.Alternatives), Verify: orNone(s.Step.Verify), WorkingDirectory: s.Step.WorkingDirectory,
		Hash: in.Hash,
	}
	if out.Retry.Backoff == "" {
		out.Retry.Backoff = "none"
	}
	for _, n := range in.Needs {
		out.Needs = append(out.Needs, p.Instances[n].ID)
	}
	for _, o := range s.Outputs {
		out.Outputs = append(out.Outputs, o.Name)
	}
	return out
}

// orNone makes an empty list of none, for JSON.
func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
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

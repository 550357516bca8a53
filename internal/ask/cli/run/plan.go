package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
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
	if w.Controlled {
		b.WriteString("[DRY RUN] Under iteration control: it is repeated, and a person is asked at the maximum\n")
	}
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
			fmt.Fprintf(b, "── %d in parallel", len(layer))
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
		how = append(how, "timeout "+quantity.Duration(s.Timeout).String())
	}
	if s.Retry.Max > 0 {
		how = append(how, fmt.Sprintf("retry %d (%s from %s)", s.Retry.Max, s.Retry.Backoff, quantity.Duration(s.Retry.Delay)))
	}
	if n := len(s.Alternatives); n > 0 {
		how = append(how, fault.Numbered(n, "alternative"))
	}
	if n := len(s.Verify); n > 0 {
		how = append(how, fault.Numbered(n, "check"))
	}
	if len(s.Outputs) > 0 {
		names := lists.Each(s.Outputs, func(o workflow.Named) string { return o.Name })
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
	return ", at most " + quantity.Duration(d).String()
}

func planCommand(a *command.App) *cobra.Command {
	var f planner.Flags
	var yes, check bool
	cmd := command.Leaf("plan [GOAL]", "Let an agent propose tasks for a goal, and add them to the board",
		command.AtMost(1),
		func(ctx context.Context, args []string) error {
			switch {
			case check:
				return checkProposal(a)
			case len(args) == 1:
				f.Work = args[0]
				if err := runProposal(ctx, a, f); err != nil {
					return err
				}
			}
			return a.WithOperator(ctx, func(p *action.Operator) error { return reviewProposal(ctx, a, p, yes) })
		})
	addStartFlags(cmd, &f)
	fl := cmd.Flags()
	fl.BoolVarP(&yes, "yes", "y", false, "add the tasks without asking")
	fl.BoolVar(&check, "check", false, "only check whether the list in "+planner.ProposalFile+" is valid")
	return cmd
}

// runProposal runs the agent until its list is in order.
func runProposal(ctx context.Context, a *command.App, f planner.Flags) error {
	if err := session.NotInside(a); err != nil {
		return err
	}
	if err := checkWork(f.Work); err != nil {
		return err
	}
	root, err := a.Root()
	if err != nil {
		return err
	}
	if files.IsFile(filepath.Join(root, planner.ProposalFile)) {
		return command.Usage("a list is there already: %s", planner.ProposalFile).
			Hint("Look at it, and add it: pawl plan").Hint("Or start over:          rm %s", planner.ProposalFile)
	}
	known, err := openTasks(ctx, a)
	if err != nil {
		return err
	}
	if known != "" {
		f.Context = append(f.Context, known)
	}
	return runProcedure(ctx, a, planner.Proposal, f, false, true)
}

// openTasks lists the board's open tasks for the agent.
func openTasks(ctx context.Context, a *command.App) (text string, err error) {
	const most = 200
	err = a.WithOperator(ctx, func(p *action.Operator) error {
		list, err := p.Store.Cases(ctx, store.CaseFilter{Open: true, Limit: most})
		for _, c := range list {
			text += "- " + c.ID + ": " + report.Line(c.Title, 200) + "\n"
		}
		return err
	})
	if text != "" {
		text = "These tasks are on the board already. Do not propose them again:\n" + text
	}
	return text, err
}

// readProposal reads the list and checks it.
func readProposal(root string) (drafts []board.Draft, version string, err error) {
	drafts, version, err = action.ReadProposal(root)
	if errors.Is(err, fs.ErrNotExist) {
		err = fault.Of(fault.Failed, fmt.Errorf("there is no %s", planner.ProposalFile)).
			Hint("Let an agent write one:            pawl plan \"GOAL\"").
			Hint("Of a run on a copy, bring it here: pawl apply %s", planner.Proposal)
	}
	return drafts, version, err
}

// checkProposal is the gate of a proposal. The agent gets what it prints.
func checkProposal(a *command.App) error {
	dir, err := filepath.Abs(a.Dir)
	if err != nil {
		return err
	}
	drafts, _, err := readProposal(dir)
	if problems, ok := errors.AsType[*board.ProblemsError](err); ok {
		a.Result("%s is not valid:\n", planner.ProposalFile)
		for _, p := range problems.Problems {
			a.Result("error: %s\n", p)
		}
		return command.StatusError(command.ExitFailed)
	}
	if err == nil {
		a.Result("%s, valid\n", fault.Numbered(len(drafts), "task"))
	}
	return err
}

// reviewProposal shows the list, and adds it when the person says so.
func reviewProposal(ctx context.Context, a *command.App, p *action.Operator, yes bool) error {
	for {
		drafts, version, err := readProposal(p.Root)
		if err != nil {
			return action.Explain(err)
		}
		if a.JSON {
			if err := a.Document(map[string]any{"tasks": action.Proposed(drafts)}); err != nil {
				return err
			}
		} else if err := showProposal(ctx, a, p, drafts); err != nil {
			return err
		}
		if yes {
			return action.Explain(p.AddProposal(ctx, version))
		}
		if !a.Interactive() {
			a.Say("Nothing is added yet. Add them: pawl plan --yes")
			return nil
		}
		switch a.Ask("Add them to the board? [y]es, [e]dit first, [N]o: ") {
		case "y", "yes":
			return action.Explain(p.AddProposal(ctx, version))
		case "e", "edit":
			if err := a.Edit(ctx, filepath.Join(p.Root, planner.ProposalFile)); err != nil {
				return err
			}
		default:
			a.Say("Nothing is added. The list stays in %s: 'pawl plan' shows it again.", planner.ProposalFile)
			return nil
		}
	}
}

// showProposal prints the tasks, and in which order they can be worked on.
func showProposal(ctx context.Context, a *command.App, p *action.Operator, drafts []board.Draft) error {
	open, err := p.Store.Cases(ctx, store.CaseFilter{Open: true})
	if err != nil {
		return err
	}
	there := lists.ToMap(open, func(c board.Case) (string, string) { return strings.ToLower(c.Title), c.ID })
	for _, d := range drafts {
		c := d.Case
		a.Result("%s  %s\n", report.Line(c.Ref, 60), report.Line(c.Title, board.MaxTitle))
		for line := range strings.Lines(c.Description) {
			a.Result("    %s\n", report.Line(line, 400))
		}
		for _, item := range c.Acceptance {
			a.Result("  - %s\n", report.Line(item, 400))
		}
		for _, check := range c.Verify {
			a.Result("  checked by %s\n", report.Line(check.Label(), 400))
		}
		if len(c.Verify) == 0 {
			a.Result("  no check shows that it is done\n")
		}
		if len(c.Needs) > 0 {
			a.Result("  after %s\n", report.Line(strings.Join(c.Needs, ", "), 400))
		}
		if id := there[strings.ToLower(c.Title)]; id != "" {
			a.Say("Note: the board has a task with this title: %s", id)
		}
	}
	a.Result("\n%s, in this order:\n", fault.Numbered(len(drafts), "task"))
	for i, wave := range board.Waves(drafts) {
		a.Result("  %d. %s\n", i+1, report.Line(strings.Join(wave, ", "), 1000))
	}
	if pl, err := p.Planner(p.Root, planner.Flags{}); err == nil && len(pl.Config.Verification.Gates()) == 0 {
		a.Say("Warning: these tasks have no checks: pawl.yaml has no verification.")
	}
	return nil
}

func sealCommand(a *command.App) *cobra.Command {
	var f planner.Flags
	var check bool
	cmd := command.Leaf("seal TASK", "Let an agent write checks of a task that the agents working on it never see",
		command.AtMost(1), func(ctx context.Context, args []string) error {
			switch {
			case check:
				return checkSeal(a)
			case len(args) == 0:
				return command.Usage("seal needs the id of a task: pawl seal TASK")
			}
			return sealTask(ctx, a, args[0], f)
		})
	addStartFlags(cmd, &f)
	cmd.Flags().BoolVar(&check, "check", false, "only check whether the list in "+planner.SealFile+" is valid")
	return cmd
}

// checkSeal is the gate of that agent: what it prints goes into the next prompt.
func checkSeal(a *command.App) error {
	dir, err := filepath.Abs(a.Dir)
	if err != nil {
		return err
	}
	list, err := action.ReadSeal(dir)
	if err != nil {
		a.Result("error: %v\n", err)
		return command.StatusError(command.ExitFailed)
	}
	a.Result("%s, valid\n", fault.Numbered(len(list), "check"))
	return nil
}

// sealTask runs the agent, and gives the task what it wrote.
func sealTask(ctx context.Context, a *command.App, text string, f planner.Flags) error {
	if err := session.NotInside(a); err != nil {
		return err
	}
	id, err := action.CaseID(text)
	if err != nil {
		return err
	}
	has := false
	err = a.WithOperator(ctx, func(p *action.Operator) error {
		c, err := p.Store.Case(ctx, id)
		if err == nil && c.Type != board.Task {
			err = fault.Refuse("%s is an operation; only a task has checks", id)
		}
		if err == nil {
			err = board.CanEdit(&c)
		}
		f.Work = describeTask(&c)
		_, has = p.SealRun(ctx, f.Work)
		return action.Explain(err)
	})
	if err == nil && !has {
		err = runProcedure(ctx, a, planner.Sealing, f, false, true)
	}
	if err != nil {
		return err
	}
	return a.WithOperator(ctx, func(p *action.Operator) error {
		c, err := p.TakeSealed(ctx, id, f.Work)
		if err != nil {
			return action.Explain(err)
		}
		for _, check := range c.Sealed {
			a.Result("%s\n", report.Line(check.Label(), 400))
			if check.Criterion != "" {
				a.Result("  it shows: %s\n", report.Line(check.Criterion, 400))
			}
		}
		a.Say("%s has %s. Read and change them: pawl case show %s, pawl case edit %s --sealed CHECK", id,
			fault.Numbered(len(c.Sealed), "sealed check"), id, id)
		return nil
	})
}

// describeTask writes a task down for who checks it.
func describeTask(c *board.Case) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", c.Title, c.Description)
	for _, criterion := range c.Acceptance {
		fmt.Fprintf(&b, "- %s\n", criterion)
	}
	for i := range c.Verify {
		fmt.Fprintf(&b, "Its agent is shown the check: %s\n", c.Verify[i].Label())
	}
	return b.String()
}

package run

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// document is `show --json`: the run, and every iteration.
type document struct {
	listed
	Iterations    []console.Record `json:"iterations"`
	Success       bool             `json:"success"`
	Elapsed       float64          `json:"elapsed"` // seconds, waits included
	FinalStrategy string           `json:"final_strategy"`
	Checkpoints   []string         `json:"checkpoints"` // commit ids of the snapshots
	CostUSD       *float64         `json:"cost_usd"`
	TokensIn      int64            `json:"tokens_in"`
	TokensOut     int64            `json:"tokens_out"`
	Question      any              `json:"question,omitempty"`
	Steps         []shownStep      `json:"steps,omitempty"` // of a workflow
	Proof         []report.Proof   `json:"proof,omitempty"`
	// Sandbox is the level, and what the operating system enforces of it.
	Sandbox string `json:"sandbox,omitempty"`
}

func showCommand(a *command.App) *cobra.Command {
	var s showing
	cmd := command.Leaf("show RUN", "Show one run, iteration by iteration, or a report of it",
		command.ExactlyOne("a run or a procedure", command.SeeRuns),
		func(ctx context.Context, args []string) error {
			if err := s.checkFlags(a); err != nil {
				return err
			}
			return a.WithRun(ctx, args[0], func(p *action.Operator, r store.Run) error {
				return writeInto(a, s.output, func() error {
					switch {
					case s.diff:
						return showDiff(ctx, a, p, r)
					case s.form == formMarkdown || s.form == formHTML:
						return showReport(ctx, a, p, r, s.form)
					}
					return printRunDetails(ctx, a, p, r)
				})
			})
		})
	s.addFlags(cmd)
	return cmd
}

func printRunDetails(ctx context.Context, a *command.App, p *action.Operator, r store.Run) error {
	records, err := p.Store.Iterations(ctx, r.ID)
	if err != nil {
		return err
	}
	state, err := storedrun.StateOf(r)
	if err != nil {
		return err
	}
	l, _ := listedRunOf(ctx, p, r)
	asked, err := p.Store.AllControls(ctx, r.ID)
	if err != nil {
		return err
	}
	l.Asked = lists.Each(asked, saidRowOf)
	var steps []report.Execution
	if r.Kind == "workflow" {
		if steps, err = action.ListExecutions(ctx, p.Store, r.ID); err != nil {
			return err
		}
		steps = append(steps, stepsNotBegun(r, steps)...)
	}
	task := action.TaskOf(ctx, p.Store, r)
	proof := report.ProofsOf(&task, records)
	if a.JSON {
		return showJSON(a, l, r, state, records, steps, proof)
	}
	a.Result("Run %s of %s: %s", r.ID, r.Name, l.Status)
	if l.Why != "" && l.Why != l.Status {
		a.Result(" (%s)", report.Line(l.Why, 500))
	}
	if work := action.SetupOf(r).Flags.Work; work != "" {
		a.Result("\nTask: %s", report.Line(work, 500))
	}
	done := console.Iterations(state.Iteration)
	if c := state.Command; state.Status == loop.Running && c.Iteration > state.Iteration {
		done += fmt.Sprintf(", %d in progress", c.Iteration)
	}
	where := ""
	if p.Store.BoardName() != "" && r.Owner.Host != "" {
		where = " on " + r.Owner.Host
	}
	a.Result("\nStarted %s%s, %s, %s tokens", r.StartedAt.Local().Format("2006-01-02 15:04:05"), where, done,
		report.Short(r.TokensIn+r.TokensOut))
	switch {
	case state.Spent.Money() != "":
		a.Result(", %s", state.Spent.Money())
	case usedNoAgent(&state):
		a.Result(", no cost")
	default:
		a.Result(", cost unknown")
	}
	if box := action.SetupOf(r).Sandbox; box != "" {
		a.Result("\nSandbox %s", box)
	}
	for _, line := range linesNotLanded(ctx, p, r, &task, state.Status) {
		a.Result("\n%s", line)
	}
	a.Result("\n\n")
	showIterations(a, records)
	showProof(a, p, r, records, proof)
	showSteps(a, steps)
	showModels(a, records)
	showHarm(a, records)
	showReviews(a, records)
	showAsked(a, asked, p.Store.BoardName() != "")
	if state.Question != nil && !state.Status.Active() {
		session.PrintQuestion(a, r.ID, &task, state.Status, state.Question, "", false)
	}
	return nil
}

// linesNotLanded lists reasons for which the work of a run has not reached the person.
func linesNotLanded(ctx context.Context, p *action.Operator, r store.Run, task *board.Case, st loop.Status) []string {
	lines := action.SetupOf(r).ListUndelivered(ctx, p.Store, "", r.ID, st)
	if task.Status == board.Blocked && st == loop.Completed {
		lines = append([]string{"Its task is blocked: " + report.Line(task.Why, 500)}, lines...)
	}
	return lists.NonEmpty(append(lines, action.BranchLeft(ctx, r))...)
}

// wide is the terminal that has room for the names of gates.
const wide = 100

func showIterations(a *command.App, records []loop.Record) {
	narrow := a.Columns() > 0 && a.Columns() < wide
	var rows [][]any
	for _, r := range records {
		number := fmt.Sprint(r.Number)
		if r.Attempt > 1 || r.Outcome == loop.Waited {
			number += fmt.Sprintf(".%d", r.Attempt)
		}
		rows = append(rows, []any{
			number, r.Outcome, r.Agent, r.Strategy, loop.Duration(r.Took()),
			describeExit(r.Exit), gateWords(r, narrow), len(r.Files), report.Line(whatHappened(r), 80),
		})
	}
	a.Table("#\tOUTCOME\tAGENT\tSTRATEGY\tELAPSED\tEXIT\tGATES\tFILES\tWHAT", rows, a.Columns())
}

// showModels has a line for each model that the gateway saw, over all iterations.
func showModels(a *command.App, records []loop.Record) {
	total := map[string]loop.ModelUse{}
	for _, r := range records {
		for _, m := range r.Models {
			t := total[m.Model]
			total[m.Model] = loop.ModelUse{
				Calls: t.Calls + m.Calls, Input: t.Input + m.Input, CacheRead: t.CacheRead + m.CacheRead,
				CacheWrite: t.CacheWrite + m.CacheWrite, Output: t.Output + m.Output, Cost: t.Cost + m.Cost,
				Unpriced: t.Unpriced || m.Unpriced,
			}
		}
	}
	var rows [][]any
	for _, name := range slices.Sorted(maps.Keys(total)) {
		m := total[name]
		cost := cmp.Or(loop.Money(m.Cost, true, m.Unpriced), "unknown")
		rows = append(rows, []any{
			report.Line(name, 60), m.Calls, report.Short(m.Input), report.Short(m.CacheRead),
			report.Short(m.CacheWrite),
			report.Short(m.Output), cost,
		})
	}
	if len(rows) > 0 {
		a.Result("\n")
		a.Table("MODEL\tCALLS\tINPUT\tCACHE READ\tCACHE WRITE\tOUTPUT\tCOST", rows, 0)
	}
}

// The statuses of a step that was not begun: it may come yet, or the run is complete
// without it.
const (
	statusWaiting = "waiting"
	statusSkipped = "skipped"
)

// stepsNotBegun are the steps of the workflow's file that no execution is of.
func stepsNotBegun(r store.Run, begun []report.Execution) (list []report.Execution) {
	file := action.SetupOf(r).Flags.File
	if file == "" {
		return nil
	}
	w, err := config.LoadWorkflow(r.Root, file)
	if err != nil {
		return nil // it is gone, or not in order any more
	}
	status := statusWaiting
	if r.Status == string(loop.Completed) {
		status = statusSkipped
	}
	known := lists.Set(lists.Each(begun, func(e report.Execution) string { return e.Step }))
	var add func(w *config.Workflow, prefix string)
	add = func(w *config.Workflow, prefix string) {
		for _, in := range w.Plan.Instances {
			if id := prefix + in.ID; !known[id] {
				list = append(list, report.Execution{Step: id, Kind: string(in.Step.Kind), Agent: in.Step.Agent,
					Status: status, Optional: in.Step.Optional})
			}
			if below := w.Nested[in.Step.ID]; below != nil {
				add(below, prefix+in.ID+"/")
			}
		}
	}
	add(w, "")
	return list
}

// showSteps has a line for each step of a workflow: how its newest execution ended, and why.
func showSteps(a *command.App, all []report.Execution) {
	var rows [][]any
	for _, e := range newestExecutions(all, stepOfExecution) {
		how := e.Status
		if e.Alternative > 0 {
			how += fmt.Sprintf(", alternative %d", e.Alternative)
		}
		if e.Try > 1 {
			how += fmt.Sprintf(", try %d", e.Try)
		}
		if e.Optional {
			how += ", optional"
		}
		row := []any{report.Line(e.Step, 60), how, e.Iteration, durationOfStep(e), report.Line(e.Failure, 100)}
		if e.StartedAt.IsZero() {
			row[2], row[3] = "-", "-"
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		a.Result("\n")
		a.Table("STEP\tSTATUS\tITERATION\tELAPSED\tERROR", rows, a.Columns())
	}
}

func stepOfExecution(e report.Execution) string { return e.Step }

// durationOfStep is how long an execution took, or has taken so far.
func durationOfStep(e report.Execution) string {
	if e.Status == store.StepRunning {
		return loop.Duration(time.Since(e.StartedAt))
	}
	return loop.Duration(e.Elapsed)
}

// newestExecutions returns the last executions of each step, in the order in which the steps began.
func newestExecutions[E any](all []E, step func(E) string) (list []E) {
	at := map[string]int{}
	for _, e := range all {
		if i, ok := at[step(e)]; ok {
			list[i] = e
			continue
		}
		at[step(e)] = len(list)
		list = append(list, e)
	}
	return list
}

// shownStep is a step in `show --json`.
type shownStep struct {
	Step      string    `json:"step"`
	Kind      string    `json:"kind"`
	Agent     string    `json:"agent,omitempty"`
	Status    string    `json:"status"`
	Iteration int       `json:"iteration"`
	Try       int       `json:"try"`
	StartedAt time.Time `json:"started_at,omitzero"`
	Elapsed   float64   `json:"elapsed"` // seconds
	Error     string    `json:"error,omitempty"`
}

func shownSteps(all []report.Execution) (list []shownStep) {
	for _, e := range newestExecutions(all, stepOfExecution) {
		list = append(list, shownStep{e.Step, e.Kind, e.Agent, e.Status, e.Iteration, max(e.Try, 1), e.StartedAt.UTC(),
			console.Seconds(e.Elapsed), e.Failure})
	}
	return list
}

// lastSucceededStep is the step that succeeded last, up to an iteration.
func lastSucceededStep(all []report.Execution, iteration int) (name string) {
	var at time.Time
	for _, e := range all {
		ended := e.StartedAt.Add(e.Elapsed)
		if e.Status == store.StepSuccess && e.Iteration <= iteration && !ended.Before(at) {
			name, at = e.Step, ended
		}
	}
	return name
}

func describeExit(x loop.Exit) string {
	switch {
	case x.Ended != loop.NotEnded:
		return string(x.Ended)
	case x.Signal != "":
		return x.Signal
	}
	return fmt.Sprint(x.Code)
}

// gateWords are the gates of an iteration; where narrow, those that are not red are marks.
func gateWords(r loop.Record, narrow bool) string {
	var words []string
	marks := ""
	for _, g := range r.Gates {
		red := g.Status == loop.GateFailed || g.Status == loop.GateTimedOut
		if narrow && !red {
			marks += report.GateMark(g)
			continue
		}
		words = append(words, report.GateMark(g)+report.Line(g.Name, 20))
	}
	if marks != "" {
		words = append(words, marks)
	}
	if r.Review != nil {
		words = append(words, reviewMark(r.Review))
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, " ")
}

func whatHappened(r loop.Record) string {
	if r.Failure != nil {
		return r.Failure.Summary
	}
	return report.Iteration{Record: &r}.Said()
}

func showJSON(a *command.App, l listed, r store.Run, state loop.State, records []loop.Record,
	steps []report.Execution, proof []report.Proof) error {
	d := document{
		Proof:  proof,
		listed: l, Iterations: []console.Record{}, Success: r.Status == string(loop.Completed) && state.Changed,
		Elapsed: console.Seconds(r.Elapsed), FinalStrategy: state.Strategy,
		Checkpoints: []string{}, TokensIn: r.TokensIn, TokensOut: r.TokensOut,
	}
	d.Steps = shownSteps(steps)
	d.StartedAt, d.Sandbox = d.StartedAt.UTC(), action.SetupOf(r).Sandbox
	d.CostUSD = loop.MicroUSD(r.Cost).Dollars(r.CostKnown)
	if state.Question != nil {
		d.Question = state.Question
	}
	var history []failure.Analysis
	for _, rec := range records {
		it := console.Shown(rec)
		if rec.Steps != nil {
			it.Progress.LastStep = lastSucceededStep(steps, rec.Number)
		}
		if rec.Failure != nil {
			history = append(history, *rec.Failure)
			it.Failure.Pattern = failure.Pattern(history)
		}
		d.Iterations = append(d.Iterations, it)
		if rec.Snapshot != "" {
			d.Checkpoints = append(d.Checkpoints, rec.Snapshot)
		}
	}
	return a.Document(d)
}

// usedNoAgent reports whether a workflow had only commands as its steps, and so cost
// nothing.
func usedNoAgent(s *loop.State) bool {
	return s.Policy.Kind == loop.Workflow && s.Policy.Agent == "" && s.Spent.Calls == 0
}

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/sqlite"
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
	// Sandbox is the level, and what the operating system enforces of it.
	Sandbox string `json:"sandbox,omitempty"`
}

func (a *app) showCommand() *cobra.Command {
	var s showing
	cmd := leaf("show RUN", "Show one run, iteration by iteration, or a report of it", exactlyOne("a run or a procedure"),
		func(ctx context.Context, args []string) error {
			if err := s.settle(a); err != nil {
				return err
			}
			return a.withRun(ctx, args[0], func(p *action.Operator, r sqlite.Run) error {
				return a.into(s.output, func() error {
					switch {
					case s.diff:
						return a.showDiff(ctx, p, r)
					case s.form == formMarkdown || s.form == formHTML:
						return a.showReport(ctx, p, r, s.form)
					}
					return a.show(ctx, p.Store, r)
				})
			})
		})
	cmd.Example = "  pawl show build\n  pawl show build --diff\n  pawl show build --format html -o report.html"
	s.flags(cmd)
	return cmd
}

func (a *app) show(ctx context.Context, st *sqlite.Store, r sqlite.Run) error {
	records, err := st.Iterations(ctx, r.ID)
	if err != nil {
		return err
	}
	state, err := action.StateOf(r)
	if err != nil {
		return err
	}
	l := a.listRun(ctx, r.Root, r)
	if a.json {
		return a.showJSON(l, r, state, records)
	}
	a.result("Run %s of %s: %s", r.ID, r.Name, l.Status)
	if l.Why != "" {
		a.result(" (%s)", report.Line(l.Why, 500))
	}
	a.result("\nStarted %s, %s, %s tokens", r.StartedAt.Local().Format("2006-01-02 15:04:05"), console.Iterations(state.Iteration), console.Short(r.TokensIn+r.TokensOut))
	switch {
	case r.CostKnown:
		a.result(", %s", loop.MicroUSD(r.Cost))
	case free(&state):
		a.result(", no cost")
	default:
		a.result(", cost unknown")
	}
	if box := action.SetupOf(r).Sandbox; box != "" {
		a.result("\nSandbox %s", box)
	}
	if action.OnCopy(r) {
		a.result("\nIt works on a copy: 'pawl show %s --diff' shows its result, 'pawl apply %s' brings it into your files", r.ID, r.ID)
	}
	a.result("\n\n")
	a.showIterations(records)
	a.showHarm(records)
	a.showReviews(records)
	if state.Question != nil && !state.Status.Active() {
		a.printQuestion(r.ID, state.Status, state.Question, "", false)
	}
	return nil
}

func (a *app) showIterations(records []loop.Record) {
	var rows [][]any
	for _, r := range records {
		number := fmt.Sprint(r.Number)
		if r.Attempt > 1 || r.Outcome == loop.Waited {
			number += fmt.Sprintf(".%d", r.Attempt)
		}
		rows = append(rows, []any{
			number, r.Outcome, r.Agent, r.Strategy, loop.Duration(r.Took()),
			exitWord(r.Exit), gateWords(r), len(r.Files), report.Line(whatHappened(r), 80),
		})
	}
	a.table("#\tOUTCOME\tAGENT\tSTRATEGY\tELAPSED\tEXIT\tGATES\tFILES\tWHAT", rows, 0)
}

func exitWord(x loop.Exit) string {
	switch {
	case x.Ended != loop.NotEnded:
		return string(x.Ended)
	case x.Signal != "":
		return x.Signal
	}
	return fmt.Sprint(x.Code)
}

func gateWords(r loop.Record) string {
	var words []string
	for _, g := range r.Gates {
		mark := map[loop.GateStatus]string{loop.GatePassed: "✓", loop.GateNotRun: "○"}[g.Status]
		if mark == "" {
			mark = "✗"
		}
		words = append(words, mark+report.Line(g.Name, 20))
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
	switch {
	case r.Failure != nil:
		return r.Failure.Summary
	case r.Signal.Kind != "":
		return strings.TrimSpace(strings.ToUpper(string(r.Signal.Kind)) + " " + r.Signal.Text)
	case r.Progress >= 0:
		return fmt.Sprintf("PROGRESS %d", r.Progress)
	}
	return ""
}

func (a *app) showJSON(l listed, r sqlite.Run, state loop.State, records []loop.Record) error {
	d := document{
		listed: l, Iterations: []console.Record{}, Success: r.Status == string(loop.Completed), Elapsed: console.Seconds(r.Elapsed), FinalStrategy: state.Strategy,
		Checkpoints: []string{}, TokensIn: r.TokensIn, TokensOut: r.TokensOut,
	}
	d.StartedAt, d.Sandbox = d.StartedAt.UTC(), action.SetupOf(r).Sandbox
	if r.CostKnown {
		cost := float64(r.Cost) / 1e6
		d.CostUSD = &cost
	}
	if state.Question != nil {
		d.Question = state.Question
	}
	var history []failure.Analysis
	for _, rec := range records {
		it := console.Shown(rec)
		if rec.Failure != nil {
			history = append(history, *rec.Failure)
			it.Failure.Pattern = failure.Pattern(history)
		}
		d.Iterations = append(d.Iterations, it)
		if rec.Snapshot != "" {
			d.Checkpoints = append(d.Checkpoints, rec.Snapshot)
		}
	}
	return a.document(d)
}

// maxDiff bounds what show --diff prints.
const maxDiff = 10 << 20

func (a *app) showDiff(ctx context.Context, p *action.Operator, r sqlite.Run) error {
	tree, err := p.Tree(ctx, r)
	if err != nil {
		return err
	}
	if action.OnCopy(r) {
		if err := p.Gather(ctx, r); err != nil {
			return err
		}
	}
	snaps, err := tree.Snapshots(ctx, r.ID)
	if err != nil {
		return err
	}
	if len(snaps) == 0 {
		return usage("run %s has no snapshots", r.ID)
	}
	patch, cut, err := tree.Diff(ctx, snaps[0].Tree, snaps[len(snaps)-1].Tree, maxDiff)
	if err != nil {
		return err
	}
	a.result("%s", patch)
	if cut {
		a.say("The patch is cut at 10 MB. The whole: git diff %s %s", snaps[0].Commit, snaps[len(snaps)-1].Commit)
	}
	return nil
}

// free is true for a run on which no agent has worked: the steps of a workflow
// were commands.
func free(s *loop.State) bool {
	return s.Policy.Kind == loop.Workflow && s.Policy.Agent == "" && s.Spent.Calls == 0
}

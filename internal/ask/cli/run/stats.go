package run

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/stats"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// statsCommand is the parent of all statistics.
func statsCommand(a *command.App) *cobra.Command {
	var f summaryFlags
	cmd := command.Group("stats", "Show statistics of the work here: in all, or by day, agent, sprint or task",
		func(ctx context.Context) error {
			by, err := f.checkFlags()
			if err != nil {
				return err
			}
			return a.WithOperator(ctx, func(p *action.Operator) error { return statsSummary(ctx, a, p.Store, by, f.days) })
		},
		statsLeaf(a, "strategies", "Which strategy helped against which class of failure", statsStrategies),
		statsLeaf(a, "failures", "Failed iterations by class: how many, how many transient, cost and time lost",
			statsFailures),
		statsLeaf(a, "gates", "Gates: how often each ran, was red, and was flaky", statsGates),
		statsLeaf(a, "guards", "Guards that ended runs", statsGuards),
		statsLeaf(a, "refusals", "Commands that the safety level refused, and how often a person allowed them later",
			statsRefusals))
	f.addFlagsTo(cmd)
	return cmd
}

func statsLeaf(a *command.App, name, short string,
	show func(context.Context, *command.App, *store.Store) error) *cobra.Command {
	return command.OnBoard(a, name, short, func(ctx context.Context, p *action.Operator) error {
		return show(ctx, a, p.Store)
	})
}

func statsStrategies(ctx context.Context, a *command.App, db *store.Store) error {
	list, err := db.Learned(ctx)
	if err != nil {
		return err
	}
	if right, uses := store.Accuracy(list); uses > 0 {
		defer func() { a.Say("The chosen strategy helped in %d of %d uses.", right, uses) }()
	}
	return command.Listing(a, list, "No statistics of strategies yet: an iteration must fail first",
		"CLASS\tSTRATEGY\tSUCCESSES\tFAILURES\tRATE\tLAST USED", func(l store.Learned) command.Row {
			s, rate := l.Stat(time.Now()), "-"
			if s.Rate != nil {
				rate = fmt.Sprintf("%d %%", int(math.Round(*s.Rate*1000))/10)
			}
			return command.Row{JSON: s, Cells: []any{s.Class, s.Strategy, s.Successes, s.Failures, rate,
				command.Minute(s.LastUsed)}}
		})
}

func statsFailures(ctx context.Context, a *command.App, db *store.Store) error {
	list, err := db.FailureStats(ctx)
	if err != nil {
		return err
	}
	return command.Listing(a, list, "No iteration has failed yet",
		"CLASS\tCOUNT\tTRANSIENT\tRUNS\tMEAN COST\tTIME LOST\tLAST", func(f store.FailureStat) command.Row {
			cost := "unknown"
			if f.MeanCostUSD != nil {
				cost = loop.MicroUSD(math.Round(*f.MeanCostUSD * 1e6)).String()
			}
			lost := time.Duration(f.TimeLost * float64(time.Second))
			share := fmt.Sprintf("%d %%", 100*f.Transient/f.Count)
			return command.Row{JSON: f, Cells: []any{f.Class, f.Count, share, f.Runs,
				cost, console.Total(lost), command.Minute(f.Last)}}
		})
}

func statsGates(ctx context.Context, a *command.App, db *store.Store) error {
	list, err := db.GateStats(ctx)
	if err != nil {
		return err
	}
	return command.Listing(a, list, "No gate has run yet",
		"GATE\tRAN\tRED\tFLAKY\tLAST", func(g store.GateStat) command.Row {
			cells := []any{report.Line(g.Gate, 60), g.Ran, g.Red, g.Flaky, command.Minute(g.Last)}
			return command.Row{JSON: g, Cells: cells}
		})
}

func statsGuards(ctx context.Context, a *command.App, db *store.Store) error {
	list, err := db.GuardStats(ctx)
	if err != nil {
		return err
	}
	if completed, ended := countWrongly(list); ended > 0 {
		defer func() {
			a.Say("Of %d runs that a guard stopped, %d completed later without any help.", ended, completed)
		}()
	}
	return command.Listing(a, list, "No guard has tripped yet",
		"GUARD\tTRIPS\tRUNS\tCOMPLETED\tLAST\tLAST RUN\tMESSAGE", func(g store.GuardStat) command.Row {
			return command.Row{JSON: g, Cells: []any{g.Guard, g.Trips, g.Runs, g.Completed, command.Minute(g.Last),
				g.LastRun, report.Line(g.Message, 80)}}
		})
}

func statsRefusals(ctx context.Context, a *command.App, db *store.Store) error {
	list, err := db.RefusalStats(ctx)
	if err != nil {
		return err
	}
	runs, allowed := 0, 0
	for _, r := range list {
		runs, allowed = runs+r.Runs, allowed+r.Allowed
	}
	if runs > 0 {
		defer func() {
			a.Say("Of the runs with a refused command, %s continued at permissive: those refusals may have been wrong.",
				fmt.Sprintf("%d %%", 100*allowed/runs))
		}()
	}
	return command.Listing(a, list, "No command was refused so far",
		"COMMAND\tREFUSED\tRUNS\tALLOWED\tLAST\tLAST RUN\tPATTERN", func(r store.RefusalStat) command.Row {
			return command.Row{JSON: r, Cells: []any{report.Line(r.Command, 60), r.Refused, r.Runs, r.Allowed,
				command.Minute(r.Last), r.LastRun, r.Pattern}}
		})
}

// mostGroups is how many sprints or tasks have a line of their own.
const mostGroups = 50

// summaryFlags narrow the summary.
type summaryFlags struct {
	by   string
	days int
}

func (f *summaryFlags) addFlagsTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.by, "by", "", "print a line for each `day`, agent, sprint or task")
	cmd.Flags().IntVar(&f.days, "days", 0, "only the last `n` days, today included")
	_ = cmd.RegisterFlagCompletionFunc("by",
		cobra.FixedCompletions([]string{"day", "agent", "sprint", "task"}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *summaryFlags) checkFlags() (stats.By, error) {
	by := stats.By(f.by)
	switch by {
	case stats.All, stats.Day, stats.Agent, stats.Sprint, stats.Task:
	default:
		return "", command.Usage("--by %s: it is day, agent, sprint or task", f.by)
	}
	if f.days < 0 || f.days > 36500 {
		return "", command.Usage("--days %d: it is a number of days", f.days)
	}
	return by, nil
}

// statsSummary prints the totals, or a line for each group.
func statsSummary(ctx context.Context, a *command.App, db *store.Store, by stats.By, days int) error {
	now, since := time.Now(), time.Time{}
	if days > 0 {
		since = stats.Since(now, days, time.Local)
	}
	list, err := db.Tallies(ctx, by, since, now, time.Local, mostGroups)
	if err != nil {
		return err
	}
	switch {
	case by != stats.All:
		return statsGroups(a, list, by)
	case a.JSON:
		return a.JSONLine(stats.Sum(list).Line())
	}
	statsTotal(a, stats.Sum(list))
	if days > 0 {
		return nil // what was learned has no days
	}
	return statsRates(ctx, a, db)
}

// statsRates prints how often a chosen strategy helped, and how often a guard was wrong.
func statsRates(ctx context.Context, a *command.App, db *store.Store) error {
	learned, err := db.Learned(ctx)
	if err != nil {
		return err
	}
	guards, err := db.GuardStats(ctx)
	if err != nil {
		return err
	}
	if right, uses := store.Accuracy(learned); uses > 0 {
		a.Result("Strategies  %d of %d choices helped\n", right, uses)
	}
	if completed, ended := countWrongly(guards); ended > 0 {
		line := fmt.Sprintf("Blocked     %s by guards", fault.Numbered(ended, "run"))
		if completed > 0 {
			line += fmt.Sprintf("; %d of them completed later without any help", completed)
		}
		a.Result("%s\n", line)
	}
	return nil
}

// countWrongly returns how many of the runs that guards ended are complete all the same.
func countWrongly(list []store.GuardStat) (completed, ended int) {
	for _, g := range list {
		ended, completed = ended+g.Runs, completed+g.Completed
	}
	return completed, ended
}

// statsGroups prints a line for each day, agent, sprint or task.
func statsGroups(a *command.App, list []stats.Tally, by stats.By) error {
	header := map[stats.By]string{stats.Day: "DAY", stats.Agent: "AGENT", stats.Sprint: "SPRINT",
		stats.Task: "TASK"}[by] +
		"\tLANDED\tFAILED\tTIMED OUT\tBLOCKED\tITERATIONS\tA TASK\tRETRIES\tHELPED\tCONFLICTS\tWORKED\tWAITED\tCOST"
	none := "No statistics yet: no iteration has ended, and no task was started"
	if by == stats.Sprint {
		none = "No statistics of sprints yet. Start one with: pawl sprint"
	}
	return command.Listing(a, list, none, header,
		func(t stats.Tally) command.Row {
			return command.Row{JSON: t.Line(), Cells: []any{
				t.Key, t.Landed, t.GaveUp, t.TimedOut, t.Blocked, t.Iterations, iterationsPerTask(t), t.Retries,
				formatHelped(t), t.Conflicts,
				formatBrief(t.Elapsed), formatBrief(t.Waited + t.Asked), formatCost(t),
			}}
		})
}

// statsTotal prints all in words.
func statsTotal(a *command.App, t stats.Tally) {
	if t == (stats.Tally{}) {
		a.Say("No statistics yet: no iteration has ended, and no task was started")
		return
	}
	a.Result("Tasks       %d landed, %d failed, %d timed out, %d blocked; %d starts\n", t.Landed, t.GaveUp, t.TimedOut,
		t.Blocked, t.Started)
	line := fmt.Sprintf("Iterations  %d: %d good, %d failed", t.Iterations, t.Succeeded, t.Failed)
	if rest := t.Iterations - t.Succeeded - t.Failed; rest > 0 {
		line += fmt.Sprintf(", %d neither (no change, or a question)", rest)
	}
	if t.Worked > 0 {
		line += fmt.Sprintf("; a task that landed took %s (%d to %d)", iterationsPerTask(t), t.Fewest, t.Most)
	}
	a.Result("%s\n", line)
	if t.Iterations > 0 {
		a.Result("Time        %s of work; an iteration took %s to %s\n", formatBrief(t.Elapsed),
			formatBrief(t.Fastest), formatBrief(t.Slowest))
	}
	if t.Retries > 0 {
		a.Result("Retries     %d, of which %d helped (%s)\n", t.Retries, t.Cured, formatHelped(t))
	}
	if t.Landed+t.Conflicts > 0 {
		a.Result("Landings    %d, with %s\n", t.Landed, fault.Numbered(t.Conflicts, "conflict"))
	}
	if t.Waited+t.Asked > 0 {
		a.Result("Waited      %s for providers and before new tries, %s for answers\n", formatBrief(t.Waited),
			formatBrief(t.Asked))
	}
	if t.Guards > 0 {
		a.Result("Guards      %d tripped\n", t.Guards)
	}
	a.Result("Cost        %s; %d tokens in, %d out\n", formatCost(t), t.TokensIn, t.TokensOut)
}

// formatBrief returns a duration to the second, or finer where a second is much.
func formatBrief(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return console.Total(d)
}

func iterationsPerTask(t stats.Tally) string {
	mean, ok := t.MeanIterations()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.1f", mean)
}

func formatHelped(t stats.Tally) string {
	share, ok := t.RetrySuccess()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// formatCost returns "unknown" if no iteration has a known cost.
func formatCost(t stats.Tally) string {
	return cmp.Or(loop.Money(loop.MicroUSD(t.Cost), t.CostKnown > 0, t.CostKnown < t.Iterations), "unknown")
}

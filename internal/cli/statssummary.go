package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/stats"
)

// mostGroups is how many sprints or tasks are told apart.
const mostGroups = 50

// summaryFlags narrow the summary.
type summaryFlags struct {
	by   string
	days int
}

func (f *summaryFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.by, "by", "", "a line for each `day`, agent, sprint or task")
	cmd.Flags().IntVar(&f.days, "days", 0, "only the last `n` days, today included")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions([]string{"day", "agent", "sprint", "task"}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *summaryFlags) check() (stats.By, error) {
	by := stats.By(f.by)
	switch by {
	case stats.All, stats.Day, stats.Agent, stats.Sprint, stats.Task:
	default:
		return "", usage("--by %s: it is day, agent, sprint or task", f.by)
	}
	if f.days < 0 || f.days > 36500 {
		return "", usage("--days %d: it is a number of days", f.days)
	}
	return by, nil
}

// statsSummary shows what the work came to.
func (a *app) statsSummary(ctx context.Context, store *sqlite.Store, by stats.By, days int) error {
	now, since := time.Now(), time.Time{}
	if days > 0 {
		since = stats.Since(now, days, time.Local)
	}
	list, err := store.Tallies(ctx, by, since, now, time.Local, mostGroups)
	if err != nil {
		return err
	}
	switch {
	case by != stats.All:
		return a.statsGroups(list, by)
	case a.json:
		return a.jsonLine(stats.Sum(list).Line())
	}
	a.statsTotal(stats.Sum(list))
	return nil
}

// statsGroups prints a line for each day, agent, sprint or task.
func (a *app) statsGroups(list []stats.Tally, by stats.By) error {
	header := map[stats.By]string{stats.Day: "DAY", stats.Agent: "AGENT", stats.Sprint: "SPRINT", stats.Task: "TASK"}[by] +
		"\tLANDED\tFAILED\tTIMED OUT\tBLOCKED\tITERATIONS\tA TASK\tRETRIES\tHELPED\tCONFLICTS\tWORKED\tWAITED\tCOST"
	return listing(a, list, "Nothing was counted yet: no iteration has ended, and no task was started", header, func(t stats.Tally) row {
		return row{t.Line(), []any{
			t.Key, t.Landed, t.GaveUp, t.TimedOut, t.Blocked, t.Iterations, perTask(t), t.Retries, helped(t), t.Conflicts,
			brief(t.Elapsed), brief(t.Waited + t.Asked), cost(t),
		}}
	})
}

// statsTotal prints all in words.
func (a *app) statsTotal(t stats.Tally) {
	if t == (stats.Tally{}) {
		a.say("Nothing was counted yet: no iteration has ended, and no task was started")
		return
	}
	a.result("Tasks       %d landed, %d failed, %d timed out, %d blocked; %d starts\n", t.Landed, t.GaveUp, t.TimedOut, t.Blocked, t.Started)
	line := fmt.Sprintf("Iterations  %d: %d good, %d failed", t.Iterations, t.Succeeded, t.Failed)
	if t.Worked > 0 {
		line += fmt.Sprintf("; a task that landed took %s (%d to %d)", perTask(t), t.Fewest, t.Most)
	}
	a.result("%s\n", line)
	if mean, ok := t.MeanElapsed(); ok {
		a.result("Time        %s of work; an iteration took %s (%s to %s)\n", brief(t.Elapsed), brief(mean), brief(t.Fastest), brief(t.Slowest))
	}
	a.result("Retries     %d, of which %d helped (%s)\n", t.Retries, t.Cured, helped(t))
	a.result("Landings    %d, with %d conflict(s)\n", t.Landed, t.Conflicts)
	a.result("Waited      %s for providers, %s for answers\n", brief(t.Waited), brief(t.Asked))
	a.result("Guards      %d tripped\n", t.Guards)
	a.result("Cost        %s; %d tokens in, %d out\n", cost(t), t.TokensIn, t.TokensOut)
}

// brief is a duration to the second, or finer where a second is much.
func brief(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return console.Total(d)
}

func perTask(t stats.Tally) string {
	mean, ok := t.MeanIterations()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.1f", mean)
}

func helped(t stats.Tally) string {
	share, ok := t.RetrySuccess()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// cost is what is known of it.
func cost(t stats.Tally) string {
	if t.CostKnown == 0 {
		return "unknown"
	}
	return loop.MicroUSD(t.Cost).String()
}

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/strategy"
)

// statsCommand is the parent of all statistics.
func (a *app) statsCommand() *cobra.Command {
	var f summaryFlags
	cmd := group("stats", "What the work of this repository came to, in all or by day, agent, sprint or task",
		func(ctx context.Context) error {
			by, err := f.check()
			if err != nil {
				return err
			}
			return a.withOperator(ctx, func(p *action.Operator) error { return a.statsSummary(ctx, p.Store, by, f.days) })
		},
		a.statsOf("strategies", "What was learned: which strategy helped against which class of failure", a.statsStrategies),
		a.statsOf("failures", "Failed iterations by class: how many, how many transient, cost and time lost", a.statsFailures),
		a.statsOf("guards", "Safety guards that tripped", a.statsGuards))
	f.add(cmd)
	return cmd
}

func (a *app) statsOf(name, short string, show func(context.Context, *sqlite.Store) error) *cobra.Command {
	return leaf(name, short, atMost(0), func(ctx context.Context, _ []string) error {
		return a.withOperator(ctx, func(p *action.Operator) error { return show(ctx, p.Store) })
	})
}

// learnedStat is one line of `stats strategies --json`.
type learnedStat struct {
	Class     string `json:"class"`
	Strategy  string `json:"strategy"`
	Successes int    `json:"successes"`
	Failures  int    `json:"failures"`
	// Rate is what counts for a choice today: 0 to 1, older uses faded; null
	// when nothing is left of them.
	Rate     *float64  `json:"rate"`
	LastUsed time.Time `json:"last_used"`
}

func (a *app) statsStrategies(ctx context.Context, store *sqlite.Store) error {
	list, err := store.Learned(ctx)
	if err != nil {
		return err
	}
	return listing(a, list, "Nothing was learned of strategies yet: an iteration must fail first",
		"CLASS\tSTRATEGY\tSUCCESSES\tFAILURES\tRATE\tLAST USED", func(l sqlite.Learned) row {
			s := learnedStat{Class: string(l.Class), Strategy: l.Strategy, Successes: l.Successes, Failures: l.Failures, LastUsed: l.UsedAt}
			rate := "-"
			if now := strategy.Faded([]strategy.Tally{l.Tally}, strategy.Day(time.Now())); len(now) == 1 {
				share := float64(now[0].Rate()) / 1000
				s.Rate, rate = &share, fmt.Sprintf("%d %%", now[0].Rate()/10)
			}
			return row{s, []any{s.Class, s.Strategy, s.Successes, s.Failures, rate, minute(s.LastUsed)}}
		})
}

// failureStat is one line of `stats failures --json`.
type failureStat struct {
	Class     string `json:"class"`
	Count     int    `json:"count"`
	Transient int    `json:"transient"` // of these
	Runs      int    `json:"runs"`
	// MeanCost is that of the iterations whose cost is known; null without one.
	MeanCost *float64  `json:"mean_cost_usd"`
	TimeLost float64   `json:"time_lost"` // seconds in these iterations
	Last     time.Time `json:"last"`
}

func (a *app) statsFailures(ctx context.Context, store *sqlite.Store) error {
	list, err := store.FailureStats(ctx)
	if err != nil {
		return err
	}
	return listing(a, list, "No iteration has failed yet",
		"CLASS\tCOUNT\tTRANSIENT\tRUNS\tMEAN COST\tTIME LOST\tLAST", func(f sqlite.FailureStat) row {
			s := failureStat{Class: string(f.Class), Count: f.Count, Transient: f.Transient, Runs: f.Runs, TimeLost: console.Seconds(f.Elapsed), Last: f.LastAt}
			cost := "unknown"
			if f.CostKnown > 0 {
				mean := float64(f.Cost) / 1e6 / float64(f.CostKnown)
				s.MeanCost, cost = &mean, loop.MicroUSD(f.Cost/int64(f.CostKnown)).String()
			}
			return row{s, []any{s.Class, s.Count, fmt.Sprintf("%d %%", 100*f.Transient/f.Count), s.Runs, cost, console.Total(f.Elapsed), minute(s.Last)}}
		})
}

// guardStat is one line of `stats guards --json`.
type guardStat struct {
	Guard   string    `json:"guard"`
	Trips   int       `json:"trips"`
	Runs    int       `json:"runs"`
	Last    time.Time `json:"last"`
	LastRun string    `json:"last_run"`
	Message string    `json:"message"` // of the last trip
}

func (a *app) statsGuards(ctx context.Context, store *sqlite.Store) error {
	list, err := store.GuardStats(ctx)
	if err != nil {
		return err
	}
	return listing(a, list, "No guard has tripped yet",
		"GUARD\tTRIPS\tRUNS\tLAST\tLAST RUN\tMESSAGE", func(g sqlite.GuardStat) row {
			s := guardStat{Guard: g.Guard, Trips: g.Trips, Runs: g.Runs, Last: g.LastAt, LastRun: g.LastRun, Message: g.Message}
			return row{s, []any{s.Guard, s.Trips, s.Runs, minute(s.Last), s.LastRun, report.Line(s.Message, 80)}}
		})
}

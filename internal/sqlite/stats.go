package sqlite

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/journal"
)

// FailureStat sums up the iterations and attempts that failed with one class.
type FailureStat struct {
	Class     failure.Class
	Count     int
	Transient int // of these, failures that the same again may cure
	Runs      int
	Elapsed   time.Duration // of all of them: the time that was lost
	Cost      int64         // micro-dollars, where it is known
	CostKnown int           // of how many it is known
	LastAt    time.Time
}

// FailureStats sums up all failed iterations, and the attempts that a
// provider's limit cut off, by class, the most frequent first.
func (s *Store) FailureStats(ctx context.Context) ([]FailureStat, error) {
	return read(ctx, s, "sum up the failures", func(f *FailureStat) []any {
		return []any{&f.Class, &f.Count, &f.Transient, &f.Runs, took(&f.Elapsed), &f.Cost, &f.CostKnown, when(&f.LastAt)}
	}, `SELECT class, count(*), sum(transient), count(DISTINCT run), sum(elapsed), sum(known * cost), sum(known), max(started_at) FROM (
			SELECT run, elapsed, started_at, json_extract(record, '$.failure.class') AS class,
				coalesce(json_extract(record, '$.failure.transient'), 0) AS transient,
				coalesce(json_extract(record, '$.cost_micro_usd'), 0) AS cost,
				coalesce(json_extract(record, '$.cost_source'), 'none') NOT IN ('none', '') AS known
			FROM iterations WHERE outcome IN ('failed', 'waited'))
		WHERE class IS NOT NULL GROUP BY class ORDER BY count(*) DESC, class`)
}

// GuardStat is how often a guard ended a session of a run.
type GuardStat struct {
	Guard   string
	Trips   int
	Runs    int
	LastAt  time.Time
	Message string // of the last trip
	LastRun string
}

// GuardStats counts the guards that tripped, the most frequent first.
func (s *Store) GuardStats(ctx context.Context) ([]GuardStat, error) {
	return read(ctx, s, "count the guards that tripped", func(g *GuardStat) []any {
		return []any{&g.Guard, &g.Trips, &g.Runs, when(&g.LastAt), &g.Message, &g.LastRun}
		// With max(), SQLite takes the other columns from the row that has it.
	}, `SELECT guard, count(*), count(DISTINCT run), max(at), message, run FROM (
			SELECT run, at, json_extract(data, '$.next.guard') AS guard, coalesce(json_extract(data, '$.next.message'), '') AS message
			FROM events WHERE kind = $1)
		WHERE guard IS NOT NULL GROUP BY guard ORDER BY count(*) DESC, guard`, journal.IterationEnded)
}

package store

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/stats"
)

// Usage is what the iterations of one agent used on one day.
type Usage struct {
	Day        string // 2006-01-02, in the zone that was asked for
	Agent      string
	Runs       int
	Iterations int // attempts that a provider's limit cut off are not counted
	Succeeded  int // of these
	Failed     int // of these
	Elapsed    time.Duration
	Cost       int64 // micro-dollars, where it is known
	CostKnown  int   // of how many attempts it is known
	TokensIn   int64
	TokensOut  int64
}

// UsageByDay sums up the attempts since a time, by day and agent, oldest
// first. zone is the person's, which decides where a day ends.
func (s *Store) UsageByDay(ctx context.Context, since, now time.Time, zone *time.Location) ([]Usage, error) {
	return read(ctx, s, "sum up what was used", func(u *Usage) []any {
		return []any{
			&u.Day, &u.Agent, &u.Runs, &u.Iterations, &u.Succeeded, &u.Failed, took(&u.Elapsed), &u.Cost, &u.CostKnown,
			&u.TokensIn, &u.TokensOut,
		}
	}, `SELECT day, agent, count(DISTINCT run),
		count(*) FILTER (WHERE outcome <> 'waited'), count(*) FILTER (WHERE outcome = 'success'),
			count(*) FILTER (WHERE outcome = 'failed'),
			sum(elapsed), sum(known * cost), sum(known), sum(tokens_in), sum(tokens_out) FROM (
			SELECT run, outcome, elapsed, `+dayOf("started_at", stats.Spans(since, now, zone))+` AS day,
				coalesce(json_extract(record, '$.agent'), '') AS agent,
				`+inRecord("cost_micro_usd")+` AS cost, `+costKnown+` AS known,
				`+inRecord("tokens_in")+` AS tokens_in, `+inRecord("tokens_out")+` AS tokens_out
			FROM iterations WHERE started_at >= $1) AS used
		GROUP BY day, agent ORDER BY day, agent`, ms(since))
}

// Throughput is how many runs and cases came to an end on one day.
type Throughput struct {
	Day                      string // 2006-01-02
	Completed, Failed, Other int    // runs that ended: completed; failed or aborted; in another way
	Landed                   int    // cases
	Iterations               int    // of the runs
	// Worked and Waited are the time of these runs in iterations and beside
	// them: waits for providers, for backoffs and between.
	Worked, Waited time.Duration
}

// ThroughputByDay counts what ended since a time, oldest day first; zone is
// that of [Store.UsageByDay].
func (s *Store) ThroughputByDay(ctx context.Context, since, now time.Time, zone *time.Location) ([]Throughput, error) {
	return read(ctx, s, "count what ended", func(t *Throughput) []any {
		return []any{&t.Day, &t.Completed, &t.Failed, &t.Other, &t.Landed, &t.Iterations, took(&t.Worked), took(&t.Waited)}
	}, `SELECT `+dayOf("at", stats.Spans(since, now, zone))+` AS day, 
		count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status IN ('failed', 'aborted')),
			count(*) FILTER (WHERE status NOT IN ('completed', 'failed', 'aborted', 'landed')),
			count(*) FILTER (WHERE status = 'landed'), sum(iterations),
			sum(worked), CASE WHEN sum(wall) > sum(worked) THEN sum(wall) - sum(worked) ELSE 0 END FROM (
			SELECT ended_at AS at, status, iteration AS iterations,
				coalesce((SELECT sum(i.elapsed) FROM iterations i WHERE i.run = runs.id), 0) AS worked, elapsed AS wall
			FROM runs WHERE ended_at >= $1 AND ended_at > 0
			UNION ALL
			SELECT at, 'landed', 0, 0, 0 FROM case_history WHERE at >= $1 AND action = 'land') AS ended
		GROUP BY day ORDER BY day`, ms(since))
}

package store

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/stats"
)

// UsageStat is what the iterations of one agent used on one day, in the zone that was asked for. Attempts that a
// provider's limit cut off are no iterations.
type UsageStat struct {
	Day        string   `json:"day" doc:"2006-01-02"`
	Agent      string   `json:"agent"`
	Runs       int      `json:"runs"`
	Iterations int      `json:"iterations"`
	Succeeded  int      `json:"succeeded"`
	Failed     int      `json:"failed"`
	Elapsed    float64  `json:"elapsed" doc:"Seconds."`
	CostUSD    *float64 `json:"cost_usd" nullable:"true" doc:"Where it is known; null when it is known of none."`
	TokensIn   int64    `json:"tokens_in"`
	TokensOut  int64    `json:"tokens_out"`
}

// UsageByDay sums up the attempts since a time, by day and agent, oldest
// first. zone is the person's, which decides where a day ends.
func (s *Store) UsageByDay(ctx context.Context, since, now time.Time, zone *time.Location) ([]UsageStat, error) {
	return read(ctx, s, "sum up what was used", func(u *UsageStat) []any {
		return []any{&u.Day, &u.Agent, &u.Runs, &u.Iterations, &u.Succeeded, &u.Failed, &u.Elapsed, &u.CostUSD,
			&u.TokensIn, &u.TokensOut}
	}, `SELECT day, agent, count(DISTINCT run),
		count(*) FILTER (WHERE outcome <> 'waited'), count(*) FILTER (WHERE outcome = 'success'),
			count(*) FILTER (WHERE outcome = 'failed'),
			sum(elapsed) / 1e3, CASE WHEN sum(known) > 0 THEN sum(known * cost) / 1e6 END, sum(tokens_in), sum(tokens_out) FROM (
			SELECT run, outcome, elapsed, `+dayOf("started_at", stats.Spans(since, now, zone))+` AS day,
				coalesce(json_extract(record, '$.agent'), '') AS agent,
				`+inRecord("cost_micro_usd")+` AS cost, `+costKnown+` AS known,
				`+inRecord("tokens_in")+` AS tokens_in, `+inRecord("tokens_out")+` AS tokens_out
			FROM iterations WHERE started_at >= $1) AS used
		GROUP BY day, agent ORDER BY day, agent`, ms(since))
}

// ThroughputStat is how many runs and cases came to an end on one day. The time is that of these runs.
type ThroughputStat struct {
	Day        string  `json:"day" doc:"2006-01-02"`
	Completed  int     `json:"completed" doc:"Runs."`
	Failed     int     `json:"failed" doc:"Runs that failed or were aborted."`
	Other      int     `json:"other" doc:"Runs that ended in another way."`
	Landed     int     `json:"landed" doc:"Cases."`
	Iterations int     `json:"iterations"`
	Worked     float64 `json:"worked" doc:"Seconds in iterations."`
	Waited     float64 `json:"waited" doc:"Seconds beside them: waits for providers and backoffs."`
}

// ThroughputByDay counts what ended since a time, oldest day first; zone is
// that of [Store.UsageByDay].
func (s *Store) ThroughputByDay(ctx context.Context, since, now time.Time, zone *time.Location) ([]ThroughputStat, error) {
	return read(ctx, s, "count what ended", func(t *ThroughputStat) []any {
		return []any{&t.Day, &t.Completed, &t.Failed, &t.Other, &t.Landed, &t.Iterations, &t.Worked, &t.Waited}
	}, `SELECT `+dayOf("at", stats.Spans(since, now, zone))+` AS day, 
		count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status IN ('failed', 'aborted')),
			count(*) FILTER (WHERE status NOT IN ('completed', 'failed', 'aborted', 'landed')),
			count(*) FILTER (WHERE status = 'landed'), sum(iterations),
			sum(worked) / 1e3, CASE WHEN sum(wall) > sum(worked) THEN (sum(wall) - sum(worked)) / 1e3 ELSE 0 END FROM (
			SELECT ended_at AS at, status, iteration AS iterations,
				coalesce((SELECT sum(i.elapsed) FROM iterations i WHERE i.run = runs.id), 0) AS worked, elapsed AS wall
			FROM runs WHERE ended_at >= $1 AND ended_at > 0
			UNION ALL
			SELECT at, 'landed', 0, 0, 0 FROM case_history WHERE at >= $1 AND action = 'land') AS ended
		GROUP BY day ORDER BY day`, ms(since))
}

package store

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/keep/journal"
)

// FailureStat sums up the iterations and attempts that failed with one class.
type FailureStat struct {
	Class       failure.Class `json:"class"`
	Count       int           `json:"count"`
	Transient   int           `json:"transient" doc:"Of these."` // that the same again may cure
	Runs        int           `json:"runs"`
	MeanCostUSD *float64      `json:"mean_cost_usd" nullable:"true" doc:"Of the iterations whose cost is known."`
	TimeLost    float64       `json:"time_lost" doc:"Seconds in these iterations."`
	Last        time.Time     `json:"last"`
}

// FailureStats sums up all failed iterations, and the attempts that a
// provider's limit cut off, by class, the most frequent first.
func (s *Store) FailureStats(ctx context.Context) ([]FailureStat, error) {
	return read(ctx, s, "sum up the failures", func(f *FailureStat) []any {
		return []any{&f.Class, &f.Count, &f.Transient, &f.Runs, &f.MeanCostUSD, &f.TimeLost, when(&f.Last)}
	}, `SELECT class, count(*), sum(transient), count(DISTINCT run),
			sum(known * cost) / 1e6 / nullif(sum(known), 0), sum(elapsed) / 1e3, max(started_at) FROM (
			SELECT run, elapsed, started_at, json_extract(record, '$.failure.class') AS class,
				`+inRecord("failure.transient")+` AS transient, `+inRecord("cost_micro_usd")+` AS cost, `+costKnown+` AS known
			FROM iterations WHERE outcome IN ('failed', 'waited')) AS failed
		WHERE class IS NOT NULL GROUP BY class ORDER BY count(*) DESC, class`)
}

// inRecord is the SQL of a number in an iteration's record; 0 where it is not there.
func inRecord(path string) string {
	return `CAST(coalesce(json_extract(record, '$.` + path + `'), '0') AS BIGINT)`
}

// costKnown is 1 for an iteration whose cost is known.
const costKnown = `CASE WHEN coalesce(json_extract(record, '$.cost_source'), 'none') IN ('none', '') THEN 0 ELSE 1 END`

// GateStat sums up the verdicts of one gate, of iterations and of the merge queue.
type GateStat struct {
	Gate  string    `json:"gate"`
	Ran   int       `json:"ran"`
	Red   int       `json:"red"`
	Flaky int       `json:"flaky" doc:"Green when it ran again on the same tree."`
	Last  time.Time `json:"last"`
}

// GateStats sums up what the gates found, the flakiest first.
func (s *Store) GateStats(ctx context.Context) ([]GateStat, error) {
	return read(ctx, s, "sum up the gates", func(g *GateStat) []any {
		return []any{&g.Gate, &g.Ran, &g.Red, &g.Flaky, when(&g.Last)}
	}, `SELECT name, count(*), count(*) FILTER (WHERE status <> 'passed') AS red,
			count(*) FILTER (WHERE status = 'passed' AND tries > 1) AS flaky, max(at) FROM (
			SELECT at, json_extract(value, '$.name') AS name, json_extract(value, '$.status') AS status,
				CAST(coalesce(json_extract(value, '$.tries'), '0') AS BIGINT) AS tries
			FROM (SELECT started_at AS at, record AS verdict FROM iterations
				UNION ALL SELECT at, record FROM gate_records) AS v, json_each(v.verdict, '$.gates') AS g) AS gates
		WHERE status <> 'not run' GROUP BY name ORDER BY flaky DESC, red DESC, name`)
}

// GuardStat is how often a guard ended a session of a run.
type GuardStat struct {
	Guard string `json:"guard"`
	Trips int    `json:"trips"`
	Runs  int    `json:"runs"`
	// Completed counts the runs that got there all the same: where it is high, the guard is too strict.
	Completed int       `json:"completed" doc:"Of these runs, those that went on and are complete, and those of tasks that a later run completed."`
	Last      time.Time `json:"last"`
	LastRun   string    `json:"last_run"`
	Message   string    `json:"message" doc:"Of the last trip."`
}

// GuardStats counts the guards that tripped, the most frequent first.
func (s *Store) GuardStats(ctx context.Context) ([]GuardStat, error) {
	return read(ctx, s, "count the guards that tripped", func(g *GuardStat) []any {
		return []any{&g.Guard, &g.Trips, &g.Runs, &g.Completed, when(&g.Last), &g.Message, &g.LastRun}
	}, `SELECT guard, count(*), count(DISTINCT run), count(DISTINCT runs.id), max(at), max(CASE WHEN nth = 1 THEN message END),
			max(CASE WHEN nth = 1 THEN run END) FROM (
			SELECT run, at, guard, message, row_number() OVER (PARTITION BY guard ORDER BY at DESC, seq DESC) AS nth FROM (
				SELECT run, at, seq, json_extract(data, '$.next.guard') AS guard,
					coalesce(json_extract(data, '$.next.message'), '') AS message
				FROM events WHERE kind = $1) AS ended) AS trips
			LEFT JOIN runs ON runs.id = trips.run AND (runs.status = 'completed' OR runs.kind = 'task' AND EXISTS (
				SELECT 1 FROM runs l WHERE l.kind = 'task' AND l.name = runs.name AND l.started_at > runs.started_at
					AND l.status = 'completed'))
		WHERE guard IS NOT NULL GROUP BY guard ORDER BY count(*) DESC, guard`, journal.IterationEnded)
}

// RefusalStat is how often a safety level ended an agent at one sort of command.
type RefusalStat struct {
	Pattern string `json:"pattern"`
	Refused int    `json:"refused"`
	Runs    int    `json:"runs"`
	// Allowed counts the runs that a person let do it: where it is high, the level refuses too much.
	Allowed int       `json:"allowed"`
	Last    time.Time `json:"last"`
	LastRun string    `json:"last_run"`
	Command string    `json:"command"`
}

// RefusalStats counts the refused commands, the most frequent first. A run is allowed when it, or a later
// one of its name, works at the level permissive.
func (s *Store) RefusalStats(ctx context.Context) ([]RefusalStat, error) {
	return read(ctx, s, "count the refused commands", func(r *RefusalStat) []any {
		return []any{&r.Pattern, &r.Refused, &r.Runs, &r.Allowed, when(&r.Last), &r.Command, &r.LastRun}
	}, `SELECT pattern, count(*), count(DISTINCT run), count(DISTINCT CASE WHEN allowed THEN run END), max(at),
			max(CASE WHEN nth = 1 THEN command END), max(CASE WHEN nth = 1 THEN run END) FROM (
			SELECT i.run, i.started_at AS at, json_extract(i.record, '$.refused.pattern') AS pattern,
				coalesce(json_extract(i.record, '$.refused.command'), '') AS command,
				row_number() OVER (PARTITION BY json_extract(i.record, '$.refused.pattern') ORDER BY i.started_at DESC) AS nth,
				EXISTS (SELECT 1 FROM runs l JOIN setups s ON s.run = l.id
					WHERE (l.id = r.id OR l.kind = r.kind AND l.name = r.name AND l.started_at > r.started_at)
						AND json_valid(s.setup) AND json_extract(s.setup, '$.sandbox') LIKE 'permissive%') AS allowed
			FROM iterations i JOIN runs r ON r.id = i.run) AS refusals
		WHERE pattern IS NOT NULL GROUP BY pattern ORDER BY count(*) DESC, pattern`)
}

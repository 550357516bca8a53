package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/stats"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

// Statistics sum up what the other parts keep, and keep what was learned of strategies.
type Statistics struct{ *DB }

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
func (s Statistics) FailureStats(ctx context.Context) ([]FailureStat, error) {
	return readRows(ctx, s.DB, "sum up the failures", func(f *FailureStat) []any {
		return []any{&f.Class, &f.Count, &f.Transient, &f.Runs, &f.MeanCostUSD, &f.TimeLost, &f.Last}
	}, `SELECT class, count(*), sum(transient), count(DISTINCT run),
			sum(known * cost) / 1e6 / nullif(sum(known), 0), sum(elapsed) / 1e3, max(started_at) FROM (
			SELECT run, elapsed, started_at, json_extract(record, '$.failure.class') AS class,
				`+recordNumberSQL("failure.transient")+` AS transient, `+recordNumberSQL("cost_micro_usd")+` AS cost, `+costKnown+` AS known
			FROM iterations WHERE outcome IN ('failed', 'waited')) AS failed
		WHERE class IS NOT NULL GROUP BY class ORDER BY count(*) DESC, class`)
}

// recordNumberSQL is the SQL of a number in an iteration's record; 0 where it is not there.
func recordNumberSQL(path string) string {
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
func (s Statistics) GateStats(ctx context.Context) ([]GateStat, error) {
	return readRows(ctx, s.DB, "sum up the gates", func(g *GateStat) []any {
		return []any{&g.Gate, &g.Ran, &g.Red, &g.Flaky, &g.Last}
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
	// Completed counts the runs that got there by themselves: where it is high, the guard is too strict.
	Completed int       `json:"completed" doc:"Of these runs, those that completed later without any help in words, and those of tasks that a later run completed."`
	Last      time.Time `json:"last"`
	LastRun   string    `json:"last_run"`
	Message   string    `json:"message" doc:"Of the last trip."`
}

// GuardStats counts the guards that tripped, the most frequent first.
func (s Statistics) GuardStats(ctx context.Context) ([]GuardStat, error) {
	return readRows(ctx, s.DB, "count the guards that tripped", func(g *GuardStat) []any {
		return []any{&g.Guard, &g.Trips, &g.Runs, &g.Completed, &g.Last, &g.Message, &g.LastRun}
	}, `SELECT guard, count(*), count(DISTINCT run), count(DISTINCT runs.id), max(at),
		max(CASE WHEN nth = 1 THEN message END),
			max(CASE WHEN nth = 1 THEN run END) FROM (
			SELECT run, at, guard, message, row_number() OVER (PARTITION BY guard
			ORDER BY at DESC, seq DESC) AS nth FROM (
				SELECT run, at, seq, json_extract(data, '$.next.guard') AS guard,
					coalesce(json_extract(data, '$.next.message'), '') AS message
				FROM events WHERE kind = $1) AS ended) AS trips
			LEFT JOIN runs ON runs.id = trips.run AND (runs.status = 'completed' OR runs.kind = 'task' AND EXISTS (
				SELECT 1 FROM runs l WHERE l.kind = 'task' AND l.name = runs.name AND l.started_at > runs.started_at
					AND l.status = 'completed')) AND NOT EXISTS (
				SELECT 1 FROM events a WHERE a.run = trips.run AND (a.kind = $2 OR a.kind = $3 AND (
					coalesce(json_extract(a.data, '$.text'), '') <> ''
					OR coalesce(json_extract(a.data, '$.option'), '') LIKE 'Go on: %'
					OR coalesce(json_extract(a.data, '$.option'), '') LIKE 'It is cured%')))
		WHERE guard IS NOT NULL GROUP BY guard
		ORDER BY count(*) DESC, guard`, journal.IterationEnded, journal.MessageLeft, journal.Answered)
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
func (s Statistics) RefusalStats(ctx context.Context) ([]RefusalStat, error) {
	return readRows(ctx, s.DB, "count the refused commands", func(r *RefusalStat) []any {
		return []any{&r.Pattern, &r.Refused, &r.Runs, &r.Allowed, &r.Last, &r.Command, &r.LastRun}
	}, `SELECT pattern, count(*), count(DISTINCT run), count(DISTINCT CASE WHEN allowed THEN run END), max(at),
			max(CASE WHEN nth = 1 THEN command END), max(CASE WHEN nth = 1 THEN run END) FROM (
			SELECT i.run, i.started_at AS at, json_extract(i.record, '$.refused.pattern') AS pattern,
				coalesce(json_extract(i.record, '$.refused.command'), '') AS command,
				row_number() OVER (PARTITION BY json_extract(i.record, '$.refused.pattern')
				ORDER BY i.started_at DESC) AS nth,
				EXISTS (SELECT 1 FROM runs l JOIN setups s ON s.run = l.id
					WHERE (l.id = r.id OR l.kind = r.kind AND l.name = r.name AND l.started_at > r.started_at)
						AND json_valid(s.setup) AND json_extract(s.setup, '$.sandbox') LIKE 'permissive%') AS allowed
			FROM iterations i JOIN runs r ON r.id = i.run) AS refusals
		WHERE pattern IS NOT NULL GROUP BY pattern ORDER BY count(*) DESC, pattern`)
}

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
func (s Statistics) UsageByDay(ctx context.Context, since, now time.Time, zone *time.Location) ([]UsageStat, error) {
	return readRows(ctx, s.DB, "sum up what was used", func(u *UsageStat) []any {
		return []any{&u.Day, &u.Agent, &u.Runs, &u.Iterations, &u.Succeeded, &u.Failed, &u.Elapsed, &u.CostUSD,
			&u.TokensIn, &u.TokensOut}
	}, `SELECT day, agent, count(DISTINCT run),
		count(*) FILTER (WHERE outcome <> 'waited'), count(*) FILTER (WHERE outcome = 'success'),
			count(*) FILTER (WHERE outcome = 'failed'),
			sum(elapsed) / 1e3, CASE WHEN sum(known) > 0 THEN sum(known * cost) / 1e6 END, sum(tokens_in),
			sum(tokens_out) FROM (
			SELECT run, outcome, elapsed, `+dayExpression("started_at", stats.Spans(since, now, zone))+` AS day,
				coalesce(json_extract(record, '$.agent'), '') AS agent,
				`+recordNumberSQL("cost_micro_usd")+` AS cost, `+costKnown+` AS known,
				`+recordNumberSQL("tokens_in")+` AS tokens_in, `+recordNumberSQL("tokens_out")+` AS tokens_out
			FROM iterations WHERE started_at >= $1) AS used
		GROUP BY day, agent ORDER BY day, agent`, since)
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
// that of [Statistics.UsageByDay].
func (s Statistics) ThroughputByDay(ctx context.Context, since, now time.Time, zone *time.Location,
) ([]ThroughputStat, error) {
	return readRows(ctx, s.DB, "count what ended", func(t *ThroughputStat) []any {
		return []any{&t.Day, &t.Completed, &t.Failed, &t.Other, &t.Landed, &t.Iterations, &t.Worked, &t.Waited}
	}, `SELECT `+dayExpression("at", stats.Spans(since, now, zone))+` AS day, 
		count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status IN ('failed', 'aborted')),
			count(*) FILTER (WHERE status NOT IN ('completed', 'failed', 'aborted', 'landed')),
			count(*) FILTER (WHERE status = 'landed'), sum(iterations),
			sum(worked) / 1e3, CASE WHEN sum(wall) > sum(worked) THEN (sum(wall) - sum(worked)) / 1e3 ELSE 0 END FROM (
			SELECT ended_at AS at, status, iteration AS iterations,
				coalesce((SELECT sum(i.elapsed) FROM iterations i WHERE i.run = runs.id), 0) AS worked, elapsed AS wall
			FROM runs WHERE ended_at >= $1 AND ended_at > 0
			UNION ALL
			SELECT at, 'landed', 0, 0, 0 FROM case_history h WHERE at >= $1 AND action = 'land' AND NOT EXISTS (
				SELECT 1 FROM case_history b WHERE b.id = h.id AND b.seq > h.seq AND b.action = 'reopen')) AS ended
		GROUP BY day ORDER BY day`, since)
}

// Tallies sum up what happened since a time, by day (oldest first), agent (by name),
// sprint or task (latest first). There are at most limit sprints or tasks. A task is
// as late as its last run, and its tally has all its runs. A zero since is ever
// since. It reads sums that were kept as things happened, never the history.
func (s Statistics) Tallies(ctx context.Context, by stats.By, since, now time.Time, zone *time.Location,
	limit int) ([]stats.Tally, error) {
	query := tallyColumns + ` FROM (SELECT *, '' AS key FROM tallies WHERE quarter >= $1) AS t GROUP BY key`
	args := []any{quarterHour(since)}
	switch by {
	case stats.Day:
		from := since
		if from.IsZero() {
			first := int64(0)
			if _, err := s.reads.One(ctx, `SELECT coalesce(min(quarter), 0) * 900000
				FROM tallies`, nil, &first); err != nil {
				return nil, s.explainError(ctx, "sum up what happened", err)
			}
			from = time.UnixMilli(first)
		}
		query = tallyColumns + ` FROM (SELECT *, ` + dayExpression("quarter * 900000", stats.Spans(from, now,
			zone)) + ` AS key FROM tallies WHERE quarter >= $1) AS t
			GROUP BY key ORDER BY key`
	case stats.Agent:
		query = tallyColumns + ` FROM (SELECT *, agent AS key FROM tallies WHERE quarter >= $1 AND agent <> '') AS t
			GROUP BY key ORDER BY key`
	case stats.Sprint:
		query = tallyColumns + ` FROM (SELECT *, sprint AS key FROM tallies WHERE quarter >= $1 AND sprint <> '') AS t
			GROUP BY key ORDER BY key DESC LIMIT $2`
		args = append(args, limit)
	case stats.Task:
		query, args = taskTallies, []any{since, limit}
	case stats.All:
	}
	return readRows(ctx, s.DB, "sum up what happened", tallyFields, query, args...)
}

// quarterHour returns the number of the first quarter of an hour that begins at or after
// t.
func quarterHour(t time.Time) int64 {
	const long = 15 * 60 * 1000
	return (rows.ToMS(t) + long - 1) / long
}

// dayExpression is the SQL of the day, 2006-01-02, of a column with milliseconds.
func dayExpression(column string, spans []stats.Span) string {
	var b strings.Builder
	fmt.Fprintf(&b, "date((%s", column)
	if len(spans) > 0 {
		b.WriteString(" + CASE")
		for i := 0; i+1 < len(spans); i++ {
			fmt.Fprintf(&b, " WHEN %s < %d THEN %d", column, spans[i+1].From.UnixMilli(),
				spans[i].Offset.Milliseconds())
		}
		fmt.Fprintf(&b, " WHEN 1 = 1 THEN %d END", spans[len(spans)-1].Offset.Milliseconds())
	}
	b.WriteString(") / 1000, 'unixepoch')")
	return b.String()
}

// tallyColumns are those of tallyFields. What landed without an agent and
// an iteration, a person brought.
const tallyColumns = `SELECT key, sum(iterations), sum(succeeded), sum(failed), sum(retries), sum(cured), sum(elapsed),
	coalesce(min(fastest), 0), coalesce(max(slowest), 0), sum(cost), sum(cost_known), sum(tokens_in), sum(tokens_out),
	sum(waited), sum(asked), sum(guards), sum(conflicts), sum(started), sum(landed), sum(gave_up), sum(timed_out),
	sum(blocked), sum(CASE WHEN agent = '' AND task_iterations = 0 THEN 0 ELSE landed END), sum(task_iterations),
	coalesce(min(fewest), 0), coalesce(max(most), 0)`

// namesOfTask are the names of all runs for a task, as board.TaskOf knows them.
const namesOfTask = `latest.name, latest.name || '-merge', latest.name || '-race2', latest.name || '-race3',
		latest.name || '-race4', latest.name || '-race5'`

// taskTallies reads the history of few tasks only: the index finds them.
const taskTallies = tallyColumns + ` FROM (
	WITH latest AS (SELECT name, max(started_at) AS at FROM (
		SELECT ` + taskOfRun + ` AS name, started_at FROM runs WHERE kind = 'task' AND started_at >= $1
			ORDER BY started_at DESC LIMIT 10 * $2) AS started
		GROUP BY name ORDER BY at DESC LIMIT $2)
	SELECT latest.at, latest.name AS key, 'its' AS agent, f.iterations, f.succeeded, f.failed, f.retries, f.cured,
		f.elapsed, f.took AS fastest, f.took AS slowest,
		f.cost, f.cost_known, f.tokens_in, f.tokens_out, 0 AS waited, 0 AS asked, 0 AS guards, 0 AS conflicts,
		0 AS started, 0 AS landed, 0 AS gave_up, 0 AS timed_out, 0 AS blocked,
		0 AS task_iterations, CAST(NULL AS BIGINT) AS fewest, CAST(NULL AS BIGINT) AS most
	FROM latest JOIN runs ON runs.kind = 'task' AND runs.name IN (` + namesOfTask + `)
	JOIN iteration_facts f ON f.run = runs.id
	UNION ALL
	SELECT latest.at, latest.name, 'its', 0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0, 0, 0,
		e.waited, e.asked, e.guards, 0, 0, 0, 0, 0, 0, 0, NULL, NULL
	FROM latest JOIN runs ON runs.kind = 'task' AND runs.name IN (` + namesOfTask + `)
	JOIN events v ON v.run = runs.id JOIN event_facts e ON e.seq = v.seq
	UNION ALL
	SELECT latest.at, latest.name, 'its', 0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0,
		c.started, c.landed, c.gave_up, c.timed_out, c.blocked,
		coalesce(c.task_iterations, 0), c.task_iterations, c.task_iterations
	FROM latest JOIN case_history h ON h.id = latest.name JOIN case_facts c ON c.seq = h.seq
	UNION ALL
	SELECT latest.at, latest.name, 'its', 0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 1,
		0, 0, 0, 0, 0, 0, NULL, NULL
	FROM events v JOIN latest ON latest.name = json_extract(v.data, '$.id')
	WHERE v.run >= 'queue:' AND v.run < 'queue;' AND v.kind = 'queue.conflict'
	) AS its GROUP BY key ORDER BY max(at) DESC, key`

func tallyFields(t *stats.Tally) []any {
	return []any{
		&t.Key, &t.Iterations, &t.Succeeded, &t.Failed, &t.Retries, &t.Cured, &t.Elapsed, &t.Fastest, &t.Slowest,
		&t.Cost, &t.CostKnown, &t.TokensIn, &t.TokensOut, &t.Waited, &t.Asked, &t.Guards, &t.Conflicts, &t.Started,
		&t.Landed, &t.GaveUp, &t.TimedOut, &t.Blocked, &t.Worked, &t.TaskIterations, &t.Fewest, &t.Most,
	}
}

// Learned is what was learned of one strategy for one class of failure.
type Learned struct {
	strategy.Tally
	// Successes and Failures are all that were ever counted.
	Successes, Failures int
	UsedAt              time.Time
}

// Accuracy is how often a chosen strategy helped, and of how many uses.
func Accuracy(list []Learned) (right, uses int) {
	for _, l := range list {
		right, uses = right+l.Successes, uses+l.Successes+l.Failures
	}
	return right, uses
}

// StrategyStat is how often a strategy helped against a class of failure.
type StrategyStat struct {
	Class     string    `json:"class"`
	Strategy  string    `json:"strategy"`
	Successes int       `json:"successes"`
	Failures  int       `json:"failures"`
	Rate      *float64  `json:"rate" nullable:"true" doc:"What counts for a choice today, 0 to 1: older uses have faded; null when nothing is left of them."`
	LastUsed  time.Time `json:"last_used"`
}

// Stat returns the form that `pawl stats --json` and the API print.
func (l Learned) Stat(now time.Time) StrategyStat {
	one := StrategyStat{Class: string(l.Class), Strategy: l.Strategy, Successes: l.Successes, Failures: l.Failures,
		LastUsed: l.UsedAt}
	if left := strategy.Faded([]strategy.Tally{l.Tally}, strategy.Day(now)); len(left) == 1 {
		one.Rate = new(float64(left[0].Rate()) / 1000)
	}
	return one
}

// maxLearned bounds what is read: classes times strategies is far below it.
const maxLearned = 10_000

// Learned returns what the runs of this repository learned, by class and
// strategy. The tallies are as they were stored; [strategy.Faded] makes them
// those of today.
func (s Statistics) Learned(ctx context.Context) ([]Learned, error) {
	all, err := readLearned(ctx, &s.reads, `SELECT `+learnedColumns+` FROM learned ORDER BY class, strategy LIMIT $1`,
		maxLearned)
	return all, s.explainError(ctx, "read what was learned of strategies", err)
}

const learnedColumns = `class, strategy, wins, losses, day, successes, failures, used_at`

func readLearned(ctx context.Context, w *statements, query string, args ...any) ([]Learned, error) {
	return rows.ListAll(ctx, w, func(l *Learned) []any {
		return []any{&l.Class, &l.Strategy, &l.Wins, &l.Losses, &l.Day, &l.Successes, &l.Failures, &l.UsedAt}
	}, query, args...)
}

// storeCredit adds a credit to what is stored, by the same arithmetic as the run that
// earned it; runs at the same time add to each other.
func storeCredit(ctx context.Context, w *statements, c strategy.Credit, when time.Time) error {
	stored, err := readLearned(ctx, w, `SELECT `+learnedColumns+` FROM learned WHERE class = $1`, string(c.Class))
	if err != nil {
		return err
	}
	tallies := lists.Each(stored, func(one Learned) strategy.Tally { return one.Tally })
	for _, t := range strategy.Learn(tallies, c, strategy.Day(when)) {
		w.Do(ctx, `INSERT INTO learned (class, strategy, wins, losses, day, successes, failures, used_at)
			VALUES ($1, $2, $3, $4, $5, 0, 0, 0)
			ON CONFLICT (class, strategy) DO UPDATE SET wins = excluded.wins, losses = excluded.losses,
			day = excluded.day`,
			string(t.Class), t.Strategy, t.Wins, t.Losses, t.Day)
	}
	success, failed := 0, 1
	if c.Success {
		success, failed = 1, 0
	}
	w.Do(ctx, `UPDATE learned SET successes = successes + $1, failures = failures + $2,
		used_at = CASE WHEN used_at > $3 THEN used_at ELSE $3 END
		WHERE class = $4 AND strategy = $5`, success, failed, when, string(c.Class), c.Strategy)
	return nil
}

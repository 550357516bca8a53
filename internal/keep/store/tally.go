package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/stats"
)

// Tallies sum up what happened since a time, by day (oldest first), agent (by name),
// sprint or task (latest first). There are at most limit sprints or tasks. A task is
// as late as its last run, and its tally has all its runs. A zero since is ever
// since. It reads sums that were kept as things happened, never the history.
func (s *Store) Tallies(ctx context.Context, by stats.By, since, now time.Time, zone *time.Location,
	limit int) ([]stats.Tally, error) {
	query := tallyColumns + ` FROM (SELECT *, '' AS key FROM tallies WHERE quarter >= $1) AS t GROUP BY key`
	args := []any{quarter(since)}
	switch by {
	case stats.Day:
		from := since
		if from.IsZero() {
			first := int64(0)
			if _, err := s.reads.one(ctx, `SELECT coalesce(min(quarter), 0) * 900000 FROM tallies`, nil, &first); err != nil {
				return nil, s.explain(ctx, "sum up what happened", err)
			}
			from = time.UnixMilli(first)
		}
		query = tallyColumns + ` FROM (SELECT *, ` + dayOf("quarter * 900000", stats.Spans(from, now,
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
		query, args = taskTallies, []any{ms(since), limit}
	case stats.All:
	}
	return read(ctx, s, "sum up what happened", tallyFields, query, args...)
}

// quarter is the first quarter of an hour that begins at a time or after it.
func quarter(t time.Time) int64 {
	const long = 15 * 60 * 1000
	return (ms(t) + long - 1) / long
}

// dayOf is the SQL of the day, 2006-01-02, of a column with milliseconds.
func dayOf(column string, spans []stats.Span) string {
	var b strings.Builder
	fmt.Fprintf(&b, "date((%s", column)
	if len(spans) > 0 {
		b.WriteString(" + CASE")
		for i := 0; i+1 < len(spans); i++ {
			fmt.Fprintf(&b, " WHEN %s < %d THEN %d", column, spans[i+1].From.UnixMilli(), spans[i].Offset.Milliseconds())
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
	sum(waited), sum(asked), sum(guards), sum(conflicts), sum(started), sum(landed), sum(gave_up), sum(timed_out), sum(blocked),
	sum(CASE WHEN agent = '' AND task_iterations = 0 THEN 0 ELSE landed END), sum(task_iterations),
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
	) AS its GROUP BY key ORDER BY max(at) DESC, key`

func tallyFields(t *stats.Tally) []any {
	return []any{
		&t.Key, &t.Iterations, &t.Succeeded, &t.Failed, &t.Retries, &t.Cured, took(&t.Elapsed),
		took(&t.Fastest), took(&t.Slowest), &t.Cost, &t.CostKnown, &t.TokensIn, &t.TokensOut,
		took(&t.Waited), took(&t.Asked), &t.Guards, &t.Conflicts, &t.Started, &t.Landed, &t.GaveUp, &t.TimedOut, &t.Blocked,
		&t.Worked, &t.TaskIterations, &t.Fewest, &t.Most,
	}
}

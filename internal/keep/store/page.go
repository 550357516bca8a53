package store

import (
	"context"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

// MaxPage is the most rows that a page has.
const MaxPage = 1000

// pageOf limits a number of rows that was asked for to what a page may have.
func pageOf(limit int) int { return min(max(limit, 1), MaxPage) }

// RunQuery says which runs a page lists. Its zero value is all of them.
type RunQuery struct {
	Root   string
	Status []string // one of these, as stored
	Active bool     // only runs that have not ended, of a task the last one
	Kind   string
	Name   string
	Text   string // in the id, the name, what it is to do or the reason, in any case of letters
	// Undelivered: only runs of which something is said to be undelivered in their set-up.
	Undelivered bool
}

// RunMark is a place in the listing: the run that a page ended with. The zero
// mark is before the first.
type RunMark struct{ Started, Row int64 }

// Runs lists runs without State and Setup, the last started first, at most
// [MaxPage] of them.
func (s RunTables) Runs(ctx context.Context, q RunQuery) ([]Run, error) {
	runs, _, _, err := s.RunPage(ctx, q, RunMark{}, MaxPage)
	return runs, err
}

// RunPage lists at most limit runs after a mark, the last started first, and
// the mark of the next page; more is false when there is none. Runs come
// without State and Setup.
func (s RunTables) RunPage(ctx context.Context, q RunQuery, after RunMark, limit int) (runs []Run, next RunMark,
	more bool, err error) {
	if s.shared {
		q.Root = "" // each person has another one
	}
	c := q.whereRuns()
	if after != (RunMark{}) {
		c.Add(`(started_at, rowid) < (?, ?)`, after.Started, after.Row)
	}
	type listed struct {
		Run
		row int64
	}
	found, err := rows.ListAll(ctx, &s.reads, func(l *listed) []any { return append(runFields(&l.Run), &l.row) },
		`SELECT `+runColumns+`, rowid FROM runs`+c.Where()+` ORDER BY started_at DESC, rowid DESC`+
			c.Limit(pageOf(limit)+1), c.Args...)
	more = len(found) > pageOf(limit)
	owners := make([]*Owner, len(found))
	for i := range found {
		owners[i] = &found[i].Owner
	}
	if err == nil {
		err = s.clearDeadOwners(ctx, owners...)
	}
	for _, l := range found[:min(len(found), pageOf(limit))] {
		runs, next = append(runs, l.Run), RunMark{rows.ToMS(l.StartedAt), l.row}
	}
	return runs, next, more, s.explainError(ctx, "list the runs", err)
}

func (q RunQuery) whereRuns() *rows.Conditions {
	c := &rows.Conditions{}
	if q.Root != "" {
		c.Add(`root = ?`, q.Root)
	}
	if q.Active {
		c.Add(openRuns)
	}
	if q.Undelivered {
		c.Add(`EXISTS (SELECT 1 FROM setups u WHERE u.run = runs.id AND u.setup LIKE ?)`, `%"undelivered":"%`)
	}
	if q.Kind != "" {
		c.Add(`kind = ?`, q.Kind)
	}
	if q.Name != "" {
		c.Add(`name = ?`, q.Name)
	}
	if len(q.Status) > 0 {
		rows.AnyOf(c, `status IN (…)`, q.Status)
	}
	if text := strings.ToLower(q.Text); text != "" {
		c.Add(`(instr(lower(name), ?) > 0 OR instr(lower(`+workColumn+`), ?) > 0 OR instr(lower(why), ?) > 0
			OR instr(id, ?) > 0)`, text, text, text, text)
	}
	return c
}

// CasePage lists at most limit cases that were added after the case with the
// number after (0: from the first), in the order in which they were added;
// text is looked for in titles, ids and tags. next is the mark of the next
// page, and 0 at the end. Descriptions and criteria are left out, as in
// [CaseTables.Cases]; Ready has no meaning for the order here.
func (s CaseTables) CasePage(ctx context.Context, f CaseFilter, text string, after int64, limit int) (
	cases []board.Case, next int64, err error) {
	c := f.whereMatching(text)
	c.Add(`c.seq > ?`, after)
	type listed struct {
		board.Case
		seq int64
	}
	found, err := rows.ListAll(ctx, &s.reads, func(l *listed) []any { return append(listedFields(&l.Case), &l.seq) },
		`SELECT `+listedColumns+`, c.seq`+caseTables+c.Where()+` ORDER BY c.seq`+c.Limit(pageOf(limit)+1), c.Args...)
	shown := found[:min(len(found), pageOf(limit))]
	cases = append(cases, lists.Each(shown, func(l listed) board.Case { return l.Case })...)
	if len(found) > len(shown) {
		next = shown[len(shown)-1].seq
	}
	return cases, next, s.explainError(ctx, "list the board", err)
}

// CaseTotal is how many cases a filter and a text find.
func (s CaseTables) CaseTotal(ctx context.Context, f CaseFilter, text string) (n int, err error) {
	c := f.whereMatching(text)
	_, err = s.reads.One(ctx, `SELECT count(*) FROM cases c`+c.Where(), c.Args, &n)
	return n, s.explainError(ctx, "count the board", err)
}

func (f CaseFilter) whereMatching(text string) *rows.Conditions {
	c := f.whereCases()
	if text = strings.ToLower(text); text != "" {
		c.Add(`(instr(lower(c.title), ?) > 0 OR instr(c.id, ?) > 0 OR instr(lower(c.tags), ?) > 0)`, text, text, text)
	}
	return c
}

// CaseChange is one line of a case's history, in the order of all of them.
type CaseChange struct {
	Seq int64
	ID  string
	board.Entry
}

// CaseChanges returns at most limit changes of cases after the one with the
// number after, oldest first.
func (s CaseTables) CaseChanges(ctx context.Context, after int64, limit int) ([]CaseChange, error) {
	return readRows(ctx, s.DB, "read what changed on the board",
		func(c *CaseChange) []any { return append(entryFields(&c.Entry), &c.Seq, &c.ID) },
		`SELECT `+entryColumns+`, seq, id FROM case_history WHERE seq > $1 ORDER BY seq LIMIT $2`, after, pageOf(limit))
}

// LastSeqs is the number of the last event, and of the last change of a case;
// 0 where there is none.
func (s EventTable) LastSeqs(ctx context.Context) (event, change int64, err error) {
	_, err = s.reads.One(ctx, `SELECT coalesce((SELECT max(seq) FROM events), 0),
		coalesce((SELECT max(seq) FROM case_history), 0)`, nil, &event, &change)
	return event, change, s.explainError(ctx, "find the last event", err)
}

// Marks are texts that change whenever a merge queue, or the autopilot with its
// slots, sprints and reviews, does. They mean nothing else.
func (s EventTable) Marks(ctx context.Context) (queue, autopilot string, err error) {
	_, err = s.reads.One(ctx, `SELECT
		(SELECT coalesce(sum(n), 0) || '.' || count(*) || '.' || coalesce(sum(owner_pid), 0) FROM queues) || '.' ||
			(SELECT count(*) || '.' || coalesce(max(id), 0) FROM queue_asks WHERE taken_at = 0) || '.' ||
			(SELECT coalesce(max(seq), 0) FROM landings),
		(SELECT coalesce(max(updated_at || phase || mode || owner_pid), '') FROM autopilot) || '.' ||
			(SELECT count(*) || '.' || coalesce(max(activity_at), 0) || '.' || coalesce(sum(since), 0)
			FROM slots) || '.' ||
			(SELECT coalesce(max(started_at + ended_at), 0) FROM sprints) || '.' ||
			(SELECT count(*) || '.' || coalesce(sum(decided_at), 0) FROM case_reviews)`,
		nil, &queue, &autopilot)
	return queue, autopilot, s.explainError(ctx, "look for changes of the queue", err)
}

// EventsOfKind returns the events of a run with one of the kinds, oldest
// first; at most the last [MaxPage] of them.
func (s EventTable) EventsOfKind(ctx context.Context, run string, kinds ...string) ([]journal.Event, error) {
	c := &rows.Conditions{}
	c.Add(`run = ?`, run)
	rows.AnyOf(c, `kind IN (…)`, kinds)
	return readRows(ctx, s.DB, "read the events of run "+run, eventFields,
		`SELECT `+eventColumns+` FROM (SELECT `+eventColumns+` FROM events`+c.Where()+
			` ORDER BY seq DESC`+c.Limit(MaxPage)+`) AS last ORDER BY seq`, c.Args...)
}

// IterationMark is a place among the attempts of a run.
type IterationMark struct{ Number, Attempt int }

// IterationPage returns at most limit attempts of a run after a mark, in order.
func (s RunTables) IterationPage(ctx context.Context, run string, after IterationMark, limit int,
) ([]loop.Record, error) {
	return s.readRecords(ctx, "read the iterations of run "+run,
		`SELECT record FROM iterations WHERE run = $1 AND (number, attempt) > ($2, $3)
			ORDER BY number, attempt LIMIT $4`,
		run, after.Number, after.Attempt, pageOf(limit))
}

package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
)

// MaxPage is the most rows that a page has.
const MaxPage = 1000

// page is a wish for so many rows, within bounds.
func page(limit int) int { return min(max(limit, 1), MaxPage) }

// RunQuery says which runs a page lists. Its zero value is all of them.
type RunQuery struct {
	Root   string
	Status []string // one of these, as stored
	Active bool     // as in [Filter]
	Kind   string
	Name   string
	Text   string // in the id, the name or the reason, in any case of letters
}

// RunMark is a place in the listing: the run that a page ended with. The zero
// mark is before the first.
type RunMark struct{ Started, Row int64 }

// RunPage lists at most limit runs after a mark, the last started first, and
// the mark of the next page; more is false when there is none. Runs come
// without State and Setup.
func (s *Store) RunPage(ctx context.Context, q RunQuery, after RunMark, limit int) (runs []Run, next RunMark, more bool, err error) {
	where, args := q.where()
	if after != (RunMark{}) {
		args = append(args, after.Started, after.Row)
		where = append(where, fmt.Sprintf(`(started_at, rowid) < ($%d, $%d)`, len(args)-1, len(args)))
	}
	query := `SELECT ` + runColumns + `, rowid FROM runs`
	if len(where) > 0 {
		query += ` WHERE ` + strings.Join(where, ` AND `)
	}
	limit = page(limit)
	args = append(args, limit+1)
	query += ` ORDER BY started_at DESC, rowid DESC LIMIT $` + itoa(len(args))
	err = s.reads.each(ctx, func(row scanner) error {
		if len(runs) == limit {
			more = true
			return nil
		}
		r, err := scanRun(row, &next.Row)
		next.Started = ms(r.StartedAt)
		runs = append(runs, r)
		return err
	}, query, args...)
	return runs, next, more, s.explain(ctx, "list the runs", err)
}

func (q RunQuery) where() (conds []string, args []any) {
	add := func(cond string, value any) {
		args = append(args, value)
		conds = append(conds, strings.ReplaceAll(cond, "?", "$"+itoa(len(args))))
	}
	if q.Root != "" {
		add(`root = ?`, q.Root)
	}
	if q.Active {
		conds = append(conds, openRuns)
	}
	if q.Kind != "" {
		add(`kind = ?`, q.Kind)
	}
	if q.Name != "" {
		add(`name = ?`, q.Name)
	}
	if len(q.Status) > 0 {
		var marks []string
		for _, st := range q.Status {
			args = append(args, st)
			marks = append(marks, "$"+itoa(len(args)))
		}
		conds = append(conds, `status IN (`+strings.Join(marks, ", ")+`)`)
	}
	if q.Text != "" {
		add(`(instr(lower(name), ?) > 0 OR instr(lower(why), ?) > 0 OR instr(id, ?) > 0)`, strings.ToLower(q.Text))
	}
	return conds, args
}

// CasePage lists at most limit cases that were added after the case with the
// number after (0: from the first), in the order in which they were added;
// text is looked for in titles, ids and tags. next is the mark of the next
// page, and 0 at the end. Descriptions and criteria are left out, as in
// [Store.Cases]; Ready has no meaning for the order here.
func (s *Store) CasePage(ctx context.Context, f CaseFilter, text string, after int64, limit int) (list []board.Case, next int64, err error) {
	where, args := f.searching(text)
	and := ` WHERE `
	if where != "" {
		and = ` AND `
	}
	args = append(args, after)
	query := strings.Replace(listedCase, `SELECT `, `SELECT c.seq, `, 1) + where + and + `c.seq > $` + itoa(len(args))
	limit = page(limit)
	args = append(args, limit+1)
	query += ` ORDER BY c.seq LIMIT $` + itoa(len(args))
	var last int64
	err = s.reads.each(ctx, func(row scanner) error {
		if len(list) == limit {
			next = last
			return nil
		}
		var needs string
		c, err := scanCase(first{row, &last}, &needs)
		c.Needs = split(needs, ",")
		list = append(list, c)
		return err
	}, query, args...)
	return list, next, s.explainCase(ctx, "list the board", err)
}

// first reads one column before those that are asked for.
type first struct {
	row scanner
	to  any
}

func (f first) Scan(dest ...any) error { return f.row.Scan(append([]any{f.to}, dest...)...) }

// CaseTotal is how many cases a filter and a text find.
func (s *Store) CaseTotal(ctx context.Context, f CaseFilter, text string) (n int, err error) {
	where, args := f.searching(text)
	_, err = s.reads.one(ctx, `SELECT count(*) FROM cases c`+where, args, &n)
	return n, s.explainCase(ctx, "count the board", err)
}

func (f CaseFilter) searching(text string) (string, []any) {
	where, args := f.where()
	if text == "" {
		return where, args
	}
	and := ` WHERE `
	if where != "" {
		and = ` AND `
	}
	args = append(args, strings.ToLower(text))
	n := itoa(len(args))
	return where + and + `(instr(lower(c.title), $` + n + `) > 0 OR instr(c.id, $` + n + `) > 0 OR instr(lower(c.tags), $` + n + `) > 0)`, args
}

// CaseChange is one line of a case's history, in the order of all of them.
type CaseChange struct {
	Seq int64
	ID  string
	board.Entry
}

// CaseChanges returns at most limit changes of cases after the one with the
// number after, oldest first.
func (s *Store) CaseChanges(ctx context.Context, after int64, limit int) ([]CaseChange, error) {
	var list []CaseChange
	err := s.reads.each(ctx, func(row scanner) error {
		var c CaseChange
		var when int64
		if err := row.Scan(&c.Seq, &c.ID, &when, &c.Action, &c.By, &c.From, &c.To, &c.Why); err != nil {
			return err
		}
		c.At = at(when)
		list = append(list, c)
		return nil
	}, `SELECT seq, id, at, action, actor, from_status, to_status, why FROM case_history WHERE seq > $1 ORDER BY seq LIMIT $2`, after, page(limit))
	return list, s.explainCase(ctx, "read what changed on the board", err)
}

// LastSeqs is the number of the last event, and of the last change of a case;
// 0 where there is none.
func (s *Store) LastSeqs(ctx context.Context) (event, change int64, err error) {
	_, err = s.reads.one(ctx, `SELECT coalesce((SELECT max(seq) FROM events), 0), coalesce((SELECT max(seq) FROM case_history), 0)`, nil, &event, &change)
	return event, change, s.explain(ctx, "find the last event", err)
}

// Marks are texts that change whenever a merge queue, or the autopilot with its
// slots, sprints and reviews, does. They mean nothing else.
func (s *Store) Marks(ctx context.Context) (queue, autopilot string, err error) {
	_, err = s.reads.one(ctx, `SELECT
		(SELECT coalesce(sum(n), 0) || '.' || count(*) || '.' || coalesce(sum(owner_pid), 0) FROM queues) || '.' ||
			(SELECT count(*) || '.' || coalesce(max(id), 0) FROM queue_asks WHERE taken_at = 0) || '.' || (SELECT coalesce(max(seq), 0) FROM landings),
		(SELECT coalesce(max(updated_at || phase || mode || owner_pid), '') FROM autopilot) || '.' ||
			(SELECT count(*) || '.' || coalesce(max(activity_at), 0) || '.' || coalesce(sum(since), 0) FROM slots) || '.' ||
			(SELECT coalesce(max(started_at + ended_at), 0) FROM sprints) || '.' || (SELECT count(*) || '.' || coalesce(sum(decided_at), 0) FROM case_reviews)`,
		nil, &queue, &autopilot)
	return queue, autopilot, s.explain(ctx, "look for changes of the queue", err)
}

// EventsOfKind returns the events of a run with one of the kinds, oldest
// first; at most the last [MaxPage] of them.
func (s *Store) EventsOfKind(ctx context.Context, run string, kinds ...string) ([]journal.Event, error) {
	args := []any{run}
	var marks []string
	for _, k := range kinds {
		args = append(args, k)
		marks = append(marks, "$"+itoa(len(args)))
	}
	args = append(args, MaxPage)
	var events []journal.Event
	err := s.reads.each(ctx, func(row scanner) error {
		e, err := scanEvent(row)
		events = append(events, e)
		return err
	}, `SELECT `+eventColumns+` FROM (SELECT `+eventColumns+` FROM events WHERE run = $1 AND kind IN (`+strings.Join(marks, ", ")+`)
		ORDER BY seq DESC LIMIT $`+itoa(len(args))+`) ORDER BY seq`, args...)
	return events, s.explain(ctx, "read the events of run "+run, err)
}

// IterationMark is a place among the attempts of a run.
type IterationMark struct{ Number, Attempt int }

// IterationPage returns at most limit attempts of a run after a mark, in order.
func (s *Store) IterationPage(ctx context.Context, run string, after IterationMark, limit int) ([]loop.Record, error) {
	records, err := s.records(ctx, `SELECT record FROM iterations WHERE run = $1 AND (number, attempt) > ($2, $3) ORDER BY number, attempt LIMIT $4`,
		run, after.Number, after.Attempt, page(limit))
	return records, s.explain(ctx, "read the iterations of run "+run, err)
}

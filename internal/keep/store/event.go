package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/journal"
)

// The store is where the journal lives.
var (
	_ journal.Source   = (*Store)(nil)
	_ journal.Appender = (*Store)(nil)
)

// maxEvents caps one page of events.
const maxEvents = 1000

// insertEvent returns the event's seq. It runs in the transaction that
// changes what the event is about.
func insertEvent(ctx context.Context, w *statements, e journal.Event) (seq int64, err error) {
	n := sql.NullInt64{Int64: e.N, Valid: e.N != 0}
	_, err = w.one(ctx, `INSERT INTO events (run, n, at, kind, data) VALUES ($1, $2, $3, $4, $5) RETURNING seq`,
		[]any{e.Run, n, ms(e.At), e.Kind, string(e.Data)}, &seq)
	return seq, err
}

// isStored is true when this very event is there under its number.
func isStored(ctx context.Context, w *statements, e journal.Event) (bool, error) {
	var found int
	return w.one(ctx, `SELECT 1 FROM events WHERE run = $1 AND n = $2 AND at = $3 AND kind = $4 AND data = $5`,
		[]any{e.Run, e.N, ms(e.At), e.Kind, string(e.Data)}, &found)
}

// Append stores an event beside the story of its run and returns its seq. Its
// N must be 0: numbered events come with [Store.Create] and [Store.Commit].
// Unlike those, it is stored again when it is repeated.
func (s *Store) Append(ctx context.Context, e journal.Event) (seq int64, err error) {
	what := "store the event " + e.Kind + " of run " + e.Run
	if e.N != 0 {
		return 0, fmt.Errorf("cannot %s: a numbered event needs the state after it", what)
	}
	err = s.transact(ctx, crashSafe, func(ctx context.Context, w *statements) error {
		seq, err = insertEvent(ctx, w, e)
		return err
	})
	return seq, s.explain(ctx, what, err)
}

const eventColumns = `seq, run, n, at, kind, data`

// Events returns the events of a run with a higher seq than after, oldest
// first, at most limit and at most 1,000; of all runs when run is empty.
func (s *Store) Events(ctx context.Context, run string, after int64, limit int) ([]journal.Event, error) {
	limit = min(max(limit, 0), maxEvents)
	query, args := `SELECT `+eventColumns+` FROM events WHERE seq > $1 ORDER BY seq LIMIT $2`, []any{after, limit}
	if run != "" {
		query, args = `SELECT `+eventColumns+` FROM events WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3`, []any{run,
			after, limit}
	}
	return read(ctx, s, "read the events of run "+run, eventFields, query, args...)
}

// LastEvents returns the last events of a run, the latest first, at most limit
// and at most 1,000.
func (s *Store) LastEvents(ctx context.Context, run string, limit int) ([]journal.Event, error) {
	return read(ctx, s, "read the last events of "+run, eventFields,
		`SELECT `+eventColumns+` FROM events WHERE run = $1 ORDER BY seq DESC LIMIT $2`,
		run, min(max(limit, 0), maxEvents))
}

func eventFields(e *journal.Event) []any {
	return []any{&e.Seq, &e.Run, number(&e.N), when(&e.At), &e.Kind, raw(&e.Data)}
}

// number reads a number that may be missing: then it is 0.
func number(n *int64) column {
	return func(stored any) error {
		*n, _ = stored.(int64)
		return nil
	}
}

// updatedAt is the time of the last change of a run.
func updatedAt(r Run, e journal.Event) time.Time {
	if r.UpdatedAt.IsZero() {
		return e.At
	}
	return r.UpdatedAt
}

package store

import (
	"context"
	"time"
)

// EndedRun is a run that has ended, or that nobody will take up again.
type EndedRun struct {
	ID, Kind, Name, Status string
	N                      int64
	Owner                  Owner     // of a pawl that was killed, or that works on it just now
	EndedAt                time.Time // or when it was last worked on
	Last                   bool      // of its name
	// Open: the task that it works on, or brings together with the target, is on the board and not done.
	Open bool
}

const (
	laterOfName = `EXISTS (SELECT 1 FROM runs l WHERE l.root = runs.root AND l.name = runs.name
		AND l.started_at > runs.started_at)`
	onBoard = `EXISTS (SELECT 1 FROM cases c WHERE c.status <> 'done' AND c.id = ` + taskOfRun + `)`
)

// EndedRuns lists the runs that have ended, the latest first, and those of tasks that
// were left by a pawl that was killed: a later one has taken their place, or the task
// is done or gone.
func (s *Store) EndedRuns(ctx context.Context) ([]EndedRun, error) {
	return read(ctx, s, "list the runs that have ended", func(r *EndedRun) []any {
		o := &r.Owner
		return []any{&r.ID, &r.Kind, &r.Name, &r.Status, &r.N, &o.PID, &o.Start, &o.Boot, &o.Host, when(&r.EndedAt),
			&r.Last, &r.Open}
	}, `SELECT id, kind, name, status, n, owner_pid, owner_start, owner_boot, owner_host,
			CASE ended_at WHEN 0 THEN updated_at ELSE ended_at END AS over, NOT `+laterOfName+`, runs.kind = 'task' AND `+onBoard+`
		FROM runs WHERE ended_at <> 0 AND owner_pid = 0
			OR ended_at = 0 AND runs.kind = 'task' AND (`+laterOfName+` OR NOT `+onBoard+`)
		ORDER BY over DESC, id`)
}

// DropRun deletes a run that has ended, with its iterations and events, unless somebody
// has taken it up since. What it came to stays in the tallies.
func (s *Store) DropRun(ctx context.Context, r EndedRun) error {
	args := []any{r.ID, r.N, r.Owner.PID, r.Owner.Start}
	err := s.transact(ctx, crashSafe, func(ctx context.Context, w *statements) error {
		const over = ` WHERE id = $1 AND n = $2 AND owner_pid = $3 AND owner_start = $4`
		if _, err := w.exec(ctx, `DELETE FROM events WHERE run IN (SELECT id FROM runs`+over+`)`, args...); err != nil {
			return err
		}
		_, err := w.exec(ctx, `DELETE FROM runs`+over, args...)
		return err
	})
	return s.explain(ctx, "drop run "+r.ID, err)
}

// oldEvents are events from before a time that are of no run, or of one that ended
// before it, too.
const oldEvents = ` FROM events WHERE at < $1 AND NOT EXISTS (
	SELECT 1 FROM runs WHERE runs.id = events.run AND (ended_at = 0 OR ended_at >= $1))`

// CountEvents counts what DropEvents would delete.
func (s *Store) CountEvents(ctx context.Context, before time.Time) (n int, err error) {
	_, err = s.reads.one(ctx, `SELECT count(*)`+oldEvents, []any{ms(before)}, &n)
	return n, s.explain(ctx, "count old events", err)
}

// DropEvents deletes the events from before a time, but those of runs that have
// not ended or ended later.
func (s *Store) DropEvents(ctx context.Context, before time.Time) error {
	return s.store(ctx, crashSafe, "drop old events", `DELETE`+oldEvents, ms(before))
}

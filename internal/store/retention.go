package store

import (
	"context"
	"time"
)

// EndedRun is a run that has ended and that nobody drives.
type EndedRun struct {
	ID, Kind, Name, Status string
	EndedAt                time.Time
	Last                   bool // of its name
	// Open: the task that it works on, or brings together with the target, is on the board and not done.
	Open bool
}

// EndedRuns lists the runs that have ended, the latest first.
func (s *Store) EndedRuns(ctx context.Context) ([]EndedRun, error) {
	return read(ctx, s, "list the runs that have ended", func(r *EndedRun) []any {
		return []any{&r.ID, &r.Kind, &r.Name, &r.Status, when(&r.EndedAt), &r.Last, &r.Open}
	}, `SELECT id, kind, name, status, ended_at,
			NOT EXISTS (SELECT 1 FROM runs l WHERE l.root = runs.root AND l.name = runs.name AND l.started_at > runs.started_at),
			runs.kind = 'task' AND EXISTS (SELECT 1 FROM cases c WHERE c.status <> 'done' AND c.id = `+taskOfRun+`)
		FROM runs WHERE ended_at <> 0 AND owner_pid = 0 ORDER BY ended_at DESC, id`)
}

// DropRun deletes a run that has ended, with its iterations and events. What it
// came to stays in the tallies.
func (s *Store) DropRun(ctx context.Context, id string) error {
	err := s.transact(ctx, crashSafe, func(ctx context.Context, w *statements) error {
		const over = ` WHERE id = $1 AND ended_at <> 0 AND owner_pid = 0`
		if _, err := w.exec(ctx, `DELETE FROM events WHERE run IN (SELECT id FROM runs`+over+`)`, id); err != nil {
			return err
		}
		_, err := w.exec(ctx, `DELETE FROM runs`+over, id)
		return err
	})
	return s.explain(ctx, "drop run "+id, err)
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

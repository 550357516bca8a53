package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/store/database"
)

// migrate brings the schema up to date. A database that is up to date is only
// read. All steps that it lacks are one transaction, which first looks again: of
// two processes one makes them and the other finds them made, and where one step
// fails the database is left as it was.
func (s *Store) migrate(ctx context.Context) error {
	files, _ := s.db.Steps()
	steps, err := database.Migrations(files)
	if err != nil {
		return fmt.Errorf("this pawl is built wrongly: %v", err)
	}
	return s.migrateTo(ctx, steps)
}

func (s *Store) migrateTo(ctx context.Context, steps []database.Migration) error {
	for {
		applied, err := s.applied(ctx)
		if err != nil {
			return err
		}
		if err := s.compare(steps, applied); err != nil {
			return err
		}
		if len(applied) == len(steps) {
			return nil
		}
		if err := s.apply(ctx, steps[len(applied):]); err != nil && !errors.Is(err, errMeanwhile) {
			return s.explain(ctx, "bring the database up to date", err)
		}
	}
}

// applied returns the checksums of the steps that the database has, by number.
func (s *Store) applied(ctx context.Context) ([]string, error) {
	var sums []string
	_, migrated := s.db.Steps()
	err := s.transactRead(ctx, func(w *statements) error {
		var has int
		if _, err := w.one(ctx, migrated, nil, &has); err != nil ||
			has == 0 {
			return err
		}
		var err error
		sums, err = texts(ctx, w, `SELECT checksum FROM migrations ORDER BY number`)
		return err
	})
	return sums, err
}

// transactRead reads on the writing connection, without its lock on the file:
// a start then needs no second connection.
func (s *Store) transactRead(ctx context.Context, do func(w *statements) error) error {
	select {
	case <-s.write.turn:
		defer func() { s.write.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, err := s.conn(ctx); err != nil {
		return err
	}
	return do(&s.write.stmts)
}

// compare holds what the database has against what this pawl knows.
func (s *Store) compare(steps []database.Migration, applied []string) error {
	for i, sum := range applied[:min(len(applied), len(steps))] {
		if sum != steps[i].Checksum {
			return fmt.Errorf("step %s of %s was made by another build of pawl; use that build, "+
				"or start with an empty database", steps[i].Name, s.Path())
		}
	}
	if len(applied) > len(steps) {
		older := s.db.Older(len(steps))
		if older != "" {
			older = ", or go back to how it was before the upgrade: " + older
		}
		return fmt.Errorf("%w: %s (its schema is %d, this one knows %d); use the newer pawl%s",
			ErrNewer, s.Path(), len(applied), len(steps), older)
	}
	return nil
}

// errMeanwhile says that another process made the steps.
var errMeanwhile = errors.New("another process made the steps")

// apply makes the steps. A database that has some already is copied first, under
// the same lock: it is the copy of what they found.
func (s *Store) apply(ctx context.Context, steps []database.Migration) error {
	// A server may lose its power while we go on, with a schema that we think is there.
	return s.transact(ctx, durability(s.shared), func(ctx context.Context, w *statements) error {
		const table = `CREATE TABLE IF NOT EXISTS migrations (
			number BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)`
		if _, err := s.write.conn.ExecContext(ctx, table); err != nil {
			return err
		}
		var last int
		if _, err := w.one(ctx, `SELECT coalesce(max(number), 0) FROM migrations`, nil, &last); err != nil {
			return err
		}
		if last != steps[0].Number-1 {
			return errMeanwhile
		}
		if last > 0 {
			if err := s.db.Keep(ctx, last); err != nil {
				return err
			}
		}
		for _, step := range steps {
			if _, err := s.write.conn.ExecContext(ctx, step.SQL); err != nil {
				return fmt.Errorf("step %s: %w", step.Name, err)
			}
			if _, err := w.exec(ctx, `INSERT INTO migrations (number, name, checksum, applied_at) VALUES ($1, $2, $3, $4)`,
				step.Number, step.Name, step.Checksum, time.Now().UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
}

package store

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the schema: NNNN_name.sql, numbered from 1 without
// gaps. A released one is never edited; its checksum would not fit any more.
type migration struct {
	number   int
	name     string
	sql      string
	checksum string
}

// migrations reads the embedded steps in order.
func migrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	steps := make([]migration, 0, len(names))
	for i, path := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "migrations/"), ".sql")
		digits, _, _ := strings.Cut(name, "_")
		number, err := strconv.Atoi(digits)
		if err != nil || number != i+1 {
			return nil, fmt.Errorf("migration %s should have the number %04d", path, i+1)
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		steps = append(steps, migration{number, name, string(text), hex.EncodeToString(sum[:])})
	}
	return steps, nil
}

// migrate brings the schema up to date. A database that is up to date is only
// read. Each step is one transaction that first looks again, so that of two
// processes one makes the step and the other finds it made.
func (s *Store) migrate(ctx context.Context) error {
	steps, err := migrations(migrationFiles)
	if err != nil {
		return fmt.Errorf("cannot open the database: this pawl is built wrongly: %v", err)
	}
	return s.migrateTo(ctx, steps)
}

func (s *Store) migrateTo(ctx context.Context, steps []migration) error {
	for first := true; ; first = false {
		applied, err := s.applied(ctx)
		if err != nil {
			return s.explain(ctx, "open the database", err)
		}
		if err := s.compare(steps, applied); err != nil {
			return err
		}
		if len(applied) == len(steps) {
			return nil
		}
		err = s.apply(ctx, steps[len(applied)], first && len(applied) > 0)
		if err != nil && !errors.Is(err, errMeanwhile) {
			return s.explain(ctx, "bring the database up to date ("+steps[len(applied)].name+")", err)
		}
	}
}

// applied returns the checksums of the steps that the database has, by number.
func (s *Store) applied(ctx context.Context) ([]string, error) {
	var sums []string
	err := s.transactRead(ctx, func(w *statements) error {
		var has int
		if _, err := w.one(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'migrations'`, nil, &has); err != nil ||
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
	return do(&s.write.stmts)
}

// compare holds what the database has against what this pawl knows.
func (s *Store) compare(steps []migration, applied []string) error {
	for i, sum := range applied[:min(len(applied), len(steps))] {
		if sum != steps[i].checksum {
			return fmt.Errorf("cannot open the database %s: its step %s was made by another build of pawl; "+
				"use that build, or move the file aside to start with an empty one", s.path, steps[i].name)
		}
	}
	if len(applied) > len(steps) {
		older := ""
		if _, err := os.Stat(s.older(len(steps))); err == nil {
			older = fmt.Sprintf(", or go back to how it was before the upgrade: stop every pawl, then mv %q %q && rm -f %q %q",
				s.older(len(steps)), s.path, s.path+"-wal", s.path+"-shm")
		}
		return fmt.Errorf("cannot open the database %s: %w (its schema is %d, this one knows %d); use the newer pawl%s",
			s.path, ErrNewer, len(applied), len(steps), older)
	}
	return nil
}

// errMeanwhile says that another process made the step.
var errMeanwhile = errors.New("another process made the step")

// apply makes one step. With keep the database is copied first, under the same lock: it is
// the copy of what the step found.
func (s *Store) apply(ctx context.Context, step migration, keep bool) error {
	return s.transact(ctx, crashSafe, func(ctx context.Context, w *statements) error {
		const table = `CREATE TABLE IF NOT EXISTS migrations (
			number BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)`
		if _, err := s.write.conn.ExecContext(ctx, table); err != nil {
			return err
		}
		var last int
		if _, err := w.one(ctx, `SELECT coalesce(max(number), 0) FROM migrations`, nil, &last); err != nil {
			return err
		}
		if last != step.number-1 {
			return errMeanwhile
		}
		if keep {
			if err := s.keepOlder(ctx, last); err != nil {
				return err
			}
		}
		if _, err := s.write.conn.ExecContext(ctx, step.sql); err != nil {
			return err
		}
		_, err := w.exec(ctx, `INSERT INTO migrations (number, name, checksum, applied_at) VALUES ($1, $2, $3, $4)`,
			step.number, step.name, step.checksum, time.Now().UnixMilli())
		return err
	})
}

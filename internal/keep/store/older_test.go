package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3/driver"

	"github.com/pawl-dev/pawl/internal/decide/board"
)

// versionOne is a database that the first version wrote: a run that asks, and two
// tasks that landed. It is never made again: those of users are like it.
func versionOne(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join("testdata", "v1.sql"))
	must(t, err)
	path := filepath.Join(t.TempDir(), "pawl.db")
	db, err := driver.Open("file:"+path, nil)
	must(t, err)
	_, err = db.ExecContext(t.Context(), string(script))
	must(t, err)
	must(t, db.Close())
	return path
}

// What a person sees of a database of the first version is there, and stays there.
func holdsVersionOne(ctx context.Context, t *testing.T, s *Store) {
	t.Helper()
	runs, err := s.Runs(ctx, RunQuery{})
	must(t, err)
	asks, err := s.Latest(ctx, "/home/ada/project", "build")
	must(t, err)
	if len(runs) != 3 || asks.Status != "pending" || asks.Iteration != 1 {
		t.Errorf("%d runs, and build is %q after iteration %d", len(runs), asks.Status, asks.Iteration)
	}
	cases, err := s.Cases(ctx, CaseFilter{Status: []board.Status{board.Done}})
	must(t, err)
	if len(cases) != 2 || cases[0].Title != "One" {
		t.Errorf("cases %+v", cases)
	}
	events, err := s.Events(ctx, asks.ID, 0, 10)
	must(t, err)
	if len(events) != 3 {
		t.Errorf("%d events of build", len(events))
	}
}

func TestADatabaseOfTheFirstVersion(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	ctx, path := t.Context(), versionOne(t)
	s := open(t, path)
	must(t, s.Check(ctx))
	holdsVersionOne(ctx, t, s)
}

func older(s *Store, schema int) string { return fmt.Sprintf("%s.schema-%d", s.Path(), schema) }

// Before a newer pawl changes the schema there is a copy, to which one can go back.
func TestAnUpgradeKeepsACopy(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	ctx, path := t.Context(), versionOne(t)
	s := open(t, path)
	had, err := s.readApplied(ctx)
	must(t, err)
	kept := older(s, len(had))
	if _, err := os.Stat(kept); err == nil {
		t.Fatal("a database that is up to date was copied")
	}
	must(t, s.migrateTo(ctx, next(t, `CREATE TABLE extra (a TEXT)`)))
	holdsVersionOne(ctx, t, s)
	must(t, s.Close())

	_, err = Open(ctx, path) // the older pawl again
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), kept) {
		t.Fatalf("an upgraded database: %v; want the way back to %s", err, kept)
	}
	must(t, os.Rename(kept, path))
	for _, part := range []string{"-wal", "-shm"} {
		_ = os.Remove(path + part)
	}
	holdsVersionOne(ctx, t, open(t, path))
}

// Without a copy nothing is changed.
func TestNoUpgradeWithoutACopy(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	ctx := t.Context()
	s := open(t, versionOne(t))
	had, err := s.readApplied(ctx)
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(older(s, len(had)), "in the way"), 0o700))
	err = s.migrateTo(ctx, next(t, `CREATE TABLE extra (a TEXT)`))
	if err == nil || !strings.Contains(err.Error(), "stays as it is") {
		t.Errorf("it was upgraded: %v", err)
	}
	if now, err := s.readApplied(ctx); err != nil || len(now) != len(had) {
		t.Errorf("it has %d steps, had %d (%v)", len(now), len(had), err)
	}
}

// A new database has nothing to be copied.
func TestANewDatabaseIsNotCopied(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	s := fresh(t)
	found, err := filepath.Glob(s.Path() + ".schema-*")
	must(t, err)
	if len(found) > 0 {
		t.Errorf("copies %q", found)
	}
}

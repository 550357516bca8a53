package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawl-dev/pawl/internal/keep/store/database"
)

func TestOpenMakesEverythingPrivate(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	// Characters that mean something in a URI are just a name.
	dir := filepath.Join(t.TempDir(), "state+of 50% #1?x=y&mode=ro", "re po")
	path := filepath.Join(dir, "pawl.db")
	s := open(t, path)
	must(t, s.Create(t.Context(), run("r1", "build"), event("r1", 1, "x"), nobody))
	for name, want := range map[string]os.FileMode{dir: 0o700, filepath.Dir(dir): 0o700, path: 0o600, path + "-wal": 0o600} {
		info, err := os.Stat(name)
		must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
	if s.Path() != path {
		t.Errorf("path %s", s.Path())
	}
}

func TestCloseAndOpenAgain(t *testing.T) {
	t.Parallel()
	s, _ := begun(t, "r1")
	_, err := s.DataVersion(t.Context())
	must(t, err)
	must(t, s.Close())
	must(t, s.Close()) // twice does nothing
	if _, err := s.Run(t.Context(), "r1"); err == nil {
		t.Error("a closed store answers")
	}
	if err := s.Commit(t.Context(), stepOf(run("r1", "build"), 2)); err == nil {
		t.Error("a closed store takes a commit")
	}
	again := open(t, s.Path())
	if r, err := again.Run(t.Context(), "r1"); err != nil || r.N != 1 {
		t.Errorf("after a close: %+v, %v", r, err)
	}
	must(t, again.Check(t.Context()))
}

func TestMigrationsAreMadeOnce(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	s := fresh(t)
	before, err := s.readApplied(t.Context())
	must(t, err)
	steps, err := database.Migrations(stepsOf(t))
	must(t, err)
	if len(before) != len(steps) {
		t.Fatalf("%d of %d steps are made", len(before), len(steps))
	}
	must(t, s.migrateSchema(t.Context()))
	again, err := open(t, s.Path()).readApplied(t.Context())
	must(t, err)
	if strings.Join(before, " ") != strings.Join(again, " ") {
		t.Errorf("before %v, after %v", before, again)
	}
}

// stepsOf are the files of SQLite's schema.
func stepsOf(t *testing.T) fs.FS {
	t.Helper()
	files, _ := fresh(t).db.Steps()
	return files
}

// next is the embedded steps and one more.
func next(t *testing.T, sql string) []database.Migration {
	t.Helper()
	steps, err := database.Migrations(stepsOf(t))
	must(t, err)
	return append(steps, database.Migration{Number: len(steps) + 1, Name: "9999_next", SQL: sql, Checksum: "c"})
}

func TestANewStepKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	s, r := begun(t, "r1")
	ctx := t.Context()
	if err := s.migrateTo(ctx, next(t, `CREATE TABLE extra (a TEXT); CREATE TABLE bad (`)); err == nil {
		t.Fatal("a wrong step was made")
	}
	if err := s.migrateTo(ctx, next(t, `CREATE TABLE extra (a TEXT); INSERT INTO extra VALUES ('x')`)); err != nil {
		t.Fatalf("the wrong step left something: %v", err)
	}
	must(t, s.Commit(ctx, stepOf(r, 2)))

	// Of several steps either all are made or none.
	more := next(t, `CREATE TABLE extra (a TEXT); INSERT INTO extra VALUES ('x')`)
	n := len(more)
	more = append(more,
		database.Migration{Number: n + 1, Name: "9999_good", SQL: `CREATE TABLE good (a TEXT)`, Checksum: "c"},
		database.Migration{Number: n + 2, Name: "9999_wrong", SQL: `CREATE TABLE good (`, Checksum: "c"})
	if err := s.migrateTo(ctx, more); err == nil || !strings.Contains(err.Error(), "9999_wrong") {
		t.Fatalf("a wrong step after a good one: %v", err)
	}
	if applied, err := s.readApplied(ctx); err != nil || len(applied) != n {
		t.Errorf("%d steps are made, %v", len(applied), err)
	}

	before := readAll(t, s.Path())
	older, err := Open(ctx, s.Path())
	if !errors.Is(err, ErrNewer) || older != nil || !strings.Contains(err.Error(), "use the newer pawl") {
		t.Errorf("a newer database: %v", err)
	}
	if readAll(t, s.Path()) != before {
		t.Error("the newer database was changed")
	}
}

func TestAStepOfAnotherBuild(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	s := fresh(t)
	steps, err := database.Migrations(stepsOf(t))
	must(t, err)
	steps[0].Checksum = "another"
	err = s.migrateTo(t.Context(), steps)
	if err == nil || !strings.Contains(err.Error(), steps[0].Name) || !strings.Contains(err.Error(), "another build") {
		t.Errorf("a step with another checksum: %v", err)
	}
}

func TestStepsAreNumberedWithoutGaps(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	for name, files := range map[string]fstest.MapFS{
		"gap":      {"migrations/0001_a.sql": {}, "migrations/0003_b.sql": {}},
		"twice":    {"migrations/0001_a.sql": {}, "migrations/0001_b.sql": {}},
		"nameless": {"migrations/a.sql": {}},
	} {
		if steps, err := database.Migrations(files); err == nil {
			t.Errorf("%s: %v", name, steps)
		}
	}
}

// Many open the same new database at once, in this process and in others.
func TestOpenedByManyAtOnce(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	path := filepath.Join(t.TempDir(), "new", "pawl.db")
	children := make([]*process, 3)
	for i := range children {
		children[i] = start(t, "create", path, fmt.Sprint("child", i))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	won := 0
	for _, p := range children {
		switch l := p.line(); {
		case l == "done":
			won++
		case !strings.Contains(l, ErrRunning.Error()):
			t.Errorf("child says %q", l)
		}
	}
	s := open(t, path)
	runs, err := s.Runs(t.Context(), RunQuery{})
	must(t, err)
	if won != 1 || len(runs) != 1 {
		t.Errorf("%d children started the same run, %d runs are there", won, len(runs))
	}
	must(t, s.Check(t.Context()))
}

func TestAFileThatIsNoDatabase(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	path := filepath.Join(t.TempDir(), "pawl.db")
	text := strings.Repeat("this is not a database\n", 1000)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	_, err := Open(t.Context(), path)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move it aside") {
		t.Errorf("error: %v", err)
	}
	if readAll(t, path) != text {
		t.Error("the file was changed")
	}
}

func TestADamagedPage(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	s, r := begun(t, "r1")
	for n := int64(2); n < 500; n++ {
		step := stepOf(r, n)
		step.Record = record(int(n), 1)
		must(t, s.Commit(t.Context(), step))
	}
	must(t, s.Close())
	f, err := os.OpenFile(s.Path(), os.O_RDWR, 0)
	must(t, err)
	info, err := f.Stat()
	must(t, err)
	for page := int64(4); page*4096 < info.Size(); page += 2 { // the first pages have the schema
		_, err = f.WriteAt([]byte(strings.Repeat("\xa5", 4096)), page*4096)
		must(t, err)
	}
	must(t, f.Close())

	damaged, err := Open(t.Context(), s.Path())
	if err == nil {
		t.Cleanup(func() { _ = damaged.Close() })
		err = damaged.Check(t.Context())
	}
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("check: %v", err)
	}
}

func TestAFolderThatCannotBe(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, path := range []string{filepath.Join(file, "pawl.db"), filepath.Join(file, "below", "pawl.db"), t.TempDir()} {
		if _, err := Open(t.Context(), path); !errors.Is(err, ErrUnwritable) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestAReadOnlyFolder(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o500)) //nolint:gosec // a folder
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if _, err := Open(t.Context(), filepath.Join(dir, "pawl.db")); !errors.Is(err, ErrUnwritable) {
		t.Errorf("error: %v", err)
	}
}

// A full database refuses, keeps what it has, and goes on when there is room.
func TestAFullDatabase(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	s, r := begun(t, "r1")
	ctx := t.Context()
	limit := func(pages string) {
		_, err := s.write.conn.ExecContext(ctx, `PRAGMA max_page_count = `+pages)
		must(t, err)
	}
	limit("40")
	n, err := fill(ctx, s, r)
	if !errors.Is(err, ErrUnwritable) || !strings.Contains(err.Error(), "make room") {
		t.Fatalf("full: %v", err)
	}
	holds(t, s, n)
	must(t, s.Check(ctx))
	limit("4000")
	step := stepOf(r, n+1)
	step.Record = record(int(n+1), 1)
	must(t, s.Commit(ctx, step))
	holds(t, s, n+1)
}

// fill commits until there is an error, and returns the last number that is stored.
func fill(ctx context.Context, s *Store, r Run) (int64, error) {
	for n := int64(2); ; n++ {
		step := stepOf(r, n)
		step.Record = record(int(n), 1)
		if err := s.Commit(ctx, step); err != nil {
			return n - 1, err
		}
	}
}

func TestWhatErrorsMean(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	s := fresh(t)
	for err, want := range map[error]error{
		sqlite3.NOTADB: ErrDamaged, sqlite3.CORRUPT: ErrDamaged, sqlite3.CORRUPT_INDEX: ErrDamaged,
		sqlite3.FULL: ErrUnwritable, sqlite3.READONLY: ErrUnwritable, sqlite3.READONLY_DIRECTORY: ErrUnwritable,
		sqlite3.CANTOPEN: ErrUnwritable, sqlite3.IOERR_WRITE: ErrUnwritable, sqlite3.IOERR_FSYNC: ErrUnwritable,
		syscall.EROFS: ErrUnwritable, syscall.ENOSPC: ErrUnwritable, os.ErrPermission: ErrUnwritable,
		sqlite3.BUSY: ErrBusy, sqlite3.BUSY_TIMEOUT: ErrBusy, sqlite3.CONSTRAINT_UNIQUE: nil, errors.New("else"): nil,
	} {
		if _, got := s.db.Diagnose(fmt.Errorf("wrapped: %w", err)); got != want { //nolint:errorlint // the sentinel itself
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "pawl.db")
	keep := open(b, path) // as with another pawl at work: the log stays
	must(b, keep.Create(b.Context(), run("r1", "x"), event("r1", 1, "x"), nobody))
	for b.Loop() {
		s, err := Open(b.Context(), path)
		must(b, err)
		must(b, s.Close())
	}
}

func BenchmarkOpenNew(b *testing.B) {
	dir, i := b.TempDir(), 0
	for b.Loop() {
		i++
		s, err := Open(b.Context(), filepath.Join(dir, fmt.Sprint(i), "pawl.db"))
		must(b, err)
		must(b, s.Close())
	}
}

package store

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/keep/store/database"
	"github.com/pawl-dev/pawl/internal/keep/store/rows"
	"github.com/pawl-dev/pawl/internal/keep/store/sqlite"
)

var rewrite = flag.Bool("rewrite", false, "write sqlite/schema.sql anew, of the steps")

// An empty file gets in one go, from schema.sql, what the steps make of it one after the other:
// the same tables, with the same columns in the same order, and no row.
func TestWholeSchemaIsThatOfTheSteps(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	steps, err := database.Migrations(stepsOf(t))
	must(t, err)
	last := &steps[len(steps)-1]
	written := last.Whole
	last.Whole = ""
	want := "-- After " + last.Name + ": written by go test ./internal/keep/store -run Whole -rewrite\n" + madeBy(t, steps)
	if *rewrite {
		must(t, os.WriteFile(filepath.Join("sqlite", "schema.sql"), []byte(want), 0o644))
		return
	}
	if written != want {
		t.Fatal("schema.sql is not what the steps make: go test ./internal/keep/store -run Whole -rewrite")
	}
	last.Whole = written
	if got := madeBy(t, steps); !strings.HasSuffix(want, "\n"+got) {
		t.Errorf("schema.sql makes\n%s", got)
	}
}

// madeBy returns the schema that steps make of an empty file.
func madeBy(t *testing.T, steps []database.Migration) string {
	t.Helper()
	db, _, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"))
	must(t, err)
	s := newStore(db)
	t.Cleanup(func() { _ = s.Close() })
	must(t, s.migrateTo(t.Context(), steps))
	applied, err := s.readApplied(t.Context())
	must(t, err)
	var made, tables []string
	must(t, s.transactRead(t.Context(), func(w *statements) (err error) {
		if made, err = rows.ReadTexts(t.Context(), w, `SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name <> 'migrations'
			AND name NOT LIKE 'sqlite_%' ORDER BY rowid`); err != nil {
			return err
		}
		tables, err = rows.ReadTexts(t.Context(), w, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'migrations'`)
		for _, table := range tables {
			var n int
			if _, err := w.One(t.Context(), `SELECT count(*) FROM "`+table+`"`, nil, &n); err != nil || n > 0 {
				t.Errorf("the steps make %d rows in %s, which schema.sql cannot have: %v", n, table, err)
			}
		}
		return err
	}))
	if len(applied) != len(steps) || len(tables) == 0 {
		t.Errorf("%d of %d steps are noted, with %d tables", len(applied), len(steps), len(tables))
	}
	return strings.Join(made, ";\n\n") + ";\n"
}

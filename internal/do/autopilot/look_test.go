package autopilot

import (
	"bytes"
	"database/sql"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// What a person asked for is looked for again when it could not be read: nothing
// else may change the database for hours.
func TestAWishThatCannotBeReadIsLookedForAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pawl.db")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	var log bytes.Buffer
	p := &pilot{attempts: newAttempts(Options{Store: db, Log: slog.New(slog.NewTextHandler(&log, nil))}, 0), slots: map[string]*slot{}}
	other, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	// A wish that cannot be taken stands for a database that is locked too long.
	for _, do := range []string{
		`CREATE TRIGGER stuck BEFORE DELETE ON autopilot_controls BEGIN SELECT RAISE(ABORT, 'stuck'); END`,
		`INSERT INTO autopilot_controls (kind, text, at) VALUES ('stop', '', ` + "1" + `)`,
	} {
		if _, err := other.ExecContext(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if e := p.lookAtBoard(t.Context()); len(e) > 0 {
			t.Fatalf("a wish that cannot be taken is answered: %+v", e)
		}
	}
	if v, err := db.DataVersion(t.Context()); err != nil || p.version == v {
		t.Errorf("version %d (%v) counts as seen, and nobody looks again", v, err)
	}
	if n := strings.Count(log.String(), "stuck"); n != 1 {
		t.Errorf("it is logged %d times, want once:\n%s", n, log.String())
	}
	if _, err := other.ExecContext(t.Context(), `DROP TRIGGER stuck`); err != nil {
		t.Fatal(err)
	}
	if e := p.lookAtBoard(t.Context()); len(e) != 1 || e[0].Ask != schedule.AskStop {
		t.Errorf("after it can be read, look gives %+v", e)
	}
}

package command

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// A number means the task, and never another's run whose id happens to begin so.
func TestANumberIsATask(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, err := store.Open(ctx, filepath.Join(t.TempDir(), "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	two := []board.Draft{{Case: board.Case{Type: board.Task, Title: "one"}}, {Case: board.Case{Type: board.Task, Title: "two"}}}
	if _, err := db.AddCases(ctx, two, board.Person, time.Now()); err != nil {
		t.Fatal(err)
	}
	for id, name := range map[string]string{"2abc": "task-001", "7abc": "build"} {
		e, err := journal.New(id, 1, time.Now(), journal.RunCreated, journal.Created{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		r := store.Run{ID: id, Name: name, Root: "/r", Status: "completed", State: []byte(`{}`), StartedAt: time.Now(),
			Owner: store.Owner{PID: 1, Start: "1", Boot: "1", Host: "h"}}
		if err := db.Create(ctx, r, e, func(store.Owner) bool { return false }); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"1": "2abc", "01": "2abc", "2": "", "7": "7abc", "2a": "2abc", "8": ""} {
		r, err := FindRun(ctx, db, "/r", name)
		if r.ID != want || want == "" && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s is run %q: %v", name, r.ID, err)
		}
	}
}

package command

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// A number means the task, and never another's run whose id happens to begin so.
func TestANumberIsATask(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	two := []board.Draft{{Case: board.Case{Type: board.Task, Title: "one"}}, {Case: board.Case{Type: board.Task, Title: "two"}}}
	if _, err := store.AddCases(ctx, two, board.Person, time.Now()); err != nil {
		t.Fatal(err)
	}
	for id, name := range map[string]string{"2abc": "task-001", "7abc": "build"} {
		e, err := journal.New(id, 1, time.Now(), journal.RunCreated, journal.Created{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		r := sqlite.Run{ID: id, Name: name, Root: "/r", Status: "completed", State: []byte(`{}`), StartedAt: time.Now(),
			Owner: sqlite.Owner{PID: 1, Start: "1", Boot: "1", Host: "h"}}
		if err := store.Create(ctx, r, e, func(sqlite.Owner) bool { return false }); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"1": "2abc", "01": "2abc", "2": "", "7": "7abc", "2a": "2abc", "8": ""} {
		r, err := FindRun(ctx, store, "/r", name)
		if r.ID != want || want == "" && !errors.Is(err, sqlite.ErrNotFound) {
			t.Errorf("%s is run %q: %v", name, r.ID, err)
		}
	}
}

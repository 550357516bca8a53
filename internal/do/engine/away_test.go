package engine

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// A program that is away is waited for, but not one that agents may write.
func TestProgramsThatAreAway(t *testing.T) {
	t.Parallel()
	dir, root := t.TempDir(), t.TempDir()
	here := filepath.Join(dir, "here")
	if err := os.WriteFile(here, []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		program string
		waits   time.Duration
		back    bool
	}{
		"it is there":       {program: here},
		"it is gone":        {program: dir + "/gone", waits: AwayFor},
		"it comes back":     {program: dir + "/back", waits: 10 * time.Second, back: true},
		"it is of the work": {program: root + "/gone"},
		"it is relative":    {program: "./gone"},
	} {
		synctest.Test(t, func(t *testing.T) {
			told := 0
			w := newWorker(&session{plan: runplan.Plan{Root: root}, o: Options{Log: slog.New(slog.DiscardHandler), Notify: func(Notice) { told++ }}})
			begun := time.Now()
			if c.back {
				time.AfterFunc(c.waits-time.Millisecond, func() { _ = os.Symlink(here, c.program) })
			}
			w.awaitProgram(t.Context(), supervisor.Job{Args: []string{c.program}, Dir: root})
			if waited := time.Since(begun); waited != c.waits || told != min(1, int(c.waits)) {
				t.Errorf("%s: it is waited for %s, and told %d times", name, waited, told)
			}
		})
	}
}

package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// A run is found by the name of its procedure, whose last one it is, by its id,
// or by the beginning of it.
func TestWithRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := &App{Dir: dir, Env: []string{"HOME=" + dir, "XDG_STATE_HOME=" + filepath.Join(dir, "state")}, Stderr: &strings.Builder{}}
	if err := os.WriteFile(filepath.Join(dir, "pawl.yaml"), []byte("agent: script\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := store.Owner{PID: 1, Start: "1", Boot: "an earlier one"}
	err := a.WithOperator(t.Context(), func(p *action.Operator) error {
		for i, id := range []string{"7k3faaaa", "7k3fbbbb", "9zzzzzzz"} {
			at := time.Date(2026, 11, 20, 12, i, 0, 0, time.UTC)
			state, _ := json.Marshal(map[string]any{"status": "completed"})
			r := store.Run{ID: id, Kind: "procedure", Name: "build", Root: p.Root, Status: "completed", State: state, StartedAt: at, Owner: gone}
			e, err := journal.New(id, 1, at, journal.RunCreated, journal.Created{Kind: r.Kind, Name: r.Name})
			if err == nil {
				err = p.Store.Create(t.Context(), r, e, func(store.Owner) bool { return false })
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"build": "9zzzzzzz", "9": "9zzzzzzz", "7k3fa": "7k3faaaa", "7k3fbbbb": "7k3fbbbb",
		"7k3f": "2: more characters", "test": "2: no run or procedure", "build.yaml": "9zzzzzzz",
	} {
		got := ""
		err := a.WithRun(t.Context(), name, func(_ *action.Operator, r store.Run) error {
			got = r.ID
			return nil
		})
		switch {
		case err == nil && got == want:
		case err != nil && a.Exit(err) == ExitUsage && strings.HasPrefix(want, "2: "):
		default:
			t.Errorf("%s: %q and %v, want %s", name, got, err, want)
		}
	}
}

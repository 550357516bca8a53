package overview

import (
	"slices"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/store"
)

func TestWhatIsAway(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.Local)
	var i Idle
	for _, w := range []store.Worker{
		{Name: "n1-a", Host: "n1", PID: 7, BeatAt: at, Silent: true, Lacks: "the engine does not answer"},
		{Name: "n2-b", Host: "n2"},
		{Name: "n3-c", Host: "n3", Lacks: "it is short of disk\ntask-001 waits, as its work cannot be pushed"},
	} {
		i.Away = append(i.Away, LinesAway(w)...)
	}
	want := []string{
		"worker n1-a, process 7 on n1, is silent since 2026-01-02 15:04:05", "n3: it is short of disk",
		"n3: task-001 waits, as its work cannot be pushed",
	}
	if !slices.Equal(i.Away, want) {
		t.Errorf("away: %q", i.Away)
	}
	if got := i.LinesOf("task-001"); !slices.Equal(got, want[2:]) {
		t.Errorf("of the task: %q", got)
	}
	if got := i.LinesOf("task-00"); got != nil {
		t.Errorf("of another task: %q", got)
	}
}

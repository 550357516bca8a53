package overview

import (
	"slices"
	"strings"
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

// What several tasks wait for is one line, with the date where it is not today's, and names no time twice.
func TestLinesOfTasksThatWait(t *testing.T) {
	t.Parallel()
	other := time.Date(2031, 1, 2, 3, 1, 0, 0, time.Local)
	today := time.Now().Truncate(time.Second)
	why := "usage limit of claude until 2031-01-02 03:01"
	i := Idle{KeptOut: []KeptOut{
		{Case: "task-001", Why: why, Until: other}, {Case: "task-002", Why: "it could not be started", Until: today},
		{Case: "task-003", Why: why, Until: other}, {Case: "task-004", Why: why, Until: other},
		{Case: "task-005", Why: why, Until: other}, {Case: "task-006", Why: why, Until: other},
	}}
	lines := i.Lines()
	slices.Sort(lines)
	want := []string{
		"task-001, task-003, task-004, 2 more do not start until 2031-01-02 03:01: usage limit of claude",
		"task-002 does not start until " + today.Format(time.TimeOnly) + ": it could not be started",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
}

// Whatever a program said, the line says how to continue.
func TestAPauseSaysHowToContinue(t *testing.T) {
	t.Parallel()
	v := View{Running: true, Phase: "paused", Why: strings.Repeat("There is an issue. ", 50)}
	if why := v.PhaseReason(); len(why) > 180 || !strings.HasSuffix(why, "; continue with: pawl autopilot resume") {
		t.Errorf("%q", why)
	}
}

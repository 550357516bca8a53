package autopilot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/keep/journal"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// busyView is an autopilot with two runs and two tasks that need a person.
func busyView() overview.View {
	return overview.View{
		Running: true, Session: "s1", Phase: "running", Mode: "auto", StartedAt: noon, MaxParallel: 3, Host: "here", PID: 7,
		Tally: schedule.Tally{Landed: 8},
		Slots: []overview.SlotView{
			{Taken: overview.Taken{Case: "task-001", Title: "Add a login page", Run: "r1", Phase: "working", Iteration: 3,
				MaxIterations: 50, Activity: "edit: login.go"}, Cost: 1_230_000, CostKnown: true, Elapsed: 252 * time.Second},
			{Taken: overview.Taken{Case: "task-004", Title: "Make the parser faster", Run: "r4", Phase: "pausing", Iteration: 1}},
		},
		Board: map[board.Status]int{board.Pending: 12, board.Active: 2, board.Blocked: 1, board.Review: 1, board.Done: 8},
		Ready: 4, Queued: 2,
		NeedsYou: []overview.Need{
			{Case: "task-007", Title: "Send mails", What: board.Blocked, Why: "the API key is missing", Run: "r7"},
			{Case: "task-009", Title: "Write docs", What: board.Review, Run: "r9"},
		},
		Events: []overview.Event{
			{At: noon, Kind: journal.TaskLanded, Task: journal.Task{Case: "task-002", Title: "Two"}},
			{At: noon, Kind: journal.TaskStarted, Task: journal.Task{Case: "task-001", Why: "score 60"}},
		},
	}
}

func textOf(v overview.View) string { return dashboardText(&command.App{Color: "never"}, v) }

func wants(t *testing.T, got string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(got, want) {
			t.Errorf("the screen lacks %q:\n%s", want, got)
		}
	}
}

func TestDashboardText(t *testing.T) {
	got := textOf(busyView())
	wants(t, got, "The autopilot is running (auto), process 7 on here, since ",
		"task-001  r1   working  3/50       4m12s    $1.23    edit: login.go  Add a login page", "unknown", "pausing",
		"12 pending  2 active  1 blocked  1 review  8 done  (4 ready)", "Queue:  2 on their way to the target", "8 landed",
		"  task-007 blocked: Send mails (the API key is missing)", "pawl show task-009 --diff, then pawl case approve task-009",
		"task-002 landed", "task-001 started: score 60")
}

func TestDashboardSaysHowTheAutopilotIs(t *testing.T) {
	for _, c := range []struct {
		change func(*overview.View)
		want   string
	}{
		{func(v *overview.View) { *v = overview.View{} }, "No autopilot has run here. Start one with: pawl autopilot\n"},
		{func(v *overview.View) { v.Running = false }, "was killed. Start it again with 'pawl autopilot'"},
		{func(v *overview.View) { v.Running, v.Phase, v.Why = false, "ended", "no task is ready" }, "(no task is ready)"},
		{func(v *overview.View) { v.Phase, v.Why = "paused", "3 tasks in a row failed" }, "(3 tasks in a row failed; continue with"},
		{func(v *overview.View) { v.Phase, v.Why, v.PauseEnds = "paused", "3 failed", noon.Add(time.Hour) },
			"(3 failed; continue with: pawl autopilot resume, else it ends at " + noon.Add(time.Hour).Local().Format(time.TimeOnly)},
		{func(v *overview.View) { v.QueueHeld = "main is red" }, "main is red"},
		{func(v *overview.View) { v.Sprint = "2026-03-04-001" }, "running for the sprint 2026-03-04-001"},
		{func(v *overview.View) { v.Slots[0].Host = "worker-2" }, "worker-2: edit: login.go"},
		{func(v *overview.View) { v.Running, v.Waits = false, true }, "the next worker that starts drives it"},
		{func(v *overview.View) {
			v.Slots[0].Status, v.Slots[0].Activity = "waiting", "waits: the provider's limit"
		},
			"waiting  3/50       4m12s    $1.23    the provider's limit"},
	} {
		v := busyView()
		c.change(&v)
		wants(t, textOf(v), c.want)
	}
}

// Whatever agents say and however small the terminal is, nothing leaves the
// screen; that there is more is said.
func TestDashboardFits(t *testing.T) {
	nasty := "\x1b[2J\x1b]0;owned\x07 日本語のとても長いタイトル\u202egnp.exe\r\n" + strings.Repeat("x", 600) + "\x00\xff"
	v := busyView()
	v.Why, v.QueueHeld, v.Sprint, v.Host, v.Plans = nasty, nasty, nasty, nasty, []string{nasty}
	for i := range 12 {
		v.Slots = append(v.Slots, overview.SlotView{Taken: overview.Taken{Case: fmt.Sprintf("task-1%02d", i), Title: nasty,
			Activity: nasty, Phase: "working", Host: nasty}})
		v.NeedsYou = append(v.NeedsYou, overview.Need{Case: fmt.Sprintf("task-2%02d", i), Title: nasty, Why: nasty,
			What: board.Failed})
		v.Events = append(v.Events, overview.Event{Kind: journal.Alerted, Text: nasty})
	}
	text := dashboardText(&command.App{Color: "always"}, v)
	for _, width := range []int{1, 20, 69, 120} {
		for _, height := range []int{1, 5, 16, 30} {
			lines := fitScreen(text, "Enter quits", width, height)
			if len(lines) > height {
				t.Fatalf("%d lines on a screen of %d", len(lines), height)
			}
			for _, l := range lines {
				if n := ansi.StringWidth(l); n > width {
					t.Fatalf("a line of %d columns on a screen of %d: %q", n, width, l)
				}
				isControl := func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }
				if strings.ContainsFunc(ansi.Strip(l), isControl) {
					t.Fatalf("a control character is on the screen: %q", l)
				}
			}
			if height == 30 && width == 120 {
				wants(t, strings.Join(lines, "\n"), "for the rest: pawl autopilot status", "Board:  ", "Enter quits")
			}
		}
	}
}

// The dashboard ends when the work has ended, gives its error, and leaves the terminal as
// it was.
func TestDashboardDuringWork(t *testing.T) {
	var out bytes.Buffer
	looked := make(chan struct{}, 100)
	d := &dashboard{out: &out, readText: func(context.Context) (string, error) {
		looked <- struct{}{}
		return textOf(busyView()), nil
	}}
	want := errors.New("the work's own")
	err := d.drawDuring(t.Context(), func(wake func()) error {
		<-looked
		wake()
		<-looked
		return want
	})
	if !errors.Is(err, want) {
		t.Errorf("it gave %v, not %v", err, want)
	}
	got := out.String()
	if !strings.HasPrefix(got, enterScreen) || !strings.HasSuffix(got, leaveScreen) {
		t.Errorf("it drew %q", got)
	}
	wants(t, got, "Needs you:")
}

// A person who only watches leaves when he likes, and sees what cannot be read below which
// the last look stays.
func TestDashboardThatCannotRead(t *testing.T) {
	var out bytes.Buffer
	looks := 0
	woken := make(chan struct{}, 1)
	woken <- struct{}{}
	d := &dashboard{out: &out, mayLeave: func() bool { return looks == 2 }, readText: func(context.Context) (string, error) {
		if looks++; looks == 2 {
			return "", errors.New("locked")
		}
		return "what was there", nil
	}}
	d.drawUntilLeft(t.Context(), woken)
	wants(t, out.String(), "Cannot read the board: locked\x1b[K\nwhat was there")
}

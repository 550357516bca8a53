package dashboard

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

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/keep/journal"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// busy is an autopilot with two runs and two tasks that need a person.
func busy() overview.View {
	return overview.View{
		Running: true, Session: "s1", Phase: "running", Mode: "auto", StartedAt: noon.Add(-83 * time.Minute), MaxParallel: 3,
		Tally: schedule.Tally{Landed: 8},
		Slots: []overview.SlotView{
			{Taken: overview.Taken{Case: "task-001", Title: "Add a login page", Run: "r1", Phase: "working", Iteration: 3, MaxIterations: 50, Since: noon.Add(-252 * time.Second), Activity: "edit: login.go"}, Cost: 1_230_000, CostKnown: true},
			{Taken: overview.Taken{Case: "task-004", Title: "Make the parser faster", Run: "r4", Phase: "pausing", Iteration: 1, Since: noon.Add(-2 * time.Second)}},
		},
		Board: map[board.Status]int{board.Pending: 12, board.Active: 2, board.Blocked: 1, board.Review: 1, board.Done: 8}, Ready: 4,
		Queued: 2,
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

// options show v without colors.
func options(v overview.View) Options {
	return Options{
		Look: func(context.Context) (overview.View, error) { return v, nil },
		Next: func(n overview.Need) string { return "pawl case retry " + n.Case },
		Hint: "Enter quits",
	}
}

// text is the screen for a view.
func text(v overview.View, width, height int) string {
	s := screen{o: options(v), view: v, seen: true, now: noon, width: width, height: height}
	return strings.Join(s.allLines(), "\n")
}

func TestScreen(t *testing.T) {
	got := text(busy(), 110, 24)
	for _, want := range []string{
		"pawl autopilot  running (auto) · 2 of 3 slots · 1h23m · 8 landed · $1.23 in these runs",
		"  task-001   3/50   4m12s   $1.23    Add a login page",
		"edit: login.go",
		"cost ?",
		"pausing",
		"Needs you (2)",
		"  task-007   blocked  Send mails — the API key is missing",
		"             pawl case retry task-007",
		"Board  12 pending (4 ready) · 2 active · 1 blocked · 1 review · 8 done",
		"Queue  2 on their way",
		"task-002 landed",
		"task-001 started: score 60",
		"Enter quits",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the screen lacks %q:\n%s", want, got)
		}
	}
}

func TestScreenSaysHowTheAutopilotIs(t *testing.T) {
	for _, c := range []struct {
		change func(*overview.View)
		want   string
	}{
		{func(v *overview.View) { *v = overview.View{} }, "start it with: pawl autopilot"},
		{func(v *overview.View) { *v = overview.View{} }, "empty; add a task with: pawl case add TITLE"},
		{func(v *overview.View) { v.Running = false }, "killed; start it again with: pawl autopilot"},
		{func(v *overview.View) { v.Running, v.Phase, v.Why = false, "ended", "no task is ready" }, "ended: no task is ready"},
		{func(v *overview.View) { v.Phase, v.Why = "paused", "3 tasks in a row failed" }, "paused: 3 tasks in a row failed"},
		{func(v *overview.View) { v.Phase, v.Why, v.PauseEnds = "paused", "3 failed", noon.Add(time.Hour) },
			"paused: 3 failed; continue with: pawl autopilot resume, else it ends at " + noon.Add(time.Hour).Local().Format(time.TimeOnly)},
		{func(v *overview.View) { v.QueueHeld = "main is red" }, "main is red"},
		{func(v *overview.View) { v.Slots = nil }, "nothing runs"},
	} {
		v := busy()
		c.change(&v)
		if got := text(v, 120, 30); !strings.Contains(got, c.want) {
			t.Errorf("the screen lacks %q:\n%s", c.want, got)
		}
	}
}

// Whatever agents say and however small the terminal is, nothing leaves the
// screen; what has no room is counted.
func TestScreenFits(t *testing.T) {
	nasty := "\x1b[2J\x1b]0;owned\x07 日本語のとても長いタイトル\u202egnp.exe\r\n" + strings.Repeat("x", 600) + "\x00\xff"
	v := busy()
	v.Why, v.QueueHeld, v.Sprint = nasty, nasty, "2026-03-04-001"
	for i := range 12 {
		v.Slots = append(v.Slots, overview.SlotView{Taken: overview.Taken{Case: fmt.Sprintf("task-1%02d", i), Title: nasty, Activity: nasty, Phase: "working"}})
		v.NeedsYou = append(v.NeedsYou, overview.Need{Case: fmt.Sprintf("task-2%02d", i), Title: nasty, Why: nasty, What: board.Failed})
		v.Events = append(v.Events, overview.Event{Kind: journal.Alerted, Text: nasty})
	}
	for _, width := range []int{1, 20, 69, 120} {
		for _, height := range []int{1, 5, 16, 30} {
			s := screen{o: options(v), view: v, seen: true, trouble: errors.New(nasty), now: noon, width: width, height: height}
			s.o.Color = true
			lines := s.allLines()
			if len(lines) > height {
				t.Fatalf("%d lines on a screen of %d", len(lines), height)
			}
			for _, l := range lines {
				if n := ansi.StringWidth(l); n > width {
					t.Fatalf("a line of %d columns on a screen of %d: %q", n, width, l)
				}
				if i := strings.IndexFunc(ansi.Strip(l), func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }); i >= 0 {
					t.Fatalf("a control character is on the screen: %q", l)
				}
			}
		}
	}
	v.Slots = v.Slots[:2]
	if got := text(v, 100, 24); !strings.Contains(got, "more: pawl autopilot status") || !strings.Contains(got, "Board  ") {
		t.Errorf("what has no room is not counted:\n%s", got)
	}
}

// Own ends when the work has ended, gives its error, and leaves the terminal as
// it was.
func TestOwn(t *testing.T) {
	var out bytes.Buffer
	o := options(busy())
	o.Out = &out
	looked := make(chan struct{}, 100)
	o.Look = func(context.Context) (overview.View, error) {
		looked <- struct{}{}
		return busy(), nil
	}
	want := errors.New("the work's own")
	err := Own(t.Context(), o, func(wake func()) error {
		<-looked
		wake()
		<-looked
		return want
	})
	if !errors.Is(err, want) {
		t.Errorf("Own gave %v, not %v", err, want)
	}
	if got := out.String(); !strings.HasPrefix(got, enter) || !strings.HasSuffix(got, leave) || !strings.Contains(got, "Needs you (2)") {
		t.Errorf("it drew %q", got)
	}
}

// A person who only watches leaves when he likes, and sees what cannot be read.
func TestWatch(t *testing.T) {
	var out bytes.Buffer
	left := false
	Watch(t.Context(), Options{
		Look: func(context.Context) (overview.View, error) {
			left = true
			return overview.View{}, errors.New("locked")
		},
		Leave: func() bool { return left }, Out: &out,
	})
	if got := out.String(); !strings.Contains(got, "Cannot read the board: locked") {
		t.Errorf("it drew %q", got)
	}
}

// On a board that several machines share the screen says which one does what.
func TestScreenOfSeveralMachines(t *testing.T) {
	v := busy()
	v.Host, v.Slots[0].Host = "far-away", "worker-2"
	if got := text(v, 140, 24); !strings.Contains(got, "· driven on far-away ·") || !strings.Contains(got, "worker-2: edit: login.go") {
		t.Error(got)
	}
	v.Running, v.Waits = false, true
	if got := text(v, 140, 24); !strings.Contains(got, "waits for a worker to drive it") || strings.Contains(got, "gone") {
		t.Error(got)
	}
}

// An agent that waits for its provider is said to wait once.
func TestScreenOfAnAgentThatWaits(t *testing.T) {
	v := busy()
	v.Slots[0].Status, v.Slots[0].Activity = "waiting", "waits: the provider's limit"
	if got := text(v, 140, 24); !strings.Contains(got, " waits the provider's limit") || strings.Contains(got, "waits waits") {
		t.Error(got)
	}
}

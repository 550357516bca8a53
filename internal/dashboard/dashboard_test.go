package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/control"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/schedule"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// busy is an autopilot with two runs and two tasks that need a person.
func busy() autopilot.View {
	return autopilot.View{
		Running: true, Session: "s1", Phase: "running", Mode: "auto", StartedAt: noon.Add(-83 * time.Minute), MaxParallel: 3,
		Tally: schedule.Tally{Landed: 8},
		Slots: []autopilot.SlotView{
			{Case: "task-001", Title: "Add a login page", Run: "r1", Phase: "working", Iteration: 3, MaxIterations: 50, Since: noon.Add(-252 * time.Second), Cost: 1_230_000, CostKnown: true, Activity: "edit: login.go"},
			{Case: "task-004", Title: "Make the parser faster", Run: "r4", Phase: "pausing", Iteration: 1, Since: noon.Add(-2 * time.Second)},
		},
		Board: map[board.Status]int{board.Pending: 12, board.Active: 2, board.Blocked: 1, board.Review: 1, board.Done: 8}, Ready: 4,
		Queued: 2,
		NeedsYou: []autopilot.Need{
			{Case: "task-007", Title: "Send mails", What: board.Blocked, Why: "the API key is missing", Run: "r7"},
			{Case: "task-009", Title: "Write docs", What: board.Review, Run: "r9"},
		},
		Events: []autopilot.Event{
			{At: noon, Kind: journal.TaskLanded, Task: journal.Task{Case: "task-002", Title: "Two"}},
			{At: noon, Kind: journal.TaskStarted, Task: journal.Task{Case: "task-001", Why: "score 60"}},
		},
	}
}

// table is a dashboard over a view, with what was asked for.
type table struct {
	*model
	view  autopilot.View
	deeds []Action
	said  error
	asked loop.Question
}

func newTable(t *testing.T, v autopilot.View, width, height int) *table {
	b := &table{view: v}
	b.model = newModel(t.Context(), Options{
		Look:     func(context.Context) (autopilot.View, error) { return b.view, nil },
		Log:      func(_ context.Context, run string) ([]string, error) { return []string{"log of " + run}, nil },
		Question: func(context.Context, autopilot.Need) (loop.Question, error) { return b.asked, b.said },
		Do: func(_ context.Context, d Action) (string, error) {
			b.deeds = append(b.deeds, d)
			return "done: " + string(d.Kind), b.said
		},
	})
	b.Update(tea.WindowSizeMsg{Width: width, Height: height})
	b.look(t)
	return b
}

// look shows the view as it is now.
func (b *table) look(t *testing.T) {
	t.Helper()
	b.Update(lookedMsg{view: b.view, at: noon})
}

// press types keys and takes what they lead to.
func (b *table) press(t *testing.T, keys ...string) {
	t.Helper()
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "down": tea.KeyDown, "backspace": tea.KeyBackspace, "left": tea.KeyLeft}
	for _, k := range keys {
		press := tea.KeyPressMsg{Text: k}
		if code, ok := special[k]; ok {
			press = tea.KeyPressMsg{Code: code}
		} else if len(k) == 1 {
			press.Code = rune(k[0])
		}
		if _, cmd := b.Update(press); cmd != nil {
			if msg := cmd(); msg != nil {
				b.Update(msg)
			}
		}
	}
}

// text is the screen without colors.
func (b *table) text() string { return ansi.Strip(strings.Join(b.screen(), "\n")) }

// The dashboard looks again after each look, and never twice at once.
func TestLooks(t *testing.T) {
	b := newTable(t, busy(), 110, 24)
	for n := range 3 {
		b.again = false // nobody asked meanwhile
		b.look(t)
		if b.model.look() == nil {
			t.Fatalf("after %d looks it looks no more", n+1)
		}
		if b.model.look() != nil {
			t.Fatal("it looks twice at once")
		}
	}
}

func TestScreen(t *testing.T) {
	b := newTable(t, busy(), 110, 24)
	got := b.text()
	for _, want := range []string{
		"pawl autopilot  running (auto) · 2 of 3 slots · 1h23m · 8 landed · $1.23 in these runs",
		"▸ task-001   3/50   4m12s   $1.23     Add a login page",
		"edit: login.go",
		"pausing",
		"  free",
		"Needs you (2)",
		"  task-007   blocked  Send mails — the API key is missing",
		"Board  12 pending (4 ready) · 2 active · 1 blocked · 1 review · 8 done",
		"Queue  2 on their way",
		"task-002 landed",
		"task-001 started: score 60",
		"a answer",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the screen lacks %q:\n%s", want, got)
		}
	}
}

func TestScreenSaysHowTheAutopilotIs(t *testing.T) {
	for _, c := range []struct {
		change func(*autopilot.View)
		want   string
	}{
		{func(v *autopilot.View) { *v = autopilot.View{} }, "start it with: pawl autopilot"},
		{func(v *autopilot.View) { *v = autopilot.View{} }, "empty; add a task with: pawl case add TITLE"},
		{func(v *autopilot.View) { v.Running = false }, "gone; start it again with: pawl autopilot"},
		{func(v *autopilot.View) { v.Running, v.Phase, v.Why = false, "ended", "no task is ready" }, "ended: no task is ready"},
		{func(v *autopilot.View) { v.Phase, v.Why = "paused", "3 tasks in a row failed" }, "paused: 3 tasks in a row failed"},
		{func(v *autopilot.View) { v.QueueHeld = "main is red" }, "main is red"},
		{func(v *autopilot.View) { v.Slots = nil }, "free"},
	} {
		v := busy()
		c.change(&v)
		if got := newTable(t, v, 120, 30).text(); !strings.Contains(got, c.want) {
			t.Errorf("the screen lacks %q:\n%s", c.want, got)
		}
	}
}

// Whatever agents say and however small the terminal is, nothing leaves the
// screen, and the row with the cursor can be seen.
func TestScreenFits(t *testing.T) {
	nasty := "\x1b[2J\x1b]0;owned\x07 日本語のとても長いタイトル\u202egnp.exe\r\n" + strings.Repeat("x", 600) + "\x00\xff"
	v := busy()
	v.Why, v.QueueHeld, v.Sprint = nasty, nasty, "2026-03-04-001"
	for i := range 12 {
		v.Slots = append(v.Slots, autopilot.SlotView{Case: fmt.Sprintf("task-1%02d", i), Title: nasty, Activity: nasty, Phase: "working"})
		v.NeedsYou = append(v.NeedsYou, autopilot.Need{Case: fmt.Sprintf("task-2%02d", i), Title: nasty, Why: nasty, What: board.Failed})
		v.Events = append(v.Events, autopilot.Event{Kind: journal.Alerted, Text: nasty})
	}
	for _, width := range []int{1, 20, 69, 120} {
		for _, height := range []int{1, 5, 16, 30} {
			b := newTable(t, v, width, height)
			b.asked = loop.Question{Text: nasty + "\n" + nasty, Choices: []control.Choice{{Text: nasty, Advice: true}}}
			rows := len(b.rows())
			for range rows {
				b.fits(t, width, height)
				if height >= 16 && width >= 20 && !strings.Contains(b.text(), "▸") {
					t.Fatalf("%dx%d: the cursor on row %d is out of sight:\n%s", width, height, b.at, b.text())
				}
				b.press(t, "j")
			}
			for _, keys := range [][]string{{"?"}, {"x", "l"}, {"esc", "a"}, {"1", "w"}, {"esc", "S"}} {
				b.press(t, keys...)
				b.fits(t, width, height)
			}
		}
	}
}

func (b *table) fits(t *testing.T, width, height int) {
	t.Helper()
	lines := b.screen()
	if len(lines) > height {
		t.Fatalf("%d lines on a screen of %d", len(lines), height)
	}
	for _, l := range lines {
		if n := lipgloss.Width(l); n > width {
			t.Fatalf("a line of %d columns on a screen of %d: %q", n, width, l)
		}
		if i := strings.IndexFunc(ansi.Strip(l), func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }); i >= 0 {
			t.Fatalf("a control character is on the screen: %q", l)
		}
	}
}

func TestCursorStaysOnItsTask(t *testing.T) {
	b := newTable(t, busy(), 100, 24)
	b.press(t, "j", "down")
	if !strings.Contains(b.text(), "▸ task-007") {
		t.Fatalf("the cursor is not on task-007:\n%s", b.text())
	}
	b.view.Slots = b.view.Slots[:1]
	b.look(t)
	if !strings.Contains(b.text(), "▸ task-007") {
		t.Errorf("a slot that is free moved the cursor:\n%s", b.text())
	}
	b.view.NeedsYou = b.view.NeedsYou[1:]
	b.look(t)
	if !strings.Contains(b.text(), "▸ task-009") {
		t.Errorf("the cursor is not on the row that took the place:\n%s", b.text())
	}
}

func TestAnswer(t *testing.T) {
	b := newTable(t, busy(), 100, 24)
	b.asked = loop.Question{Text: "Which key?", Choices: []control.Choice{{Text: "None"}, {Text: "Another", Advice: true}}}
	b.press(t, "a")
	for _, want := range []string{"task-007 Send mails", "Which key?", "  2. Another"} {
		if !strings.Contains(b.text(), want) {
			t.Fatalf("the question lacks %q:\n%s", want, b.text())
		}
	}
	b.press(t, "9", "2", "u", "s", "x", "backspace", "e", " ", "it", "enter")
	want := Action{Kind: Answer, Run: "r7", Need: b.view.NeedsYou[0], Choice: 2, Text: "use it"}
	if len(b.deeds) != 1 || b.deeds[0] != want {
		t.Errorf("asked for %+v, not %+v", b.deeds, want)
	}
	if !strings.Contains(b.text(), "done: answer") {
		t.Errorf("what came of it is not shown:\n%s", b.text())
	}

	b.press(t, "a", "1")
	if len(b.deeds) != 2 || b.deeds[1].Choice != 1 || b.deeds[1].Text != "" {
		t.Errorf("asked for %+v, not the first choice", b.deeds[1:])
	}
	b.press(t, "a", "w", "enter", "esc") // no words, no answer
	if len(b.deeds) != 2 {
		t.Errorf("an empty answer was sent: %+v", b.deeds[2:])
	}
	b.said = errors.New("it asks nothing")
	b.press(t, "a")
	if !strings.Contains(b.text(), "it asks nothing") || b.panel != noPanel {
		t.Errorf("the refusal is not shown:\n%s", b.text())
	}
}

func TestWhatIsLostIsConfirmed(t *testing.T) {
	b := newTable(t, busy(), 100, 24)
	b.press(t, "s")
	if !strings.Contains(b.text(), "Stop task-001?") || len(b.deeds) != 0 {
		t.Fatalf("it was not asked for, or done at once (%v):\n%s", b.deeds, b.text())
	}
	b.press(t, "n", "s", "x", "y", "S", "esc", "S", "y")
	if len(b.deeds) != 2 || b.deeds[0] != (Action{Kind: StopRun, Run: "r1"}) || b.deeds[1].Kind != StopAll {
		t.Errorf("asked for %+v", b.deeds)
	}
}

// What is asked, and the keys that answer it, are there on a small terminal too.
func TestConfirmationFits(t *testing.T) {
	for _, key := range []string{"s", "S"} {
		b := newTable(t, busy(), 80, 24)
		b.press(t, key)
		foot := strings.Split(b.text(), "\n")[22:]
		if !strings.HasSuffix(foot[0], "pending again.") || !strings.Contains(foot[1], "y yes") {
			t.Errorf("%s asks %q", key, foot)
		}
		b = newTable(t, busy(), 40, 10)
		b.press(t, key)
		if !strings.Contains(b.text(), "y yes · n no") {
			t.Errorf("%s asks without its keys:\n%s", key, b.text())
		}
	}
}

func TestKeys(t *testing.T) {
	b := newTable(t, busy(), 100, 24)
	b.press(t, "p", "m", "j", "j", "r")
	b.view.Phase, b.view.Mode = "paused", "semi-auto"
	b.look(t)
	b.press(t, "p", "m")
	var got []string
	for _, d := range b.deeds {
		got = append(got, string(d.Kind)+" "+d.Text+d.Need.Case)
	}
	if want := "pause ,mode semi-auto,retry task-007,resume ,mode auto"; strings.Join(got, ",") != want {
		t.Errorf("asked for %q, not %q", strings.Join(got, ","), want)
	}
	b.press(t, "l")
	if !strings.Contains(b.text(), "log of r7") {
		t.Errorf("the log is not shown:\n%s", b.text())
	}
	b.press(t, "k")
	if !strings.Contains(b.text(), "log of r4") {
		t.Errorf("the log of the task above is not shown:\n%s", b.text())
	}
	b.press(t, "esc", "q")
	if !b.leave {
		t.Error("q does not leave a dashboard that only watches")
	}
}

// Own ends when the work has ended, and gives its error; a person's Ctrl+C
// goes to the work.
func TestOwn(t *testing.T) {
	in, keys := io.Pipe()
	defer keys.Close()
	asked := make(chan struct{})
	o := Options{
		Look:      func(context.Context) (autopilot.View, error) { return busy(), nil },
		Interrupt: func() { close(asked) },
		In:        in, Out: io.Discard, Env: []string{"TERM=xterm"},
	}
	want := errors.New("the work's own")
	err := Own(t.Context(), o, func(err error) { t.Errorf("the dashboard was lost: %v", err) }, func(wake func()) error {
		wake()
		if _, err := keys.Write([]byte{3}); err != nil { // Ctrl+C
			t.Error(err)
		}
		<-asked
		return want
	})
	if !errors.Is(err, want) {
		t.Errorf("Own gave %v, not %v", err, want)
	}
}

package autopilot

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
)

func TestLeft(t *testing.T) {
	past := schedule.Past{
		Run:     &loop.State{Iteration: 4, Status: loop.Running},
		History: []board.Entry{{Action: board.Start, To: board.Active}, {Action: board.Crash, From: board.Active, To: board.Pending}},
	}
	records := []loop.Record{{Number: 4, Files: []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}, Failure: &failure.Analysis{Summary: "2 tests failed"}}}
	text := attemptText(Task{Case: board.Case{Retries: 1}, Workspace: pool.Workspace{Kept: true}}, past, records)
	for _, want := range []string{
		"worked on before, in 4 iterations", "cut off: pawl was gone", "The files are as it left them", "Iteration 4 was the last",
		"a, b, c, d, e, f, g, h and 2 more", "it failed: 2 tests failed", "This is attempt 2.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	past.History = []board.Entry{{Action: board.Block, To: board.Blocked, Why: "no key."}, {Action: board.Unblock, From: board.Blocked, To: board.Pending}}
	text = attemptText(Task{}, past, nil)
	if !strings.Contains(text, "It ended blocked: no key. Its files are gone") {
		t.Errorf("a block and a lost workspace are told as:\n%s", text)
	}
}

// Only the words that a person gave with the last retry are a hint.
func TestHintOf(t *testing.T) {
	retry := func(why string) board.Entry { return board.Entry{Action: board.Retry, Why: why} }
	for _, c := range []struct {
		history []board.Entry
		want    string
	}{
		{nil, ""},
		{[]board.Entry{retry(board.RetryWithout)}, ""},
		{[]board.Entry{retry("three digits"), {Action: board.Fail, Why: "red"}}, "three digits"},
		{[]board.Entry{retry("three digits"), retry(board.RetryWithout)}, ""},
	} {
		if got := lastRetryHint(c.history); got != c.want {
			t.Errorf("of %+v: %q, want %q", c.history, got, c.want)
		}
	}
}

// What an agent does in quick succession is stored once a second, and the last
// of it is not lost.
func TestDoes(t *testing.T) {
	l := newSlotOfTask(board.Case{ID: "task-001"}, false)
	at := time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC)
	says := func(after time.Duration, text string) string {
		return l.activityToSave(engine.Notice{Kind: engine.AgentEvent, At: at.Add(after), Event: agent.Event{Kind: agent.Text, Text: text}})
	}
	if got := says(0, "first\nline two"); got != "line two" {
		t.Errorf("the first is %q", got)
	}
	if got := says(300*time.Millisecond, "second"); got != "" {
		t.Errorf("what comes at once is stored: %q", got)
	}
	if got := says(600*time.Millisecond, "third"); got != "" {
		t.Errorf("what comes at once is stored: %q", got)
	}
	if got := l.activityToSave(engine.Notice{Kind: engine.Tick, At: at.Add(time.Second)}); got != "third" {
		t.Errorf("the tick stores %q, want the last", got)
	}
	if got := l.activityToSave(engine.Notice{Kind: engine.Tick, At: at.Add(2 * time.Second)}); got != "" {
		t.Errorf("a tick without news stores %q", got)
	}
	if got := l.activityToSave(engine.Notice{Kind: engine.GateStarted, At: at.Add(2 * time.Second), Gate: loop.Gate{Name: "tests"}}); got != "check tests" {
		t.Errorf("a check is %q", got)
	}
}

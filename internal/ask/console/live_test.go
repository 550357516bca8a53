package console

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// The live line names the steps that run, and the tokens of agents that work
// side by side add up.
func TestLiveLineOfSteps(t *testing.T) {
	t.Parallel()
	s := New(Terminal{}, "audit")
	s.startLiveLine(noon, "iteration 1/3", "starting")
	step := func(kind engine.NoticeKind, id, status string, e agent.Event) {
		s.steps.updateFrom(engine.Notice{Kind: kind, At: noon, Event: e, Step: &journal.Step{Step: id, Status: status}})
	}
	for _, id := range []string{"a", "b", "c"} {
		step(engine.StepStarted, id, "", agent.Event{})
	}
	step(engine.StepEnded, "a", store.StepSuccess, agent.Event{})
	for _, e := range []agent.Event{
		{Kind: agent.UsageSeen, Usage: agent.Usage{Input: 700}, Cumulative: true},
		{Kind: agent.UsageSeen, Usage: agent.Usage{Input: 1000}, Cumulative: true},
	} {
		step(engine.AgentEvent, "b", "", e)
	}
	step(engine.AgentEvent, "c", "", agent.Event{Kind: agent.UsageSeen, Usage: agent.Usage{Output: 1000}})
	step(engine.AgentEvent, "c", "", agent.Event{Kind: agent.CostSeen, Cost: 20_000})
	const want = "  iteration 1/3 · 5s · 1 done, runs b, c · 2.0k tokens · $0.02"
	if got := s.formatLiveLine(noon.Add(5 * time.Second)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.startLiveLine(noon, "iteration 2/3", "starting")
	if got, want := s.formatLiveLine(noon), "  iteration 2/3 · 0s · starting"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A line that stays takes the place of the live one.
func TestLiveLineIsErased(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := New(Terminal{Progress: &out, Drawn: true}, "build")
	s.startLiveLine(noon, "iteration 1/3", "starting")
	s.drawLiveLine(engine.Notice{At: noon})
	s.printText("one line")
	s.printText("another")
	s.Done()
	if got, want := out.String(), "\r  iteration 1/3 · 0s · starting\x1b[J\r\x1b[Jone line\nanother\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if strings.Contains(out.String(), "\n\r") {
		t.Error("the live line is erased twice")
	}
}

// A gate is named while it runs, and not while an agent works that says nothing.
func TestLiveLineAfterAGate(t *testing.T) {
	t.Parallel()
	s := New(Terminal{}, "build")
	s.startLiveLine(noon, "iteration 1/3", "starting mine")
	gate := loop.Gate{Name: "unit"}
	s.Notice(engine.Notice{Kind: engine.GateStarted, At: noon, Gate: gate})
	if got, want := s.formatLiveLine(noon), "  iteration 1/3 · 0s · gate unit"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Notice(engine.Notice{Kind: engine.GateEnded, At: noon, Gate: gate})
	if got, want := s.formatLiveLine(noon), "  iteration 1/3 · 0s · starting mine"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Nobody knows how an iteration ended that ended with its pawl: it is not called completed.
func TestLostIteration(t *testing.T) {
	t.Parallel()
	for _, ended := range []loop.Ended{loop.EndedLost, loop.EndedLease} {
		for _, steps := range []*loop.Steps{nil, {}} {
			var out bytes.Buffer
			s := New(Terminal{Progress: &out}, "build")
			r := loop.Record{Number: 1, Outcome: loop.Neutral, Exit: loop.Exit{Ended: ended}, Steps: steps}
			s.Notice(engine.Notice{Kind: engine.IterationEnded, At: noon, Record: &r})
			if got := out.String(); !strings.Contains(got, "was interrupted") || strings.Contains(got, "completed") {
				t.Errorf("%s, of steps %v: %q", ended, steps != nil, got)
			}
		}
	}
}

// What the agent of a step uses counts once.
func TestLiveLineCountsStepsOnce(t *testing.T) {
	t.Parallel()
	s := New(Terminal{Progress: io.Discard}, "audit")
	s.startLiveLine(noon, "iteration 1/3", "starting")
	s.Notice(engine.Notice{Kind: engine.AgentEvent, At: noon, Step: &journal.Step{Step: "a"},
		Event: agent.Event{Kind: agent.UsageSeen, Usage: agent.Usage{Input: 1000}}})
	if got, want := s.formatLiveLine(noon), "  iteration 1/3 · 0s · starting · 1.0k tokens"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Above the first line of another day stands the date. What an agent says stands below each
// other, with who says it; of a very long text the end is left out.
func TestLinesBelowEachOther(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := New(Terminal{Progress: &out, Verbose: true}, "build")
	day := time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local)
	s.Line(day, "one")
	s.Line(day.Add(time.Hour), "two")
	s.Line(day.AddDate(0, 0, 1), "three")
	s.Notice(engine.Notice{Kind: engine.AgentEvent, Step: &journal.Step{Step: "lint"},
		Event: agent.Event{Kind: agent.Text, Text: "first\n\x1b[31msecond\n"}})
	const want = "2026-01-02\n[12:00:00] one\n[13:00:00] two\n2026-01-03\n[12:00:00] three\n" +
		"           lint: first\n                 [31msecond\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	s.Notice(engine.Notice{Kind: engine.AgentEvent, Run: "r1",
		Event: agent.Event{Kind: agent.Text, Text: strings.Repeat("x\n", maxSaidLines+10)}})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; len(lines) != maxSaidLines+1 || !strings.Contains(last, "… 10 lines more; all of it: pawl logs r1 -i N") {
		t.Errorf("%d lines, the last is %q", len(lines), last)
	}
}

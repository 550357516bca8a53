package hook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine"
)

// told writes events down: name, status, code, and the text.
func told(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s %s", e.Name, e.Status)
		if e.Error != nil {
			fmt.Fprintf(&b, " [%s %s: %s]", e.Error.Code, e.Error.Severity, e.Error.Message)
		}
		fmt.Fprintf(&b, " %s\n", e.completeEvent(time.Now()).Text)
	}
	return b.String()
}

func notice(kind engine.NoticeKind, s loop.State) engine.Notice {
	return engine.Notice{Kind: kind, Run: "r1", State: s, Command: loop.Command{Guard: s.Command.Guard, Message: s.Command.Message}}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	running := loop.State{Status: loop.Running, Policy: loop.Policy{Costs: loop.Costs{MaxCost: 10_000_000}, Workers: loop.Workers{Agent: "mine"}}}
	with := func(change func(*loop.State)) loop.State {
		s := running
		change(&s)
		return s
	}
	warned := with(func(s *loop.State) {
		s.Warned, s.Spent.Cost, s.Spent.CostKnown = true, 8_100_000, true
	})
	red := notice(engine.IterationEnded, running)
	red.Record = &loop.Record{Agent: "other", Failure: &failure.Analysis{Class: failure.TestFailure, Severity: failure.Medium, Summary: "tests: 1 of 2 failed"}}
	for name, c := range map[string]struct {
		notices []engine.Notice
		want    string
	}{
		"a run that is complete": {
			[]engine.Notice{notice(engine.RunStarted, running), notice(engine.Tick, running), notice(engine.RunEnded, with(func(s *loop.State) {
				s.Status, s.Why, s.Iteration = loop.Completed, "COMPLETE, and the gates pass", 2
			}))},
			"start running build (run r1) starts\ncomplete completed build (run r1) is complete after 2 iterations, 0s: COMPLETE, and the gates pass\n",
		},
		"80 % of the cost is told once, and all of it": {
			[]engine.Notice{notice(engine.RunStarted, running), notice(engine.IterationStarted, warned), notice(engine.Tick, warned), notice(engine.RunEnded, with(func(s *loop.State) {
				s.Status, s.Why, s.Spent.Cost, s.Warned = loop.TimedOut, "too dear", 10_000_000, true
			}))},
			"start running build (run r1) starts\n" +
				"budget running build (run r1): cost $8.10 is over 80 % of the limit $10.00\n" +
				"budget timeout build (run r1): cost $10.00 has reached the limit $10.00\n" +
				"error timeout [timeout high: too dear] build (run r1) ended: timeout: too dear\n",
		},
		"80 % of the time is told while the agent works, and not at its end": {
			[]engine.Notice{
				notice(engine.RunStarted, running),
				{Kind: engine.Warning, Run: "r1", State: running, Text: "time 48s is over 80 % of the limit 1m0s", NearTime: true},
				{Kind: engine.Warning, Run: "r1", State: running, Text: "something else"},
				notice(engine.IterationStarted, with(func(s *loop.State) { s.Late = true })),
			},
			"start running build (run r1) starts\nbudget running build (run r1): time 48s is over 80 % of the limit 1m0s\n",
		},
		"a warning from before a resume is not told again": {
			[]engine.Notice{notice(engine.RunResumed, warned), notice(engine.Tick, warned)},
			"start running build (run r1) starts: it continues\n",
		},
		"a guard that aborts asks a person": {
			[]engine.Notice{red, notice(engine.RunEnded, with(func(s *loop.State) {
				s.Status, s.Why = loop.Aborted, "Iteration safety guard: circuit_breaker"
				s.Command.Guard, s.Command.Message = "circuit_breaker", "3 failures in a row"
				s.Question = &loop.Question{Text: "What now?", Options: []string{"go on"}}
			}))},
			"error aborted [circuit_breaker medium: 3 failures in a row] build (run r1) ended: aborted: Iteration safety guard: circuit_breaker\n" +
				"escalation aborted build (run r1) needs you: What now?\n1. go on\nAnswer with: pawl answer r1 \"…\"\n",
		},
		"a failure has its class": {
			[]engine.Notice{red, notice(engine.RunEnded, with(func(s *loop.State) { s.Status, s.Why = loop.FailedRun, "no use" }))},
			"error failed [test_failure medium: tests: 1 of 2 failed] build (run r1) ended: failed: no use\n",
		},
		"a pause": {
			[]engine.Notice{notice(engine.RunEnded, with(func(s *loop.State) { s.Status, s.Why = loop.Paused, "asked" }))},
			"pause paused build (run r1) is paused: asked\n",
		},
		"an agent's question": {
			[]engine.Notice{notice(engine.RunEnded, with(func(s *loop.State) {
				s.Status, s.Question = loop.Pending, &loop.Question{Text: "Which port?"}
			}))},
			"escalation pending build (run r1) needs you: Which port?\nAnswer with: pawl answer r1 \"…\"\n",
		},
		"a person's stop is no event": {
			[]engine.Notice{notice(engine.RunEnded, with(func(s *loop.State) { s.Status = loop.Stopped }))}, "",
		},
	} {
		w := watcher{about: About{Name: "build"}}
		var events []Event
		for _, n := range c.notices {
			events = append(events, w.eventsOf(n)...)
		}
		if got := told(events); got != c.want {
			t.Errorf("%s:\n%swant\n%s", name, got, c.want)
		}
	}
}

// A guard's end is told once to who wants escalations, and as an error to who
// wants only these.
func TestAnEndThatAsksIsToldOnce(t *testing.T) {
	t.Parallel()
	n := engine.Notice{Kind: engine.RunEnded, State: loop.State{Status: loop.Aborted, Asking: loop.Asking{Question: &loop.Question{Text: "how?"}}}}
	var w watcher
	for _, c := range []struct {
		wants []Name
		want  string
	}{
		{[]Name{Error, Escalation}, "escalation"},
		{[]Name{Error}, "error"},
		{[]Name{Escalation}, "escalation"},
	} {
		to, got := Receiver{Events: c.wants}, []string{}
		for _, e := range w.eventsOf(n) {
			if to.wantsEvent(e) {
				got = append(got, string(e.Name))
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("who wants %v is told of %v, want %s", c.wants, got, c.want)
		}
	}
	n.State.Question = nil
	if e := w.eventsOf(n); !(&Receiver{Events: []Name{Error, Escalation}}).wantsEvent(e[len(e)-1]) {
		t.Error("an end that asks nothing is not told")
	}
}

// A run is told once that most of its time is used.
func TestLateIsToldOnce(t *testing.T) {
	t.Parallel()
	n := engine.Notice{Kind: engine.IterationStarted, State: loop.State{Status: loop.Running, Late: true}}
	n.State.Policy.Timeout, n.State.Policy.MaxCost, n.State.Spent.Wall = 10*time.Hour, -1, 9*time.Hour
	var w watcher
	if got := w.eventsOf(n); len(got) != 1 || got[0].Name != Budget || got[0].Why != "time 9h0m0s is over 80 % of the limit 10h0m0s" {
		t.Errorf("told %+v", got)
	}
	if got := w.eventsOf(n); len(got) != 0 {
		t.Errorf("told again: %+v", got)
	}
}

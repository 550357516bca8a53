package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/decide/signal"
)

// What each sort of iteration means for its task, row by row. It goes through the
// kernel with the policy of tasks, and the result through Judge and the board. A
// run that goes on is "active".

// row is one line of a table: an iteration, and what it comes to.
type row struct {
	name   string
	record loop.Record
	max    int // iterations; 0 is 50
	// status is that of the case after it, run that of the run.
	status board.Status
	run    loop.Status
	queue  bool // it goes to the merge queue
	alert  bool // a person is told
	warn   bool // it counts with a warning
}

var start = time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC)

func gates(status loop.GateStatus) []loop.Gate {
	return []loop.Gate{{Name: "tests", Required: true, Status: status, Total: -1}}
}

func said(kind signal.Kind, text string) signal.Signal { return signal.Signal{Kind: kind, Text: text} }

// base is an iteration that exits 0 and changes something.
func base(change func(*loop.Record)) loop.Record {
	r := loop.Record{
		Number: 1, Attempt: 1, StartedAt: start, Elapsed: 10 * time.Second, Agent: "claude", Strategy: "default", Progress: -1, Score: -1,
		TreeKnown: true, TreeBefore: "a", TreeAfter: "b", Commits: 1, Output: 10, CostSource: "none", Exit: loop.Exit{Terminal: loop.TerminalOK},
	}
	change(&r)
	return r
}

func verified(r *loop.Record, status loop.GateStatus) {
	r.Verified, r.Gates = true, gates(status)
	if status != loop.GatePassed {
		r.Failure = &failure.Analysis{Class: failure.TestFailure, Kind: failure.Work, Summary: "red", Fingerprint: "f"}
	}
}

// play gives the iteration to the kernel, and what comes of it to the tables.
func (r row) play(t *testing.T) (loop.State, loop.Command, schedule.Settlement, board.Case) {
	t.Helper()
	limit := 50
	if r.max > 0 {
		limit = r.max
	}
	pol := loop.Policy{
		Kind: loop.Task, MaxIterations: limit, FailureThreshold: 5, Stuck: 5, Timeouts: loop.Timeouts{TaskTimeout: 30 * time.Minute},
		Costs: loop.Costs{MaxCost: loop.NoLimit, MaxIterationCost: loop.NoLimit, MaxIterationCalls: loop.NoLimit}, Workers: loop.Workers{Agent: "claude"},
	}
	s, c := loop.Step(loop.State{}, loop.Event{Kind: loop.Started, At: start, Policy: &pol})
	record := r.record
	s, c = loop.Step(s, loop.Event{Kind: loop.IterationEnded, For: c.Seq, At: start.Add(record.Elapsed), Record: &record})
	one := board.Case{ID: "task-001", Type: board.Task, Title: "x", Status: board.Active}
	if s.Status.Active() {
		return s, c, schedule.Settlement{}, one
	}
	v := schedule.Judge(schedule.Outcome{Status: s.Status, Why: s.Why, Question: s.Question != nil}, schedule.Manner{Mode: schedule.Auto, Starts: 3})
	moved, _, err := board.Move(one, board.Change{Action: v.Action, By: board.Pawl, Why: v.Why, At: start})
	if err != nil {
		t.Fatalf("the board refuses %q: %v", v.Action, err)
	}
	return s, c, v, moved
}

func (r row) check(t *testing.T) {
	t.Helper()
	s, c, v, one := r.play(t)
	if one.Status != r.status || s.Status != r.run {
		t.Errorf("the case is %s and the run %s, want %s and %s", one.Status, s.Status, r.status, r.run)
	}
	if v.Queue != r.queue {
		t.Errorf("queue %t, want %t", v.Queue, r.queue)
	}
	if (v.Alert != "") != r.alert {
		t.Errorf("alert %q, want one: %t", v.Alert, r.alert)
	}
	if r.warn && len(c.Warnings) == 0 {
		t.Error("it counts without a warning")
	}
	if s.Status.Active() && c.Kind != loop.Run {
		t.Errorf("the next command is %q, want another iteration", c.Kind)
	}
}

func TestCompletionTable(t *testing.T) {
	complete := func(r *loop.Record) { r.Signal = said(signal.Complete, "") }
	for _, r := range []row{
		{name: "COMPLETE, all pass", record: base(func(r *loop.Record) { complete(r); verified(r, loop.GatePassed) }), status: board.Review, run: loop.Completed, queue: true},
		{name: "COMPLETE, any fail", record: base(func(r *loop.Record) { complete(r); verified(r, loop.GateFailed) }), status: board.Active, run: loop.Running},
		{name: "COMPLETE, a gate timed out", record: base(func(r *loop.Record) { complete(r); verified(r, loop.GateTimedOut) }), status: board.Active, run: loop.Running},
		{name: "COMPLETE, no gates", record: base(func(r *loop.Record) { complete(r); r.Verified = true }), status: board.Review, run: loop.Completed, queue: true, warn: true},
		{name: "BLOCKED", record: base(func(r *loop.Record) { r.Signal = said(signal.Blocked, "no key") }), status: board.Blocked, run: loop.Blocked, alert: true},
		{name: "PENDING", record: base(func(r *loop.Record) { r.Signal = said(signal.Pending, "which port?") }), status: board.Blocked, run: loop.Pending, alert: true},
		{name: "no signal, gates not run", record: base(func(*loop.Record) {}), status: board.Active, run: loop.Running},
		{name: "no signal, all pass", record: base(func(r *loop.Record) { verified(r, loop.GatePassed) }), status: board.Active, run: loop.Running},
		{name: "no signal, any fail", record: base(func(r *loop.Record) { verified(r, loop.GateFailed) }), status: board.Active, run: loop.Running},
		{name: "max iterations", max: 1, record: base(func(*loop.Record) {}), status: board.Timeout, run: loop.TimedOut, alert: true},
		{name: "max iterations, COMPLETE, all pass", max: 1, record: base(func(r *loop.Record) { complete(r); verified(r, loop.GatePassed) }), status: board.Review, run: loop.Completed, queue: true},
		{name: "timeout", record: base(func(r *loop.Record) { r.Elapsed = 30 * time.Minute }), status: board.Timeout, run: loop.TimedOut, alert: true},
	} {
		t.Run(r.name, r.check)
	}
}

// Completed work goes to the queue, unless a person decides first or there is nothing to land.
func TestCompleted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		o      schedule.Outcome
		m      schedule.Manner
		action board.Action
		queue  bool
		review bool
		alert  bool
	}{
		{name: "a change", action: board.Verify, queue: true},
		{name: "no change", o: schedule.Outcome{Empty: true}, action: board.Land},
		{name: "a secret", o: schedule.Outcome{Secrets: "a.go:3"}, action: board.Block, alert: true},
		{name: "held back", o: schedule.Outcome{Hold: "it touches a.go"}, action: board.Verify, review: true, alert: true},
		{name: "reviewed always", m: schedule.Manner{Review: true}, action: board.Verify, review: true},
	} {
		c.o.Status, c.m.Mode = loop.Completed, schedule.Auto
		v := schedule.Judge(c.o, c.m)
		if v.Action != c.action || v.Queue != c.queue || v.Review != c.review || (v.Alert != "") != c.alert {
			t.Errorf("%s: %+v", c.name, v)
		}
		if !v.Worked || v.Failed {
			t.Errorf("%s: it worked, and ends the errors in a row: %+v", c.name, v)
		}
	}
}

// A run that another process took, or that a person stopped by itself, is not started again at once.
func TestBenched(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		o     schedule.Outcome
		m     schedule.Manner
		bench bool
		alert bool
	}{
		{"taken by another process", schedule.Outcome{Taken: true, Why: "taken"}, schedule.Manner{}, true, true},
		{"stopped by itself", schedule.Outcome{Status: loop.Stopped}, schedule.Manner{}, true, false},
		{"stopped with the autopilot", schedule.Outcome{Status: loop.Stopped}, schedule.Manner{Ending: true}, false, false},
		{"stopped with an autopilot before", schedule.Outcome{Status: loop.Interrupted}, schedule.Manner{}, false, false},
		{"settled by somebody, as pawl saw it", schedule.Outcome{Status: loop.Stopped, Settled: true}, schedule.Manner{}, false, false},
		{"gone", schedule.Outcome{Status: loop.Completed}, schedule.Manner{Gone: "it is done by now"}, false, false},
		{"its pawl died", schedule.Outcome{Status: loop.Running}, schedule.Manner{}, false, false},
	} {
		if v := schedule.Judge(c.o, c.m); v.Bench != c.bench || (v.Alert != "") != c.alert {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

func TestExitTable(t *testing.T) {
	exit := func(code int) func(*loop.Record) {
		return func(r *loop.Record) {
			r.Exit = loop.Exit{Code: code, Terminal: loop.TerminalNone}
			r.Failure = &failure.Analysis{Class: failure.Unknown, Kind: failure.Work, Summary: "exit", Fingerprint: "e"}
		}
	}
	for _, r := range []row{
		{name: "0 + COMPLETE", record: base(func(r *loop.Record) { r.Signal = said(signal.Complete, ""); verified(r, loop.GatePassed) }), status: board.Review, run: loop.Completed, queue: true},
		{name: "0 + COMPLETE, tests fail", record: base(func(r *loop.Record) { r.Signal = said(signal.Complete, ""); verified(r, loop.GateFailed) }), status: board.Active, run: loop.Running},
		{name: "0 + no signal", record: base(func(*loop.Record) {}), status: board.Active, run: loop.Running},
		{name: "0 + BLOCKED", record: base(func(r *loop.Record) { r.Signal = said(signal.Blocked, "no key") }), status: board.Blocked, run: loop.Blocked, alert: true},
		// A failure of the work is tried again, one that only a person can cure is not.
		{name: "not 0, of the work", record: base(exit(1)), status: board.Active, run: loop.Running},
		{name: "not 0, permanent", record: base(func(r *loop.Record) {
			exit(1)(r)
			r.Failure = &failure.Analysis{Class: failure.Auth, Kind: failure.Permanent, Summary: "bad key", Fingerprint: "a"}
		}), status: board.Failed, run: loop.FailedRun, alert: true},
		{name: "not 0 + COMPLETE, all pass", record: base(func(r *loop.Record) {
			exit(1)(r)
			r.Signal = said(signal.Complete, "")
			r.Verified, r.Gates = true, gates(loop.GatePassed)
		}), status: board.Review, run: loop.Completed, queue: true, warn: true},
		{name: "not 0 + COMPLETE, no gates", record: base(func(r *loop.Record) { exit(1)(r); r.Signal = said(signal.Complete, ""); r.Verified = true }), status: board.Active, run: loop.Running},
		{name: "SIGTERM by somebody", record: base(func(r *loop.Record) { r.Exit = loop.Exit{Code: -1, Signal: "terminated", Ended: loop.EndedStop} }), status: board.Pending, run: loop.Interrupted},
	} {
		t.Run(r.name, r.check)
	}
}

// A stopped task is ready again; a crash counts as a retry.
func TestExitTableStopAndCrash(t *testing.T) {
	for _, status := range []loop.Status{loop.Stopped, loop.Interrupted} {
		if v := schedule.Judge(schedule.Outcome{Status: status}, schedule.Manner{Ending: true}); v.Action != board.Stop || v.Bench {
			t.Errorf("%s comes to %+v", status, v)
		}
	}
	running := loop.State{Status: loop.Running}
	list := schedule.Recover([]schedule.Found{{Case: "task-001", ActiveAt: start, Run: &running, TouchedAt: start.Add(time.Second)}}, 3)
	if len(list) != 1 || list[0].Adopt || list[0].Action != board.Crash {
		t.Fatalf("a crash comes to %+v", list)
	}
	one, _, err := board.Move(board.Case{ID: "task-001", Type: board.Task, Status: board.Active}, board.Change{Action: list[0].Action, By: board.Pawl, At: start})
	if err != nil || one.Status != board.Pending || one.Retries != 1 {
		t.Errorf("the case is %+v, %v", one, err)
	}
}

// Signals in the autopilot: who waits for a person gives the slot back, and
// the next ready task goes in; PROGRESS only moves the display.
func TestSignalTable(t *testing.T) {
	for _, test := range []struct {
		name    string
		outcome schedule.Outcome
		action  board.Action
	}{
		{"COMPLETE", schedule.Outcome{Status: loop.Completed}, board.Verify},
		{"BLOCKED", schedule.Outcome{Status: loop.Blocked, Question: true}, board.Block},
		{"PENDING", schedule.Outcome{Status: loop.Pending, Question: true}, board.Block},
		{"TIMEOUT", schedule.Outcome{Status: loop.TimedOut}, board.Expire},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := begun(t, "a")
			s, c := schedule.Step(s, schedule.Event{Kind: schedule.Ended, Case: "a", At: start, Outcome: test.outcome})
			if c.Kind != schedule.Settle || c.Settlement.Action != test.action {
				t.Fatalf("it comes to %+v", c)
			}
			s, c = schedule.Step(s, schedule.Event{Kind: schedule.Settled, Case: "a", At: start})
			if c.Kind == schedule.Alert {
				s, c = schedule.Step(s, schedule.Event{Kind: schedule.Did, At: start})
			}
			if c.Kind != schedule.Pick {
				t.Fatalf("the next is %s, want a look for the next task", c.Kind)
			}
			if _, c = schedule.Step(s, schedule.Event{Kind: schedule.Picked, Case: "b", At: start}); c.Kind != schedule.Start || c.Case != "b" {
				t.Errorf("the free slot comes to %+v", c)
			}
		})
	}
	r := row{record: base(func(r *loop.Record) { r.Progress = 40 }), status: board.Active, run: loop.Running}
	t.Run("PROGRESS", r.check)
}

// begun is an autopilot with one slot that works on the first task.
func begun(t *testing.T, id string) schedule.State {
	t.Helper()
	s, c := schedule.Step(schedule.State{}, schedule.Event{Kind: schedule.Began, At: start, Settings: schedule.Settings{MaxParallel: 1, ErrorThreshold: 3}})
	if c.Kind != schedule.Pick {
		t.Fatalf("it begins with %s", c.Kind)
	}
	s, c = schedule.Step(s, schedule.Event{Kind: schedule.Picked, Case: id, At: start})
	if c.Kind != schedule.Start {
		t.Fatalf("what was picked comes to %s", c.Kind)
	}
	s, _ = schedule.Step(s, schedule.Event{Kind: schedule.Started, Case: id, At: start})
	return s
}

// Recovery, e: what failed or timed out can be edited, and stays what it is
// until it is tried again.
func TestRecoveryTableEdit(t *testing.T) {
	for _, status := range []board.Status{board.Failed, board.Timeout} {
		one := board.Case{ID: "task-001", Type: board.Task, Status: status}
		if err := board.CanEdit(&one); err != nil || one.Status != status {
			t.Errorf("a task that is %s cannot be edited: %v", status, err)
		}
	}
}

// Recovery: what happens by itself, and what a person can do.
func TestRecoveryTable(t *testing.T) {
	for _, test := range []struct {
		name   string
		status board.Status // after what happens by itself
		action board.Action // the person's
		to     board.Status
		mode   schedule.StartMode // how it is taken up then
		run    loop.Status
		raised bool
		clock  bool
	}{
		{"failed, r", board.Failed, board.Retry, board.Pending, schedule.Fresh, loop.FailedRun, false, false},
		{"failed, R", board.Failed, board.Rollback, board.Pending, schedule.Fresh, loop.FailedRun, false, false},
		{"timeout, r", board.Timeout, board.Retry, board.Pending, schedule.Fresh, loop.TimedOut, false, false},
		{"timeout, +", board.Timeout, board.Retry, board.Pending, schedule.GoOn, loop.TimedOut, true, false},
		{"timeout, + on another machine", board.Timeout, board.Retry, board.Pending, schedule.GoOn, loop.TimedOut, true, true},
		{"blocked, unblocked", board.Blocked, board.Unblock, board.Pending, schedule.GoOn, loop.Blocked, false, false},
		{"blocked, r", board.Blocked, board.Retry, board.Pending, schedule.Fresh, loop.Blocked, false, false},
		{"review, redo", board.Review, board.Redo, board.Pending, schedule.Fresh, loop.Completed, false, false},
		{"review, rejected", board.Review, board.Reject, board.Blocked, "", loop.Completed, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			one := board.Case{ID: "task-001", Type: board.Task, Status: test.status}
			moved, entry, err := board.Move(one, board.Change{Action: test.action, By: board.Person, At: start.Add(time.Hour)})
			if err != nil || moved.Status != test.to {
				t.Fatalf("%s comes to %s, %v", test.action, moved.Status, err)
			}
			if test.mode == "" {
				return
			}
			run := loop.State{Status: test.run, Iteration: 1, Limit: 1, Policy: loop.Policy{Kind: loop.Task, Costs: loop.Costs{MaxCost: loop.NoLimit}, MaxIterations: 1}}
			past := schedule.Past{Run: &run, RestedAt: start, History: []board.Entry{{At: start, Action: board.Block, From: board.Active, To: test.status}, entry}}
			pol := run.Policy
			if test.raised {
				pol.MaxIterations, past.RaisedAt = 9, start.Add(time.Minute)
			}
			if test.clock { // that of the machine on which they were raised is behind
				past.RaisedAt, past.History[1].Why = start.Add(-10*time.Minute), board.LimitsRaised
			}
			if mode, why := schedule.Approach(past, &pol); mode != test.mode {
				t.Errorf("it is taken up %q (%s), want %q", mode, why, test.mode)
			}
		})
	}
}

func TestApproachOfAnswersAndAcceptance(t *testing.T) {
	history := []board.Entry{{At: start, From: board.Active, To: board.Blocked}, {At: start.Add(time.Hour), Action: board.Unblock, From: board.Blocked, To: board.Pending}}
	asks := loop.State{Status: loop.Pending}
	if mode, _ := schedule.Approach(schedule.Past{History: history, Run: &asks, RestedAt: start, Answered: true}, &loop.Policy{}); mode != schedule.Answer {
		t.Errorf("an answer is taken up %q", mode)
	}
	if mode, _ := schedule.Approach(schedule.Past{History: history, Run: &asks, RestedAt: start}, &loop.Policy{}); mode != schedule.Fresh {
		t.Errorf("a question that nobody answered is taken up %q", mode)
	}
	done := loop.State{Status: loop.Completed}
	if mode, _ := schedule.Approach(schedule.Past{History: history, Run: &done, RestedAt: start.Add(time.Minute)}, &loop.Policy{}); mode != schedule.Accept {
		t.Errorf("work that was accepted while it was blocked is taken up %q", mode)
	}
	gone := schedule.Past{History: history, Run: &done, RestedAt: start.Add(time.Minute), Anew: true}
	if mode, _ := schedule.Approach(gone, &loop.Policy{}); mode != schedule.Fresh {
		t.Errorf("work whose workspace is gone is taken up %q", mode)
	}
	cut := loop.State{Status: loop.Running}
	if mode, _ := schedule.Approach(schedule.Past{Run: &cut}, &loop.Policy{}); mode != schedule.GoOn {
		t.Errorf("a run that was cut off is taken up %q", mode)
	}
	if mode, _ := schedule.Approach(schedule.Past{Run: &cut, Anew: true}, &loop.Policy{}); mode != schedule.Fresh {
		t.Errorf("a run that was cut off, and whose workspace is gone, is taken up %q", mode)
	}
	if mode, _ := schedule.Approach(schedule.Past{History: history, Run: &done, RestedAt: start.Add(-time.Minute)}, &loop.Policy{}); mode != schedule.Fresh {
		t.Errorf("work that was rejected is taken up %q", mode)
	}
	if mode, _ := schedule.Approach(schedule.Past{}, &loop.Policy{}); mode != schedule.Fresh {
		t.Errorf("a task without a run is taken up %q", mode)
	}
}

func TestRecoverAdoptsNoMoreThanSlots(t *testing.T) {
	active := func(s loop.Status) *loop.State { return &loop.State{Status: s} }
	later := start.Add(time.Second)
	found := []schedule.Found{
		{Case: "ordered", ActiveAt: start, Ordered: true},
		{Case: "alive", ActiveAt: start, Run: active(loop.Running), TouchedAt: later, Alive: true},
		{Case: "ended", ActiveAt: start, Run: active(loop.Completed), TouchedAt: later},
		{Case: "too many", ActiveAt: start, Run: active(loop.Waiting), TouchedAt: later, Alive: true},
		{Case: "of before", ActiveAt: start, Run: active(loop.Completed), TouchedAt: start.Add(-time.Second)},
		{Case: "never begun", ActiveAt: start},
		{Case: "stopped", ActiveAt: start, Run: active(loop.Interrupted), TouchedAt: later},
		{Case: "paused", ActiveAt: start, Run: active(loop.Paused), TouchedAt: later},
	}
	want := map[string]board.Action{
		"alive": "", "ended": "", "ordered": "", "too many": board.Crash, "of before": board.Stop, "never begun": board.Stop, "stopped": board.Stop, "paused": board.Stop,
	}
	for _, r := range schedule.Recover(found, 3) {
		if r.Adopt != (want[r.Case] == "") || r.Action != want[r.Case] {
			t.Errorf("%s comes to %+v", r.Case, r)
		}
	}
}

// Another process goes on with an autopilot that is paused: what runs is taken up first,
// and told to pause. What was counted, and until when it may work, stays.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	s, _ := schedule.Step(schedule.State{}, schedule.Event{
		Kind: schedule.Began, At: start, Settings: schedule.Settings{MaxParallel: 2, Count: 5, Until: start.Add(time.Hour)},
	})
	s.Tally, s.Errors, s.Unstored = schedule.Tally{Started: 4, Completed: 2, Failed: 1}, 1, true
	s.Slots = []schedule.Slot{{Case: "a", Phase: schedule.Working}, {Case: "gone", Phase: schedule.Working}}
	s, _ = schedule.Step(s, schedule.Event{Kind: schedule.Asked, At: start, Ask: schedule.AskPause})
	s = schedule.TakenOver(s, []string{"a", "b", "one too many"})
	var did []string
	for e := schedule.Changed; ; e = schedule.Did {
		var c schedule.Command
		s, c = schedule.Step(s, schedule.Event{Kind: e, At: start.Add(time.Minute)})
		did = append(did, strings.TrimSpace(string(c.Kind)+" "+c.Case))
		if c.Kind == schedule.Rest {
			break
		}
	}
	if got, want := strings.Join(did, ", "), "start a, pause a, start b, pause b, rest"; got != want {
		t.Errorf("it does %s, not %s", got, want)
	}
	if s.Tally != (schedule.Tally{Started: 4, Completed: 2, Failed: 1}) || s.Errors != 1 || !s.Settings.Until.Equal(start.Add(time.Hour)) {
		t.Errorf("it goes on with %+v", s)
	}
}

// Who reads the last state of a session knows whether a person ended it, and whether it was paused.
func TestHowItWasEnded(t *testing.T) {
	t.Parallel()
	for cause, byPerson := range map[loop.Cause]bool{loop.CauseStop: true, loop.CauseTerminate: false, loop.CauseHangup: false} {
		for _, asked := range []schedule.Ask{schedule.AskPause, schedule.AskResume} {
			s, _ := schedule.Step(schedule.State{}, schedule.Event{Kind: schedule.Began, At: start})
			s, _ = schedule.Step(s, schedule.Event{Kind: schedule.Asked, At: start, Ask: asked})
			s, _ = schedule.Step(s, schedule.Event{Kind: schedule.Asked, At: start, Ask: schedule.AskStop, Cause: cause})
			if s.ByPerson() != byPerson || s.WasPaused != (asked == schedule.AskPause) {
				t.Errorf("%s after %s: by a person %t, was paused %t", cause, asked, s.ByPerson(), s.WasPaused)
			}
		}
	}
}

package autopilot

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/engine"
)

// A task that cannot be started again and again, and what is waited for meanwhile, is
// told once.
func TestWhatCannotStartIsToldOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := &autopilotScreen{a: &command.App{Stderr: &out}}
	at := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	gone := schedule.Settlement{Action: board.Stop, Why: "it could not be started: the branch does not exist"}
	for range 5 {
		at = at.Add(2 * time.Second)
		for _, n := range []autopilot.Notice{
			{Kind: autopilot.TaskBegan, Case: "task-001", Title: "One"},
			{Kind: autopilot.TargetRed, Text: "all 1 slots are taken"},
			{Kind: autopilot.TaskEnded, Case: "task-001", Settlement: gone},
			{Kind: autopilot.TargetRed, Text: "the branch does not exist"},
		} {
			n.At = at
			s.showNotice(n)
		}
	}
	for text, most := range map[string]int{"task-001 starts": 2, "is pending again": 1, "slots are taken": 1, "Waits: the branch": 1} {
		if n := strings.Count(out.String(), text); n == 0 || n > most {
			t.Errorf("%q is told %d times:\n%s", text, n, out.String())
		}
	}
}

// ten is when the notices of a test come.
var ten = time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)

// told is what a screen prints of some notices.
func told(a command.App, all ...autopilot.Notice) string {
	var out strings.Builder
	a.Stderr, a.Stdout = &out, &out
	s := &autopilotScreen{a: &a}
	for _, n := range all {
		if n.At.IsZero() {
			n.At = ten
		}
		s.showNotice(n)
	}
	return strings.ReplaceAll(out.String(), "["+ten.Local().Format("15:04:05")+"] ", "")
}

// Each notice has its line, and its object in JSON; --quiet leaves what a person has to
// act on.
func TestNotices(t *testing.T) {
	t.Parallel()
	text := func(kind autopilot.NoticeKind, id, text string) autopilot.Notice {
		return autopilot.Notice{Kind: kind, Case: id, Text: text}
	}
	ended := func(v schedule.Settlement) autopilot.Notice {
		return autopilot.Notice{Kind: autopilot.TaskEnded, Case: "task-1", Settlement: v}
	}
	queued := func(kind queue.NoteKind) autopilot.Notice {
		return autopilot.Notice{Kind: autopilot.QueueNote, Case: "task-1", Text: string(kind), Note: queue.Note{Kind: kind}}
	}
	asked := queued(queue.NoteConflict)
	asked.Note.Parked = true
	ran := func(kind engine.NoticeKind, c loop.Command, r loop.Record) autopilot.Notice {
		return autopilot.Notice{Kind: autopilot.RunNotice, Case: "task-1", Run: "abc123", Engine: engine.Notice{
			Kind: kind, At: ten, Run: "abc123", State: loop.State{Iteration: 3, Limit: 9}, Command: c, Record: &r, Text: "hm",
		}}
	}
	red := ran(engine.IterationEnded, loop.Command{}, loop.Record{Number: 2, Outcome: loop.Failed})
	red.Engine.Summary = "2 tests fail"
	later := ten.Add(time.Hour)
	all := []autopilot.Notice{
		text(autopilot.Began, "", ""), text(autopilot.Recovered, "task-1", "it was cut off"),
		{Kind: autopilot.TaskBegan, Case: "task-1", Title: "One", Text: "first"},
		{Kind: autopilot.Landed, Case: "task-1", Title: "One"},
		text(autopilot.Alert, "", "no key"), text(autopilot.Checkpoint, "", "refs/pawl/1"), text(autopilot.Paused, "", "a person"),
		text(autopilot.GoesOn, "", ""), text(autopilot.Warning, "", "it is old"), text(autopilot.Warning, "task-1", "it is old"),
		text(autopilot.Rested, "", "nothing is ready"), text(autopilot.Told, "", "a hook ran"),
		text(autopilot.TargetRed, "", "main is red"), text(autopilot.Over, "", "all is done"),

		ended(schedule.Settlement{Action: board.Block, Why: "no"}), ended(schedule.Settlement{Action: board.Fail, Why: "no"}),
		ended(schedule.Settlement{Action: board.Expire, Why: "no"}), ended(schedule.Settlement{Action: board.Stop, Why: "no"}),
		ended(schedule.Settlement{Action: board.Crash, Why: "no"}), ended(schedule.Settlement{Action: board.Land, Why: "empty"}),
		ended(schedule.Settlement{Why: "a person"}), ended(schedule.Settlement{Action: board.Verify, Queue: true, Why: "green"}),
		ended(schedule.Settlement{Action: board.Verify, Review: true, Why: "green"}),

		queued(queue.NoteLanded), queued(queue.NoteEmpty), queued(queue.NoteEscalated), queued(queue.NoteStopped),
		queued(queue.NoteTrouble), queued(queue.NoteConflict), asked, queued(queue.NoteProposed),

		ran(engine.RunResumed, loop.Command{}, loop.Record{}),
		ran(engine.IterationStarted, loop.Command{Iteration: 2, Why: "go on"}, loop.Record{}),
		ran(engine.IterationStarted, loop.Command{Iteration: 2, Attempt: 2, Why: "once more"}, loop.Record{}),
		ran(engine.IterationEnded, loop.Command{}, loop.Record{Number: 2, Outcome: loop.Success, Elapsed: 3 * time.Second}),
		red, ran(engine.IterationEnded, loop.Command{}, loop.Record{Number: 2, Outcome: loop.Waited}),
		ran(engine.WaitStarted, loop.Command{Resting: loop.Resting{Until: later}, Why: "it rests"}, loop.Record{}),
		ran(engine.WaitStarted, loop.Command{Resting: loop.Resting{Until: later, Limited: true}}, loop.Record{}),
		ran(engine.Note, loop.Command{}, loop.Record{}), ran(engine.Warning, loop.Command{}, loop.Record{}),
	}
	for _, c := range []struct {
		app  command.App
		want string
	}{
		{command.App{}, usual}, {command.App{Quiet: true}, quiet}, {command.App{JSON: true}, asJSON},
	} {
		got := ""
		for _, n := range all { // each alone, so that none repeats another
			got += told(c.app, n)
		}
		got = strings.ReplaceAll(got, `,"at":"2026-11-26T10:00:00Z"`, "")
		if got = strings.ReplaceAll(got, "until "+later.Local().Format("15:04"), "until then"); got != c.want {
			t.Errorf("with %+v it is told:\n%s\nwant:\n%s", c.app, got, c.want)
		}
	}
}

// The same trouble is told again after a minute, then ever more seldom, at least every
// six hours; once it was away for long, after a minute again.
func TestTroubleIsToldMoreSeldom(t *testing.T) {
	t.Parallel()
	var all []autopilot.Notice
	at := ten
	for _, wait := range []time.Duration{
		0, time.Minute - 1, 1, // told, not told, told
		6*time.Minute - 1, 1,
		36*time.Minute - 1, 1,
		216*time.Minute - 1, 1,
		6*time.Hour - 1, 1,
		12 * time.Hour, time.Minute - 1, 1, // it was away
	} {
		at = at.Add(wait)
		all = append(all, autopilot.Notice{Kind: autopilot.Alert, At: at, Text: "no disk"})
	}
	if n := strings.Count(told(command.App{}, all...), "no disk"); n != 8 {
		t.Errorf("it is told %d times, want 8:\n%s", n, told(command.App{}, all...))
	}
}

// A task whose provider does not answer rests again and again, which is told twice. Once
// an iteration went through it is news again. Who wants to hear all of it does.
func TestRestsAreToldTwice(t *testing.T) {
	t.Parallel()
	ran := func(kind engine.NoticeKind, outcome loop.Outcome) autopilot.Notice {
		return autopilot.Notice{Kind: autopilot.RunNotice, Case: "task-1", Engine: engine.Notice{
			Kind: kind, Record: &loop.Record{Outcome: outcome},
		}}
	}
	ended := func(v schedule.Settlement) autopilot.Notice {
		return autopilot.Notice{Kind: autopilot.TaskEnded, Case: "task-1", Settlement: v}
	}
	rest := []autopilot.Notice{
		{Kind: autopilot.TaskBegan, Case: "task-1", Title: "One"},
		ran(engine.RunResumed, ""), ran(engine.IterationEnded, loop.Waited),
		ended(schedule.Settlement{Action: board.Stop, Why: "it rests", Later: ten}),
	}
	works := ran(engine.IterationEnded, loop.Success)
	ends := ended(schedule.Settlement{Action: board.Fail, Why: "it fails"})
	repeat := func(last autopilot.Notice) []autopilot.Notice {
		return slices.Concat(rest, rest, rest, rest, []autopilot.Notice{last}, rest)
	}
	for _, c := range []struct {
		name    string
		verbose bool
		all     []autopilot.Notice
		want    int
	}{
		{"it goes on", false, slices.Concat(rest, rest, rest, rest), 2},
		{"verbose", true, slices.Concat(rest, rest, rest, rest), 4},
		{"it works meanwhile", false, repeat(works), 3},
		{"it ends meanwhile", false, repeat(ends), 3},
	} {
		text := told(command.App{Verbose: c.verbose}, c.all...)
		for _, line := range []string{"task-1 starts", "task-1 continues", "it rests"} {
			if n := strings.Count(text, line); n != c.want {
				t.Errorf("%s: %q is told %d times, want %d:\n%s", c.name, line, n, c.want, text)
			}
		}
	}
}

// While the dashboard has the screen nothing is printed; then the last lines are.
func TestCovered(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := &autopilotScreen{a: &command.App{Stderr: &out}}
	s.setCovered(true)
	for i := range 3 * mostKept {
		s.printText("line %d", i+1)
	}
	if out.Len() > 0 {
		t.Errorf("below the dashboard stands %q", out.String())
	}
	s.setCovered(false)
	if lines := strings.Split(out.String(), "\n"); len(lines) != mostKept+1 || lines[0] != "line 41" {
		t.Errorf("afterwards there are %d lines: %q", len(lines)-1, lines)
	}
	out.Reset()
	s.printText("more")
	s.setCovered(true)
	s.setCovered(false)
	if out.String() != "more\n" {
		t.Errorf("it goes on with %q", out.String())
	}
}

// What all notices are told as.
const (
	usual = `Autopilot starts
task-1: it was cut off
task-1 starts: One (first)
task-1 landed: One
ATTENTION: no key
Checkpoint: refs/pawl/1 is the target as it was before the sprint
Autopilot pauses: a person
Autopilot resumes
Warning: it is old
Warning: task-1: it is old
a hook ran
Waits: main is red
Autopilot ends: all is done
task-1 is blocked: no
task-1 failed: no
task-1 timed out: no
task-1 is pending again: no
task-1 is pending again: no
task-1 is done: empty
task-1 is unchanged: a person
task-1 is verified and goes to the merge queue: green
task-1 is verified and waits for your review: green
ATTENTION: task-1: escalated
ATTENTION: task-1: stopped
ATTENTION: task-1: trouble
task-1: conflict
task-1: proposed
task-1 continues: run abc123, after iteration 3
task-1: iteration 2/9 starts
task-1: iteration 2 ended after 3.0s (success)
task-1: iteration 2 ended after 0.0s (failed: 2 tests fail)
task-1: waiting until then (it rests)
task-1: hm
Warning: task-1: hm
`
	quiet = `ATTENTION: no key
Waits: main is red
ATTENTION: task-1: escalated
ATTENTION: task-1: stopped
ATTENTION: task-1: trouble
`
	asJSON = `{"event":"began"}
{"event":"recovered","case":"task-1","why":"it was cut off"}
{"event":"task","case":"task-1","title":"One","why":"first"}
{"event":"landed","case":"task-1","title":"One"}
{"event":"alert","why":"no key"}
{"event":"checkpoint","why":"refs/pawl/1"}
{"event":"paused","why":"a person"}
{"event":"goes on"}
{"event":"warning","why":"it is old"}
{"event":"warning","case":"task-1","why":"it is old"}
{"event":"told","why":"a hook ran"}
{"event":"settled","case":"task-1","status":"blocked","why":"no"}
{"event":"settled","case":"task-1","status":"failed","why":"no"}
{"event":"settled","case":"task-1","status":"timeout","why":"no"}
{"event":"settled","case":"task-1","status":"pending","why":"no"}
{"event":"settled","case":"task-1","status":"pending","why":"no"}
{"event":"settled","case":"task-1","status":"done","why":"empty"}
{"event":"settled","case":"task-1","why":"a person"}
{"event":"settled","case":"task-1","status":"review","why":"green"}
{"event":"settled","case":"task-1","status":"review","why":"green"}
{"event":"queue","case":"task-1","why":"landed"}
{"event":"queue","case":"task-1","why":"unverified"}
{"event":"queue","case":"task-1","why":"escalated"}
{"event":"queue","case":"task-1","why":"stopped"}
{"event":"queue","case":"task-1","why":"trouble"}
{"event":"queue","case":"task-1","why":"conflict"}
{"event":"queue","case":"task-1","why":"conflict"}
{"event":"queue","case":"task-1","why":"proposed"}
{"event":"iteration started","case":"task-1","run":"abc123","why":"go on"}
{"event":"iteration started","case":"task-1","run":"abc123","why":"once more"}
{"event":"iteration ended","case":"task-1","run":"abc123"}
{"event":"iteration ended","case":"task-1","run":"abc123"}
{"event":"iteration ended","case":"task-1","run":"abc123"}
`
)

// The workers drive the autopilot only where what they land leaves their machine.
func TestWorkersDriveWhatIsPushed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		push bool
		mode string
		says string
	}{
		{false, "local", "merge.push is not set"}, {true, "local", ""}, {false, "pull-request", ""},
	} {
		cfg := &config.Config{}
		cfg.Cluster.Store, cfg.Cluster.Engine = "postgres://db/pawl", "temporal://engine/pawl"
		cfg.Merge.Push, cfg.Merge.Mode = c.push, c.mode
		err := mayDetach(cfg)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/attemptdir"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/engine/stopsignal"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"

	flow "github.com/pawl-dev/pawl/internal/do/workflow/run"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/spool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file is how runs are followed: their journal, and between its events the files
// in which agents, gates and steps are seen while they work. Nothing is asked of the
// process that drives a run, so it works from anywhere, before a run, and after it.

// story is one run, and how far it has been printed.
type story struct {
	a       *command.App
	p       *action.Operator
	screen  *console.Screen
	raw     bool // print the journal as it is
	run     store.Run
	seq     int64        // of the last event
	state   loop.State   // as far as the events up to that say
	decided loop.Command // the last

	begun attempt           // the last whose beginning was printed
	ended attempt           // the last whose end was printed
	reads map[string]int64  // how far files of events and output were printed
	seen  map[string]string // gates that were printed: "" when one began, and how one ended

	open map[attempt]*os.Root // folders of what it prints, while one looks
}

// attempt is one try of an iteration.
type attempt struct{ number, try int }

// printStory prints what is stored of a run; with follow it continues until the run rests.
// With mayCome it waits for a run that has not begun.
func (s *story) printStory(ctx context.Context, name string, follow, mayCome bool) error {
	sig := stopsignal.Catch()
	defer sig.Stop()
	tick := time.NewTicker(journal.Poll)
	defer tick.Stop()
	for {
		if err := s.findRunOnce(ctx, name, mayCome); err != nil {
			return err
		}
		if s.run.ID != "" {
			rests, err := s.printNewLines(ctx, follow)
			if err != nil || !follow || rests {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-sig.Stops:
			return command.StatusError(command.ExitInterrupted)
		}
	}
}

// findRunOnce looks the run up, once.
func (s *story) findRunOnce(ctx context.Context, name string, mayCome bool) error {
	if s.run.ID != "" {
		return nil
	}
	r, err := command.FindRun(ctx, s.p.Store, s.p.Root, name)
	if errors.Is(err, store.ErrNotFound) && mayCome {
		return nil
	}
	s.run, s.state.Limit = r, r.MaxIterations
	s.screen = console.New(console.Terminal{Progress: s.a.Stdout, Verbose: true, Thinking: s.a.Verbose,
		Color: s.a.Painted("1", "") != ""}, r.Name)
	return s.a.ExplainNotFound(err, name)
}

// printNewLines prints what is new since the last call; rests is true if nothing more will
// come.
func (s *story) printNewLines(ctx context.Context, follow bool) (rests bool, err error) {
	s.open = map[attempt]*os.Root{}
	defer func() {
		for _, dir := range s.open {
			_ = dir.Close()
		}
	}()
	now, err := s.p.Store.Run(ctx, s.run.ID) // before its events: what the row says, they say
	if errors.Is(err, store.ErrNotFound) {
		s.a.Say("Run %s was removed.", s.run.ID)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	s.run = now
	if state, err := storedrun.StateOf(now); err == nil {
		s.state.Policy = state.Policy
	}
	over := false
	for e, err := range journal.Read(ctx, s.p.Store, s.run.ID, s.seq) {
		if err != nil {
			return false, err
		}
		s.seq = e.Seq
		if s.raw {
			printEvent(s.a, e)
		} else {
			s.showEvent(ctx, e)
		}
		over = e.Kind == journal.Finished || e.Kind == journal.Paused || e.Kind == journal.QuestionAsked ||
			over && e.N == 0 // beside its story
	}
	if !s.raw {
		s.printLive(ctx)
	}
	drives := now.Owner.PID != 0 && storedrun.Alive(now.Owner)
	rests = over || !drives && !loop.Status(now.Status).Active()
	if gone := !drives && !rests; gone && follow {
		s.a.Say("The pawl process of %s has ended, so nothing more appears here. Continue with: pawl resume %s",
			now.Name, now.Name)
		return true, nil
	}
	return rests, nil
}

// printLive prints the new output of the agent, the gate or the steps that run now.
func (s *story) printLive(ctx context.Context) {
	if !loop.Status(s.run.Status).Active() {
		return
	}
	if s.run.Kind == "workflow" {
		s.printStepOutputs(ctx)
		return
	}
	now, at, ok := s.attemptUnderWay()
	if !ok || now == s.ended && !s.hasReview(now) {
		return
	}
	if now != s.ended {
		s.showAttempt(at, loop.Command{Iteration: now.number, Attempt: now.try, Agent: s.run.Agent})
	}
	s.printAgentEvents(now)
	s.printGates(now)
}

// attemptUnderWay is the attempt whose files are there now.
func (s *story) attemptUnderWay() (now attempt, at time.Time, ok bool) {
	dir := s.openOutputs(attempt{number: s.run.Iteration})
	if dir == nil {
		return now, at, false
	}
	try, at, ok := attemptdir.ReadBegun(dir)
	return attempt{s.run.Iteration, max(try, 1)}, at, ok && s.run.Iteration > 0
}

func (s *story) hasReview(at attempt) bool {
	dir := s.openOutputs(at)
	return dir != nil && fileExists(dir, "review.begun.json")
}

// openOutputs opens the folder with the files of an attempt; an attempt that was cut off
// has a folder of its own. It returns nil if there is none. The folder stays open until
// printNewLines returns.
func (s *story) openOutputs(at attempt) *os.Root {
	if dir := s.open[at]; dir != nil {
		return dir
	}
	dir, err := s.a.Outputs(s.p.Store, s.run, at.number)
	if err != nil {
		return nil
	}
	if aside, err := dir.OpenRoot(strconv.Itoa(at.try)); err == nil {
		_ = dir.Close()
		dir = aside
	}
	s.open[at] = dir
	return dir
}

func fileExists(dir *os.Root, name string) bool {
	info, err := dir.Stat(name)
	return err == nil && !info.IsDir()
}

// printAgentEvents prints the new events of the attempt's agent and of its reviewers.
func (s *story) printAgentEvents(at attempt) {
	dir := s.openOutputs(at)
	key := fmt.Sprintf("%d.%d", at.number, at.try)
	s.printEventFile(key+"agent", dir, "agent.events.jsonl", "agent")
	for try := 1; ; try++ {
		name := "review"
		if try > 1 {
			name = fmt.Sprintf("review-%d", try)
		}
		if !s.printEventFile(key+name, dir, name+".events.jsonl", "reviewer") {
			return
		}
	}
}

// printEventFile prints the new events in a file. It returns false if the file does not
// exist.
func (s *story) printEventFile(key string, dir *os.Root, name, who string) bool {
	f := openStream(dir, name)
	if f == nil {
		return false
	}
	defer func() { _ = f.Close() }()
	lines := spool.NewLines(f, s.reads[key])
	for {
		before := lines.End
		if !lines.Next() {
			break
		}
		if lines.At > before {
			s.screen.Note("… left out: %d KiB", (lines.At-before)>>10)
		}
		var e agent.Event
		if json.Unmarshal(lines.Line, &e) == nil {
			n := engine.Notice{Kind: engine.AgentEvent, Event: e}
			if who != "agent" {
				n.Step = &journal.Step{Step: who}
			}
			s.showNotice(time.Time{}, n)
		}
	}
	s.reads[key] = lines.End
	return true
}

// openStream returns nil if the file cannot be read.
func openStream(dir *os.Root, name string) *spool.Reader {
	if dir == nil {
		return nil
	}
	f, err := spool.Open(dir, name)
	if err != nil {
		return nil
	}
	return f
}

// printGates prints which gate has begun, and how the one before it ended.
func (s *story) printGates(now attempt) {
	state, err := storedrun.StateOf(s.run)
	if err != nil || now == s.ended {
		return
	}
	n, dir := 0, s.openOutputs(now)
	var last runplan.Check
	if dir == nil {
		return
	}
	for _, check := range action.SetupOf(s.run).Checks {
		if state.Command.SkipOptional && !check.Required {
			continue
		}
		n++
		file := fmt.Sprintf("gate-%d", n)
		nothing := !fileExists(dir, file+".result.json.tmp") && !fileExists(dir, file+".result.json")
		key := gateKey(now, n)
		if _, seen := s.seen[key]; nothing || seen {
			last = check
			continue
		}
		if g, ok := ending.ReadGate(dir, n-1, last); ok {
			s.showGate(now, n-1, g)
		}
		s.seen[key], last = "", check
		s.showNotice(time.Now(), engine.Notice{Kind: engine.GateStarted, Gate: loop.Gate{Name: check.Name}})
	}
}

func gateKey(now attempt, n int) string { return fmt.Sprintf("%d.%d gate %d", now.number, now.try, n) }

func (s *story) printStepOutputs(ctx context.Context) {
	rows, err := s.p.Store.Steps(ctx, s.run.ID)
	if err != nil {
		return // the journal says it with the next look
	}
	for _, row := range rows {
		s.printStepOutput(row)
	}
}

// printStepOutput prints the new output of one execution of a step.
func (s *story) printStepOutput(row store.StepRun) {
	files, err := flow.Files(row)
	if err != nil || files == "" {
		return
	}
	key := fmt.Sprintf("%s %d", row.Step, row.N)
	dir := s.openOutputs(attempt{number: row.Iteration})
	if s.printEventFile(key, dir, files+".events.jsonl", row.Step) {
		return
	}
	over := row.Status != store.StepRunning
	for _, end := range []string{".out", ".err"} {
		s.printOutputFile(key+end, dir, files+end, row.Step, over)
	}
}

// printOutputFile prints the new whole lines of a file of output. With over it also
// prints a last line without a newline.
func (s *story) printOutputFile(key string, dir *os.Root, name, who string, over bool) {
	f := openStream(dir, name)
	if f == nil {
		return
	}
	defer func() { _ = f.Close() }()
	lines := spool.NewLines(f, s.reads[key])
	for lines.Next() {
		s.outputLine(who, lines.Line)
	}
	s.reads[key] = lines.End
	if size, err := f.Size(); over && err == nil && size > lines.End {
		rest := make([]byte, min(size-lines.End, 500))
		n, _, err := f.ReadAt(rest, lines.End)
		if err == nil && n > 0 {
			s.outputLine(who, rest[:n])
		}
		s.reads[key] = size
	}
}

func (s *story) outputLine(step string, line []byte) {
	s.showNotice(time.Time{}, engine.Notice{Kind: engine.StepOutput,
		Step: &journal.Step{Step: step, Line: report.Line(string(line), 500)}})
}

// canHaveRun reports whether the name is a procedure or a task, of which a run can begin
// later.
func (s *story) canHaveRun(ctx context.Context, name string) bool {
	if c, err := s.a.Peek(); err == nil {
		if _, known := c.Procedures[name]; known {
			return true
		}
	}
	id, err := action.CaseID(name)
	if err == nil {
		_, err = s.p.Store.Case(ctx, id)
	}
	return err == nil
}

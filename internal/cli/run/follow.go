package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/spool"
	"github.com/pawl-dev/pawl/internal/store"
	flow "github.com/pawl-dev/pawl/internal/workflow/run"
)

// This file is how runs are followed: their journal, and between its events the files
// in which agents, gates and steps are seen while they work. Nothing is asked of the
// process that drives a run, so it works from anywhere, before a run, and after it.

// stories tells of one run, or of several, each line then with its run in front.
type stories struct {
	a     *command.App
	p     *action.Operator
	names []string // as they were given; those of runs that have not begun are looked for
	all   bool     // every run that is going on
	raw   bool     // print the journal as it is
	// mayCome are the names of workflow files that are there.
	mayCome map[string]bool
	told    []*story
	day     string // of the last line
}

// story is one run, and how far it is told.
type story struct {
	*stories
	run    store.Run
	prefix string
	seq    int64 // of the last event
	limit  int   // of iterations, as of that event

	begun attempt           // the last whose beginning is told
	ended attempt           // the last whose end is told
	reads map[string]int64  // how far files of events and output are told
	seen  map[string]string // gates that were told: "" when one began, and how one ended
	rests bool

	open map[attempt]*os.Root // folders of what it prints, while one looks
}

// attempt is one try of an iteration.
type attempt struct{ number, try int }

// tell prints what there is, and with follow what comes, until all runs rest.
func (s *stories) tell(ctx context.Context, follow bool) error {
	sig := engine.CatchSignals()
	defer sig.Stop()
	tick := time.NewTicker(journal.Poll)
	defer tick.Stop()
	for {
		working, err := s.look(ctx, follow)
		if err != nil || !follow || !working && len(s.names) == 0 && !s.all {
			return err
		}
		select {
		case <-tick.C:
		case <-sig.Stops:
			return command.StatusError(command.ExitInterrupted)
		}
	}
}

// look tells what is new of every run; working is whether more may come.
func (s *stories) look(ctx context.Context, follow bool) (working bool, err error) {
	if err := s.find(ctx); err != nil {
		return false, err
	}
	for _, one := range s.told {
		if one.rests {
			continue
		}
		if err := one.look(ctx, follow); err != nil {
			return false, err
		}
		working = working || !one.rests
	}
	return working, nil
}

// find takes in the runs that have begun.
func (s *stories) find(ctx context.Context) error {
	var left []string
	for _, name := range s.names {
		r, err := command.FindRun(ctx, s.p.Store, s.p.Root, name)
		switch {
		case errors.Is(err, store.ErrNotFound):
			left = append(left, name)
		case err != nil:
			return s.a.LookupError(err, name)
		default:
			s.add(r)
		}
	}
	s.names = left
	if !s.all {
		return nil
	}
	runs, err := s.p.Store.Runs(ctx, store.RunQuery{Root: s.p.Root, Active: true})
	if err != nil {
		return err
	}
	for _, r := range slices.Backward(runs) { // the oldest first
		known := func(one *story) bool { return one.run.ID == r.ID && !one.rests }
		if r.Owner.PID != 0 && engine.Alive(r.Owner) && !slices.ContainsFunc(s.told, known) {
			s.add(r)
		}
	}
	return nil
}

// add begins to tell of a run, or goes on with one that rested.
func (s *stories) add(r store.Run) {
	for _, one := range s.told {
		if one.run.ID == r.ID {
			one.rests = false
			return
		}
	}
	one := &story{stories: s, run: r, limit: r.MaxIterations, reads: map[string]int64{}, seen: map[string]string{}}
	if s.all || len(s.told) > 0 || len(s.names) > 1 {
		one.prefix = report.Line(r.Name, 40) + " | "
	}
	s.told = append(s.told, one)
}

// look tells what is new of one run.
func (s *story) look(ctx context.Context, follow bool) error {
	s.open = map[attempt]*os.Root{}
	defer func() {
		for _, dir := range s.open {
			_ = dir.Close()
		}
	}()
	now, err := s.p.Store.Run(ctx, s.run.ID) // before its events: what the row says, they say
	if errors.Is(err, store.ErrNotFound) {
		s.rests = true
		s.a.Say("Run %s was removed.", s.run.ID)
		return nil
	}
	if err != nil {
		return err
	}
	s.run = now
	over := false
	for e, err := range journal.Read(ctx, s.p.Store, s.run.ID, s.seq) {
		if err != nil {
			return err
		}
		s.seq = e.Seq
		if s.raw {
			printEvent(s.a, e)
		} else {
			s.event(ctx, e)
		}
		over = e.Kind == journal.Finished || e.Kind == journal.Paused || e.Kind == journal.QuestionAsked ||
			over && e.N == 0 // beside its story
	}
	if !s.raw {
		s.live(ctx)
	}
	drives := now.Owner.PID != 0 && engine.Alive(now.Owner)
	s.rests = over || !drives && !loop.Status(now.Status).Active()
	if gone := !drives && !s.rests; gone && follow {
		s.rests = true
		sayGone(s.a, now)
	}
	return nil
}

// live tells what an agent, a gate or the steps do now.
func (s *story) live(ctx context.Context) {
	if !loop.Status(s.run.Status).Active() {
		return
	}
	if s.run.Kind == "workflow" {
		s.liveSteps(ctx)
		return
	}
	now, at, ok := s.underWay()
	if !ok || now == s.ended && !s.reviews(now) {
		return
	}
	if now != s.ended {
		s.begin(at, now, s.run.Agent, "")
	}
	s.drain(now)
	s.gates(at, now)
}

// underWay is the attempt whose files are there now.
func (s *story) underWay() (now attempt, at time.Time, ok bool) {
	var b struct {
		Attempt int       `json:"attempt"`
		At      time.Time `json:"at"`
	}
	dir := s.folder(attempt{number: s.run.Iteration})
	if dir == nil {
		return now, at, false
	}
	data, err := dir.ReadFile("begun.json")
	ok = err == nil && json.Unmarshal(data, &b) == nil && s.run.Iteration > 0
	return attempt{s.run.Iteration, max(b.Attempt, 1)}, b.At, ok
}

func (s *story) reviews(at attempt) bool {
	dir := s.folder(at)
	return dir != nil && there(dir, "review.begun.json")
}

// folder is where the files of an attempt are: those of one that was cut off are kept
// aside. It is nil where there is none, and stays open until the look is over.
func (s *story) folder(at attempt) *os.Root {
	if dir := s.open[at]; dir != nil {
		return dir
	}
	dir, err := s.a.Outputs(s.p.Store, s.run, strconv.Itoa(at.number))
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

// there is true for a file that is in a folder.
func there(dir *os.Root, name string) bool {
	info, err := dir.Stat(name)
	return err == nil && !info.IsDir()
}

// drain tells what the agent of an attempt, and those of its reviews, said and did
// since the last time.
func (s *story) drain(at attempt) {
	dir := s.folder(at)
	key := fmt.Sprintf("%d.%d", at.number, at.try)
	s.agentEvents(key+"agent", dir, "agent.events.jsonl", "agent")
	for try := 1; ; try++ {
		name := "review"
		if try > 1 {
			name = fmt.Sprintf("review-%d", try)
		}
		if !s.agentEvents(key+name, dir, name+".events.jsonl", "reviewer") {
			return
		}
	}
}

// agentEvents tells what is new in a file of events; false where there is none.
func (s *story) agentEvents(key string, dir *os.Root, name, who string) bool {
	f := opened(dir, name)
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
			s.note("… left out: %d KiB", (lines.At-before)>>10)
		}
		var e agent.Event
		if json.Unmarshal(lines.Line, &e) == nil {
			s.agentEvent(who, e)
		}
	}
	s.reads[key] = lines.End
	return true
}

// opened is a stream that can be read; nil is none.
func opened(dir *os.Root, name string) *spool.Reader {
	if dir == nil {
		return nil
	}
	f, err := spool.Open(dir, name)
	if err != nil {
		return nil
	}
	return f
}

// gates tells which gate has begun, and how the one before it ended.
func (s *story) gates(at time.Time, now attempt) {
	state, err := engine.StateOf(s.run)
	if err != nil || now == s.ended {
		return
	}
	n, dir := 0, s.folder(now)
	var last engine.Check
	if dir == nil {
		return
	}
	for _, check := range action.SetupOf(s.run).Checks {
		if state.Command.SkipOptional && !check.Required {
			continue
		}
		n++
		file := fmt.Sprintf("gate-%d", n)
		running, err := dir.Stat(file + ".result.json.tmp")
		done, derr := dir.Stat(file + ".result.json")
		key := gateKey(now, n)
		if _, seen := s.seen[key]; err != nil && derr != nil || seen {
			last = check
			continue
		}
		if g, ok := engine.ReadGate(dir, n-1, last); ok {
			s.gate(now, n-1, g)
		}
		s.seen[key], last = "", check
		if err != nil {
			running = done
		}
		if running.ModTime().After(at) {
			at = running.ModTime()
		}
		s.line(at, "Gate %s runs: %s", check.Name, report.Line(check.Command, 100))
	}
}

func gateKey(now attempt, n int) string { return fmt.Sprintf("%d.%d gate %d", now.number, now.try, n) }

// liveSteps tells what the steps of a workflow print.
func (s *story) liveSteps(ctx context.Context) {
	rows, err := s.p.Store.Steps(ctx, s.run.ID)
	if err != nil {
		return // the journal says it with the next look
	}
	for _, row := range rows {
		s.stepFiles(row)
	}
}

// stepFiles tells what is new of an execution.
func (s *story) stepFiles(row store.StepRun) {
	files, err := flow.Files(row)
	if err != nil || files == "" {
		return
	}
	key := fmt.Sprintf("%s %d", row.Step, row.N)
	dir := s.folder(attempt{number: row.Iteration})
	if s.agentEvents(key, dir, files+".events.jsonl", row.Step) {
		return
	}
	over := row.Status != store.StepRunning
	for _, end := range []string{".out", ".err"} {
		s.output(key+end, dir, files+end, row.Step, over)
	}
}

// output tells what is new in a file of output, by whole lines; a last one without its
// end when over is set.
func (s *story) output(key string, dir *os.Root, name, who string, over bool) {
	f := opened(dir, name)
	if f == nil {
		return
	}
	defer func() { _ = f.Close() }()
	lines := spool.NewLines(f, s.reads[key])
	for lines.Next() {
		s.note("%s | %s", who, report.Line(string(lines.Line), 500))
	}
	s.reads[key] = lines.End
	if size, err := f.Size(); over && err == nil && size > lines.End {
		rest := make([]byte, min(size-lines.End, 500))
		n, _, err := f.ReadAt(rest, lines.End)
		if err == nil && n > 0 {
			s.note("%s | %s", who, report.Line(string(rest[:n]), 500))
		}
		s.reads[key] = size
	}
}

// mayBegin refuses names that no run can ever have here.
func (s *stories) mayBegin(ctx context.Context) error {
	for _, name := range s.names {
		_, err := command.FindRun(ctx, s.p.Store, s.p.Root, name)
		if err == nil {
			continue
		}
		isKnown := s.mayCome[name]
		if c, cerr := s.a.Peek(); cerr == nil && !isKnown {
			_, isKnown = c.Procedures[name]
		}
		if id, cerr := action.CaseID(name); cerr == nil && !isKnown {
			_, cerr = s.p.Store.Case(ctx, id)
			isKnown = cerr == nil
		}
		if !isKnown || !errors.Is(err, store.ErrNotFound) {
			return s.a.LookupError(err, name)
		}
		s.a.Say("%s has no run yet. Waiting for it to start.", name)
	}
	return nil
}

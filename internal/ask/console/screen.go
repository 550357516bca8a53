// Package console is what a person or a script sees of a run while it works:
// notices of the engine come in, and lines come out. Rules for what a person
// sees:
//
//   - progress goes to stderr, one line each, "[15:04:05] …", in words that do
//     not change between versions;
//   - on a terminal a live line below them shows what happens now;
//   - with -v, indented lines show what the agent does and why the loop decides;
//   - agents' words are cut and lose their control characters.
//
// `pawl logs` shows a run by the same lines, from its journal.
//
// A workflow on a terminal has the live tree of its steps below the lines
// instead. A script gets one JSON object a line ([Event]), and an iteration as
// a [Record], which `pawl show --json` prints as well.
package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
)

// Terminal is where a run is shown, and how.
type Terminal struct {
	Results  io.Writer // JSON, with JSON
	Progress io.Writer // lines for a person
	Drawn    bool      // Progress can be drawn over
	Color    bool
	Verbose  bool // what the agent does and why the loop decides, too
	Thinking bool // and what it thinks
	Quiet    bool // only what a person must not miss
	JSON     bool
}

// Screen shows one run. Its methods may be called at once.
type Screen struct {
	to   Terminal
	name string
	live bool // draw the live line

	mu    sync.Mutex
	day   string    // of the last line
	drawn time.Time // when the live line was; zero where none is
	began time.Time // of the iteration
	title string
	steps steps
	doing
}

// New shows a run under a name, that of its procedure or workflow.
func New(to Terminal, name string) *Screen {
	return &Screen{to: to, name: name, live: to.Drawn && !to.Quiet && !to.JSON}
}

// Notice takes one notice of the engine.
func (s *Screen) Notice(n engine.Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to.JSON {
		s.printJSON(n)
	}
	if s.to.Quiet {
		if n.Kind == engine.RunEnded && n.State.Status != loop.Completed {
			s.runEnded(n) // what a person must not miss
		}
		return
	}
	if s.stepNotice(n) {
		s.drawLiveLine(n)
		return
	}
	switch n.Kind {
	case engine.RunStarted:
		s.printLine(n.At, "Starting %s: %s (%s)", kindWord(n.State), s.name, formatLimit(n.State.Limit))
		s.sayDetail("run %s", n.Run)
	case engine.RunResumed:
		s.printResumed(n)
	case engine.IterationStarted:
		s.iterationStarted(n)
	case engine.AgentEvent:
		s.agentEvent(n)
	case engine.GateStarted:
		if s.gate == "" { // else others run beside it
			s.before = s.said
		}
		s.gate = "gate " + n.Gate.Name
		s.said = s.gate
		s.sayDetail("running gate %s", n.Gate.Name)
	case engine.GateEnded:
		s.gateEnded(n.Gate)
	case engine.IterationEnded:
		s.iterationEnded(n)
	case engine.ReviewStarted:
		s.reviewStarted(n)
	case engine.ReviewEnded:
		s.reviewEnded(n)
	case engine.WaitStarted:
		s.printLine(n.At, "Waiting until %s (%s)", Clock(n.Command.Until, n.At), n.Command.Why)
		s.startLiveLine(n.At, "waiting until "+Clock(n.Command.Until, n.At), n.Command.Why)
	case engine.LimitsRaised:
		s.printLine(n.At, "Limits raised: %s", n.Text)
	case engine.Delivered:
		s.printLine(n.At, "Delivered: %s", report.Line(n.Text, 400))
	case engine.RunEnded:
		s.runEnded(n)
	case engine.Note:
		s.printText("Note: %s", report.Line(n.Text, 500))
	case engine.Warning:
		s.printText("Warning: %s", report.Line(n.Text, 500))
	}
	s.drawLiveLine(n)
}

// kindWord returns "workflow" or "procedure".
func kindWord(s loop.State) string {
	if s.Policy.Kind == loop.Workflow {
		return "workflow"
	}
	return "procedure"
}

func formatLimit(limit int) string {
	switch limit {
	case 0:
		return "unlimited iterations"
	case 1:
		return "max 1 iteration"
	}
	return fmt.Sprintf("max %d iterations", limit)
}

func (s *Screen) printResumed(n engine.Notice) {
	st := n.State
	limit := ""
	if st.Limit > 0 {
		limit = fmt.Sprintf(" (max %d)", st.Limit)
	}
	s.printLine(n.At, "Resuming %s: %s from iteration %d%s", kindWord(st), s.name, st.Iteration, limit)
	s.printLine(n.At, "Previous session: %s in %s", Iterations(st.Iteration), totalTimeText(st.Spent))
	if most := st.Policy.MaxIterations; most > 0 && st.Limit > most {
		s.printLine(n.At, "It may continue up to iteration %d: max_iterations, %d, counts from where a person "+
			"let it continue", st.Limit, most)
	}
	if n.Text != "" {
		s.sayDetail("%s", n.Text)
	}
}

func (s *Screen) iterationStarted(n engine.Notice) {
	c := n.Command
	attempt := ""
	if c.Attempt > 1 {
		attempt = fmt.Sprintf(" (attempt %d)", c.Attempt)
	}
	s.printLine(n.At, "Iteration %s starting...%s", Of(c.Iteration, n.State.Limit), attempt)
	s.startLiveLine(n.At, "iteration "+Of(c.Iteration, n.State.Limit), "starting "+c.Agent)
	if c.Agent != "" {
		s.sayDetail("agent %s", c.Agent)
	}
	if c.StrategyWhy != "" && c.Attempt > 1 { // else the report on the iteration before said it
		s.sayDetail("strategy %s: %s", c.Strategy, c.StrategyWhy)
	}
	if c.Rewind != 0 {
		s.sayDetail("the files are first restored from the snapshot after iteration %d", c.Rewind)
	}
	if f := c.Feedback; f != nil {
		s.printFeedback(f)
	}
}

// startLiveLine replaces what the live line shows.
func (s *Screen) startLiveLine(at time.Time, title, said string) {
	s.began, s.title, s.steps, s.doing = at, title, steps{}, doing{said: said}
}

func (s *Screen) printFeedback(f *loop.Feedback) {
	if f.Summary != "" {
		s.sayDetail("feedback: %s", f.Summary)
	}
	for i, it := range f.Items {
		if i == 3 {
			s.sayDetail("          … %d more", len(f.Items)-i)
			break
		}
		s.sayDetail("          %s", report.ItemLine(it))
	}
	if f.Answer != "" {
		s.sayDetail("answer: %s", f.Answer)
	}
	for _, a := range f.Answers {
		s.sayDetail("answer to step %s: %s", a.Step, a.Text)
	}
}

// agentEvent shows what the agent does, with -v, and keeps it for the live line.
func (s *Screen) agentEvent(n engine.Notice) {
	who, e := "agent", n.Event
	if n.Step != nil {
		who = n.Step.Step
	} else {
		s.updateFrom(e)
	}
	switch e.Kind {
	case agent.Text:
		s.printLines(n.Run, who+": ", e.Text)
	case agent.Thinking:
		if s.to.Thinking {
			s.printLines(n.Run, who+" thinks: ", e.Text)
		}
	case agent.ToolStart:
		s.sayDetail("tool: %s", toolLine(e))
	case agent.ToolEnd:
		if e.Failed {
			s.sayDetail("tool failed: %s", report.Line(e.Tool+" "+e.Result, 300))
		}
	case agent.Retry, agent.RateLimit, agent.Error:
		if e.Error != nil {
			s.sayDetail("%s: %s", e.Kind, report.Line(fmt.Sprintf("%d %s %s", e.Error.Status, e.Error.Type, e.Error.Message), 200))
		}
	}
}

func (s *Screen) gateEnded(g loop.Gate) {
	if s.said == s.gate { // the present activity had begun before
		s.said = s.before
	}
	s.gate = ""
	s.sayDetail("%s", GateLine(g))
}

func (s *Screen) iterationEnded(n engine.Notice) {
	r := n.Record
	if r.Steps != nil {
		s.passEnded(n)
		return
	}
	couldNotStart := r.Failure != nil && r.Failure.Fingerprint == ending.CannotStart
	if couldNotStart && n.Command.Kind == loop.Finish {
		return // the end says it
	}
	if r.Outcome == loop.Failed {
		s.printLine(n.At, "WARNING: %s%s", failureReason(r), describeBreaker(n.State))
	}
	defer s.printFailure(n)
	broken := n.Command.Kind == loop.Finish && n.Command.Guard == loop.GuardBreaker
	if r.Outcome == loop.Waited && r.Failure != nil && r.Attempt <= 1 {
		s.printLine(n.At, "%s: %s", r.Agent, report.Line(r.Failure.Summary, 200))
	}
	if r.Outcome == loop.Waited || r.Exit.Ended == loop.EndedStop || broken {
		return // the wait or the end says it
	}
	word := "completed"
	switch {
	case wasCutOff(r):
		s.printLine(n.At, "Iteration %s was interrupted: pawl ended during it, and its result is unknown",
			Of(r.Number, n.State.Limit))
		return
	case r.Outcome == loop.Failed && !agentFailed(r):
		word = "ended"
	}
	s.printLine(n.At, "Iteration %s %s in %s", Of(r.Number, n.State.Limit), word, loop.Duration(r.Took()))
}

// wasCutOff reports whether the iteration ended because its pawl process did.
func wasCutOff(r *loop.Record) bool {
	return r.Exit.Ended == loop.EndedLost || r.Exit.Ended == loop.EndedLease
}

// agentFailed reports whether the agent exited with a nonzero status. The iteration is
// still called completed, as the third document has it.
func agentFailed(r *loop.Record) bool {
	return r.Exit.Ended == loop.NotEnded && !r.RedGate() && r.Exit.Signal == "" && r.Exit.Code > 0
}

// failureReason returns "" if the iteration did not fail.
func failureReason(r *loop.Record) string {
	summary := ""
	if r.Failure != nil {
		summary = report.Line(r.Failure.Summary, 200)
	}
	switch {
	case r.Failure != nil && r.Failure.Fingerprint == ending.CannotStart:
		return "The iteration could not start: " + summary
	case r.Exit.Ended == loop.EndedTimeout:
		return fmt.Sprintf("AI CLI timed out after %s", loop.Duration(r.Elapsed))
	case r.Exit.Ended == loop.EndedIdle:
		return fmt.Sprintf("AI CLI was idle for too long and was ended after %s", loop.Duration(r.Elapsed))
	case r.Exit.Ended != loop.NotEnded:
		return "AI CLI ended: " + summary
	case r.RedGate():
		if r.Failure != nil && r.Failure.Step != "" {
			summary = report.Line(r.Failure.Step, 60) + ": " + summary
		}
		return "Quality gates failed: " + summary
	case r.Exit.Signal != "":
		return fmt.Sprintf("AI CLI failed (signal: %s)", r.Exit.Signal)
	case r.Exit.Code > 0:
		return fmt.Sprintf("AI CLI failed (exit %d)", r.Exit.Code)
	case r.Exit.Terminal == loop.TerminalMissing:
		return "AI CLI failed (its output ended before it was done)"
	}
	return "AI CLI failed: " + summary
}

// printFailure prints after a failed iteration what failed, whether it may pass by
// itself, how bad it is, and how the next iteration differs and why. The words
// are the first document's; the lines with a time above them are not its.
func (s *Screen) printFailure(n engine.Notice) {
	r, c := n.Record, &n.Command
	f := r.Failure
	if r.Outcome != loop.Failed || f == nil {
		return
	}
	s.printText("🔄 Iteration %d failed: %s", r.Number, report.Line(f.Summary, 300))
	noCause := f.Class == failure.Crash || f.Class == failure.Unknown
	if last := failure.LastLines(f.Stderr, 1); noCause && !strings.Contains(f.Summary, last) {
		s.printText("   It wrote on stderr: %s", report.Line(f.Stderr, 300))
	}
	isTransient := map[bool]string{true: "yes", false: "no"}[f.Transient]
	s.printText("   Error type: %s, transient: %s, severity: %s", f.Class, isTransient, f.Severity)
	if c.Kind != loop.Run && c.Kind != loop.Wait {
		return // nothing comes next
	}
	if c.Strategy == r.Strategy {
		s.printText("   Retrying with same strategy: %s", c.Strategy)
	} else {
		s.printText("   New strategy: %s", c.Strategy)
	}
	if c.StrategyWhy != "" {
		s.printText("   Why: %s", report.Line(c.StrategyWhy, 500))
	}
}

func (s *Screen) runEnded(n engine.Notice) {
	st, c := n.State, n.Command
	resume := "Resume with: pawl resume " + s.name
	all := fmt.Sprintf("(%s, total: %s)", Iterations(st.Iteration), totalTimeText(st.Spent))
	switch st.Status {
	case loop.Completed:
		if st.Policy.Kind == loop.Workflow {
			s.workflowEnded(n)
			return
		}
		if st.Limit > 0 && st.Iteration >= st.Limit && strings.Contains(c.Why, "Reached max") {
			s.printLine(n.At, "Reached max iterations: %d (total: %s)", st.Limit, totalTimeText(st.Spent))
			return
		}
		s.printLine(n.At, "Completed: %s %s", c.Why, all)
	case loop.Exhausted:
		wrong := report.Line(cmp.Or(st.Wrong, "the agent has not said that the task is complete"), 300)
		s.printLine(n.At, "Reached max iterations: %d (total: %s); %s", st.Limit, totalTimeText(st.Spent), wrong)
	case loop.Aborted:
		if c.Guard == loop.GuardBreaker && st.Guards.Failures > 0 {
			s.printLine(n.At, "ERROR: Aborting after %d consecutive failures %s", st.Guards.Failures, all)
			s.sayDetail("Safety guard triggered: %s", c.Guard)
			s.sayDetail("%s", c.Message)
			return
		}
		s.printGuard(n)
		s.printLine(n.At, "ERROR: Aborting: %s %s", c.Why, all)
	case loop.Interrupted, loop.Stopped:
		word := "Interrupted"
		if st.Status == loop.Stopped {
			word = "Stopped"
		}
		s.printLine(n.At, "%s. State saved. %s", word, resume)
	case loop.Paused:
		s.printGuard(n)
		s.printLine(n.At, "Paused: %s. State saved. %s", strings.TrimSuffix(report.Line(c.Why, 300), "."), resume)
	case loop.Blocked:
		s.printGuard(n)
		s.printLine(n.At, "Blocked: %s %s", report.Line(c.Why, 300), all)
	case loop.Pending:
		s.printLine(n.At, "Waiting for an answer: %s %s", report.Line(c.Why, 300), all)
	case loop.TimedOut:
		s.printLine(n.At, "Limit reached: %s %s", c.Why, all)
	default:
		s.printLine(n.At, "ERROR: Failed: %s %s", report.Line(c.Why, 500), all)
	}
}

func (s *Screen) printGuard(n engine.Notice) {
	if n.Command.Guard != "" {
		s.printLine(n.At, "Safety guard triggered: %s", n.Command.Guard)
		s.printLine(n.At, "%s", report.Line(n.Command.Message, 300))
	}
}

// Line prints what happened at a time and is no notice of the engine.
func (s *Screen) Line(at time.Time, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.printLine(at, format, args...)
}

// Note prints what belongs to the line above it.
func (s *Screen) Note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sayDetail(format, args...)
}

// printLine prints one line of progress. Above the first of another day stands the date.
func (s *Screen) printLine(at time.Time, format string, args ...any) {
	at = at.Local()
	day := at.Format(time.DateOnly)
	beginsToday := s.day == "" && day == time.Now().Format(time.DateOnly)
	if s.day != day && !beginsToday {
		s.printText("%s", day)
	}
	s.day = day
	s.printText("["+at.Format("15:04:05")+"] "+format, args...)
}

// noteIndent sets what belongs to a line with a time apart from it.
const noteIndent = "           "

// sayDetail prints a detail with -v only.
func (s *Screen) sayDetail(format string, args ...any) {
	if s.to.Verbose {
		s.printText(noteIndent+format, args...)
	}
}

func (s *Screen) printText(format string, args ...any) {
	text := Wrapped(s.to.Progress, fmt.Sprintf(format, args...))
	if s.to.Color {
		text = colorLine(text)
	}
	s.eraseLiveLine()
	_, _ = io.WriteString(s.to.Progress, text+"\n")
}

// colorLine marks lines that a person must see.
func colorLine(text string) string {
	switch {
	case strings.Contains(text, "] ERROR:"), strings.Contains(text, "✗ gate"):
		return "\x1b[31m" + text + "\x1b[0m"
	case strings.Contains(text, "] WARNING:"), strings.HasPrefix(text, "Warning:"):
		return "\x1b[33m" + text + "\x1b[0m"
	case strings.Contains(text, "] Completed:"), strings.Contains(text, "✓ gate"):
		return "\x1b[32m" + text + "\x1b[0m"
	case strings.HasPrefix(text, noteIndent):
		return "\x1b[2m" + text + "\x1b[0m"
	}
	return text
}

// Done takes the live line away for good.
func (s *Screen) Done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eraseLiveLine()
	s.live = false
}

// printJSON writes one event a line to stdout; docs/json.md describes them.
func (s *Screen) printJSON(n engine.Notice) {
	e := jsonEvent(n)
	if e == nil {
		return
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, _ = fmt.Fprintf(s.to.Results, "%s\n", line)
	}
}

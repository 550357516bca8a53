package autopilot

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/engine"
)

// autopilotScreen is what a person sees of the autopilot: one line for each thing
// that happens, with the task that it happens to.
type autopilotScreen struct {
	a  *command.App
	mu sync.Mutex

	rests   map[string]int  // how often in a row a task's run rested for a provider
	said    map[string]said // what a person should see
	alarm   string          // of the queue, the last
	covered bool            // by the dashboard
	kept    []string        // the last lines, for afterwards

	target     string        // the branch that work lands on; "" is not known
	checkedOut func() string // the branch that the checkout is on; "" is none
}

// mostKept bounds what is printed when the dashboard is gone.
const mostKept = 20

// setCovered keeps lines back while the dashboard has the screen, and afterwards
// prints the last of them.
func (s *autopilotScreen) setCovered(covered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.covered = covered
	if !covered {
		for _, line := range s.kept[max(0, len(s.kept)-mostKept):] {
			s.printText("%s", line)
		}
		s.kept = nil
	}
}

// showNotice takes one notice of the autopilot.
func (s *autopilotScreen) showNotice(n autopilot.Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.a.JSON {
		s.printJSON(n)
	}
	if s.a.Quiet && !needsAction(n) {
		return
	}
	if s.shouldSuppress(n) {
		return
	}
	switch n.Kind {
	case autopilot.Began:
		on := ""
		if s.target != "" {
			on = "; work lands on " + s.target
		}
		s.printLine(n.At, "Autopilot starts%s", on)
	case autopilot.Recovered:
		s.printLine(n.At, "%s: %s", n.Case, report.Line(n.Text, 300))
	case autopilot.TaskBegan:
		s.printLine(n.At, "%s starts: %s%s", n.Case, report.Line(n.Title, 100), command.Aside(n.Text))
	case autopilot.RunNotice:
		s.showRunNotice(n)
	case autopilot.TaskEnded:
		s.showTaskEnd(n)
	case autopilot.Landed:
		s.printLine(n.At, "%s landed%s: %s", n.Case, s.whereLanded(), report.Line(n.Title, 100))
	case autopilot.Alert:
		s.printLine(n.At, "ATTENTION: %s", report.Line(n.Text, 500))
	case autopilot.Checkpoint:
		s.printLine(n.At, "Checkpoint: %s is the target as it was before the sprint", n.Text)
	case autopilot.Paused:
		s.printLine(n.At, "Autopilot pauses: %s", report.Line(n.Text, 300))
	case autopilot.GoesOn:
		s.printLine(n.At, "Autopilot resumes")
	case autopilot.QueueNote:
		s.showQueueNote(n)
	case autopilot.Warning:
		s.printText("Warning: %s", report.Line(prefixLines(n.Case, n.Text), 500))
	case autopilot.Rested:
		if s.a.Verbose {
			s.printLine(n.At, "Waits: %s", report.Line(n.Text, 300))
		}
	case autopilot.Told:
		s.printLine(n.At, "%s", report.Line(n.Text, 300))
	case autopilot.TargetRed:
		s.printLine(n.At, "Waits: %s", report.Line(strings.TrimPrefix(n.Text, s.alarm+"; "), 600))
	case autopilot.Over:
		s.printLine(n.At, "Autopilot ends: %s", report.Line(n.Text, 600))
	}
}

// whereLanded names the branch of a landing, where that is not the one that anybody expects.
func (s *autopilotScreen) whereLanded() string {
	if s.target == "" {
		return ""
	}
	switch here := s.checkedOut(); {
	case here == "":
		return " on " + s.target + ", which is not checked out here"
	case here != s.target:
		return " on " + s.target + ", while " + here + " is checked out here"
	case slices.Contains([]string{"main", "master"}, here):
		return ""
	}
	return " on " + s.target
}

// needsAction reports whether a person has to act on the notice.
func needsAction(n autopilot.Notice) bool {
	switch n.Kind {
	case autopilot.Alert, autopilot.TargetRed:
		return true
	case autopilot.QueueNote:
		return slices.Contains(troubles, n.Note.Kind)
	}
	return false
}

// troubles are the notes of the queue that a person has to act on.
var troubles = []queue.NoteKind{queue.NoteEscalated, queue.NoteStopped, queue.NoteTrouble}

// said is when a text was printed last, and how long it is not printed again.
type said struct {
	at   time.Time
	wait time.Duration
}

// The same text is printed again only after an interval, which grows while the text keeps coming.
const (
	sayAgain  = time.Minute
	saySeldom = 6 * time.Hour
	mostSaid  = 1000 // texts that are remembered
	restsTold = 2
)

// shouldSuppress reports whether the notice repeats what was printed a short time ago, or
// is about a task whose provider is known not to answer.
func (s *autopilotScreen) shouldSuppress(n autopilot.Notice) bool {
	if s.rests == nil {
		s.rests, s.said = map[string]int{}, map[string]said{}
	}
	switch n.Kind {
	case autopilot.TaskEnded:
		if v := n.Settlement; v.Later.IsZero() {
			if v.Action == board.Stop && s.printedLately(n.Case+v.Why, n.At) { // it cannot be started, still
				s.rests[n.Case] = restsTold
				return !s.a.Verbose
			}
			delete(s.rests, n.Case)
			return false
		}
		s.rests[n.Case]++
		return !s.a.Verbose && s.rests[n.Case] > restsTold
	case autopilot.RunNotice:
		if e := n.Engine; e.Kind == engine.IterationEnded && e.Record.Outcome != loop.Waited {
			delete(s.rests, n.Case)
		} else if e.Kind == engine.RunResumed {
			return !s.a.Verbose && s.rests[n.Case] >= restsTold
		}
		return n.Engine.Kind == engine.Warning && s.printedLately(n.Case+n.Engine.Text, n.At)
	case autopilot.TaskBegan:
		return !s.a.Verbose && s.rests[n.Case] >= restsTold
	case autopilot.Alert, autopilot.Warning, autopilot.TargetRed:
		return s.printedLately(n.Case+n.Text, n.At)
	case autopilot.QueueNote:
		trouble := n.Note.Kind == queue.NoteTrouble || n.Note.Kind == queue.NoteWarning
		return trouble && s.printedLately(n.Case+n.Text, n.At)
	}
	return false
}

// printedLately reports whether the text was printed a short time ago, and records it.
// The interval grows while the same text keeps coming.
func (s *autopilotScreen) printedLately(text string, at time.Time) bool {
	last, wait := s.said[text], sayAgain
	switch since := at.Sub(last.at); {
	case since >= 0 && since < last.wait:
		return true
	case since < 2*last.wait: // it keeps coming
		wait = min(6*last.wait, saySeldom)
	}
	if len(s.said) >= mostSaid {
		clear(s.said)
	}
	s.said[text] = said{at, wait}
	return false
}

// showQueueNote prints the notes of the merge queue. Landings are left out: they are printed
// with their titles. So is a conflict that a person is asked about.
func (s *autopilotScreen) showQueueNote(n autopilot.Notice) {
	switch k := n.Note.Kind; k {
	case queue.NoteLanded, queue.NoteEmpty:
	case queue.NoteEscalated, queue.NoteStopped, queue.NoteTrouble:
		s.alarm = n.Text
		s.printLine(n.At, "ATTENTION: %s", report.Line(prefixLines(n.Case, n.Text), 500))
	default:
		if k != queue.NoteConflict || !n.Note.Parked {
			s.printLine(n.At, "%s", report.Line(prefixLines(n.Case, n.Text), 400))
		}
	}
}

func prefixLines(id, text string) string {
	if id == "" {
		return text
	}
	return id + ": " + text
}

// showRunNotice shows what a person should see of a task's run.
func (s *autopilotScreen) showRunNotice(n autopilot.Notice) {
	e, id := n.Engine, n.Case
	// The names of a task's own checks begin with its ID, as the line does.
	short := func(text string, most int) string {
		return report.Line(strings.Replace(" "+text, " "+id+": ", " ", 1), most)
	}
	if n.Agent != "" {
		n.Case += " (" + n.Agent + ")"
	}
	if !s.a.Verbose && isLimitedAttempt(e) {
		return // it is printed once for all tasks
	}
	switch e.Kind {
	case engine.RunResumed:
		s.printLine(n.At, "%s continues: run %s, after iteration %d", n.Case, e.Run, e.State.Iteration)
	case engine.IterationStarted:
		s.printLine(n.At, "%s: iteration %d/%d starts", n.Case, e.Command.Iteration, e.State.Limit)
	case engine.IterationEnded:
		r, what := e.Record, string(e.Record.Outcome)
		if f := r.Failure; f != nil && f.Step != "" && !strings.Contains(e.Summary, f.Step) {
			what += ": gate " + f.Step
		}
		if e.Summary != "" {
			what += ": " + e.Summary
		}
		s.printLine(n.At, "%s: iteration %d ended after %s (%s)", n.Case, r.Number, loop.Duration(r.Elapsed),
			short(what, 300))
	case engine.WaitStarted:
		s.printLine(n.At, "%s: waiting until %s (%s)", n.Case, console.Clock(e.Command.Until, e.At),
			report.Line(e.Command.Why, 200))
	case engine.Note:
		s.printLine(n.At, "%s: %s", n.Case, short(e.Text, 500))
	case engine.Warning:
		s.printText("Warning: %s: %s", n.Case, short(e.Text, 500))
	}
}

// isLimitedAttempt reports whether the run retries, or waits, while its provider is
// limited.
func isLimitedAttempt(e engine.Notice) bool {
	switch e.Kind {
	case engine.IterationStarted:
		return e.Command.Attempt > 1
	case engine.IterationEnded:
		return e.Record.Outcome == loop.Waited
	case engine.WaitStarted:
		return e.Command.Limited
	}
	return false
}

func (s *autopilotScreen) showTaskEnd(n autopilot.Notice) {
	v := n.Settlement
	what := v.Action.Outcome()
	switch {
	case v.Queue:
		what += " and goes to the merge queue"
	case v.Review:
		what += " and waits for your review"
	}
	s.printLine(n.At, "%s %s: %s", n.Case, what, report.Line(v.Why, 300))
}

// printWarning prints the warning of a hook; it may be called from any goroutine.
func (s *autopilotScreen) printWarning(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.printText("Warning: %s", report.Line(text, 500))
}

// showDatabaseWait says who has the database locked.
func (s *autopilotScreen) showDatabaseWait(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.printLine(time.Now(), "%s", command.LockedBy(why))
}

func (s *autopilotScreen) printLine(at time.Time, format string, args ...any) {
	s.printText("[%s] %s", at.Local().Format("15:04:05"), fmt.Sprintf(format, args...))
}

func (s *autopilotScreen) printText(format string, args ...any) {
	switch {
	case s.a.JSON:
	case s.covered:
		s.kept = append(s.kept[max(0, len(s.kept)-mostKept):], fmt.Sprintf(format, args...))
	default:
		_, _ = fmt.Fprintln(s.a.Stderr, console.Wrapped(s.a.Stderr, fmt.Sprintf(format, args...)))
	}
}

// screenEvent is a line of `autopilot --json`.
type screenEvent struct {
	Event  string    `json:"event"`
	At     time.Time `json:"at"`
	Case   string    `json:"case,omitempty"`
	Title  string    `json:"title,omitempty"`
	Run    string    `json:"run,omitempty"`
	Status string    `json:"status,omitempty"` // of the case, after it
	Why    string    `json:"why,omitempty"`
}

// printJSON writes the same as JSON; of runs only the beginning and end of iterations.
func (s *autopilotScreen) printJSON(n autopilot.Notice) {
	e := screenEvent{Event: string(n.Kind), At: n.At.UTC(), Case: n.Case, Title: n.Title, Run: n.Run, Why: n.Text}
	switch n.Kind {
	case autopilot.Over, autopilot.Rested, autopilot.TargetRed:
		return
	case autopilot.RunNotice:
		if n.Engine.Kind != engine.IterationStarted && n.Engine.Kind != engine.IterationEnded {
			return
		}
		e.Event, e.Why = string(n.Engine.Kind), n.Engine.Command.Why
	case autopilot.TaskEnded:
		e.Why = n.Settlement.Why
		i := slices.IndexFunc(board.Rules, func(r board.Rule) bool { return r.Action == n.Settlement.Action })
		if i >= 0 {
			e.Status = string(board.Rules[i].To)
		}
	}
	_ = s.a.JSONLine(e) // it always encodes
}

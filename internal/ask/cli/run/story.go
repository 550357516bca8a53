package run

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file is a run as a person follows it: what its events say, in words.

// event tells one event of the journal.
func (s *story) event(ctx context.Context, e journal.Event) {
	switch e.Kind {
	case journal.RunCreated:
		s.created(e)
	case journal.RunResumed:
		r := decode[journal.Resumed](e)
		text := "Resumed: it was " + r.From
		if r.Adopted {
			text += ", and its agent still works"
		}
		s.line(e.At, "%s", text)
	case journal.IterationEnded:
		s.iterationEnded(e)
	case journal.IterationReviewed:
		v := decode[journal.Review](e)
		s.drain(attempt{v.Number, max(v.Attempt, 1)})
		s.line(e.At, "Review of iteration %s: %s", console.Of(v.Number, s.limit), console.ReviewLine(&v.Review))
		s.next(e.At, v.Next)
	case journal.StepStarted, journal.StepEnded:
		s.stepEvent(ctx, e)
	case journal.QuestionAsked:
		s.question(e)
	case journal.Paused, journal.Finished:
		end := decode[journal.End](e)
		color := "1"
		if end.Status == string(loop.Completed) {
			color = "32"
		}
		s.painted(color, e.At, "The run is %s after %s: %s", end.Status, fault.Numbered(end.Iteration, "iteration"),
			report.Line(end.Why, 500))
	default:
		s.asked(e)
	}
}

// asked tells what a person asked for, and what happened beside the iterations.
func (s *story) asked(e journal.Event) {
	switch e.Kind {
	case journal.WaitStarted:
		w := decode[journal.Wait](e)
		s.line(e.At, "Waiting until %s (%s)", console.Clock(w.Until, e.At), report.Line(w.Why, 200))
	case journal.WaitOver:
		s.line(e.At, "The wait is over")
	case journal.Answered:
		s.line(e.At, "A person answered%s", eventText(e))
	case journal.PauseAsked:
		s.line(e.At, "A pause is asked for; it comes after this iteration")
	case journal.StopAsked:
		s.line(e.At, "A stop is asked for%s", eventText(e))
	case journal.LimitsRaised:
		if n := decode[journal.Limits](e).MaxIterations; n != nil {
			s.limit = *n
		}
		s.line(e.At, "A person raised the limits")
	case journal.MessageLeft:
		s.line(e.At, "A person left a message%s", eventText(e))
	case journal.Recovered:
		r := decode[journal.Recovery](e)
		s.line(e.At, "Iteration %s was cut off: %s", console.Of(r.Iteration, s.limit), report.Line(r.Why, 200))
	case journal.RolledBack:
		s.line(e.At, "The files were put back to the snapshot after iteration %d", decode[journal.Rollback](e).To)
	case journal.Applied:
		s.line(e.At, "The result was brought into the files")
	case journal.Warning:
		s.painted("33", e.At, "Warning%s", eventText(e))
	default:
		s.line(e.At, "%s%s", e.Kind, eventText(e))
	}
}

// decode is an event's data; that of an event without any is empty.
func decode[T any](e journal.Event) (v T) {
	_ = json.Unmarshal(e.Data, &v)
	return v
}

func (s *story) created(e journal.Event) {
	c := decode[journal.Created](e)
	s.limit = c.MaxIterations
	s.line(e.At, "Run %s of the %s %s begins", s.run.ID, c.Kind, report.Line(c.Name, 100))
	if work := action.SetupOf(s.run).Flags.Work; work != "" {
		s.note("task: %s", report.Line(work, 500))
	}
	if c.Kind != "workflow" && s.run.Iteration > 0 {
		s.begin(e.At, attempt{1, 1}, c.Agent, "")
	}
}

// begin tells that an attempt begins, once.
func (s *story) begin(at time.Time, now attempt, agent, why string) {
	if now == s.begun {
		return
	}
	s.begun = now
	var how []string
	if agent != "" {
		how = append(how, agent)
	}
	if now.try > 1 {
		how = append(how, fmt.Sprintf("attempt %d", now.try))
	}
	if why != "" {
		how = append(how, why)
	}
	text := ""
	if len(how) > 0 {
		text = ": " + strings.Join(how, ", ")
	}
	s.painted("1", at, "Iteration %s starts%s", console.Of(now.number, s.limit), text)
}

// next tells what was decided.
func (s *story) next(at time.Time, c *loop.Command) {
	if c == nil {
		return
	}
	for _, w := range c.Warnings {
		s.note("warning: %s", report.Line(w, 300))
	}
	if c.Guard != "" {
		s.note("guard %s: %s", c.Guard, report.Line(c.Message, 300))
	}
	switch c.Kind {
	case loop.Run:
		how := "strategy " + c.Strategy
		if c.StrategyWhy != "" {
			how += ": " + report.Line(c.StrategyWhy, 300)
		}
		if c.Rewind != 0 {
			s.note("the files go back to the snapshot after iteration %d first", c.Rewind)
		}
		s.begin(at, attempt{c.Iteration, max(c.Attempt, 1)}, c.Agent, how)
	case loop.RunReview:
		s.line(at, "Review of iteration %s by %s starts", console.Of(c.Iteration, s.limit), c.Agent)
	case loop.Wait:
		s.line(at, "Waiting until %s (%s)", console.Clock(c.Until, at), report.Line(c.Why, 200))
	}
}

func (s *story) iterationEnded(e journal.Event) {
	end := decode[struct {
		loop.Record
		Next *loop.Command `json:"next"`
	}](e)
	r, now := &end.Record, attempt{end.Number, max(end.Attempt, 1)}
	s.begin(r.StartedAt, now, r.Agent, "")
	s.drain(now)
	s.ended = now
	if s.folder(now) == nil && s.run.Kind != "workflow" {
		s.note("what its agent printed is %s", s.printed(r.Pushed))
	}
	for i, g := range r.Gates {
		s.gate(now, i+1, g)
	}
	color, word := "", "ended"
	switch r.Outcome {
	case loop.Success:
		color, word = "32", "succeeded"
	case loop.Failed:
		color, word = "31", "failed"
	case loop.Waited:
		word = "was cut off by its provider"
	}
	text := fmt.Sprintf("Iteration %s %s after %s", console.Of(r.Number, s.limit), word, loop.Duration(r.Took()))
	if what := whatHappened(*r); what != "" {
		if r.Failure != nil && r.Failure.Step != "" {
			what = r.Failure.Step + ": " + what
		}
		text += ": " + report.Line(what, 300)
	}
	s.painted(color, e.At, "%s", text)
	s.next(e.At, end.Next)
}

// printed is where what an agent printed is, which cannot be had here.
func (s *story) printed(left *loop.Pushed) string {
	if left == nil || s.p.Store.Files() != nil {
		return "not kept any longer"
	}
	return "on the machine of worker " + left.Worker + ", if it is kept there; cluster.files shares it"
}

// gate tells how gate n of an attempt ended, unless that was told.
func (s *story) gate(now attempt, n int, g loop.Gate) {
	color, how := "31", " "+string(g.Status)
	switch g.Status {
	case loop.GatePassed:
		color, how = "32", ""
	case loop.GateNotRun:
		color = "2"
	}
	if g.Test && g.Total >= 0 {
		how += fmt.Sprintf(", %d of %d passed", g.Passed, g.Total)
	}
	if !g.Required {
		how += ", optional"
	}
	if g.Note != "" {
		how += ", " + report.Line(g.Note, 200)
	}
	text := fmt.Sprintf("%s gate %s%s (%s)", report.GateMark(g), g.Name, how, loop.Duration(g.Elapsed))
	if key := gateKey(now, n); s.seen[key] != text {
		s.seen[key] = text
		s.print(color, "%s%s", noteIndent, text)
	}
}

func (s *story) question(e journal.Event) {
	q := decode[journal.Question](e)
	s.painted("33", e.At, "A person is needed:")
	s.words("", q.Text)
	for i, c := range q.Choices {
		s.note("%d. %s", i+1, report.Line(c, 300))
	}
	s.note("Answer it: pawl answer %s TEXT", s.run.ID)
}

// stepEvent tells of a step of a workflow; at its end first what is left of its output.
func (s *story) stepEvent(ctx context.Context, e journal.Event) {
	st := decode[journal.Step](e)
	name := stepName(st)
	if e.Kind == journal.StepStarted {
		s.begin(e.At, attempt{st.Iteration, 1}, "", "")
		s.line(e.At, "Step %s starts", name)
		return
	}
	rows, err := s.p.Store.Steps(ctx, s.run.ID)
	for _, row := range rows {
		if err == nil && row.Step == st.Step && row.N == st.N {
			s.stepFiles(row)
		}
	}
	switch st.Status {
	case store.StepSuccess:
		s.painted("32", e.At, "Step %s succeeded in %s", name, loop.Duration(st.Elapsed))
	case store.StepFailure:
		s.painted("31", e.At, "Step %s failed after %s: %s", name, loop.Duration(st.Elapsed),
			report.Line(st.Summary, 300))
	default:
		s.line(e.At, "Step %s is %s: %s", name, st.Status, report.Line(st.Summary, 300))
	}
}

// agentEvent tells what an agent did.
func (s *story) agentEvent(who string, e agent.Event) {
	switch e.Kind {
	case agent.Text:
		s.words(who+": ", e.Text)
	case agent.Thinking:
		if s.a.Verbose {
			s.words(who+" thinks: ", e.Text)
		}
	case agent.ToolStart:
		s.note("tool: %s", report.Line(e.Tool+" "+e.Command+" "+strings.Join(e.Files, " "), 300))
	case agent.ToolEnd:
		if e.Failed {
			s.note("tool failed: %s", report.Line(e.Tool+" "+e.Result, 300))
		}
	case agent.Retry, agent.RateLimit, agent.Error:
		if e.Error != nil {
			kind := strings.ReplaceAll(string(e.Kind), "_", " ")
			s.print("33", "           %s: %s", kind, report.Line(e.Error.Message, 300))
		}
	}
}

// Bounds of one message: lines, and characters of a line.
const (
	maxSaidLines = 60
	maxSaidLine  = 2000
)

// words tells a text of several lines below each other, with its head in front of the
// first.
func (s *story) words(head, text string) {
	indent := strings.Repeat(" ", len(head))
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, l := range lines {
		if i == maxSaidLines {
			s.note("%s… %s more; all of it: pawl logs %s -i N", indent,
				fault.Numbered(len(lines)-i, "line"), s.run.ID)
			return
		}
		for _, part := range s.wrapped(console.Printable(strings.TrimRight(fault.Cut(l, maxSaidLine), " \t\r")), len(head)) {
			s.print("", "%s%s%s", noteIndent, head, part)
			head = indent
		}
	}
}

// wrapped are the rows of a line on a terminal; elsewhere it stays one.
func (s *story) wrapped(line string, indent int) []string {
	if !console.OnTerminal(s.a.Stdout) {
		return []string{line}
	}
	width := console.Width(s.a.Stdout) - len(noteIndent) - indent - 1
	return strings.Split(ansi.Wrap(line, max(width, 20), ""), "\n")
}

// noteIndent sets what belongs to a line with a time apart from it.
const noteIndent = "           "

// line tells something with its time of day; above the first of another day stands the
// date.
func (s *story) line(at time.Time, format string, args ...any) { s.painted("", at, format, args...) }

func (s *story) painted(color string, at time.Time, format string, args ...any) {
	at = at.Local()
	if day := at.Format("2006-01-02"); day != s.day {
		if s.day != "" || day != time.Now().Format("2006-01-02") {
			s.a.Result("%s\n", s.a.Painted("2", day))
		}
		s.day = day
	}
	s.print(color, "["+at.Format("15:04:05")+"] "+format, args...)
}

func (s *story) note(format string, args ...any) { s.print("2", noteIndent+format, args...) }

func (s *story) print(color, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if color != "" {
		text = s.a.Painted(color, text)
	}
	s.a.Result("%s\n", text)
}

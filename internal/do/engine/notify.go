package engine

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/journal"
)

// notify may be called by the owner and by the worker.
func (s *session) notify(n Notice) {
	s.notifying.Lock()
	defer s.notifying.Unlock()
	n.At, n.Run, n.State = time.Now(), s.id, s.shown
	s.o.Notify(n)
}

func (s *session) warn(text string) {
	s.o.Log.Warn(text, "run", s.id)
	s.notify(Notice{Kind: Warning, Text: text})
}

// notifyOf shows and logs what an input led to.
func (d *Driver) notifyOf(in input, c loop.Command) {
	e, record := in.event, c.Record
	if in.raise != nil {
		d.o.Log.Info("limits raised", "run", d.id, "limits", in.raise.Limits)
		d.notify(Notice{Kind: LimitsRaised, Text: storedrun.RaisedText(in.raise.Limits)})
	}
	if e.Kind == loop.Resumed || e.Kind == loop.Answered {
		d.notify(Notice{Kind: RunResumed, Text: d.from})
	}
	switch {
	case record == nil:
	case e.Record != nil, record.Review == nil: // without the event that had it: see [Driver.followPending]
		d.logRecord(*record, c)
		d.notify(Notice{Kind: IterationEnded, Record: record, Command: c, Summary: summaryOfFailure(*record)})
	default:
		d.logReview(*record, c)
		d.notify(Notice{Kind: ReviewEnded, Record: record, Command: c})
	}
	for _, w := range c.Warnings {
		d.warn(w)
	}
	switch c.Kind {
	case loop.Run:
		d.o.Log.Info("iteration starts", "run", d.id, "phase", "agent", "iteration", c.Iteration, "attempt", c.Attempt,
			"agent", c.Agent, "strategy", c.Strategy, "why", c.StrategyWhy)
		d.notify(Notice{Kind: IterationStarted, Command: c})
	case loop.RunReview:
		d.o.Log.Info("review starts", "run", d.id, "phase", "review", "iteration", c.Iteration, "try", c.Review, "agent",
			c.Agent, "why", c.Why)
		d.notify(Notice{Kind: ReviewStarted, Command: c})
	case loop.Wait:
		d.o.Log.Info("wait", "run", d.id, "phase", "wait", "iteration", c.Iteration, "until", c.Until, "why", c.Why)
		d.notify(Notice{Kind: WaitStarted, Command: c})
	case loop.Ask, loop.Finish:
		level := slog.LevelInfo
		if c.Guard != "" {
			level = slog.LevelError
			d.o.Log.Error("Safety guard triggered: "+c.Guard, "run", d.id, "message", c.Message)
		}
		d.o.Log.Log(context.Background(), level, "run ends", "run", d.id, "phase", "end", "iteration", d.state.Iteration,
			"outcome", string(c.Status), "elapsed", d.state.Spent.Wall.Seconds(), "why", c.Why)
	}
}

func (d *Driver) logRecord(r loop.Record, c loop.Command) {
	attrs := []any{
		"run", d.id, "phase", "iteration", "iteration", r.Number, "attempt", r.Attempt, "outcome", string(r.Outcome),
		"elapsed", r.Elapsed.Seconds(), "exit", r.Exit.Code, "agent", r.Agent, "strategy", r.Strategy,
	}
	if r.Exit.Ended != loop.NotEnded {
		attrs = append(attrs, "ended", string(r.Exit.Ended))
	}
	if f := r.Failure; f != nil {
		attrs = append(attrs, "class", string(f.Class), "summary", f.Summary)
	}
	d.o.Log.Info("iteration ends", append(attrs, "next", string(c.Kind))...)
}

func (d *Driver) logReview(r loop.Record, c loop.Command) {
	v := r.Review
	d.o.Log.Info("review ends", "run", d.id, "phase", "review", "iteration", r.Number, "verdict", string(v.Verdict),
		"agent", v.Agent,
		"elapsed", v.Elapsed.Seconds(), "summary", v.Summary, "next", string(c.Kind))
}

// summaryOfFailure is the line for a red verification: what the failure says.
func summaryOfFailure(r loop.Record) string {
	if r.Failure == nil {
		return ""
	}
	return r.Failure.Summary
}

// iterationEnd is the journal's data of iteration.ended: the record, and what
// follows from it.
type iterationEnd struct {
	*loop.Record
	Next *loop.Command `json:"next,omitempty"`
}

// journalled is the journal's event for an input, and for the question that it answers.
func (d *Driver) journalled(in input, c loop.Command, question *loop.Question) journal.Event {
	kind, data := "", any(nil)
	e, record := in.event, c.Record
	switch e.Kind {
	case loop.Started:
		kind = journal.RunCreated
		data = journal.Created{Kind: d.plan.Kind, Name: d.plan.Name, Root: d.plan.ProjectRoot(), Agent: d.plan.Policy.Agent,
			MaxIterations: d.plan.Policy.MaxIterations}
	case loop.IterationEnded:
		kind, data = journal.IterationEnded, iterationEnd{record, &c}
	case loop.Recovered:
		kind, data = journal.Recovered, journal.Recovery{Iteration: e.Record.Number, Attempt: e.Record.Attempt,
			Why: "the agent and its supervisor had ended"}
	case loop.Reviewed:
		kind, data = journal.IterationReviewed, journal.Review{
			Number: record.Number, Attempt: record.Attempt, Outcome: record.Outcome, Review: *record.Review, Next: &c,
		}
	case loop.WaitOver:
		kind, data = journal.WaitOver, journal.Wait{}
	case loop.Throttled:
		kind, data = journal.WaitStarted, journal.Wait{Until: c.Until, Why: c.Why}
	case loop.Answered:
		kind, data = journal.Answered, journal.Answer{Text: answersIn(e), Choice: e.Choice, Option: optionOf(question, e.Choice)}
	case loop.Raised:
		kind, data = journal.LimitsRaised, in.raise.Limits
	case loop.PauseAsked:
		kind, data = journal.PauseAsked, journal.Asked{}
	case loop.StopAsked:
		kind, data = journal.StopAsked, journal.Asked{Text: string(e.Cause)}
	case loop.Resumed:
		kind, data = journal.RunResumed, journal.Resumed{From: d.from, PID: d.owner.PID}
	}
	return d.newEvent(kind, e.At, data)
}

func (d *Driver) endEvent(kind string, at time.Time) journal.Event {
	s := d.state
	if kind == journal.QuestionAsked && s.Question != nil {
		return d.newEvent(kind, at, journal.Question{Iteration: s.Iteration, Text: s.Question.Text,
			Choices: s.Question.Options})
	}
	return d.newEvent(kind, at, journal.End{
		Status: string(s.Status), Why: s.Why, Iteration: s.Iteration, Elapsed: s.Spent.Wall,
		Cost: s.Spent.Cost, CostKnown: s.Spent.CostKnown,
	})
}

func (d *Driver) newEvent(kind string, at time.Time, data any) journal.Event {
	e, err := journal.New(d.id, 0, at, kind, data)
	if err != nil { // our own structs always encode
		panic(err)
	}
	return e
}

// answersIn returns what a person answered, one line for each step.
func answersIn(e loop.Event) string {
	text := e.Text
	for _, r := range e.Replies {
		text += fmt.Sprintf("\n%s: %s", r.Step, r.Text)
	}
	return strings.TrimPrefix(text, "\n")
}

// NoticeKind is the sort of a notice.
type NoticeKind string

// The notices, in the order in which they can come.
const (
	RunStarted       NoticeKind = "run started"       // Run
	RunResumed       NoticeKind = "run resumed"       // Run
	IterationStarted NoticeKind = "iteration started" // Command
	AgentStarts      NoticeKind = "agent starts"      // Command; all is ready for it
	AgentEvent       NoticeKind = "agent"             // Event
	GateStarted      NoticeKind = "gate started"      // Gate.Name
	GateEnded        NoticeKind = "gate ended"        // Gate
	IterationEnded   NoticeKind = "iteration ended"   // Record, Failures
	ReviewStarted    NoticeKind = "review started"    // Command
	ReviewEnded      NoticeKind = "review ended"      // Record, Command
	StepStarted      NoticeKind = "step started"      // Step
	StepOutput       NoticeKind = "step output"       // Step.Line, of a workflow's step
	StepWaits        NoticeKind = "step waits"        // Step.Elapsed is how long, before it is tried again
	StepEnded        NoticeKind = "step ended"        // Step
	WaitStarted      NoticeKind = "wait started"      // Command.Until, Command.Why
	LimitsRaised     NoticeKind = "limits raised"     // Text: what the run may from now on
	Delivered        NoticeKind = "delivered"         // Text: what came into the person's files
	RunEnded         NoticeKind = "run ended"         // Command, State
	Warning          NoticeKind = "warning"           // Text
	Note             NoticeKind = "note"              // Text: what pawl does; it is stored nowhere
	// Tick comes once a second while a command is carried out, so that a clock
	// on a screen moves. It is stored nowhere.
	Tick NoticeKind = "tick"
)

// Notice is what the engine tells whoever watches. It is told after it is
// stored, one at a time, and telling never fails.
type Notice struct {
	Kind    NoticeKind
	At      time.Time
	Run     string
	State   loop.State
	Command loop.Command
	Record  *loop.Record
	Gate    loop.Gate
	Event   agent.Event
	Text    string
	// NearTime: the warning is that 80 % of the run's time is used.
	NearTime bool
	// NearCost: the warning is that 80 % of what the run may cost is used.
	NearCost bool
	// Step is the workflow's step; with an agent's event, which step's agent it is.
	// Its status is "adopted" where a step that starts was begun by an earlier pawl, else "". At
	// its end it is how it ended: success, failure, cancelled, skipped, interrupted, asking; kept:
	// its result is from before; or held: one that it needs failed.
	Step *journal.Step
	// Summary is one line for a red verification.
	Summary string
}

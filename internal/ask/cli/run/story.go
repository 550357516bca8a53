package run

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/outputs"
)

// This file shows the journal of a run as the run itself was shown: its events become
// the engine's notices again.

// showNotice shows what happened at a time as the screen of the run does.
func (s *story) showNotice(at time.Time, n engine.Notice) {
	n.At, n.Run, n.State = at, s.run.ID, s.state
	s.screen.Notice(n)
}

// showEvent shows one event of the journal.
func (s *story) showEvent(ctx context.Context, e journal.Event) {
	switch e.Kind {
	case journal.RunCreated:
		s.showCreated(e)
	case journal.RunResumed:
		s.showNotice(e.At, engine.Notice{Kind: engine.RunResumed, Text: decodeData[journal.Resumed](e).From})
	case journal.IterationEnded:
		s.iterationEnded(e)
	case journal.IterationReviewed:
		v := decodeData[journal.Review](e)
		s.printAgentEvents(attempt{v.Number, max(v.Attempt, 1)})
		r := loop.Record{Number: v.Number, Outcome: v.Outcome, Review: &v.Review}
		s.showNotice(e.At, engine.Notice{Kind: engine.ReviewEnded, Record: &r})
		s.showDecision(e.At, v.Next)
	case journal.StepStarted, journal.StepEnded:
		s.stepEvent(ctx, e)
	case journal.QuestionAsked:
		s.showQuestion(e)
	case journal.Paused, journal.Finished:
		s.showRested(e)
	case journal.WaitStarted:
		w := decodeData[journal.Wait](e)
		s.showNotice(e.At, engine.Notice{Kind: engine.WaitStarted, Command: loop.Command{Resting: loop.Resting{Until: w.Until}, Why: w.Why}})
	case journal.LimitsRaised:
		to := decodeData[journal.Limits](e)
		if to.MaxIterations != nil {
			s.state.Limit = *to.MaxIterations
		}
		s.showNotice(e.At, engine.Notice{Kind: engine.LimitsRaised, Text: storedrun.RaisedText(to)})
	case journal.WorkDelivered:
		s.showNotice(e.At, engine.Notice{Kind: engine.Delivered, Text: decodeData[delivery.Delivered](e).Text()})
	case journal.Warning:
		s.showNotice(e.At, engine.Notice{Kind: engine.Warning, Text: decodeData[journal.Notice](e).Text})
	default:
		s.showRequest(e)
	}
}

// showRequest shows what a person asked for, and what happened beside the iterations.
func (s *story) showRequest(e journal.Event) {
	line := func(format string, args ...any) { s.screen.Line(e.At, format, args...) }
	switch e.Kind {
	case journal.WaitOver:
		line("The wait is over")
	case journal.Answered:
		line("A person answered%s", eventText(e))
	case journal.PauseAsked:
		line("Pause requested; it takes effect after this iteration")
	case journal.StopAsked:
		line("Stop requested%s", eventText(e))
	case journal.MessageLeft:
		line("A person left a message%s", eventText(e))
	case journal.ChecksTried:
		line("The checks of the task ran once before the first agent")
	case journal.Recovered:
		r := decodeData[journal.Recovery](e)
		line("Iteration %s was interrupted: %s", console.Of(r.Iteration, s.state.Limit), report.Line(r.Why, 200))
	case journal.RolledBack:
		line("The files were restored from the snapshot after iteration %d", decodeData[journal.Rollback](e).To)
	default:
		line("%s%s", e.Kind, eventText(e))
	}
}

// decodeData returns the data of an event; that of an event without any is empty.
func decodeData[T any](e journal.Event) (v T) {
	_ = json.Unmarshal(e.Data, &v)
	return v
}

func (s *story) showCreated(e journal.Event) {
	c := decodeData[journal.Created](e)
	s.state.Limit = c.MaxIterations
	s.showNotice(e.At, engine.Notice{Kind: engine.RunStarted})
	if work := action.SetupOf(s.run).Flags.Work; work != "" {
		s.screen.Note("task: %s", report.Line(work, 500))
	}
	if c.Kind != "workflow" && s.run.Iteration > 0 {
		s.showAttempt(e.At, loop.Command{Iteration: 1, Agent: c.Agent})
	}
}

// showAttempt shows that an attempt begins, once.
func (s *story) showAttempt(at time.Time, c loop.Command) {
	if now := (attempt{c.Iteration, max(c.Attempt, 1)}); now != s.begun {
		s.begun = now
		s.showNotice(at, engine.Notice{Kind: engine.IterationStarted, Command: c})
	}
}

// showDecision shows what was decided.
func (s *story) showDecision(at time.Time, c *loop.Command) {
	if c == nil {
		return
	}
	s.decided = *c
	for _, w := range c.Warnings {
		s.showNotice(at, engine.Notice{Kind: engine.Warning, Text: w})
	}
	switch c.Kind {
	case loop.Run:
		s.showAttempt(at, *c)
	case loop.RunReview:
		s.showNotice(at, engine.Notice{Kind: engine.ReviewStarted, Command: *c})
	case loop.Wait:
		s.showNotice(at, engine.Notice{Kind: engine.WaitStarted, Command: *c})
	}
}

func (s *story) iterationEnded(e journal.Event) {
	end := decodeData[struct {
		loop.Record
		Next loop.Command `json:"next"`
	}](e)
	r, now := &end.Record, attempt{end.Number, max(end.Attempt, 1)}
	s.showAttempt(r.StartedAt, loop.Command{Iteration: r.Number, Attempt: r.Attempt, Agent: r.Agent})
	s.printAgentEvents(now)
	s.ended = now
	if s.openOutputs(now) == nil && s.run.Kind != "workflow" {
		s.screen.Note("the output of its agent is %s", outputs.ReasonGone(s.p.Store.OutputsFolder(), r.Pushed))
	}
	for i, g := range r.Gates {
		s.showGate(now, i+1, g)
	}
	s.state.Iteration, s.state.Spent.Active = r.Number, s.state.Spent.Active+r.Took()
	s.showNotice(e.At, engine.Notice{Kind: engine.IterationEnded, Record: r, Command: end.Next})
	s.showDecision(e.At, &end.Next)
}

// showGate shows how gate n of an attempt ended, unless that was shown.
func (s *story) showGate(now attempt, n int, g loop.Gate) {
	key, text := gateKey(now, n), console.GateLine(g)
	if s.seen[key] != text {
		s.seen[key] = text
		s.showNotice(time.Time{}, engine.Notice{Kind: engine.GateEnded, Gate: g})
	}
}

// showRested shows how the run came to rest. Of the last time all that is stored is known.
func (s *story) showRested(e journal.Event) {
	end := decodeData[journal.End](e)
	s.state.Status, s.state.Why, s.state.Iteration = loop.Status(end.Status), end.Why, end.Iteration
	s.state.Spent = loop.Spent{Wall: end.Elapsed, Cost: end.Cost, CostKnown: end.CostKnown}
	then := s.state
	if now, err := storedrun.StateOf(s.run); err == nil && now.Status == then.Status && now.Iteration == then.Iteration {
		s.state = now
	}
	s.decided.Why = end.Why
	s.showNotice(e.At, engine.Notice{Kind: engine.RunEnded, Command: s.decided})
	s.state = then
}

func (s *story) showQuestion(e journal.Event) {
	q := decodeData[journal.Question](e)
	s.screen.Line(e.At, "A person is needed: %s", report.Line(q.Text, 2000))
	for i, c := range q.Choices {
		s.screen.Note("%d. %s", i+1, report.Line(c, 300))
	}
	s.screen.Note("Answer it: pawl answer %s TEXT", s.run.ID)
}

// stepEvent shows a step of a workflow; at its end first what is left of its output.
func (s *story) stepEvent(ctx context.Context, e journal.Event) {
	st := decodeData[journal.Step](e)
	shown := st
	shown.Step = report.Line(st.Step, 100)
	n := engine.Notice{Kind: engine.StepStarted, Step: &shown}
	if e.Kind == journal.StepStarted {
		s.showAttempt(e.At, loop.Command{Iteration: st.Iteration})
		s.showNotice(e.At, n)
		return
	}
	rows, err := s.p.Store.Steps(ctx, s.run.ID)
	for _, row := range rows {
		if err == nil && row.Step == st.Step && row.N == st.N {
			s.printStepOutput(row)
		}
	}
	n.Kind = engine.StepEnded
	s.showNotice(e.At, n)
}

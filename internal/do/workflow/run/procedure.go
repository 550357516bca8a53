package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// runProcedure drives a procedure as a run of its own, which the step waits for.
// A crash finds it again by its id; what it asks a person, the workflow asks.
func (d *activeAttempt) runProcedure(ctx context.Context) error {
	p := d.s.p
	plan, err := p.o.Procedure(d.content)
	if err != nil {
		return d.cannotStart(uncallableFailure(err))
	}
	left, ended := p.limits.limitsLeft()
	if ended != loop.NotEnded {
		return d.nothingLeft(ended)
	}
	wall, iteration := d.s.timeLimitOf(p.timeoutOf(d.n.in.Step))
	d.boundPlan(&plan, left, wall)
	o := p.h.Inner(plan)
	o.Notify = d.showInner
	stops := make(chan loop.Cause, 1)
	o.Stops = stops
	release := context.AfterFunc(ctx, func() { stops <- loop.CauseStop })
	defer release()
	driver, err := d.startInner(context.WithoutCancel(ctx), o)
	switch {
	case errors.Is(err, store.ErrNotOwner):
		return err // the workflow's own run was taken
	case err != nil:
		d.failAttempt(failure.Analysis{
			Class: failure.Unknown, Kind: failure.Permanent, Severity: failure.High,
			Fingerprint: "procedure-not-run", Summary: err.Error(),
		})
		return nil
	}
	d.recordInner(driver.State(), iteration)
	if d.e.Status != store.StepSuccess {
		return nil
	}
	return d.completeAttempt(ctx, nil)
}

// boundPlan holds the procedure to what the workflow has left.
func (d *activeAttempt) boundPlan(plan *runplan.Plan, left loop.CommandLimits, wall time.Duration) {
	plan.Kind, plan.Name = "procedure", d.s.p.h.Plan().Name+"."+folderName(d.n.id)
	plan.Environ = append(plan.Environ[:len(plan.Environ):len(plan.Environ)], d.n.given.envWith("PAWL_STEP="+d.n.id)...)
	pol := &plan.Policy
	if pol.MaxCost < 0 { // there is no limit
		pol.MaxCost = left.Cost
	}
	if left.Cost > 0 {
		pol.MaxCost = min(pol.MaxCost, left.Cost)
	}
	if left.Calls >= 0 {
		calls := int64(left.Calls)
		pol.Calls.Lower(&calls)
	}
	pol.Tokens.Lower(left.Tokens)
	pol.Timeout = leastLimit(pol.Timeout, wall)
}

// startInner starts the inner run, or resumes the one that is known.
func (d *activeAttempt) startInner(ctx context.Context, o engine.Options) (*engine.Driver, error) {
	p := d.s.p
	if id := d.earlierInner(); id != "" {
		e := loop.Event{Kind: loop.Resumed, Policy: &o.Plan.Policy}
		if a, ok := p.c.Feedback.AnswerTo(d.n.id); ok {
			e = loop.Event{Kind: loop.Answered, Text: a.Text, Policy: &o.Plan.Policy}
		}
		d.e.record.Inner = id
		if err := d.storeAttempt(); err != nil {
			return nil, err
		}
		driver, err := engine.Resume(ctx, o, id, e)
		over := errors.Is(err, loop.ErrFinal) || errors.Is(err, loop.ErrAtLimit) || errors.Is(err, store.ErrNotFound)
		if !over {
			return driver, err
		}
		d.resumed = true // it is stored by now
	}
	d.e.record.Inner = storedrun.NewID()
	if err := d.storeAttempt(); err != nil {
		return nil, err
	}
	return engine.StartAs(ctx, o, d.e.record.Inner)
}

// storeAttempt stores the attempt with the inner run's id, before that starts.
func (d *activeAttempt) storeAttempt() error {
	if d.resumed {
		return d.e.storeExecution(d.s.p.h, journal.StepStarted)
	}
	return d.s.p.storeBegin(d.s, d.n, d.e)
}

// earlierInner is the inner run of the attempt before, if that rests without an end;
// "" for none.
func (d *activeAttempt) earlierInner() string {
	if d.resumed {
		return d.e.record.Inner
	}
	last := d.s.p.latestOf(d.n.id)
	if last == nil {
		return ""
	}
	switch last.Status {
	case store.StepAsking, store.StepCancelled, store.StepInterrupted:
		return last.record.Inner
	}
	return ""
}

// recordInner turns the end of the inner run into that of the step.
func (d *activeAttempt) recordInner(s loop.State, iteration bool) {
	p := d.s.p
	u := usage{Cost: s.Spent.Cost, TokensIn: s.Spent.TokensIn, TokensOut: s.Spent.TokensOut, Calls: s.Spent.Calls}
	switch {
	case s.Spent.CostKnown && s.Spent.CostPartial:
		u.Source = loop.CostPartial
	case s.Spent.CostKnown:
		u.Source = "reported"
	}
	d.e.record.Usage = u
	p.noteLimitReached(p.limits.endAgent(d.n.id, u))
	switch s.Status {
	case loop.Completed:
		d.e.Status, d.e.Output = store.StepSuccess, s.Why
	case loop.Stopped, loop.Interrupted:
		d.e.Status = store.StepCancelled
	case loop.Pending, loop.Blocked, loop.Paused:
		d.e.Status = store.StepAsking
		text := s.Why
		if s.Question != nil {
			text = s.Question.Text
		}
		d.e.record.Question = text
		p.addQuestion(d.n.id, text)
	default:
		class := failure.Unknown
		if n := len(s.Recent); s.Status == loop.Exhausted && n > 0 && s.Recent[n-1].Class != "" {
			class = failure.Class(s.Recent[n-1].Class)
		}
		if s.Status == loop.TimedOut {
			class = failure.LimitExceeded
			if iteration {
				p.noteLimitReached(loop.EndedTimeout)
			}
		}
		d.failAttempt(failure.Analysis{
			Class: class, Kind: failure.Work, Severity: failure.High, Fingerprint: "procedure-" + string(s.Status),
			Summary: fmt.Sprintf("procedure %s is %s: %s", d.content, s.Status, s.Why),
		})
	}
}

// showInner shows what the inner run does as the step's output.
func (d *activeAttempt) showInner(n engine.Notice) {
	var line string
	switch n.Kind {
	case engine.AgentEvent:
		d.s.p.h.TellAgent(d.n.id, n.Event)
		return
	case engine.IterationStarted:
		line = fmt.Sprintf("iteration %d starts", n.Command.Iteration)
	case engine.IterationEnded:
		line = fmt.Sprintf("iteration %d: %s", n.Record.Number, n.Record.Outcome)
		if n.Summary != "" {
			line += ": " + n.Summary
		}
	case engine.Warning:
		line = "warning: " + n.Text
	case engine.RunEnded:
		line = fmt.Sprintf("%s: %s", n.State.Status, n.State.Why)
	default:
		return
	}
	d.s.p.h.Tell(engine.StepOutput, d.s.noticeOf(d.n, journal.Step{Line: line}))
}

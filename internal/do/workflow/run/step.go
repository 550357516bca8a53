package run

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// performStep runs one step to its end in this pass: its attempts, and the
// alternatives where they follow each other.
func (s *scope) performStep(ctx context.Context, n *node) {
	for {
		at, more := s.situationOf(n).nextAttempt()
		if !more {
			s.failStep(n)
			return
		}
		if !s.pauseFor(ctx, n, at) {
			n.then = deferred
			return
		}
		e, err := s.attemptInSlot(ctx, n, at)
		if err != nil {
			s.p.recordError(err)
			n.then = deferred
			return
		}
		switch e.Status {
		case store.StepSuccess:
			n.result = e.resultOf()
			return
		case store.StepFailure:
			if s.mustStop(ctx) {
				s.failStep(n)
				return
			}
		case store.StepInterrupted:
			s.p.h.Warn(fmt.Sprintf("step %s was interrupted, and its result is unknown; it runs again", n.id))
		default: // stopped, or waits for a person
			if n.then = deferred; n.below != nil && !n.below.isWaiting() {
				n.then = blocked // a failure around it keeps its steps from starting
			}
			return
		}
	}
}

func (s *scope) situationOf(n *node) *situation {
	st := n.in.Step
	return &situation{
		past: s.p.executionsOf(n.id), hash: n.in.Hash, input: n.in.InputHash(n.given.inputKey()),
		iteration: s.p.c.Iteration, cut: s.p.c.Attempt, round: s.round, alternatives: len(st.Alternatives),
		retries: st.Retry.Max, inTurn: s.p.once || st.Optional, fresh: s.p.c.Fresh,
	}
}

// failStep takes the last attempt's failure for the step's.
func (s *scope) failStep(n *node) {
	last := s.p.latestOf(n.id)
	n.result = last.resultOf()
	f := last.record.Failure
	if f == nil {
		f = &failure.Analysis{Class: failure.Unknown, Kind: failure.Work, Severity: failure.Medium,
			Summary: "it failed", Fingerprint: "step-failed"}
	}
	named, agent := *f, last.record.Agent
	// What failed may be one of its own steps.
	if b := n.below; b != nil && b.first != nil && strings.HasPrefix(f.Step, b.prefix) {
		if n.in.Step.Optional {
			n.result.Conclusion = "success"
			return
		}
		s.recordFailure(*b.first, b.wrong...)
		return
	}
	named.Step = n.id
	s.finishFailed(n, stepFailure{&named, agent, max(last.record.Exit.Code, 1)})
}

// attemptInSlot carries out an attempt. A workflow holds no place among the steps that
// run at once, since its steps do; another work in its stead holds one.
func (s *scope) attemptInSlot(ctx context.Context, n *node, at attempt) (*execution, error) {
	if n.in.Step.Kind == workflow.Nested && at.alternative > 0 {
		s.p.slot <- struct{}{}
		defer func() { <-s.p.slot }()
	}
	return s.attemptStep(ctx, n, at)
}

// pauseFor waits before a repetition, as the step says; false when the run is to
// stop meanwhile.
func (s *scope) pauseFor(ctx context.Context, n *node, at attempt) bool {
	d := pauseBefore(n.in.Step.Retry, at.try)
	if last := s.p.latestOf(n.id); d > 0 && last != nil {
		d -= time.Since(last.StartedAt.Add(last.Elapsed)) // it began when the try before ended
	}
	if limit, _ := s.timeLimitOf(d); limit < d {
		d = limit
	}
	if d <= 0 {
		return ctx.Err() == nil
	}
	s.p.h.Tell(engine.StepWaits, s.noticeOf(n, journal.Step{Try: at.try, Elapsed: d, Why: "its retry allows it"}))
	return process.Sleep(ctx, d)
}

// attemptStep carries out one attempt, or resumes the one that an earlier pawl began,
// and stores it.
func (s *scope) attemptStep(ctx context.Context, n *node, at attempt) (*execution, error) {
	e, resumed := s.unfinishedAttempt(n)
	if !resumed {
		s.p.abandonExecution(ctx, e)
		e = s.newExecution(n, at)
	}
	work := n.in.Step.Work
	if at.alternative > 0 {
		work = n.in.Step.Step.Alternatives[at.alternative-1]
	}
	e.record.Kind = string(work.Kind)
	if work.Kind == workflow.Agent {
		e.record.Agent = s.p.agentOfStep(n, work)
	}
	content := n.given.content
	if at.alternative > 0 {
		content = n.given.alternatives[at.alternative-1]
	}
	do := &activeAttempt{s: s, n: n, e: e, resumed: resumed, content: content}
	if !resumed {
		do.watchFiles(ctx, work.Kind)
	}
	started := time.Now()
	var err error
	switch work.Kind {
	case workflow.Agent:
		err = do.runAgentStep(ctx)
	case workflow.Procedure:
		err = do.runProcedure(ctx)
	case workflow.Nested:
		err = do.runNested(ctx, s.situationOf(n).isLastAttempt(at))
	default:
		err = do.runCommand(ctx)
	}
	if err != nil {
		return e, err
	}
	do.lookAtFiles(ctx)
	if do.took > 0 {
		e.Elapsed = do.took
	} else {
		e.Elapsed = time.Since(started)
	}
	return e, s.p.storeEnd(n, s, e)
}

// abandonExecution ends an execution that an earlier pawl began, of a step that has
// changed since; nil is none.
func (p *pass) abandonExecution(ctx context.Context, e *execution) {
	if e == nil || e.Status != store.StepRunning || e.record.Job == nil {
		return
	}
	p.h.Abandon(ctx, *e.record.Job)
	e.Status = store.StepCancelled
	if err := e.storeExecution(p.h, journal.StepEnded); err != nil {
		p.recordError(err)
	}
}

// unfinishedAttempt is one whose pawl died before its end.
func (s *scope) unfinishedAttempt(n *node) (*execution, bool) {
	last := s.p.latestOf(n.id)
	if last == nil || last.Status != store.StepRunning {
		return last, false
	}
	sameStep := last.Hash == n.in.Hash && last.Input == n.in.InputHash(n.given.inputKey())
	sameTime := last.Iteration == s.p.c.Iteration && last.Attempt == s.p.c.Attempt && last.record.Round == s.round
	return last, sameStep && sameTime
}

// newExecution is a new one, not yet stored.
func (s *scope) newExecution(n *node, at attempt) *execution {
	number := 1
	if last := s.p.latestOf(n.id); last != nil {
		number = last.N + 1
	}
	return &execution{
		StepRun: store.StepRun{
			Run: s.p.h.Run(), Step: n.id, N: number, Iteration: s.p.c.Iteration, Attempt: s.p.c.Attempt,
			Status: store.StepRunning, Hash: n.in.Hash, Input: n.in.InputHash(n.given.inputKey()),
			StartedAt: time.Now(),
		},
		record: stepRecord{Alternative: at.alternative, Try: at.try, Optional: n.in.Step.Optional, Title: n.title,
			Why: n.why, Round: s.round},
	}
}

// filesPrefix is the prefix of what an execution leaves.
func (s *scope) filesPrefix(e *execution) string {
	return filepath.Join(s.p.h.Dir(), "steps", folderName(e.Step)+"."+strconv.Itoa(e.N), "step")
}

// jobID names a job of an execution in its run.
func jobID(e *execution, part string) string {
	return fmt.Sprintf("%d.%d/%s.%d%s", e.Iteration, e.Attempt, e.Step, e.N, part)
}

// storeBegin stores that an execution starts, before it does.
func (p *pass) storeBegin(s *scope, n *node, e *execution) error {
	if err := e.storeExecution(p.h, journal.StepStarted); err != nil {
		return err
	}
	p.mu.Lock()
	if e.record.Kind != string(workflow.Nested) { // its steps are counted
		p.ran++
	}
	p.history[e.Step] = withExecution(p.history[e.Step], e)
	p.mu.Unlock()
	st := e.eventData(journal.StepStarted)
	st.Why = e.record.Why
	p.h.Tell(engine.StepStarted, s.noticeOf(n, st))
	return nil
}

// storeEnd stores how an execution ended, and gives a notice.
func (p *pass) storeEnd(n *node, s *scope, e *execution) error {
	p.mu.Lock()
	p.used.addUsage(e.record.Usage)
	p.mu.Unlock()
	if err := e.storeExecution(p.h, journal.StepEnded); err != nil {
		return err
	}
	p.h.Tell(engine.StepEnded, s.noticeOf(n, e.eventData(journal.StepEnded)))
	return nil
}

// eventData is an execution as an event of the kind, and the notice of it, have it.
func (e *execution) eventData(kind string) journal.Step {
	st := journal.Step{
		Step: e.Step, N: e.N, Iteration: e.Iteration,
		Kind: e.record.Kind, Agent: e.record.Agent, Try: e.record.Try, Alternate: e.record.Alternative,
	}
	if kind == journal.StepEnded {
		st.Status, st.Elapsed = e.Status, e.Elapsed
		if f := e.record.Failure; f != nil {
			st.Summary = f.Summary
		}
	}
	return st
}

// storeExecution writes an execution as it is now, with its event.
func (e *execution) storeExecution(h *engine.StepContext, kind string) error {
	data, err := json.Marshal(e.record)
	if err != nil {
		return fmt.Errorf("cannot store step %s: %v", e.Step, err)
	}
	e.Record = data
	event, err := journal.New(e.Run, 0, time.Now(), kind, e.eventData(kind))
	if err != nil {
		return err
	}
	// What ended has ended: a stop must not keep it from being stored.
	return h.Store().PutStep(context.Background(), h.Owner(), e.StepRun, event)
}

// setStatus turns the end of a job into the status of an execution.
func (p *pass) setStatus(e *execution, exit loop.Exit, f *failure.Analysis, iteration bool) {
	if iteration && exit.Ended == loop.EndedTimeout && p.timeUp != nil {
		f = p.timeUp
	}
	e.record.Exit, e.record.Failure = exit, f
	switch {
	case exit.Ended == loop.EndedStop:
		e.Status = store.StepCancelled
	case exit.Ended == loop.EndedLost || exit.Ended == loop.EndedLease:
		e.Status = store.StepInterrupted
	case f != nil:
		e.Status = store.StepFailure
	default:
		e.Status = store.StepSuccess
	}
	if iteration && exit.Ended == loop.EndedTimeout {
		p.noteLimitReached(loop.EndedTimeout)
	}
}

// noteLimitReached notes the limit of the iteration that was reached.
func (p *pass) noteLimitReached(e loop.Ended) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == loop.NotEnded {
		p.ended = e
	}
}

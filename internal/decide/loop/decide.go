package loop

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/decide/signal"
)

// decideIteration is the order of the stop decision after each iteration: stop asked →
// BLOCKED → COMPLETE with passing gates → PENDING → hard limits → guards →
// wait → strategy → next.
func (s turn) decideIteration(e *Event) {
	r := *e.Record
	r.Failure = cmp.Or(r.Failure, r.Review.Rejection())
	r.Outcome = r.Judge()
	e.judged = &r
	if r.Outcome == Waited && s.StopAsked != NoCause { // no attempt follows: the iteration is used up
		r.Outcome = Neutral
	}
	if r.Outcome != Waited {
		for _, text := range e.Messages { // its prompt had them
			s.addMemory(Said{Iteration: s.Iteration, Text: text})
		}
		s.Iteration++
		s.Waits, s.Attempts = 0, 0
		s.forgetLeft(r.Agent)
	} else {
		s.Attempts++
	}
	if s.mustReview(&r) {
		s.PendingReview = &PendingReview{Record: r}
		s.issueReview(e, "the work is green")
		return
	}
	s.decideJudged(e, &r)
}

// decideJudged decides by an iteration that is judged, its review included.
func (s turn) decideJudged(e *Event, r *Record) {
	learned := s.creditTrial(r, e.At)
	s.recordIteration(r)
	s.issueFollowUp(e, r)
	s.Command.Learned = learned
}

// issueFollowUp issues the command that follows from an iteration.
func (s turn) issueFollowUp(e *Event, r *Record) {
	if c := s.endingAfter(r); c != nil {
		c.Warnings = append(c.Warnings, r.uncountedNote()...)
		s.finishWithFeedback(c, r)
		return
	}
	warnings := s.warningsAfter(r)
	s.Warned, s.Late = s.Warned || s.nearCost(), s.Late || s.NearTime() != ""
	if c := s.endByGuard(r); c != nil {
		if c.Guard != GuardStuck && c.Guard != GuardStandstill {
			c.Warnings = warnings
		}
		s.finishWithFeedback(c, r)
		return
	}
	if r.Outcome == Waited {
		s.waitForProvider(e, r)
		return
	}
	if c := s.endIfPermanent(r); c != nil {
		s.finishWithFeedback(c, r)
		return
	}
	if s.PauseAsked {
		s.finishSession(&Command{Status: Paused, Why: "paused at the end of the iteration"})
		return
	}
	s.chooseAndIssue(e, r, warnings)
}

// finishWithFeedback ends the run with an iteration that no other one follows. A question
// keeps what must be repaired, for the prompt after its answer.
func (s turn) finishWithFeedback(c *Command, r *Record) {
	if q := c.Question; q != nil {
		f := s.feedbackOn(r)
		q.Items, q.Step, q.ExitCode, q.Notes = f.Items, f.Step, f.ExitCode, f.Notes
		q.Strategy = s.strategyAnew(r)
	}
	s.finishSession(c)
}

// endingAfter is the end that a person, the agent or a hard limit makes of the run;
// nil when it may go on.
func (s turn) endingAfter(r *Record) *Command {
	if s.StopAsked != NoCause {
		return stopCommand(s.StopAsked)
	}
	if r.Exit.Ended == EndedStop { // and the run was not asked to stop
		return &Command{Status: Interrupted, Why: "its agent was ended by another process"}
	}
	if c := s.endBySignal(r); c != nil {
		return c
	}
	if c := s.escalateIfUndecided(r); c != nil {
		return c
	}
	return s.endByLimits(r)
}

// Valid is true when the signals of an iteration count: it was not ended by
// pawl and its stream was not cut off.
func (r *Record) Valid() bool {
	return r.Exit.Ended == NotEnded && r.Exit.Terminal != TerminalMissing && r.Exit.Signal == ""
}

// Green reports whether every required gate ran in this iteration and passed, and
// how many there were. Tampering is red, whatever the gates say.
func (r *Record) Green() (ok bool, required int) {
	if !r.Verified || len(r.Tampered) > 0 {
		return false, 0
	}
	for _, g := range r.Gates {
		if !g.Required {
			continue
		}
		required++
		if g.Status != GatePassed {
			return false, required
		}
	}
	return true, required
}

// RedGate is true when a required gate ran and did not pass, or when a
// protected path was changed.
func (r *Record) RedGate() bool {
	red := func(g Gate) bool { return g.Required && g.Status != GatePassed && g.Status != GateNotRun }
	return len(r.Tampered) > 0 || slices.ContainsFunc(r.Gates, red)
}

// wasCutOff reports whether pawl ended the iteration, and for no fault of the agent's.
func (r *Record) wasCutOff() bool {
	return r.Exit.Ended == EndedStop || r.Exit.Ended == EndedLease || r.Exit.Ended == EndedLost
}

// hasClaim reports whether the agent gave a signal that counts.
func (r *Record) hasClaim() bool {
	says := r.Signal.Kind != signal.None || r.Progress >= 0
	return says && r.Valid()
}

// Completes reports whether the iteration ends the work: COMPLETE with passing
// gates and, where there was a review, its approval. With a non-zero exit at least one required gate must have passed.
func (r *Record) Completes() (ok bool, warning string) {
	if !r.claimsComplete() || !r.passesReview() {
		return false, ""
	}
	green, required := r.Green()
	switch {
	case !green, r.Exit.Code != 0 && required == 0:
		return false, ""
	case r.Exit.Code != 0:
		const warning = "the agent claimed COMPLETE but exited with %d; the gates are green, so it counts"
		return true, fmt.Sprintf(warning, r.Exit.Code)
	case len(r.Gates) == 0:
		return true, "VERIFICATION_EMPTY: completed without any verification command"
	}
	return true, ""
}

func (r *Record) claimsComplete() bool { return r.Valid() && r.Signal.Kind == signal.Complete }

// Judge classifies an iteration.
func (r *Record) Judge() Outcome {
	switch {
	case r.onlyAsks():
		return Asked
	case r.RedGate() || r.isRejected():
		return Failed
	case r.wasCutOff(), r.Exit.Ended == EndedTimeout && r.Commits > 0:
		return Neutral
	case slices.Contains([]Ended{EndedRetries, EndedRequests}, r.Exit.Ended) && r.metProviderLimit():
		return Waited // the agent was waiting itself
	case r.Exit.Ended == EndedDay:
		return Waited // for the next day
	case r.Exit.Ended != NotEnded:
		return Failed
	case r.Steps != nil:
		return r.Steps.judgeSteps(r)
	}
	if ok, _ := r.Completes(); ok {
		return Success
	}
	if r.metProviderLimit() {
		return Waited
	}
	switch {
	case r.Exit.Code != 0, r.Exit.Signal != "", r.Exit.Terminal == TerminalMissing, r.Exit.Terminal == TerminalFailed:
		return Failed
	case r.Valid() && r.Signal.Kind == signal.Failure:
		return Failed
	case r.TreeKnown && r.TreeBefore == r.TreeAfter && r.Commits == 0 && !r.hasClaim():
		return Neutral
	}
	return Success
}

// onlyAsks is true when an agent left all as it was and asks a person.
func (r *Record) onlyAsks() bool {
	asks := r.Valid() && r.Signal.Kind == signal.Pending
	differs := r.TreeKnown && r.TreeBefore != r.TreeAfter
	return asks && !differs && len(r.Files) == 0 && r.Commits == 0 && len(r.Tampered) == 0
}

// metProviderLimit reports whether a limit of the provider, which will be over, stopped the
// agent.
func (r *Record) metProviderLimit() bool {
	f := r.Failure
	return f != nil && f.Provider && f.Kind == failure.Transient
}

// recordIteration folds the record into the guards and the history. An attempt that
// a limit of the provider cut off is no iteration.
func (s *State) recordIteration(r *Record) {
	if r.Outcome == Waited {
		return
	}
	sight := Sight{
		Outcome: r.Outcome, Score: r.Score, Files: r.Files, TreeKnown: r.TreeKnown, TreeBefore: r.TreeBefore,
		TreeAfter: r.TreeAfter, Commits: r.Commits, Progress: -1, Claim: r.hasClaim(), Silent: r.Output == 0,
	}
	if len(r.Flagged) > 0 {
		sight.Files = append(append([]string(nil), r.Flagged...), r.Files...)
	}
	if r.Valid() {
		sight.Progress = r.Progress
	}
	s.Changed = s.Changed || !r.TreeKnown || r.TreeBefore != r.TreeAfter
	past := &Past{Number: r.Number, Strategy: r.Strategy, Outcome: r.Outcome, Score: r.Score}
	past.Cut = r.wasCutOff() || s.StopAsked != NoCause
	if f := r.Failure; f != nil && r.Outcome == Failed {
		sight.Fingerprint = f.Fingerprint
		past.Class, past.Fingerprint, past.Summary = string(f.Class), f.Fingerprint, f.Summary
		o := s.controlOutcome(r)
		past.Where = o.Where()
		if !r.isRejected() {
			past.Step = f.Step
		}
		if found := control.FromAnalysis(f); len(found) > 0 && past.Step != "" {
			past.Found = found[0].String()
		}
		if s.isControlled() {
			past.Summary, past.Found = o.Summary(), ""
		}
	}
	if r.Outcome == Asked {
		past.Summary = "it asked: " + firstLine(r.Signal.Text)
		sight.Score = -1 // the files are what they were
	}
	if r.Valid() && r.Signal.Kind == signal.Blocked && r.Failure == nil {
		past.Found = "it is blocked: " + firstLine(r.Signal.Text)
	}
	if r.Review != nil && r.Review.Verdict == Undecided {
		past.Summary = "the gates pass; the review has not decided"
	}
	s.Guards.Observe(&sight)
	from := max(0, len(s.Recent)+1-maxRecent)
	s.Recent = append(append(make([]*Past, 0, maxRecent), s.Recent[from:]...), past)
	if w := r.reasonNotSuccess(); w != "" || r.Verified {
		s.Wrong = w
	}
	passed, required := r.Green()
	green := passed && required > 0 && r.Snapshot != ""
	if green {
		s.Green = r.Number
	}
	// The last of the best: what came after an equal one is not to be lost. A green one
	// beats all that are not.
	isBest := green
	if green == s.Best.Green {
		isBest = r.Score >= s.Best.Score
	}
	if r.Snapshot != "" && r.Score >= 0 && isBest {
		s.Best = Best{Number: r.Number, Score: r.Score, Snapshot: r.Snapshot, Green: green}
	}
}

const maxRecent = 10

// endBySignal is the end that the agent's own signal makes; nil for none.
func (s turn) endBySignal(r *Record) *Command {
	if !r.Valid() {
		return nil
	}
	if r.Signal.Kind == signal.Blocked {
		why := "the agent says that it is blocked: " + r.Signal.Text
		return &Command{Status: Blocked, Why: why, Question: s.askAfterStop(why, "")}
	}
	unreviewed := s.Policy.Review && r.Review == nil
	if ok, warning := r.Completes(); ok && !unreviewed {
		c := &Command{Status: Completed, Why: r.resultText()}
		if warning != "" {
			c.Warnings = []string{warning}
		}
		if !s.Changed {
			const idle = "the agent claimed COMPLETE, but no iteration of this run has changed a file"
			c.Warnings = append(c.Warnings, idle)
		}
		return c
	}
	if c := s.endIfPassing(r); c != nil {
		return c
	}
	if c := s.endBySteps(r); c != nil {
		return c
	}
	if r.Signal.Kind == signal.Pending {
		q := s.newQuestion(r.Signal.Text, nil)
		who := "the agent"
		if r.Agent == "" { // none was started
			who = "pawl"
		}
		return &Command{Status: Pending, Why: who + " asks: " + r.Signal.Text, Question: q}
	}
	return nil
}

// endByLimits asks the hard limits: iterations, wall clock, cost. r is the iteration
// that just ended, nil between two sessions. One that waits for its review is
// used up already: the review is no further iteration.
func (s turn) endByLimits(r *Record) *Command {
	p := &s.Policy
	used := s.Limit > 0 && s.Iteration >= s.Limit && s.PendingReview == nil
	if used && !p.Once {
		return cmp.Or(s.endIfPermanent(cmp.Or(r, &Record{})), s.atMaximum(r))
	}
	if p.Timeout > 0 && s.Spent.Wall >= p.Timeout {
		return timedOutCommand("Iterate timeout exceeded: %s of %s", Duration(s.Spent.Wall), Duration(p.Timeout))
	}
	if p.TaskTimeout > 0 && s.Spent.Active >= p.TaskTimeout {
		return timedOutCommand("task timeout: %s of %s", Duration(s.Spent.Active), Duration(p.TaskTimeout))
	}
	if p.MaxCost >= 0 && s.Spent.Cost > p.MaxCost {
		return outOfMoney(safety.Prefix+"Total cost %s exceeds limit %s", s.Spent.Cost, p.MaxCost.limitText())
	}
	if p.MaxDuration > 0 && s.Spent.Active > p.MaxDuration {
		return timedOutCommand(safety.Prefix+"Total duration %dms exceeds limit %dms", s.Spent.Active.Milliseconds(),
			p.MaxDuration.Milliseconds())
	}
	if p.MaxCost >= 0 && s.Spent.Cost == p.MaxCost {
		return outOfMoney("Total cost %s reached limit %s: nothing is left for another iteration",
			s.Spent.Cost, p.MaxCost.limitText())
	}
	if c := s.taskCost(); c != nil {
		return c
	}
	if c := s.endByCounts(); c != nil {
		return c
	}
	if s.spentForNext(r) {
		return outOfMoney("Total cost %s: %s has no room for another model call", s.Spent.Cost, s.costLimit())
	}
	if used {
		return s.failedOnce(r)
	}
	return nil
}

// causeFirst puts what is wrong with the work before the limit that ended it: the first words are what a reader sees.
func causeFirst(cause, limit string) string {
	if cause == "" {
		return limit
	}
	return cause + " (" + limit + ")"
}

func timedOutCommand(format string, args ...any) *Command {
	return &Command{Status: TimedOut, Why: fmt.Sprintf(format, args...)}
}

func outOfMoney(format string, args ...any) *Command {
	c := timedOutCommand(format, args...)
	c.OutOfMoney = true
	return c
}

// endByGuard asks the guards in their order.
func (s turn) endByGuard(r *Record) *Command {
	if r.Outcome == Waited {
		return nil
	}
	g := &s.Guards
	for _, ask := range []func() (Trip, bool){
		func() (Trip, bool) { return g.Breaker(s.guardLimit(GuardBreaker)) },
		g.Regression,
		func() (Trip, bool) { return g.Thrash(s.guardLimit(GuardThrashing)) },
		g.Oscillate,
		func() (Trip, bool) { return g.Repeat(s.guardLimit(GuardRepeated)) },
	} {
		if t, tripped := ask(); tripped {
			return s.tripCommand(t)
		}
	}
	return s.endIfStuck(r)
}

// guardLimit is the number of attempts at which a guard stops the run; 0 for none. Under iteration
// control its maximum rules, and no guard that counts attempts comes before it.
func (s *State) guardLimit(guard string) int {
	at, controlRules := s.thresholdOf(guard), s.isControlled() && s.Limit > 0
	if at == nil || controlRules {
		return 0
	}
	return *at
}

func (s turn) tripCommand(t Trip) *Command {
	c := &Command{Status: Aborted, Guard: t.Guard, Message: t.Message,
		Why: causeFirst(s.lastSummary(), "Iteration safety guard: "+t.Guard)}
	switch s.Policy.Kind {
	case Task, Controlled:
		c.Status = Blocked
	case Workflow:
		c.Status = FailedRun
	}
	c.Question = s.askAfterStop(t.Message, t.Guard)
	return c
}

// lastSummary is of the last failure; "" without one.
func (s *State) lastSummary() string {
	for _, p := range slices.Backward(s.Recent) {
		if p.Outcome == Failed {
			return p.Summary
		}
	}
	return ""
}

// endIfStuck pauses a loop without progress when the policy says so, or when nothing else would ever
// end the run: a procedure without a maximum. At the limit it asks a person in any case.
func (s turn) endIfStuck(r *Record) *Command {
	p := &s.Policy
	endless := p.Kind == Procedure && s.Limit == 0
	t, tripped := s.Guards.Stuck(p.Stuck)
	if !tripped {
		t, tripped = s.Guards.Idling(p.Stuck, r.reasonUncounted())
	}
	status := Paused
	if pauses := p.PauseOnStuck || endless; !tripped || !pauses {
		status = Pending
		if t, tripped = s.Guards.Standstill(p.StuckLimit); !tripped {
			return nil
		}
		if p.Kind == Task || p.Kind == Controlled {
			status = Blocked
		}
	}
	return &Command{
		Status: status, Why: t.Message, Guard: t.Guard, Message: t.Message,
		Question: s.askAfterStop(t.Message, t.Guard),
	}
}

// warningsAfter lists the warnings about an iteration that did not end the run.
func (s *State) warningsAfter(r *Record) []string {
	w := r.uncountedNote()
	switch {
	case !r.claimsComplete():
	case r.isRejected():
		w = append(w, "the agent claimed COMPLETE, but the review rejects the work; the claim does not count")
	default:
		w = append(w, "the agent claimed COMPLETE, but verification does not pass; the claim does not count")
	}
	if t, tripped := s.Guards.Stuck(s.Policy.Stuck); tripped && s.Guards.Still == s.Policy.Stuck {
		w = append(w, t.Message)
	} else if t, idles := s.Guards.Idling(s.Policy.Stuck, r.reasonUncounted()); idles && s.Guards.Idle == s.Policy.Stuck {
		w = append(w, t.Message)
	}
	if s.nearCost() && !s.Warned && !r.WarnedCost {
		w = append(w, s.nearCostText())
	}
	if near := s.NearTime(); near != "" && !s.Late && !r.WarnedRunTime {
		w = append(w, near)
	}
	return append(w, s.nearIteration(r)...)
}

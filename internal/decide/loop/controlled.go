package loop

import (
	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
)

// isControlled reports whether iteration control decides: about a controlled
// procedure or task, and a workflow whose policy has settings for it.
func (s *State) isControlled() bool {
	controlledWorkflow := s.Policy.Kind == Workflow && s.Policy.Control != nil
	return controlledWorkflow || s.Policy.Kind == Controlled
}

// Breaker is how many failures in a row stop the run; 0 for no such number.
func (s *State) Breaker() int { return s.guardLimit(GuardBreaker) }

// controlSettings are the settings of iteration control for this run. The maximum is
// the run's limit: an answer grants a fresh allowance.
func (s *State) controlSettings() control.Settings {
	set := control.Settings{RetryTestFail: true, RetryReviewReject: true, IncludeDiff: true, FeedbackMax: 500}
	if s.Policy.Control != nil {
		set = *s.Policy.Control
	}
	set.MaxIterations, set.Review = s.Limit, s.Policy.Review
	return set
}

// controlOutcome is the record as iteration control sees it.
func (s *State) controlOutcome(r *Record) control.Outcome {
	now := control.Attempt{Number: s.Iteration, Tests: r.testVerdict(), Review: control.Undecided}
	o := control.Outcome{Attempt: now, Failure: r.Failure}
	if v := r.Review; v != nil {
		o.Review, o.Said, o.Found = v.Verdict, v.Summary, v.Items
	}
	return o
}

// testVerdict is how the verification of an iteration ended. Gates alone never
// pass: at least one that is required did, after an agent that ended well.
func (r *Record) testVerdict() control.Tests {
	if t := r.Steps; t != nil { // the steps of a workflow are its tests, beside the gates
		onlyRejected := r.Failure == nil || r.isRejected()
		switch {
		case t.Complete && !r.RedGate() && onlyRejected:
			return control.Passed
		case r.Outcome == Failed:
			return control.Failed
		}
		return control.NotTested
	}
	if r.RedGate() {
		return control.Failed
	}
	if green, required := r.Green(); green && required > 0 && r.Valid() && r.Exit.Code == 0 {
		return control.Passed
	}
	return control.NotTested
}

// endIfPassing is the end of controlled work: the tests pass, and so does the review.
func (s turn) endIfPassing(r *Record) *Command {
	if s.Policy.Kind != Controlled {
		return nil
	}
	if action, _ := control.Decide(s.controlOutcome(r).Attempt, s.controlSettings()); action != control.Proceed {
		return nil
	}
	return &Command{Status: Completed, Why: r.resultText()}
}

// escalateIfUndecided asks a person where nothing else can decide: the review of work
// that is green otherwise has no verdict, or controlled work must not be tried
// again by itself.
func (s turn) escalateIfUndecided(r *Record) *Command {
	if r.Outcome == Waited || r.wasCutOff() {
		return nil
	}
	if !s.isControlled() {
		if !s.Policy.Review || !r.awaitsReview() {
			return nil
		}
		return s.askControl(r, "the review has not decided")
	}
	switch action, why := control.Decide(s.controlOutcome(r).Attempt, s.controlSettings()); action {
	case control.Review:
		return s.askControl(r, "the review has not decided")
	case control.Escalate:
		if s.Limit > 0 && s.Iteration >= s.Limit {
			return nil // the hard limits say it
		}
		return s.askControl(r, why)
	}
	return nil
}

// askControl is an escalation with the facts in conflict and the options.
func (s turn) askControl(r *Record, why string) *Command {
	o := s.offerAfter("")
	o.TestStays = r.TestProtected
	q := control.Ask(s.Iteration, s.controlOutcome(r), o)
	return &Command{Status: Pending, Why: why, Question: s.newQuestion(q.Text, q.Choices)}
}

// boundFeedback cuts the feedback of controlled work to what iteration control allows.
func (s *State) boundFeedback(f *Feedback, r *Record) {
	if !s.isControlled() || r.Outcome != Failed || r.Failure == nil {
		return
	}
	advice := control.Advise(s.controlOutcome(r), s.controlSettings())
	f.Items, f.Dropped = make([]failure.Item, 0, len(advice.Items)), advice.Dropped
	f.Summary = advice.Summary
	for _, found := range advice.Items {
		f.Items = append(f.Items, found.Item)
	}
}

// GivenUp is the reason of a run that a person let fail: it does not wait.
const GivenUp = "given up by a person"

// takenOver is the reason of a run whose work a person took. It may go on with what they did.
const takenOver = "taken over by a person"

// carryOutChoice carries out an option of the question that was asked, and reports
// false when that is to try again.
func (s turn) carryOutChoice(choice control.Choice) bool {
	c := &Command{}
	switch choice.Do { // the others go on
	case control.Accept:
		c.Status, c.Why = Completed, "accepted by a person"
	case control.TakeOver:
		c.Status, c.Why = Stopped, takenOver
	case control.GiveUp:
		c.Status, c.Why = FailedRun, GivenUp
	default:
		return false
	}
	s.finishSession(c)
	return true
}

// choiceAt is option n of the question, 1-based; false when there is none.
func (s *State) choiceAt(n int) (control.Choice, bool) {
	if s.Question == nil || n < 1 || n > len(s.Question.Choices) {
		return control.Choice{}, false
	}
	return s.Question.Choices[n-1], true
}

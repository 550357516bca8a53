package control

import "fmt"

// Action is the consequence of an attempt.
type Action string

// The actions.
const (
	Proceed  Action = "proceed"  // the work passed
	Retry    Action = "retry"    // try again, with the feedback
	Review   Action = "review"   // the tests pass; the review has to say something first
	Escalate Action = "escalate" // a person decides
)

// Tests is how the verification of an attempt ended.
type Tests string

// The ends of a verification.
const (
	Passed    Tests = "pass"
	Failed    Tests = "fail"
	NotTested Tests = "" // it did not get so far, e.g. because the agent crashed
)

// Verdict is a review's verdict on the work.
type Verdict string

// The verdicts.
const (
	Approved Verdict = "approved"
	Rejected Verdict = "rejected"
	// Undecided: the review has said nothing that counts, e.g. because it was
	// not asked yet or its agent failed. It neither passes nor rejects the work.
	Undecided Verdict = "pending"
)

// Settings are the limits of iteration control. They are stored with a run:
// fields can be added, but names must not change.
type Settings struct {
	// MaxIterations is the number of attempts before a person is asked, from 1;
	// 0 is no maximum.
	MaxIterations     int  `json:"max_iterations"`
	RetryTestFail     bool `json:"auto_retry_on_test_fail"`
	RetryReviewReject bool `json:"auto_retry_on_review_reject"`
	IncludeDiff       bool `json:"escalation_includes_diff"`
	// FeedbackMax bounds a feedback's summary and items together, in characters.
	FeedbackMax int `json:"feedback_max_length"`
	// Review is true when the work must be approved, too.
	Review bool `json:"review"`
}

// Attempt describes the attempt that was just made.
type Attempt struct {
	Number int // 1-based
	Tests  Tests
	Review Verdict
}

// Decide returns what follows from an attempt, and why. Work that passed always
// proceeds, also at the maximum; tests that pass while the review is missing
// never use up the right to try again.
func Decide(a Attempt, s Settings) (Action, string) {
	rejected := s.Review && a.Review == Rejected
	approved := !s.Review || a.Review == Approved
	switch {
	case a.Tests == Passed && approved:
		return Proceed, "the work passed"
	case a.Tests == Passed && !rejected:
		return Review, "the tests pass; the review has not decided"
	case s.MaxIterations > 0 && a.Number >= s.MaxIterations:
		return Escalate, fmt.Sprintf("Max iterations reached (%d/%d)", a.Number, s.MaxIterations)
	case a.Tests == Failed && !s.RetryTestFail:
		return Escalate, "tests failed, and auto_retry_on_test_fail is off"
	case a.Tests == Passed && !s.RetryReviewReject:
		return Escalate, "the review rejected the work, and auto_retry_on_review_reject is off"
	}
	return Retry, "the work did not pass"
}

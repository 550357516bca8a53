package control

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/failure"
)

// Feedback is what the next attempt is told.
type Feedback struct {
	Summary  string
	Items    []Finding // most urgent first
	Dropped  int       // findings that had no room
	Priority failure.Severity
}

// Advise makes the feedback of an attempt that did not pass: what the tests
// found, else what the review did, within the settings' bound.
func Advise(o Outcome, s Settings) Feedback {
	f := Feedback{Summary: o.Summary(), Items: o.findings()}
	f.Priority = cmp.Or(Priority(f.Items), failure.High)
	f.Summary, f.Items, f.Dropped = Cut(f.Summary, f.Items, s.FeedbackMax)
	return f
}

// Outcome is what an attempt came to, for feedback and for the history that an
// escalation tells.
type Outcome struct {
	Attempt
	// Failure is the analysis of what failed: of the tests, or of the agent.
	Failure *failure.Analysis
	// Said is the review's summary, and Found what it found.
	Said  string
	Found []Finding
}

func (o *Outcome) findings() []Finding {
	if o.byReview() {
		return o.Found
	}
	found := FromAnalysis(o.Failure)
	if o.Review == Rejected {
		found = append(found, o.Found...)
		Sort(found)
	}
	return found
}

// byReview is true when the tests passed, so that only the review stands in
// the way.
func (o *Outcome) byReview() bool { return o.Tests == Passed }

// Summary says in one line of at most 200 characters how the attempt ended.
func (o *Outcome) Summary() string {
	var said, what string
	switch {
	case o.byReview() && o.Review == Approved:
		return "Passed"
	case o.byReview() && o.Review == Rejected:
		said = "Review rejected"
		what = o.Said
		if len(o.Found) > 0 {
			what = cmp.Or(what, o.Found[0].String())
		}
	case o.byReview():
		return "Tests passed"
	case o.Tests == Failed:
		said = "Tests failed"
		if f := o.Failure; f != nil && slices.Contains([]failure.Class{failure.TestFailure, failure.Unknown}, f.Class) {
			said = "Test failed"
		}
		what = headline(o.Failure)
	default:
		said, what = "Not verified", headline(o.Failure)
	}
	what = oneLine(what)
	switch {
	case what == "":
		return said
	case o.Failure != nil && strings.HasPrefix(what, classWords(o.Failure.Class)+": "): // says itself that it failed
		return clip(strings.ToUpper(what[:1])+what[1:], maxSummary)
	}
	return clip(said+": "+what, maxSummary)
}

// classWords are a class as the summary of an analysis begins with it.
func classWords(c failure.Class) string { return strings.ReplaceAll(string(c), "_", " ") }

// Where is the file, else the test, of what was found first; "" when that is
// not known.
func (o *Outcome) Where() string {
	for _, f := range o.findings() {
		if where := cmp.Or(f.File, f.Test); where != "" {
			return where
		}
	}
	return ""
}

// headline is the most telling finding of a failure, else its summary.
func headline(a *failure.Analysis) string {
	if a == nil {
		return ""
	}
	for _, item := range a.Items {
		if item.Expected != "" || item.Received != "" {
			return Finding{Item: item}.String()
		}
	}
	return a.Summary
}

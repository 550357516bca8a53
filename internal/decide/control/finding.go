package control

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Finding is one thing to be changed: what a test, a check or a review found.
type Finding struct {
	failure.Item
	// Severity is critical (security), high (tests, the build), medium (a
	// review's usual request) or low (style); empty is medium.
	Severity failure.Severity `json:"severity,omitempty"`
}

// The bounds of what is read and written.
const (
	maxFindings = 20
	maxLine     = 240 // characters of a finding in one line
	maxSummary  = 200 // characters
)

// FromAnalysis lists what a failed verification found, most urgent first.
func FromAnalysis(a *failure.Analysis) []Finding {
	if a == nil {
		return nil
	}
	found := lists.Each(a.Items, func(item failure.Item) Finding { return Finding{item, severityOf(a.Class, item)} })
	Sort(found)
	return found
}

func severityOf(class failure.Class, item failure.Item) failure.Severity {
	switch {
	case class != failure.Lint, item.IsCompilerError():
		return failure.High
	case namesSecurity(item.Message):
		return failure.Critical
	}
	return failure.Low
}

func wordsTell(said string) failure.Severity {
	switch {
	case namesSecurity(said):
		return failure.Critical
	case hasAnyWord(said, "style", "nit", "typo", "naming", "formatting", "indentation", "whitespace", "cosmetic"):
		return failure.Low
	}
	return failure.Medium
}

func namesSecurity(said string) bool {
	return hasAnyWord(said, "security", "vulnerability", "vulnerable", "injection", "xss", "csrf", "ssrf",
		"secret", "secrets", "credential", "credentials", "password", "passwords", "traversal",
		"unauthenticated", "privilege")
}

func hasAnyWord(text string, words ...string) bool {
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz_", r)
	})
	return slices.ContainsFunc(fields, func(f string) bool { return slices.Contains(words, f) })
}

var ranks = map[failure.Severity]int{failure.Critical: 4, failure.High: 3, failure.Medium: 2, "": 2, failure.Low: 1}

// Sort puts the most urgent findings first; equals keep their order.
func Sort(found []Finding) {
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(ranks[b.Severity], ranks[a.Severity]) })
}

// Priority is the severity of the most urgent finding; "" without any.
func Priority(found []Finding) failure.Severity {
	var top failure.Severity
	for _, f := range found {
		if top == "" || ranks[f.Severity] > ranks[top] {
			top = cmp.Or(f.Severity, failure.Medium)
		}
	}
	return top
}

// String is the finding in one line of at most 240 characters: where, what was
// expected and what was received; else what was said.
func (f Finding) String() string {
	var head []string
	if place := f.placeText(); place != "" {
		head = append(head, place)
	}
	if f.Test != "" {
		head = append(head, f.Test)
	}
	what := f.Message
	first, _, _ := strings.Cut(what, "\n")
	below := f.HasValuesBeyond(first) && !f.HasValuesBeyond(f.Message)
	if f.Test != "" || below { // the test, or the values themselves, say what it is about
		first = ""
	}
	if f.HasValuesBeyond(first) {
		what = fmt.Sprintf("expected %s, received %s", cmp.Or(joinLines(f.Expected), "nothing"),
			cmp.Or(joinLines(f.Received), "nothing"))
		if first != "" {
			what = strings.TrimSuffix(first, ":") + ": " + what
		}
	}
	if what != "" {
		head = append(head, what)
	}
	return clipText(joinLines(strings.Join(head, ": ")), maxLine)
}

// placeText is file and line, "" when the file is not known or what is said
// begins with it.
func (f Finding) placeText() string {
	switch {
	case f.File == "", f.Expected == "" && strings.HasPrefix(f.Message, f.File), f.namesItsPlace():
		return ""
	case f.Line > 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return f.File
}

// namesItsPlace reports whether the message has file and line itself.
func (f Finding) namesItsPlace() bool {
	return f.Line > 0 && strings.Contains(f.Message, f.File) && strings.Contains(f.Message, strconv.Itoa(f.Line))
}

// Cut keeps of a summary and its findings, in their order, what has room in
// limit characters, and says how many findings it dropped. A finding is kept
// whole or not at all; the summary is shortened only if it alone is too long.
func Cut(summary string, found []Finding, limit int) (string, []Finding, int) {
	summary = clipText(summary, limit)
	left := limit - utf8.RuneCountInString(summary)
	for i, f := range found {
		if left -= utf8.RuneCountInString(f.String()); left < 0 {
			return summary, found[:i], len(found) - i
		}
	}
	return summary, found, 0
}

func joinLines(s string) string { return strings.Join(strings.Fields(s), " ") }

// clipText shortens s to limit characters, the last of them an ellipsis.
func clipText(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	if limit <= 0 {
		return ""
	}
	return string([]rune(s)[:limit-1]) + "…"
}

// Feedback is for the prompt of the next attempt.
type Feedback struct {
	Summary  string
	Items    []Finding // most urgent first
	Dropped  int       // findings that had no room
	Priority failure.Severity
}

// Advise makes the feedback of an attempt that did not pass: what the tests
// found, else what the review did, within the settings' bound.
func Advise(o Outcome, s Settings) Feedback {
	f := Feedback{Summary: o.Summary(), Items: o.allFindings()}
	f.Priority = cmp.Or(Priority(f.Items), failure.High)
	f.Summary, f.Items, f.Dropped = Cut(f.Summary, f.Items, s.FeedbackMax)
	return f
}

// Outcome is the result of an attempt, for feedback and for the history in an
// escalation.
type Outcome struct {
	Attempt
	// Failure is the analysis of what failed: of the tests, or of the agent.
	Failure *failure.Analysis
	// Said is the review's summary, and Found what it found.
	Said  string
	Found []Finding
}

func (o *Outcome) allFindings() []Finding {
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
		what = mainFinding(o.Failure)
	default:
		said, what = "Not verified", mainFinding(o.Failure)
	}
	what = joinLines(what)
	switch {
	case what == "":
		return said
	case o.Failure != nil && strings.HasPrefix(what, classWords(o.Failure.Class)+": "): // says itself that it failed
		return clipText(strings.ToUpper(what[:1])+what[1:], maxSummary)
	}
	return clipText(said+": "+what, maxSummary)
}

// classWords are a class as the summary of an analysis begins with it.
func classWords(c failure.Class) string { return strings.ReplaceAll(string(c), "_", " ") }

// Where is the file, else the test, of what was found first; "" when that is
// not known.
func (o *Outcome) Where() string {
	for _, f := range o.allFindings() {
		if where := cmp.Or(f.File, f.Test); where != "" {
			return where
		}
	}
	return ""
}

// mainFinding is the most telling finding of a failure, else its summary.
func mainFinding(a *failure.Analysis) string {
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

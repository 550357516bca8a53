package loop

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Verdict is what a review says about the work.
type Verdict = control.Verdict

// The verdicts.
const (
	Approved = control.Approved
	Rejected = control.Rejected
	// Undecided: the review was asked for and gave no verdict that counts,
	// e.g. because its agent failed. It neither passes nor rejects the work.
	Undecided = control.Undecided
)

// Finding is one thing that a review asks to be changed.
type Finding = control.Finding

// Review is what a second look at an iteration's work said. Its cost, tokens
// and calls are its own: those of the record do not contain them.
type Review struct {
	Verdict Verdict `json:"verdict"`
	// Summary is one line, at most 200 bytes: why it was rejected, or why
	// there is no verdict.
	Summary string    `json:"summary,omitempty"`
	Items   []Finding `json:"items,omitempty"` // at most 20
	// Agent is who reviewed: an agent's name, or "person".
	Agent   string        `json:"agent,omitempty"`
	Elapsed time.Duration `json:"elapsed,omitempty"`
	// Failure is set when the reviewing agent itself failed.
	Failure *failure.Analysis `json:"failure,omitempty"`

	TokensIn   int64    `json:"tokens_in,omitempty"`
	TokensOut  int64    `json:"tokens_out,omitempty"`
	Cost       MicroUSD `json:"cost_micro_usd,omitempty"`
	CostSource string   `json:"cost_source,omitempty"` // as in Record
	Calls      int      `json:"calls,omitempty"`

	// Tries is how often the agent was started for it; 0 for a person's.
	Tries int `json:"tries,omitempty"`
	// Ended is set when pawl ended the reviewing agent.
	Ended Ended `json:"ended,omitempty"`
	// Reverted are files that the reviewer changed although it may not, and
	// that were put back; at most 100.
	Reverted []string `json:"reverted,omitempty"`
}

// Rejection is the failure that a rejecting review makes of an iteration, most
// urgent findings first; nil for any other verdict.
func (v *Review) Rejection() *failure.Analysis {
	if v == nil || v.Verdict != Rejected {
		return nil
	}
	found := append([]Finding(nil), v.Items...)
	control.Sort(found)
	a := &failure.Analysis{
		Class: failure.Validation, Kind: failure.Work, Severity: cmp.Or(control.Priority(found), failure.Medium),
		Summary: v.asOutcome().Summary(), Step: "review", Actions: []string{"Do what the review asks for."},
	}
	a.Items = append(a.Items, lists.Each(found, func(f Finding) failure.Item { return f.Item })...)
	a.Fingerprint = failure.Fingerprint(*a, a.Summary)
	return a
}

func (v *Review) asOutcome() *control.Outcome {
	now := control.Attempt{Tests: control.Passed, Review: v.Verdict}
	return &control.Outcome{Attempt: now, Said: v.Summary, Found: v.Items}
}

// passesReview reports whether it was approved, or no review was asked for.
func (r *Record) passesReview() bool { return r.Review == nil || r.Review.Verdict == Approved }

func (r *Record) isApproved() bool { return r.Review != nil && r.Review.Verdict == Approved }

func (r *Record) isRejected() bool { return r.Review != nil && r.Review.Verdict == Rejected }

// awaitsReview reports whether only the review's verdict is missing for the work to be
// complete.
func (r *Record) awaitsReview() bool {
	if r.Review != nil && r.Review.Verdict != Undecided {
		return false
	}
	bare := *r
	bare.Review = nil
	ok, _ := bare.Completes()
	return ok
}

// Person is the reviewer of a policy, or who reviewed, when it is no agent.
const Person = "person"

// The bounds of what is read of a review.
const (
	maxFindings = 20
	maxFinding  = 1000 // bytes of one
)

// firstLine is the first line of a text, at most 200 bytes.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return cutToBytes(strings.TrimSpace(line), maxReason)
}

const maxReason = 200 // bytes of a review's summary

// cutToBytes is the first bytes of a text, at most limit with the mark of the cut.
func cutToBytes(text string, limit int) string { return fault.Cut(text, limit-len("…")) }

var flagged = lazy.Regexp(`(?i)\bfile:\s*([^\s,]+)`)

// maxFlagged bounds what one text can flag.
const maxFlagged = 100

// FlaggedFiles lists the paths that a text names as "file: path", each once,
// in their order.
func FlaggedFiles(text string) []string {
	var files []string
	for _, m := range flagged().FindAllStringSubmatch(text, 10*maxFlagged) {
		path := strings.TrimRight(m[1], `.;:)]}"'`)
		if path != "" && len(files) < maxFlagged && !slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	return files
}

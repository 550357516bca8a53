package loop

import (
	"time"

	"github.com/pawl-dev/pawl/internal/failure"
)

// Verdict is what a review says about the work.
type Verdict string

// The verdicts.
const (
	Approved Verdict = "approved"
	Rejected Verdict = "rejected"
	// Undecided: the review was asked for and gave no verdict that counts,
	// e.g. because its agent failed. It neither passes nor rejects the work.
	Undecided Verdict = "pending"
)

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
}

// Finding is one thing that a review asks to be changed.
type Finding struct {
	failure.Item
	// Severity is critical (security), high, medium (the usual) or low
	// (style); empty is medium.
	Severity failure.Severity `json:"severity,omitempty"`
}

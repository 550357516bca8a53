// Package failure says what went wrong: from an exit status, an output and
// typed API errors it makes a class, whether the same again may work, a
// fingerprint that is the same for the same failure, and the items that an
// agent can act on.
//
// The package is pure: it reads no clock, file or process. What it knows is
// in [Evidence].
package failure

import (
	"slices"
	"strings"
	"time"
)

// Class is the sort of failure.
type Class string

// The classes. Every failure has exactly one.
const (
	Timeout            Class = "timeout"
	RateLimit          Class = "rate_limit"
	QuotaExhausted     Class = "quota_exhausted"
	Network            Class = "network"
	Auth               Class = "auth"
	Permission         Class = "permission"
	Validation         Class = "validation"
	ContextLength      Class = "context_length"
	ResourceExhausted  Class = "resource_exhausted"
	ServiceUnavailable Class = "service_unavailable"
	Crash              Class = "crash"
	TestFailure        Class = "test_failure"
	CompileError       Class = "compile_error"
	Lint               Class = "lint"
	Dependency         Class = "dependency"
	MergeConflict      Class = "merge_conflict"
	GitState           Class = "git_state"
	MissingCommand     Class = "missing_command"
	PortConflict       Class = "port_conflict"
	NoProgress         Class = "no_progress"
	LimitExceeded      Class = "limit_exceeded"
	Tampering          Class = "tampering"
	RefusedByModel     Class = "refused_by_model"
	OutputLimit        Class = "output_limit"
	EmptyAnswer        Class = "empty_answer"
	MalformedAnswer    Class = "malformed_answer"
	Unknown            Class = "unknown"
)

// Kind says who has to act.
type Kind string

const (
	// Transient: the same again may work; wait, then repeat.
	Transient Kind = "transient"
	// Work: the agent must change something.
	Work Kind = "work"
	// Permanent: a person must act; repeating burns iterations.
	Permanent Kind = "permanent"
)

// Severity is how bad it is for the run.
type Severity string

// The severities, mildest first.
const (
	Low      Severity = "low"
	Medium   Severity = "medium"
	High     Severity = "high"
	Critical Severity = "critical"
)

// APIError is an error of a model provider, typed by the agent's own stream.
type APIError struct {
	Status     int           `json:"status,omitempty"`      // HTTP status, 0 when unknown
	Type       string        `json:"type,omitempty"`        // the provider's word, e.g. "rate_limit"
	Message    string        `json:"message,omitempty"`     // at most 2,000 bytes
	RetryAfter time.Duration `json:"retry_after,omitempty"` // 0 when not named
	ResetAt    time.Time     `json:"reset_at,omitzero"`     // zero when not named
}

// Evidence is all that is known of one failure.
type Evidence struct {
	// Source is who failed: "agent", "gate", "step", or "log" where nothing is
	// known but an output.
	Source string
	// Name of the gate, step or agent program, as the user knows it.
	Name string
	// ExitCode is the exit status; -1 when the process did not exit by itself.
	ExitCode int
	// Signal that ended the process, e.g. "killed"; empty when none.
	Signal string
	// TimedOut is true when pawl ended it at a time limit.
	TimedOut bool
	// CutOff is true when a structured stream ended without its terminal event.
	CutOff bool
	// Output is the end (and, if cut, the head) of what it printed; stdout and
	// stderr together. ANSI codes may be in it.
	Output string
	// Green is what the same command printed when it last succeeded; empty when
	// that is not known. What is in it, too, is not what went wrong.
	Green string
	// Errors are the provider's, as the stream reported them, oldest first.
	Errors []APIError
	// Now is the time of the failure; clock times in a message ("resets 9pm")
	// are read in its location.
	Now time.Time
	// Zone knows the time zones that a message may name, by their names of the
	// tz database; nil, and what it returns nil for, is Now's location.
	Zone func(name string) *time.Location
}

// Item is one thing that an agent can act on.
type Item struct {
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`   // 1-based; 0 when not known
	Column   int    `json:"column,omitempty"` // 1-based; 0 when not known
	Test     string `json:"test,omitempty"`
	Message  string `json:"message,omitempty"`
	Expected string `json:"expected,omitempty"`
	Received string `json:"received,omitempty"`
}

// HasValuesBeyond reports whether the item has values that said, a part of its message, does not
// contain. If not, showing them after said would repeat them.
func (i Item) HasValuesBeyond(said string) bool {
	if i.Expected == "" && i.Received == "" {
		return false
	}
	return !strings.Contains(said, i.Expected) || !strings.Contains(said, i.Received)
}

// Analysis is the result for the evidence. It goes through JSON to the journal
// and to users; fields can be added, but names must not change.
type Analysis struct {
	Class       Class    `json:"class"`
	Kind        Kind     `json:"kind"`
	Transient   bool     `json:"transient"`
	Severity    Severity `json:"severity"`
	Summary     string   `json:"summary"` // one line, at most 200 bytes
	Fingerprint string   `json:"fingerprint"`
	Items       []Item   `json:"items,omitempty"`   // at most 20
	Actions     []string `json:"actions,omitempty"` // what a person or an agent could do
	// Provider is true when the failure is the model provider's (rate limit,
	// quota, outage) and not the work's: the loop waits for it.
	Provider bool `json:"provider,omitempty"`
	// WaitUntil is when the provider said that it works again; zero when it
	// did not say.
	WaitUntil time.Time `json:"wait_until,omitzero"`
	// Stderr has the last lines that the agent's program wrote there; empty for a gate or a step.
	Stderr string `json:"stderr,omitempty"`
	// Step that failed: the gate's or step's name; empty for the agent itself.
	Step string `json:"failed_step,omitempty"`
	// Code is that of a verification that was red, e.g. VERIFICATION_FAILED; else empty.
	Code string `json:"code,omitempty"`
}

// Tests is a test runner's summary.
type Tests struct {
	Runner  string `json:"runner"` // "go", "jest", "pytest", …
	Passed  int    `json:"passed"`
	Failed  int    `json:"failed"`
	Skipped int    `json:"skipped"`
	Items   []Item `json:"items,omitempty"`
}

// Classes lists all classes, in the order in which documents name them.
func Classes() []Class {
	return []Class{
		Timeout, RateLimit, QuotaExhausted, Network, Auth, Permission, Validation, ContextLength, ResourceExhausted,
		ServiceUnavailable, Crash, TestFailure, CompileError, Lint, Dependency, MergeConflict, GitState,
		MissingCommand, PortConflict, NoProgress, LimitExceeded, Tampering,
		RefusedByModel, OutputLimit, EmptyAnswer, MalformedAnswer, Unknown,
	}
}

// Advice returns the first action, if it helps an agent more than the lines of the output do, and
// "" otherwise.
func (a *Analysis) Advice() string {
	around := a.Kind == Work && slices.Contains([]Class{Dependency, MissingCommand, Permission}, a.Class)
	if len(a.Actions) > 0 && (around || slices.Contains(Unanswered(), a.Class)) {
		return a.Actions[0]
	}
	return ""
}

// Unanswered are the classes of a model that gave no answer to work with. The
// first action says what the agent can do otherwise.
func Unanswered() []Class { return []Class{RefusedByModel, OutputLimit, EmptyAnswer, MalformedAnswer} }

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
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/runners"
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

// PersonNeeded begins the reason of a run that failed for what only a person can cure. It is stored.
const PersonNeeded = "a person is needed: "

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
type Item = runners.Item

// Tests is a test runner's summary.
type Tests = runners.Tests

// Analysis is the result for the evidence. It goes through JSON to the journal
// and to users; fields can be added, but names must not change.
type Analysis struct {
	Class       Class    `json:"class"`
	Kind        Kind     `json:"kind"`
	Transient   bool     `json:"transient"`
	Severity    Severity `json:"severity"`
	Summary     string   `json:"summary"` // one line, at most 280 bytes
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

// ParseTests reads what a test runner says in output: its counts and its
// failing tests, at most 20. It knows go test (plain, -v and -json), jest,
// vitest, Playwright, pytest, unittest, cargo test, JUnit's XML, TAP, node:test, mocha,
// rspec, minitest, ExUnit, PHPUnit, Pest, surefire, Gradle, dotnet test, GoogleTest,
// CTest, XCTest, Swift Testing, cargo nextest, zig, Deno and Bun. False
// means that no runner's summary was recognised; true with Passed and Failed
// both 0 means that a runner ran and executed no tests.
//
// go test without -v does not say how many tests passed: each package that
// passed counts as one.
func ParseTests(output string) (Tests, bool) {
	return runners.Read(printed.Split(printed.Read(printed.Bound(output)).Text))
}

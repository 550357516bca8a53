// Package safety says what a safety level allows: limits, operations,
// variables; and finds dangerous operations in commands and secrets in diffs.
//
// It reads text and decides. It never runs, stops or changes anything, and it
// is a tripwire and no fence: what is hidden well enough is not found. What
// holds against an agent that wants to get around it is the sandbox.
package safety

import "time"

// Level is how much a run may do.
type Level string

// The levels, the freest first.
const (
	Permissive Level = "permissive"
	Normal     Level = "normal"
	Paranoid   Level = "paranoid"
)

// Limits are what a run of a level may use up. To reach a limit is allowed, to
// pass it is not.
type Limits struct {
	IterationCost     int64 // millionths of a US dollar
	TotalCost         int64 // millionths of a US dollar
	IterationDuration time.Duration
	TotalDuration     time.Duration
	IterationCalls    int // calls to the model
}

const dollar = 1_000_000

// LimitsOf returns a level's limits, of a level that is not known paranoid's.
// It is the one place that has the figures: the configuration's defaults are
// made of it.
func LimitsOf(l Level) Limits {
	switch l {
	case Permissive:
		return Limits{10 * dollar, 50 * dollar, 10 * time.Minute, time.Hour, 1000}
	case Normal:
		return Limits{5 * dollar, 20 * dollar, 5 * time.Minute, 30 * time.Minute, 500}
	}
	return Limits{1 * dollar, 5 * dollar, 2 * time.Minute, 10 * time.Minute, 100}
}

// Prefix begins the reason of whatever a level ended.
const Prefix = "Safety violation: "

// Operation is a sort of operation that a level may forbid.
type Operation string

// The operations.
const (
	Destructive Operation = "destructive" // what cannot be taken back
	External    Operation = "external"    // talks to somebody else than the model
	Writes      Operation = "writes"      // writes files outside of the workspace
)

// Message says that an operation is forbidden.
func (o Operation) Message() string {
	switch o {
	case External:
		return "External API calls not allowed at this safety level"
	case Writes:
		return "File system writes not allowed at this safety level"
	}
	return "Destructive operations not allowed at this safety level"
}

// forbids says whether operations of that sort and danger are stopped. Writes
// outside of the workspace count as destructive where other writes are free.
func (l Level) forbids(o Operation, d Danger) bool {
	switch {
	case l == Permissive:
		return false
	case o == External:
		return l != Normal
	case l == Normal:
		return d == High
	}
	return true
}

// Near is true from 80 % of a limit on: the time to warn. A limit of 0 or less
// is never near.
func Near(used, limit int64) bool { return limit > 0 && used >= limit-limit/5 }

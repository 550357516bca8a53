// Package safety says what a safety level allows: the limits on money, time
// and calls. It is pure; the supervisor and the kernel enforce.
package safety

import (
	"fmt"
	"time"
)

// Level is how far an agent may go.
type Level string

// The levels, freest first.
const (
	Permissive Level = "permissive"
	Normal     Level = "normal"
	Paranoid   Level = "paranoid"
)

// Limits of one level. Money is whole micro-dollars. A limit of zero allows
// nothing; [Unlimited] is no limit.
type Limits struct {
	IterationCost     int64
	TotalCost         int64
	IterationDuration time.Duration
	TotalDuration     time.Duration
	IterationCalls    int
}

// Unlimited stands for no limit.
const Unlimited = -1

const dollar = 1_000_000

// For returns the limits of a level; an unknown level is an error that names
// the levels.
func For(l Level) (Limits, error) {
	switch l {
	case Permissive:
		return Limits{10 * dollar, 50 * dollar, 10 * time.Minute, time.Hour, 1000}, nil
	case Normal:
		return Limits{5 * dollar, 20 * dollar, 5 * time.Minute, 30 * time.Minute, 500}, nil
	case Paranoid:
		return Limits{1 * dollar, 5 * dollar, 2 * time.Minute, 10 * time.Minute, 100}, nil
	}
	return Limits{}, fmt.Errorf("unknown safety level %q: write permissive, normal or paranoid", string(l))
}

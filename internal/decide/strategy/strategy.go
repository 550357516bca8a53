// Package strategy decides how the next iteration differs from the last: which
// strategy is tried for which class of failure, what each one changes, and
// what was learned of it in the iterations before.
//
// The package is pure: it reads no clock, file or database, and the same
// situation always gives the same choice. A [Strategy] is data; the performer
// of the iteration makes its settings take effect.
package strategy

import (
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Default is the name of the strategy that every run starts with.
const Default = "default"

// Backoff is how the waits after transient failures grow.
type Backoff string

// The backoffs. After failures of the work nothing is ever waited.
const (
	NoBackoff   Backoff = "none"        // the next iteration starts at once
	Linear      Backoff = "linear"      // the second wait is twice the first, the third three times
	Exponential Backoff = "exponential" // each wait is four times the one before
)

const (
	minBackoff = time.Second
	// MaxBackoff is the longest wait.
	MaxBackoff = 5 * time.Minute
)

// Wait returns the n-th wait, from one second to five minutes; the seed shortens it by up to
// a half, so that many loops do not come back at once.
func (b Backoff) Wait(n int, seed uint64) time.Duration {
	d := MaxBackoff
	switch {
	case b == NoBackoff || b == "":
		return 0
	case b == Linear:
		d = min(minBackoff*time.Duration(min(n, 1000)), MaxBackoff)
	case n < 10:
		d = min(minBackoff<<(n-1), MaxBackoff)
	}
	half := d / 2
	return max(d-time.Duration(spreadSeedBits(seed)%uint64(half+1)), minBackoff)
}

// outageFactor is how much longer an outage is waited for than what a little
// patience or less load cures.
const outageFactor = 5

// WaitAfter is the n-th wait in a row after a transient failure. An iteration
// costs money and minutes, so an exponential one grows faster than the wait for
// a provider, of which nothing but the question is lost: four times each.
func (b Backoff) WaitAfter(class failure.Class, n int, seed uint64) time.Duration {
	if b == Exponential {
		n = 2*n - 1
	}
	d := b.Wait(n, seed)
	if Outage(class) {
		return min(outageFactor*d, MaxBackoff)
	}
	return d
}

// spreadSeedBits spreads the bits of a seed (splitmix64).
func spreadSeedBits(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Mode is how strategies that fit are put in order.
type Mode string

// The modes. The empty mode is [Auto].
const (
	Auto         Mode = "auto"         // priority and what was learned, weighed
	Conservative Mode = "conservative" // priority alone
	Aggressive   Mode = "aggressive"   // successes so far, then priority
)

// Strategy is one way to go on after a failure. Own strategies are stored
// with a run, so fields can be added, but their names must not change.
type Strategy struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Priority orders strategies that fit equally; higher is tried first.
	Priority int `json:"priority"`
	// Classes of failure that it is made for.
	Classes []failure.Class `json:"classes,omitempty"`
	// Instruction is added to the next prompt; empty adds nothing.
	Instruction string `json:"instruction,omitempty"`
	// Timeout is for workflow steps without one of their own; 0 leaves it.
	Timeout time.Duration `json:"timeout,omitempty"`
	// TimeoutFactor multiplies iteration_timeout, idle_timeout and the limits
	// of gates; 0 and 1 leave them.
	TimeoutFactor int `json:"timeout_factor,omitempty"`
	// TimeoutFloor is what iteration_timeout is at least; 0 leaves it.
	TimeoutFloor time.Duration `json:"timeout_floor,omitempty"`
	// Backoff is for the wait before the iteration; empty is [NoBackoff].
	Backoff Backoff `json:"backoff,omitempty"`
	// Parallelism is how many steps run at once; 0 leaves it.
	Parallelism int `json:"parallelism,omitempty"`
	// Fallback uses the next agent of agents.fallback.
	Fallback bool `json:"fallback,omitempty"`
	// Agent is the agent that it uses; empty leaves it.
	Agent string `json:"agent,omitempty"`
	// Stronger uses agents.stronger.
	Stronger bool `json:"stronger,omitempty"`
	// Rewind puts the tree back to the best-scoring snapshot first.
	Rewind bool `json:"rewind,omitempty"`
	// SkipOptional skips steps and gates that are not required.
	SkipOptional bool `json:"skip_optional,omitempty"`
	// UseCache false gives a failed step, and what depends on it, a fresh attempt.
	UseCache bool `json:"use_cache,omitempty"`

	work bool // for all failures of the work, but not for one that may go by itself
}

// Wall is the time that an iteration may take under the strategy, given
// iteration_timeout and what the safety level allows at most. 0 is no limit,
// in both and in the result; a strategy never shortens it.
func (c *Strategy) Wall(base, ceiling time.Duration) time.Duration {
	if base <= 0 {
		return base
	}
	d := max(base*time.Duration(max(c.TimeoutFactor, 1)), c.TimeoutFloor)
	if ceiling > 0 {
		d = min(d, max(ceiling, base))
	}
	return d
}

// Lasting reports whether the strategy has settings that stay in force when it helped
// against a transient failure: time and parallelism. What made them needful, a
// slow service or a small machine, lasts longer than one iteration.
func (c *Strategy) Lasting() bool {
	fewer := c.Parallelism > 0 && c.Parallelism < builtin[0].Parallelism
	return fewer || c.TimeoutFactor > 1 || c.TimeoutFloor > 0
}

// Lookup returns the strategy of that name: a built-in one, or one of own.
func Lookup(name string, own []Strategy) (Strategy, bool) {
	if c := findStrategy(name, own); c != nil {
		return *c, true
	}
	return Strategy{}, false
}

// findStrategy returns a pointer, so that a decision copies nothing. What it points to
// is not to be changed.
func findStrategy(name string, own []Strategy) *Strategy {
	for i := range builtin {
		if builtin[i].Name == name {
			return &builtin[i]
		}
	}
	for i := range own {
		if own[i].Name == name {
			return &own[i]
		}
	}
	return nil
}

// At returns the strategy of that name, the default one where there is none.
// It is shared: it must not be changed.
func At(name string, own []Strategy) *Strategy {
	if c := findStrategy(name, own); c != nil {
		return c
	}
	return &builtin[0]
}

// BuiltIn reports whether a built-in strategy has the name.
func BuiltIn(name string) bool { return findStrategy(name, nil) != nil }

// Names lists the built-in strategies, highest priority first.
func Names() []string {
	return lists.Each(builtin, func(s Strategy) string { return s.Name })
}

// builtin are the strategies that pawl knows, highest priority first; the
// first is the default one. The order among equals is the order here.
var builtin = []Strategy{
	{
		Name: Default, Description: "Standard execution with retries", Priority: 10,
		Timeout: 5 * time.Minute, Backoff: Exponential, Parallelism: 5, UseCache: true,
	},
	{
		Name: "diagnose", Description: "Find the root cause before any edit", Priority: 9, Classes: workClasses,
		work: true, Timeout: 5 * time.Minute, Backoff: Exponential, Parallelism: 5, UseCache: true,
		Instruction: "Before you edit anything, find the root cause: read the failure above, reproduce it, and write " +
			"down in one sentence what causes it. Then make the smallest change that removes that cause.",
	},
	{
		Name: "aggressive-timeout", Description: "Increase timeouts for slow operations", Priority: 8,
		Classes: []failure.Class{failure.Timeout, failure.Network},
		Timeout: 10 * time.Minute, TimeoutFactor: 2, Backoff: Exponential, Parallelism: 5, UseCache: true,
		Instruction: "This iteration has more time. Work in smaller steps all the same, and finish with what is " +
			"verified.",
	},
	{
		Name: FallbackProviders, Description: "Use alternative AI providers", Priority: 7,
		Classes: []failure.Class{failure.RateLimit, failure.QuotaExhausted, failure.ServiceUnavailable},
		Timeout: 5 * time.Minute, Backoff: Exponential, Parallelism: 5, Fallback: true,
	},
	{
		Name: "reduced-parallelism", Description: "Execute steps sequentially to avoid resource contention",
		Priority: 6, Classes: []failure.Class{failure.ResourceExhausted, failure.PortConflict},
		Timeout: 5 * time.Minute, Backoff: Linear, Parallelism: 1, UseCache: true,
		Instruction: "Run one thing at a time: tests with one worker, builds with one job, and end what you started " +
			"before you start the next.",
	},
	{
		Name: "skip-optional", Description: "Skip optional steps to reach completion", Priority: 5,
		Timeout: 5 * time.Minute, Backoff: Exponential, Parallelism: 5, SkipOptional: true, UseCache: true,
	},
	{
		Name: "rewind", Description: "Put the files back to the best snapshot and try another way",
		Priority: 4, Classes: workClasses, work: true,
		Timeout: 5 * time.Minute, Backoff: Exponential, Parallelism: 5, Rewind: true, UseCache: true,
		Instruction: "The files were put back to the best state so far, because what came after it made things " +
			"worse. Do not repeat what was tried; take another way.",
	},
	{
		Name: "stronger-agent", Description: "Use agents.stronger", Priority: 3, Classes: append(failure.Unanswered(),
			workClasses...), work: true,
		Timeout: 5 * time.Minute, Backoff: Exponential, Parallelism: 5, Stronger: true, UseCache: true,
	},
}

// FallbackProviders is the strategy that leaves a provider for the next one.
const FallbackProviders = "fallback-providers"

// workClasses are the failures in which the agent must change something.
var workClasses = []failure.Class{
	failure.TestFailure, failure.CompileError, failure.Lint, failure.MergeConflict, failure.Tampering,
	failure.Crash, failure.Dependency, failure.Validation, failure.GitState, failure.NoProgress, failure.Unknown,
}

// isPassing: a failure of the class is waited out or gone round, rather than worked
// on.
func isPassing(c failure.Class) bool {
	switch c {
	case failure.Timeout, failure.Network, failure.RateLimit, failure.QuotaExhausted, failure.ServiceUnavailable,
		failure.ResourceExhausted, failure.PortConflict:
		return true
	default:
		return false
	}
}

// Outage reports whether a service is away for a while, and time cures it, not less load.
func Outage(c failure.Class) bool {
	switch c {
	case failure.Network, failure.RateLimit, failure.QuotaExhausted, failure.ServiceUnavailable:
		return true
	default:
		return false
	}
}

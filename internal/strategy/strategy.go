// Package strategy says how the next iteration differs from the last: which
// strategy is tried for which class of failure, and what each one changes.
//
// The package is pure. A [Strategy] is data; whoever performs the iteration
// makes its settings take effect.
package strategy

import "github.com/pawl-dev/pawl/internal/failure"

// Strategy is one way to go on after a failure.
type Strategy struct {
	Name        string
	Description string
	// Priority orders strategies that fit equally; higher is tried first.
	Priority int
	// Classes of failure that it is made for.
	Classes []failure.Class
	// Instruction is added to the next prompt; empty adds nothing.
	Instruction string
	// TimeoutFactor multiplies iteration_timeout; 0 leaves it.
	TimeoutFactor int
	// Fallback uses the next agent of agents.fallback.
	Fallback bool
	// Stronger uses agents.stronger.
	Stronger bool
	// Rewind puts the tree back to the best-scoring snapshot first.
	Rewind bool
	// SkipOptional skips gates that are not required.
	SkipOptional bool
}

// Default is the name of the strategy that every run starts with.
const Default = "default"

var builtin = []Strategy{
	{Name: Default, Description: "Standard execution", Priority: 10},
	{
		Name: "diagnose", Description: "Find the root cause before any edit", Priority: 9,
		Classes: workClasses,
		Instruction: "Before you edit anything, find the root cause: read the failure above, reproduce it, and write down in one sentence what causes it. " +
			"Then make the smallest change that removes that cause.",
	},
	{
		Name: "aggressive-timeout", Description: "Increase timeouts for slow operations", Priority: 8,
		Classes: []failure.Class{failure.Timeout, failure.Network}, TimeoutFactor: 2,
		Instruction: "The last iteration ran out of time. Work in smaller steps, and finish with what is verified.",
	},
	{
		Name: "fallback-providers", Description: "Use the next agent of agents.fallback", Priority: 7,
		Classes:  []failure.Class{failure.RateLimit, failure.QuotaExhausted, failure.ServiceUnavailable},
		Fallback: true,
	},
	{
		Name: "skip-optional", Description: "Skip optional gates to reach completion", Priority: 5,
		Classes: []failure.Class{failure.Timeout}, SkipOptional: true,
	},
	{
		Name: "rewind", Description: "Put the tree back to the best snapshot and try another way", Priority: 4,
		Classes: workClasses, Rewind: true,
		Instruction: "The files were put back to the best state so far, because what came after it made things worse. Do not repeat what was tried; take another way.",
	},
	{
		Name: "stronger-agent", Description: "Use agents.stronger", Priority: 3,
		Classes: workClasses, Stronger: true,
	},
}

var workClasses = []failure.Class{
	failure.TestFailure, failure.CompileError, failure.Lint, failure.MergeConflict, failure.Tampering,
	failure.Crash, failure.Dependency, failure.Validation, failure.GitState, failure.NoProgress, failure.Unknown,
}

// Lookup returns the strategy of that name.
func Lookup(name string) (Strategy, bool) {
	for i := range builtin {
		if builtin[i].Name == name {
			return builtin[i], true
		}
	}
	return Strategy{}, false
}

// Names lists the strategies, highest priority first.
func Names() []string {
	names := make([]string, len(builtin))
	for i, s := range builtin {
		names[i] = s.Name
	}
	return names
}

// Use is a strategy that failed for a class of failure in this run.
type Use struct {
	Class    failure.Class `json:"class"`
	Strategy string        `json:"strategy"`
}

// Situation is what a choice is made from.
type Situation struct {
	Current string        // strategy of the iteration that failed
	Class   failure.Class // what failed
	Failed  []Use         // uses that failed so far, the last included
	// What has an effect here; a strategy that would change nothing is not chosen.
	CanFallback, CanStronger, CanRewind, HasOptional bool
}

// Next chooses the strategy after a failed iteration and says why. The
// candidates are those made for the class, without those that already failed
// for it in this run, highest priority first; when all are used up they are
// tried again in turn, and where none fits the strategy stays.
func Next(s Situation) (name, why string) {
	fits := make([]*Strategy, 0, 8) // on the stack
	for i := range builtin {
		if c := &builtin[i]; c.madeFor(s.Class) && c.effective(&s) {
			fits = append(fits, c)
		}
	}
	if len(fits) == 0 {
		return s.Current, "no other strategy is made for " + string(s.Class)
	}
	for _, c := range fits {
		if !used(s.Failed, s.Class, c.Name) {
			return c.Name, "made for " + string(s.Class) + ", not tried yet"
		}
	}
	for i, c := range fits {
		if c.Name == s.Current {
			next := fits[(i+1)%len(fits)]
			return next.Name, "all made for " + string(s.Class) + " were tried; in turn"
		}
	}
	return fits[0].Name, "all made for " + string(s.Class) + " were tried; in turn"
}

func (c *Strategy) madeFor(class failure.Class) bool {
	for _, k := range c.Classes {
		if k == class {
			return true
		}
	}
	return false
}

func (c *Strategy) effective(s *Situation) bool {
	switch {
	case c.Fallback:
		return s.CanFallback
	case c.Stronger:
		return s.CanStronger
	case c.Rewind:
		return s.CanRewind
	case c.SkipOptional:
		return s.HasOptional
	}
	return true
}

func used(uses []Use, class failure.Class, name string) bool {
	for _, u := range uses {
		if u.Class == class && u.Strategy == name {
			return true
		}
	}
	return false
}

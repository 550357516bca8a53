package strategy

import (
	"time"

	"github.com/pawl-dev/pawl/internal/failure"
)

// builtin are the strategies that pawl knows, highest priority first; the
// first is the default one. The order among equals is the order here.
var builtin = []Strategy{
	{
		Name: Default, Description: "Standard execution with retries", Priority: 10,
		Timeout: 5 * time.Minute, Backoff: Exponential, Parallelism: 5, UseCache: true,
	},
	{
		Name: "diagnose", Description: "Find the root cause before any edit", Priority: 9, Classes: workClasses, work: true,
		Timeout: 5 * time.Minute, Backoff: Exponential, Parallelism: 5, UseCache: true,
		Instruction: "Before you edit anything, find the root cause: read the failure above, reproduce it, and write down in one sentence what causes it. " +
			"Then make the smallest change that removes that cause.",
	},
	{
		Name: "aggressive-timeout", Description: "Increase timeouts for slow operations", Priority: 8,
		Classes: []failure.Class{failure.Timeout, failure.Network},
		Timeout: 10 * time.Minute, TimeoutFactor: 2, Backoff: Exponential, Parallelism: 5, UseCache: true,
		Instruction: "This iteration has more time. Work in smaller steps all the same, and finish with what is verified.",
	},
	{
		Name: FallbackProviders, Description: "Use alternative AI providers", Priority: 7,
		Classes: []failure.Class{failure.RateLimit, failure.QuotaExhausted, failure.ServiceUnavailable},
		Timeout: 5 * time.Minute, Backoff: Exponential, Parallelism: 5, Fallback: true,
	},
	{
		Name: "reduced-parallelism", Description: "Execute steps sequentially to avoid resource contention", Priority: 6,
		Classes: []failure.Class{failure.ResourceExhausted, failure.PortConflict},
		Timeout: 5 * time.Minute, Backoff: Linear, Parallelism: 1, UseCache: true,
		Instruction: "Run one thing at a time: tests with one worker, builds with one job, and end what you started before you start the next.",
	},
	{
		Name: "skip-optional", Description: "Skip optional steps to reach completion", Priority: 5,
		Timeout: 5 * time.Minute, Backoff: Exponential, Parallelism: 5, SkipOptional: true, UseCache: true,
	},
	{
		Name: "rewind", Description: "Put the files back to the best snapshot and try another way",
		Priority: 4, Classes: workClasses, work: true,
		Timeout: 5 * time.Minute, Backoff: Exponential, Parallelism: 5, Rewind: true, UseCache: true,
		Instruction: "The files were put back to the best state so far, because what came after it made things worse. " +
			"Do not repeat what was tried; take another way.",
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

// passing says whether a class of failure is one that is waited out or gone
// round, rather than worked on.
func passing(c failure.Class) bool {
	switch c {
	case failure.Timeout, failure.Network, failure.RateLimit, failure.QuotaExhausted, failure.ServiceUnavailable,
		failure.ResourceExhausted, failure.PortConflict:
		return true
	default:
		return false
	}
}

// Outage says whether a class of failure is that of a service that is away for
// a while: time cures it, not less load.
func Outage(c failure.Class) bool {
	switch c {
	case failure.Network, failure.RateLimit, failure.QuotaExhausted, failure.ServiceUnavailable:
		return true
	default:
		return false
	}
}

// Package ending makes of the result of a job what the record of its iteration says: how the
// agent, the gate or the step ended, what it used, and which failure that is.
package ending

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// FailureOfLost says for people what became of an attempt without a result. It
// is no failure of the agent's.
func FailureOfLost() *failure.Analysis {
	return &failure.Analysis{
		Class: failure.Unknown, Kind: failure.Transient, Transient: true, Severity: failure.Medium,
		Summary:     "the result of the iteration is unknown: its pawl process or machine ended or was disconnected",
		Fingerprint: "lost",
	}
}

// CannotStart is the fingerprint of a failure to begin: pawl's own, no agent's.
const CannotStart = "cannot-start"

// NotBegun is the record of an iteration that was stopped before its agent began.
func NotBegun(c loop.Command) *loop.Record {
	return &loop.Record{
		Number: c.Iteration, Attempt: c.Attempt, StartedAt: time.Now(), Agent: c.Agent, Strategy: c.Strategy,
		Exit: loop.Exit{Code: -1, Ended: loop.EndedStop}, Progress: -1, Score: -1, CostSource: "none",
	}
}

// NotStarted is the record of an iteration that pawl itself could not begin.
// A person must act, so nothing is tried again.
func NotStarted(c loop.Command, err error) *loop.Record {
	return &loop.Record{
		Number: c.Iteration, Attempt: c.Attempt, StartedAt: time.Now(), Agent: c.Agent, Strategy: c.Strategy,
		Exit: loop.Exit{Code: -1}, Progress: -1, Score: -1, CostSource: "none",
		Failure: &failure.Analysis{
			Class: failure.Unknown, Kind: failure.Permanent, Severity: failure.Critical,
			Summary: err.Error(), Fingerprint: CannotStart,
		},
	}
}

// NewRecord is the record of how a job's agent ended and what it used.
func NewRecord(p *runplan.Plan, c loop.Command, res supervisor.Result) *loop.Record {
	out := res.Agent
	r := &loop.Record{
		Number: c.Iteration, Attempt: c.Attempt, StartedAt: res.StartedAt,
		Elapsed: max(0, res.Elapsed), Agent: c.Agent, Strategy: c.Strategy,
		Exit: res.Exit, Progress: -1, Score: -1, Commits: 0, CostSource: cmp.Or(out.CostSource, "none"), Cost: out.Cost,
		Calls:    out.Calls,
		TokensIn: out.Usage.Input + out.Usage.CacheRead + out.Usage.CacheWrite, TokensOut: out.Usage.Output,
		Output: res.Stdout.Bytes + res.Stderr.Bytes, Refused: res.Refused, Withheld: withheldOf(p, c.Agent),
	}
	for _, name := range slices.Sorted(maps.Keys(out.Models)) {
		m := out.Models[name]
		r.Models = append(r.Models, loop.ModelUse{
			Model: name, Calls: m.Calls, Input: m.Input, CacheRead: m.CacheRead,
			CacheWrite: m.CacheWrite, Output: m.Output,
			Cost: m.Cost, Unpriced: m.Unpriced,
		})
	}
	if IsStructured(p, c.Agent) {
		r.Exit.Terminal = out.Terminal
		if out.Terminal == loop.TerminalNone {
			r.Exit.Terminal = loop.TerminalMissing
		}
	}
	return r
}

// IsStructured reports whether the agent prints a stream of events.
func IsStructured(p *runplan.Plan, name string) bool {
	a, ok := p.Agents[name]
	return ok && a.Adapter.About().Structured
}

// withheldOf are the names that an agent did not get.
func withheldOf(p *runplan.Plan, name string) []string {
	if a := p.Agents[name]; a.Environ != nil {
		return a.Withheld
	}
	return p.Withheld
}

// FailureNotJudged is the failure of an iteration that pawl could not judge.
func FailureNotJudged(err error) *failure.Analysis {
	return &failure.Analysis{
		Class: failure.Unknown, Kind: failure.Transient, Transient: true, Severity: failure.High,
		Summary: err.Error(), Fingerprint: "gate-not-run",
	}
}

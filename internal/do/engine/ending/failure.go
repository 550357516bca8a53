package ending

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // a slim machine has no table of its own

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/decide/signal"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// DayFingerprint is the fingerprint of a failure by a limit of the day.
const DayFingerprint = "limit-day"

// FailureOfDay is the failure of an agent that a limit of the day ended. It waits like
// one of a provider.
func FailureOfDay(why string, now time.Time) *failure.Analysis {
	return &failure.Analysis{
		Class: failure.QuotaExhausted, Kind: failure.Transient, Provider: true, Severity: failure.Medium,
		Summary: clipLine(why), Fingerprint: DayFingerprint, WaitUntil: ratelimit.NextDay(now),
		Actions: []string{"Wait for the next day, or raise the limit."},
	}
}

// lastOfStderr bounds the lines that are kept with a failure.
const lastOfStderr = 5

// endUnpriced ends an iteration of a program that reported its tokens at its end, where the price of
// the model is not known and money is limited: the next iteration would be paid as well.
func endUnpriced(r *loop.Record, job supervisor.Job, model string) {
	unpriced := r.CostSource == agent.CostNone && r.TokensIn+r.TokensOut > 0
	if job.Limits.Priced && unpriced && r.Exit.Ended == loop.NotEnded && r.Signal.Kind != signal.Complete {
		r.Exit.Ended, r.Exit.Why = loop.EndedPrice, agent.NoPrice(model, "")
	}
}

// FailureOfShell analyses a command that did not end well; nil when it did, or
// when it was stopped.
func FailureOfShell(name string, job supervisor.Job, res supervisor.Result) *failure.Analysis {
	x := res.Exit
	well := x.Code == 0 && x.Signal == "" && x.Ended == loop.NotEnded
	if well || x.Ended == loop.EndedStop || lanes.WasLost(res) {
		return nil
	}
	out := LastOutput(res)
	a := failure.Analyse(failure.Evidence{
		Source: "step", Name: name, ExitCode: x.Code, Signal: x.Signal,
		TimedOut: x.Ended == loop.EndedTimeout, Output: out, Now: EndOf(res), Zone: Zone,
	})
	job.Box.NameRefusals(&a, out, res.Unreached)
	return &a
}

// ReadAgent adds to the record of an agent's job what the agent said, and how it failed.
func ReadAgent(p *runplan.Plan, r *loop.Record, job supervisor.Job, limits loop.CommandLimits, res supervisor.Result) {
	if r.Valid() {
		read := signal.Read(res.Agent.Message)
		r.Signal, r.Progress, r.Malformed = read.Signal, read.Progress, read.Malformed
	}
	endUnpriced(r, job, res.Agent.Model)
	r.Failure = FailureOfAgent(p, r, res)
	if r.Failure != nil {
		p.Agents[r.Agent].NameKey(r.Failure, *p)
		r.Failure.Stderr = failure.LastLines(res.Stderr.Text(), lastOfStderr)
	}
	nameLimit(r, limits)
	job.Box.NameRefusals(r.Failure, LastOutput(res), res.Unreached)
}

// nameLimit says which limit on time ended the agent.
func nameLimit(r *loop.Record, limits loop.CommandLimits) {
	if r.Failure == nil || r.Failure.Class != failure.Timeout {
		return
	}
	switch ended := r.Exit.Ended; {
	case ended == loop.EndedTimeout && limits.WallOf != "":
		r.Failure.Summary = "timeout: it reached its " + limits.WallOf
	case ended == loop.EndedIdle && limits.Idle > 0:
		r.Failure.Summary = "timeout: it printed nothing for idle_timeout " + loop.Duration(limits.Idle)
	}
}

// FailureOfAgent analyses an agent that did not end well; nil when it did.
func FailureOfAgent(p *runplan.Plan, r *loop.Record, res supervisor.Result) *failure.Analysis {
	x := r.Exit
	well := x.Code == 0 && x.Signal == "" && x.Ended == loop.NotEnded &&
		x.Terminal != loop.TerminalMissing && x.Terminal != loop.TerminalFailed
	if well && r.Signal.Kind != signal.Failure {
		return nil
	}
	switch {
	case WasStopped(x):
		return nil
	case well:
		return &failure.Analysis{
			Class: failure.Unknown, Kind: failure.Work, Severity: failure.Medium, Fingerprint: "failure-signal",
			Summary: strings.TrimSuffix("the agent reported FAILURE: "+r.Signal.Text, ": "),
		}
	}
	if x.Ended == loop.EndedDay {
		return FailureOfDay(x.Why, EndOf(res))
	}
	if limit := limitNames[x.Ended]; limit != "" {
		return &failure.Analysis{
			Class: failure.LimitExceeded, Kind: failure.Work, Severity: failure.Medium,
			Fingerprint: "limit-" + string(x.Ended), Summary: "the iteration reached its " + limit + " and was ended",
		}
	}
	if x.Ended == loop.EndedDestructive {
		return refusedFailure(x, res.Refused)
	}
	if cannotStart(res.Error) { // the next iteration could not start it either
		return &failure.Analysis{
			Class: failure.MissingCommand, Kind: failure.Permanent, Severity: failure.High,
			Fingerprint: "cannot-start-" + r.Agent, Summary: clipLine(res.Error),
		}
	}
	if a := guardFailure(x, errorsOf(p, r.Agent, res), r.Agent, r.TokensIn+r.TokensOut, EndOf(res)); a != nil {
		return a
	}
	a := failure.Analyse(failure.Evidence{
		Source: "agent", Name: r.Agent, ExitCode: x.Code, Signal: x.Signal,
		TimedOut: x.Ended == loop.EndedTimeout || x.Ended == loop.EndedIdle,
		CutOff:   x.Terminal == loop.TerminalMissing, Output: LastOutput(res),
		Errors: errorsOf(p, r.Agent, res), Now: EndOf(res), Zone: Zone,
	})
	return &a
}

// cannotStart reports whether the error of a job that did not start is about its program: it is not there,
// or no program.
func cannotStart(err string) bool {
	ofProgram := []syscall.Errno{syscall.ENOENT, syscall.EACCES, syscall.ENOEXEC}
	return slices.ContainsFunc(ofProgram, func(e syscall.Errno) bool {
		return strings.HasPrefix(err, "cannot start ") && strings.HasSuffix(err, ": "+e.Error())
	})
}

// errorsOf are the provider's errors, with what the exit status says of them.
func errorsOf(p *runplan.Plan, name string, res supervisor.Result) []failure.APIError {
	a, ok := p.Agents[name]
	if !ok {
		return res.Agent.Errors
	}
	return agent.WithExit(a.Adapter, res.Exit.Code, res.Agent.Errors)
}

// EndOf returns the time at which an agent ended: "in 5 minutes" counts from there,
// also when its result is read much later.
func EndOf(res supervisor.Result) time.Time {
	if res.StartedAt.IsZero() {
		return time.Now()
	}
	return res.StartedAt.Add(res.Elapsed)
}

// limitNames are the limits that end an iteration and are no time.
var limitNames = map[loop.Ended]string{
	loop.EndedCost: "cost limit", loop.EndedTokens: "token limit",
	loop.EndedCalls: "limit of model calls", loop.EndedTurns: "limit of turns",
}

// LastOutput returns the last words of an agent where its stream was parsed, else the
// ends of both streams.
func LastOutput(res supervisor.Result) string {
	if res.Error != "" {
		return res.Error
	}
	text := res.Stdout.Text()
	if res.Agent.Terminal != loop.TerminalNone {
		text = res.Agent.Message
	}
	if e := res.Stderr.Text(); e != "" {
		text += "\n" + e
	}
	return text
}

// DescribeReviewer is one line on a reviewer that did not end well.
func DescribeReviewer(name string, x loop.Exit, f *failure.Analysis) string {
	switch x.Ended {
	case loop.EndedTimeout:
		return name + " ran out of time"
	case loop.EndedIdle:
		return name + " was silent for too long"
	case loop.EndedCost, loop.EndedCalls, loop.EndedTokens, loop.EndedTurns:
		return fmt.Sprintf("%s reached the limit on %s that the iteration had left", name, x.Ended)
	}
	return name + " failed: " + f.Summary
}

// refusedFailure is the failure of an agent that was ended at a forbidden tool call.
// It is for the agent to do otherwise.
func refusedFailure(x loop.Exit, f *safety.Finding) *failure.Analysis {
	a := &failure.Analysis{
		Class: failure.Permission, Kind: failure.Work, Severity: failure.High, Fingerprint: "refused",
		Summary: clipLine(x.Why),
	}
	if f == nil {
		return a
	}
	a.Fingerprint = "refused-" + f.Pattern
	a.Items = []failure.Item{{
		Message: fmt.Sprintf("Do not run %q: it %s. The iteration was ended there, and part of it may have happened. "+
			"Reach the goal in another way, "+
			"inside of the workspace; if there is none, report that you are blocked, with the command that a "+
			"person should run.",
			f.Command, f.Why),
	}}
	a.Actions = []string{"Check what the command was meant to do.", "If it is right, run with --safety permissive."}
	return a
}

// guardFailure is the failure of an agent that a guard on its stream ended; nil for
// any other end. What the provider said decides what is to be done about
// calls that lead nowhere; the rest is for the agent to do otherwise.
func guardFailure(x loop.Exit, errs []failure.APIError, name string, used int64, now time.Time) *failure.Analysis {
	seen, advice := x.Why, ""
	if i := strings.LastIndex(x.Why, "; "); i >= 0 {
		seen, advice = x.Why[:i], x.Why[i+2:]
	}
	a := failure.Analysis{
		Class: failure.NoProgress, Kind: failure.Work, Severity: failure.Medium,
		Fingerprint: "guard-" + string(x.Ended), Summary: clipLine(seen), Actions: []string{advice},
	}
	switch x.Ended {
	case loop.EndedRepeats, loop.EndedOutput:
		return &a
	case loop.EndedPrice:
		a.Class, a.Kind, a.Severity = failure.Validation, failure.Permanent, failure.High
		return &a
	case loop.EndedDisk: // the next agent would begin with no room
		a.Class, a.Kind, a.Severity = failure.ResourceExhausted, failure.Permanent, failure.Critical
		return &a
	case loop.EndedRequests, loop.EndedRetries:
	default:
		return nil
	}
	said := failure.Analyse(failure.Evidence{Source: "agent", Name: name, ExitCode: 1, Now: now, Zone: Zone,
		Errors: append([]failure.APIError{{Message: x.Why}}, errs...)}) // the guard may name the error of the last one
	switch {
	case said.Class != failure.Unknown:
		said.Summary, said.Fingerprint = a.Summary, a.Fingerprint+"-"+string(said.Class)
		said.Actions = append(a.Actions, said.Actions...)
		return &said
	case x.Ended == loop.EndedRetries:
		a.Class, a.Kind, a.Transient, a.Provider = failure.ServiceUnavailable, failure.Transient, true, true
	case used == 0 && len(errs) == 0: // what answers the calls is no model
		a.Class, a.Kind, a.Transient, a.Provider = failure.Network, failure.Transient, true, true
	}
	return &a
}

// WasStopped reports whether pawl, or what ended pawl, cut the agent off.
func WasStopped(x loop.Exit) bool {
	return x.Ended == loop.EndedStop || x.Ended == loop.EndedLease || x.Ended == loop.EndedLost
}

// clipLine cuts a message to the bytes that a summary holds.
func clipLine(s string) string { return agent.Clip(s, 200) }

// Zone looks a time zone up that a message names; nil is not known.
func Zone(name string) *time.Location {
	at, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return nil
	}
	return at
}

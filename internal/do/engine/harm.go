package engine

import (
	"context"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a slim machine has no table of its own

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

func (s *session) rules() safety.Rules { return s.plan.SafetyRules() }

// withheld are the names that an agent did not get.
func (s *session) withheld(name string) []string {
	if a := s.plan.Agents[name]; a.Environ != nil {
		return a.Withheld
	}
	return s.plan.Withheld
}

// refused is the failure of an agent that was ended at a forbidden tool call.
// It is for the agent to do otherwise.
func refused(x loop.Exit, f *safety.Finding) *failure.Analysis {
	a := &failure.Analysis{
		Class: failure.Permission, Kind: failure.Work, Severity: failure.High, Fingerprint: "refused",
		Summary: line(x.Why),
	}
	if f == nil {
		return a
	}
	a.Fingerprint = "refused-" + f.Pattern
	a.Items = []failure.Item{{
		Message: fmt.Sprintf("Do not run %q: it %s. The iteration was ended there, and part of it may have happened. "+
			"Reach the goal in another way, "+
			"inside of the workspace; if there is none, report that you are blocked, with the command that a person should run.",
			f.Command, f.Why),
	}}
	a.Actions = []string{"Check what the command was meant to do.", "If it is right, run with --safety permissive."}
	return a
}

// maxPatch is how much of a change is searched for secrets, in bytes.
const maxPatch = 64 << 20

// findSecrets looks for secrets in what an iteration added.
func (w *worker) findSecrets(ctx context.Context, r *loop.Record) {
	if w.plan.Safety == string(safety.Permissive) || w.o.Tree == nil || len(r.Files) == 0 {
		return
	}
	patch, _, err := w.o.Tree.Diff(ctx, r.TreeBefore, r.TreeAfter, maxPatch)
	if err != nil {
		w.warn(fmt.Sprintf("cannot look for secrets in what iteration %d changed: %v", r.Number, err))
		return
	}
	r.Secrets = safety.Secrets(patch)
	const most = 3
	for i, s := range r.Secrets {
		if i == most {
			w.warn(fmt.Sprintf("iteration %d added %d more; 'pawl show' lists them", r.Number, len(r.Secrets)-most))
			break
		}
		w.warn(fmt.Sprintf("iteration %d added what looks like a secret: %s:%d (%s). Remove it before the work lands",
			r.Number, s.File, s.Line, s.Kind))
	}
}

// leastRoom must stay free on the disk of the workspace, in bytes.
const leastRoom = 100 << 20

// guarded is the failure of an agent that a guard on its stream ended; nil for
// any other end. What the provider said decides what is to be done about
// calls that lead nowhere; the rest is for the agent to do otherwise.
func guarded(x loop.Exit, errs []failure.APIError, name string, used int64, now time.Time) *failure.Analysis {
	seen, advice := x.Why, ""
	if i := strings.LastIndex(x.Why, "; "); i >= 0 {
		seen, advice = x.Why[:i], x.Why[i+2:]
	}
	a := failure.Analysis{
		Class: failure.NoProgress, Kind: failure.Work, Severity: failure.Medium,
		Fingerprint: "guard-" + string(x.Ended), Summary: line(seen), Actions: []string{advice},
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

// wasStopped reports whether pawl, or what ended pawl, cut the agent off.
func wasStopped(x loop.Exit) bool {
	return x.Ended == loop.EndedStop || x.Ended == loop.EndedLease || x.Ended == loop.EndedLost
}

// line cuts a message to the bytes that a summary holds.
func line(s string) string { return agent.Clip(s, 200) }

// Zone looks a time zone up that a message names; nil is not known.
func Zone(name string) *time.Location {
	at, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return nil
	}
	return at
}

package engine

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/safety"
)

// rules are what the run's tool calls and commands are judged by.
func (p Plan) rules() safety.Rules {
	return safety.Rules{Level: safety.Level(p.Safety), Root: p.Root, Home: p.Home}
}

func (s *session) rules() safety.Rules { return s.plan.rules() }

// RefusedGate is the first gate whose command the run's safety level forbids,
// with what it is.
func (p Plan) RefusedGate() (name string, f safety.Finding, refused bool) {
	for _, g := range p.Gates {
		if f, refused = p.rules().Command(g.Command); refused {
			if name = g.Name; name == "" {
				name = g.Command
			}
			return name, f, true
		}
	}
	return "", f, false
}

func (a Agent) inherits(p Plan) []string {
	if a.Environ != nil {
		return a.Environ
	}
	return p.Environ
}

// withheld are the names that an agent did not get.
func (w *worker) withheld(name string) []string {
	if a := w.plan.Agents[name]; a.Environ != nil {
		return a.Withheld
	}
	return w.plan.Withheld
}

// refused is the failure of an agent that was ended at a forbidden tool call.
// It is for the agent to do otherwise.
func refused(x loop.Exit, f *safety.Finding) *failure.Analysis {
	a := &failure.Analysis{
		Class: failure.Permission, Kind: failure.Work, Severity: failure.High, Fingerprint: "refused", Summary: line(x.Why),
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
	a.Actions = []string{"Look at what it was to do.", "If it is as it should be, run with --safety permissive."}
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
			w.warn(fmt.Sprintf("iteration %d added %d more; pawl show lists them", r.Number, len(r.Secrets)-most))
			break
		}
		w.warn(fmt.Sprintf("iteration %d added what looks like a secret: %s:%d (%s). Take it out before the work lands",
			r.Number, s.File, s.Line, s.Kind))
	}
}

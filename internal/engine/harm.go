package engine

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"

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
	a, ok := w.plan.Agents[name]
	if !ok || a.Environ == nil {
		return w.plan.Withheld
	}
	return a.Withheld
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
		Message: fmt.Sprintf("Do not run %q: it %s. The iteration was ended there, and part of it may have happened. Reach the goal in another way, "+
			"inside of the workspace; if there is none, report that you are blocked, with the command that a person should run.", f.Command, f.Why),
	}}
	a.Actions = []string{"Look at what it was to do.", "If it is as it should be, run with --safety permissive."}
	return a
}

// Bounds of the search for secrets.
const (
	maxSearched = 2 << 20  // bytes of one file
	maxSearch   = 32 << 20 // bytes of all
	maxPatch    = 64 << 20
)

// findSecrets looks for secrets in what an iteration added. Files that changed
// are read first; only where one holds something is git asked which lines are
// new.
func (w *worker) findSecrets(ctx context.Context, r *loop.Record) {
	if w.plan.Safety == string(safety.Permissive) || w.o.Tree == nil || len(r.Files) == 0 || !w.suspicious(r.Files) {
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
		w.warn(fmt.Sprintf("iteration %d added what looks like a secret: %s:%d (%s). Take it out before the work lands", r.Number, s.File, s.Line, s.Kind))
	}
}

// suspicious says whether a file holds what looks like a secret. Files are
// opened below the root only, wherever links lead.
func (w *worker) suspicious(files []string) bool {
	if len(files) >= maxChanged {
		return true // there are more: let git tell
	}
	root, err := os.OpenRoot(w.o.Tree.Repo.Top)
	if err != nil {
		return true // let git tell
	}
	defer func() { _ = root.Close() }()
	left := int64(maxSearch)
	for _, name := range files {
		if left <= 0 {
			return true
		}
		text := readSome(root, name, min(left, maxSearched))
		left -= int64(len(text))
		if len(safety.SecretsIn(name, text)) > 0 {
			return true
		}
	}
	return false
}

// readSome reads the beginning of a regular file, "" for anything else.
func readSome(root *os.Root, name string, most int64) string {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ""
	}
	return string(data)
}

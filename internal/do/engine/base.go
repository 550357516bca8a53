package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// tryBase runs the gates once on the files as they are, before the first agent of a
// run. What is red already is for the first prompt. A gate that cannot run here ends the
// run: then it returns the record of the iteration that was not begun.
//
// It may be stopped meanwhile: its caller looks at ctx.
func (w *worker) tryBase(ctx context.Context, s loop.State) *loop.Record {
	c := s.Command
	// an agent worked, or this is known
	if !w.plan.OnBase || len(w.plan.Gates) == 0 || s.Spent.Active > 0 || w.red != "" {
		return nil
	}
	w.baseSnapshot(ctx)
	if tree := w.trees.base; tree != "" && ending(w.greenTree(), maxGreen) == tree {
		return nil
	}
	w.notify(Notice{Kind: Note, Text: "the gates run once on the files as they are, before the first agent"})
	base := c
	base.Iteration = 0
	defer w.dropCaches(w.place(0, c.Attempt).caches())
	rep, red, err := w.baseGates(ctx, base)
	f := rep.Failure
	switch {
	case ctx.Err() != nil, err != nil, rep.Stopped: // the gates of the iteration say it
	case f != nil && w.noProgram(f):
		r := w.cannotStart(c, fmt.Errorf("gate %s cannot run here, so no agent was started: %s%s", f.Step, f.Summary,
			w.setUpFirst()))
		r.Failure.Class, r.Failure.Actions = f.Class, f.Actions
		return r
	case len(red) > 0:
		all := strings.Join(red, "; ")
		hint := ""
		if f.Class == failure.Dependency {
			hint = w.setUpFirst()
		}
		w.notify(Notice{Kind: Note, Text: "red already: " + all + hint})
		w.red = "Red already, before you did anything: " + all
	case f == nil:
		w.keepGreen(w.trees.base)
	}
	return nil
}

// noProgram is true where a gate's program is not there: not on this machine, or not in
// files that a set-up would have put it into.
func (w *worker) noProgram(f *failure.Analysis) bool {
	stays := f.Kind == failure.Permanent || len(w.plan.SetUp) > 0
	return f.Class == failure.MissingCommand && stays
}

// setUpFirst says how the user's own files get what the clone of a task is given.
func (w *worker) setUpFirst() string {
	if len(w.plan.SetUp) == 0 {
		return ""
	}
	return "; a run begins with your files as they are, so set them up first: " + strings.Join(w.plan.SetUp, " && ")
}

// baseGates runs all gates, the ones after a red one too, and says what is red. The
// report is that of the last red one, or of one that cannot run here or could not be judged.
func (w *worker) baseGates(ctx context.Context, c loop.Command) (last gate.Report, red []string, err error) {
	if w.o.Tree != nil {
		judged, err := w.o.Tree.See(ctx, w.id)
		if err != nil {
			return last, nil, err
		}
		w.trees.headAt = time.Time{} // gates write files, too
		defer w.undoGates(ctx, judged)
	}
	specs := w.gates(c)
	for from := 0; from < len(specs); {
		rep, err := gate.Verify(ctx, specs[from:], func(ctx context.Context, n int, s gate.Spec) (gate.Exec, error) {
			return w.runGate(ctx, c, from+n, s)
		}, time.Now)
		f := rep.Failure
		if f != nil || rep.Stopped {
			last = rep
		}
		if f == nil || w.noProgram(f) || rep.Stopped || err != nil {
			return last, red, err
		}
		if f.Kind != failure.Transient { // that passes by itself
			red = append(red, rep.Summary)
		}
		from += 1 + slices.IndexFunc(rep.Gates, func(g loop.Gate) bool {
			return g.Required && g.Status != loop.GatePassed
		})
	}
	return last, red, nil
}

// greenTree is where the last tree is kept on which all gates of the run were green.
func (w *worker) greenTree() string {
	h := sha256.New()
	for _, g := range w.plan.Gates {
		fmt.Fprintf(h, "%q %q %s %t %t %q\n", g.Name, g.Command, g.Timeout, g.Required, g.AllowEmpty, g.Kind)
	}
	fmt.Fprintf(h, "%s %q", w.plan.Sandbox, w.plan.Root)
	return filepath.Join(w.o.StateDir, "green", hex.EncodeToString(h.Sum(nil)[:8])+".tree")
}

// keepGreen notes that the gates need not run on a tree again before a first agent.
func (w *worker) keepGreen(tree string) {
	path := w.greenTree()
	if tree != "" && os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		_ = files.Replace(path, []byte(tree), 0o600, false) // without it the gates run once more
	}
}

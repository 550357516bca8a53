package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/gate"
	"github.com/pawl-dev/pawl/internal/loop"
)

// tryBase runs the gates once on the files as they are, before the first agent of a
// run. What is red already is for the first prompt. A gate that cannot run here ends the
// run: then it returns the record of the iteration that was not begun.
func (w *worker) tryBase(ctx context.Context, c loop.Command) *loop.Record {
	if !w.plan.OnBase || len(w.plan.Gates) == 0 || c.Iteration != 1 || c.Attempt != 1 {
		return nil
	}
	w.baseSnapshot(ctx)
	if tree := w.trees.base; tree != "" && ending(w.greenTree(), maxGreen) == tree {
		return nil
	}
	w.notify(Notice{Kind: Note, Text: "the gates run once on the files as they are, before the first agent"})
	base := c
	base.Iteration = 0
	w.trees.headAt = time.Time{} // gates write files, too
	defer w.dropCaches(w.place(0, c.Attempt).caches())
	rep, err := gate.Verify(ctx, w.gates(base), func(ctx context.Context, n int, s gate.Spec) (gate.Exec, error) {
		return w.runGate(ctx, base, n, s)
	}, time.Now)
	f := rep.Failure
	switch {
	case ctx.Err() != nil:
		return w.notBegun(c)
	case err != nil || rep.Stopped: // the gates of the iteration say it
	case f == nil:
		w.keepGreen(w.trees.base)
	case f.Class == failure.MissingCommand && f.Kind == failure.Permanent:
		hint := ""
		if len(w.plan.SetUp) > 0 {
			hint = "; a run works on your own files, so set them up first: " + strings.Join(w.plan.SetUp, " && ")
		}
		r := w.cannotStart(c, fmt.Errorf("gate %s cannot run here, so no agent was started: %s%s", f.Step, f.Summary, hint))
		r.Failure.Class, r.Failure.Actions = f.Class, f.Actions
		return r
	case f.Kind != failure.Transient: // that passes by itself
		w.notify(Notice{Kind: Note, Text: "red already: " + rep.Summary})
		w.red = "Red already, before you did anything: " + rep.Summary
	}
	return nil
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

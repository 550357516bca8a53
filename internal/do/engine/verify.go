package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/do/engine/greenfiles"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/signal"
	"github.com/pawl-dev/pawl/internal/do/engine/attemptdir"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/spool"
)

// runsGates reports whether the gates run: after an iteration that exits 0 or validly
// claims COMPLETE; in tasks only after COMPLETE.
func (s *session) runsGates(r *loop.Record) bool {
	if !r.Valid() {
		return false
	}
	claimed := r.Signal.Kind == signal.Complete
	if s.plan.Policy.Kind == loop.Task {
		return claimed
	}
	if r.Failure != nil && r.Failure.Provider { // what is red then is not yet the work's
		return claimed
	}
	return claimed || r.Exit.Code == 0
}

// verifyAttempt runs the gates and looks for tampering; what is red becomes the
// record's failure. An iteration whose gates were cut short passes nothing.
func (w *judge) verifyAttempt(ctx context.Context, c loop.Command, r *loop.Record) {
	r.Verified = true
	if len(w.plan.Gates) > 0 && !w.runGates(ctx, c, r) {
		r.Verified = false
		return
	}
	if w.lostFolder(r) {
		return
	}
	if err := w.trees.unseen; err != nil { // nobody can tell what changed, and nobody is to blame
		r.Verified, r.Failure = false, ending.FailureNotJudged(err)
		return
	}
	after, cancel := w.o.after(w.hard)
	defer cancel()
	v := w.changedProtectedPaths(after, w.tamperBase(), r.TreeAfter)
	if len(v) == 0 {
		return
	}
	r.Tampered = lists.Union(r.Tampered, lists.Each(v, func(one gate.Violation) string { return one.Path })...)
	r.Failure = new(gate.TamperingFailure(v))
}

// runGates reports whether the gates were judged.
func (w *judge) runGates(ctx context.Context, c loop.Command, r *loop.Record) bool {
	// The work of a task has the queue for its landing.
	landing := w.plan.Kind != string(loop.Task) && r.Signal.Kind == signal.Complete
	specs := w.affectedGates(ctx, w.gatesFor(c, landing), r.TreeAfter)
	scratch := w.attempt(c.Iteration, c.Attempt).CachesFolder()
	w.dropCaches(scratch)
	defer w.dropCaches(scratch)
	var judged workspace.Seen
	if head := w.trees.head; head.Tree == r.TreeAfter {
		judged = workspace.Seen{Tree: head.Tree, Skipped: head.Skipped,
			Head: git.Head{Commit: head.Head, Branch: head.Branch}}
	}
	rep, err := gate.Verify(ctx, specs, func(ctx context.Context, n int, s gate.Spec) (gate.Exec, error) {
		return w.runSupervisedGate(ctx, c, n, s, judged)
	}, time.Now)
	r.Gates, r.Score = rep.Gates, rep.Score
	r.Tampered = append(r.Tampered, lists.Each(rep.Tampered, func(v gate.Violation) string { return v.Path })...)
	for _, text := range rep.Warnings {
		w.warn(text)
	}
	if berr := w.readBefore(ctx); berr != nil {
		w.warn(berr.Error())
	}
	for n := range r.Gates {
		g := &r.Gates[n]
		g.Before = w.howBefore(specs[n])
		w.keepEvidence(r, g.Name, w.attempt(c.Iteration, c.Attempt).ShownFolder(n))
	}
	switch {
	case err != nil:
		w.warn(err.Error())
		r.Failure = ending.FailureNotJudged(err)
		return false
	case rep.Stopped && ctx.Err() != nil:
		r.Exit.Ended = loop.EndedStop
		return false
	case rep.Stopped:
		r.Exit.Ended = loop.EndedLost
		return false
	}
	if w.plan.OnBase && rep.Passed() && !c.SkipOptional {
		greenfiles.KeepTree(w.o.StateDir, &w.plan, r.TreeAfter)
	}
	if rep.Passed() {
		w.judgeAlone(ctx, c)
		w.tryTests(ctx, c, r, specs)
	}
	if red := rep.Failure; red != nil && red.Step != "" && w.isSealedCheck(red.Step) {
		r.Failure = red // nothing of its output goes to the agent
	} else if red != nil {
		out := w.redOutput(c, rep)
		// What is red follows from the agent's own failure.
		if own := r.Failure; own != nil && slices.Contains(failure.Unanswered(), own.Class) {
			own.Items, red = append(own.Items, red.Items...), own
		}
		r.Failure, r.Flagged = red, loop.FlaggedFiles(out)
		r.TestProtected = w.plan.Protect.CoversTest(red, w.plan.Gates)
	}
	return true
}

// restoreFiles makes the files, and what is checked out, what they were.
func (w *judge) restoreFiles(ctx context.Context, was workspace.Seen) error {
	err := w.o.Tree.PutBack(ctx, w.id, was)
	if err != nil {
		err = fmt.Errorf("the files could not be restored: %w", err)
	}
	return err
}

// affectedGates marks the gates that are about files which the work did not change.
func (w *judge) affectedGates(ctx context.Context, specs []gate.Spec, after string) []gate.Spec {
	base := cmp.Or(w.plan.BaseTree, w.trees.base) // what a person did meanwhile is judged as well
	if w.o.Tree == nil || base == "" || after == "" {
		return specs
	}
	return gate.SkipUnaffected(specs, w.rootName(), func() ([]string, bool) {
		changes, more, err := w.o.Tree.Changes(ctx, base, after)
		return lists.Each(changes, func(c git.Change) string { return c.Path }), err == nil && !more
	})
}

func (w *judge) gatesOfIteration(c loop.Command) []gate.Spec { return w.gatesFor(c, false) }

// gatesFor lists the gates that the iteration's strategy runs, with the time that it gives them. Where
// the work is to land, those for landing are among them.
func (w *judge) gatesFor(c loop.Command, landing bool) []gate.Spec {
	specs := make([]gate.Spec, 0, len(w.plan.Gates))
	for _, s := range w.plan.Gates {
		isSkipped := c.SkipOptional && !s.Required
		isLater := s.Landing && !landing && !w.plan.Landing
		if isSkipped || isLater {
			continue
		}
		if s.Timeout <= 0 {
			s.Timeout = gateTimeout
		}
		if !s.Fixed {
			s.Timeout *= time.Duration(max(c.GateFactor, 1))
		}
		specs = append(specs, s)
	}
	return specs
}

// gateTimeout bounds a gate that says nothing of its own.
const gateTimeout = 5 * time.Minute

// runSupervisedGate runs one gate as a supervised job, so that nothing it starts outlives
// it. A gate whose supervisor was killed runs once more: it is not the gate
// that failed, and nothing was paid for it.
func (w *judge) runSupervisedGate(ctx context.Context, c loop.Command, n int, s gate.Spec, judged workspace.Seen,
) (gate.Exec, error) {
	w.notify(Notice{Kind: GateStarted, Gate: loop.Gate{Name: s.Name, Required: s.Required, Origin: s.Origin}})
	begun := time.Now()
	defer time.AfterFunc(gate.Slow, func() { w.notify(Notice{Kind: Note, Text: gate.SlowText(s, begun)}) }).Stop()
	res, err := w.runGateJob(ctx, c, n, s)
	if err == nil && lanes.WasLost(res) && ctx.Err() == nil {
		w.warn(fmt.Sprintf("the supervisor was killed during gate %s; the gate runs again", s.Name))
		w.dropCaches(w.attempt(c.Iteration, c.Attempt).CachesFolder())
		if err = w.afterGate(ctx, judged, &gate.Exec{}); err == nil {
			res, err = w.runGateJob(ctx, c, n, s)
		}
	}
	e := ending.GateExec(res)
	w.trees.headAt = time.Time{} // gates write files, too
	if err := errors.Join(err, w.afterGate(ctx, judged, &e)); err != nil {
		return gate.Exec{}, err
	}
	e.Green = greenfiles.LastOutput(w.o.StateDir, s.Command, e)
	if w.plan.Box != nil && e.Status() != loop.GatePassed { // it ran in it
		box, _ := w.protectedBox(ctx, w.plan.Box.Gates, w.attempt(c.Iteration, c.Attempt).CachesFolder(), w.judgedTop())
		e.Explain = func(a *failure.Analysis) { box.ExplainGate(a, e.Output, res.Unreached) }
	}
	w.notify(Notice{Kind: GateEnded, Gate: loop.Gate{Name: s.Name, Required: s.Required, Status: e.Status(),
		Elapsed: res.Elapsed, ExitCode: e.ExitCode, Origin: s.Origin}})
	return e, nil
}

// runGateInFolder runs a gate on the files as they are, or on a copy of them.
func (w *judge) runGateInFolder(ctx context.Context, c loop.Command, n int, s gate.Spec, copied string,
) (supervisor.Result, error) {
	p := w.attempt(c.Iteration, c.Attempt)
	if err := os.MkdirAll(p.Dir, 0o700); err != nil { // an agent may have deleted it
		return supervisor.Result{}, fmt.Errorf("cannot make the folder of the iteration: %v", err)
	}
	box, caches := w.plan.Box.OfVerdict(p.CachesFolder())
	dir, from := w.plan.Root, w.judgedTop()
	if copied != "" {
		from = copied
		dir, box = w.showCopyToGate(copied, box)
	}
	if box != nil {
		safe, err := w.protectedBox(ctx, *box, p.CachesFolder(), from, w.ownFiles(s)...)
		if err != nil {
			return supervisor.Result{}, err
		}
		box = &safe
	}
	// A file that an agent left for gates to find would be believed.
	box = box.TempIn(filepath.Join(p.CachesFolder(), "tmp"))
	var shows []string
	if s.Origin == loop.Sealed { // the code under test can read it, and may neither keep nor send what it reads
		box = box.Offline()
	} else {
		var err error
		if shows, err = sandbox.OpenEvidence(box, p.ShownFolder(n)); err != nil {
			return supervisor.Result{}, err
		}
	}
	return w.runMeteredJob(ctx, supervisor.Job{
		ID:    fmt.Sprintf("%s/gate/%d/%d", attemptdir.JobID(c), n+1, time.Now().UnixNano()),
		Files: p.GateFiles(n), Args: []string{"sh", "-c", s.Command},
		Dir: dir, Env: w.childEnvironment(w.plan.Environ, c.Iteration, caches, shows, nil), Merge: true,
		Limits: supervisor.Limits{Wall: s.Timeout}, Box: box,
	}, nil)
}

// maxRedOutput is how much of a red gate's output is searched, from its end.
const maxRedOutput = 1 << 20

// redOutput is the end of what the red gate printed.
func (w *judge) redOutput(c loop.Command, rep gate.Report) string {
	p := w.attempt(c.Iteration, c.Attempt)
	for i, g := range rep.Gates {
		if g.Required && g.Status != loop.GatePassed && g.Status != loop.GateNotRun {
			return spool.ReadEnd(p.GateFiles(i)+".out", maxRedOutput)
		}
	}
	return ""
}

// changedProtectedPaths lists the protected paths that are not in the tree now as they were
// in a base. What cannot be compared does not pass.
func (w *judge) changedProtectedPaths(ctx context.Context, base, tree string) (found []gate.Violation) {
	t := &w.trees
	if w.o.Tree == nil || base == "" {
		return nil
	}
	if tree == "" {
		return append(found, gate.Violation{Path: ".", Why: "git cannot read the repository now, so protected files " +
			"cannot be compared with those before the run"})
	}
	if tree == base && len(t.hidden)+len(t.unread) == 0 {
		return found
	}
	changes, more, err := w.listChanges(ctx, base, tree)
	if err != nil {
		w.warn(fmt.Sprintf("cannot look for tampering: %v", err))
		return append(found, gate.Violation{Path: ".", Why: "the changes of the run could not be listed"})
	}
	if more {
		found = append(found, gate.Violation{Path: ".", Why: fmt.Sprintf("more than %d paths differ from those before the "+
			"run, too many to look for protected ones; let git ignore what is generated", len(changes))})
	}
	for _, name := range t.hidden {
		changes = append(changes, gate.Change{Path: name, Status: 'A'})
	}
	for _, name := range t.unread {
		changes = append(changes, gate.Change{Path: name, Status: 'M'})
	}
	if err := w.markTracked(ctx, changes); err != nil {
		return append(found, gate.Violation{Path: ".", Why: err.Error()})
	}
	return append(found, gate.Tampered(changes, w.protected())...)
}

// markTracked makes a file that git tracks, and that a sparse checkout leaves out, one that
// was changed and not added; and one that the run itself added, and that is delivered
// already, one that is added still.
func (w *judge) markTracked(ctx context.Context, changes []gate.Change) error {
	if w.o.Private == nil {
		return nil
	}
	own := lists.Set(w.o.Private.Agreed().Own)
	for i, c := range changes {
		if own[cmp.Or(c.From, c.Path)] {
			changes[i].Status, changes[i].From = 'A', ""
		}
	}
	added := func(c gate.Change) bool { return c.Status == 'A' }
	if !slices.ContainsFunc(changes, added) {
		return nil
	}
	all, err := w.o.Private.Person().Repo.IndexEntries(ctx)
	if err != nil {
		return err
	}
	left := lists.ToMap(all, func(e git.Entry) (string, bool) { return e.Path, e.Sparse })
	for i, c := range changes {
		if added(c) && left[c.Path] {
			changes[i].Status = 'M'
		}
	}
	return nil
}

// protected are the rules of the run, with the files that pawl takes commands from.
func (w *judge) protected() gate.Protect {
	rules := w.plan.Protect
	rules.Files = runplan.SourceNames(w.o.Tree.Repo.Top, w.watched, w.plan.ProjectRoot(), w.plan.Sources)
	return rules
}

// afterGate finds what a gate did to the files, and makes them, and what is checked out,
// those that are judged again. A gate runs what the agent wrote: the gates after it would
// see, and judge, what that made of the files. What git ignores stays, as caches do.
func (w *judge) afterGate(ctx context.Context, judged workspace.Seen, e *gate.Exec) error {
	if w.o.Tree == nil || judged.Tree == "" {
		return nil
	}
	ctx, cancel := w.aftermath(context.WithoutCancel(ctx))
	defer cancel()
	now, changes, err := w.o.Tree.Since(ctx, w.id, judged)
	if err != nil {
		return err
	}
	all := lists.Each(changes, func(c git.Change) gate.Change { return gate.Change{Path: c.Path, Status: c.Status} })
	for _, c := range all {
		if c.Status == 'A' {
			e.Added = append(e.Added, c.Path)
		} else {
			e.Changed = append(e.Changed, c.Path)
		}
	}
	hidden, unread := w.trees.hidden, w.trees.unread
	w.findHidden(ctx)
	for _, name := range w.trees.unread {
		if !slices.Contains(unread, name) {
			all = append(all, gate.Change{Path: name, Status: 'M'})
		}
	}
	for _, name := range w.trees.hidden {
		if !slices.Contains(hidden, name) {
			all = append(all, gate.Change{Path: name, Status: 'A'})
		}
	}
	e.Tampered = gate.Tampered(all, w.protected())
	if len(changes) > 0 || now.Head != judged.Head {
		err = w.restoreFiles(ctx, judged)
	}
	if t := &w.trees; err == nil && judged.Tree == t.head.Tree {
		t.headAt = time.Now()
	}
	return err
}

// Watched is what protected files are compared with: the tree before a step. What is
// stored outlives the code: names must not change.
type Watched struct {
	Tree string `json:"tree"`
}

// Watch notes what protected files are now; nil where they are not watched, as
// outside of git.
func (h *StepContext) Watch(ctx context.Context) *Watched {
	w := h.w
	if w.o.Tree == nil || w.trees.base == "" {
		return nil
	}
	now, err := w.o.Tree.See(ctx, w.id)
	if err != nil {
		if ctx.Err() == nil {
			h.Warn(fmt.Sprintf("cannot read the files before a step, so protected ones are not watched in it: %v", err))
		}
		return nil
	}
	return &Watched{Tree: now.Tree}
}

// Tampered are the protected files that are not what they were, and the failure
// that this is; nil for none.
func (h *StepContext) Tampered(ctx context.Context, before *Watched) (paths []string, f *failure.Analysis) {
	w := h.w
	if before == nil || w.o.Tree == nil {
		return nil, nil
	}
	ctx, cancel := w.aftermath(context.WithoutCancel(ctx))
	defer cancel()
	now, _ := w.o.Tree.See(ctx, w.id) // without a tree it cannot be read
	w.findHidden(ctx)
	found := w.changedProtectedPaths(ctx, before.Tree, now.Tree)
	if len(found) == 0 {
		return nil, nil
	}
	paths = lists.Each(found, func(v gate.Violation) string { return v.Path })
	a := gate.TamperingFailure(found)
	return paths, &a
}

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/decide/signal"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/engine/attemptdir"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/do/workspace"
)

// trees is what is known of the work tree during a session.
type trees struct {
	base  string // tree that tampering is measured against; "" is not known
	tried bool   // the base was looked for

	hidden  []string           // files that the newest snapshot lacks and that must not hide
	unread  []string           // files that it has as they were before
	head    workspace.Snapshot // the newest
	headAt  time.Time          // when the tree was seen to be the head's; zero: it may differ
	putBack string             // for the next prompt: what of the person's the agent discarded
	unseen  error              // why the machine did not let the newest snapshot be taken

	blind, saidSkipped bool // warned that git cannot see the tree, and of what snapshots leave alone
}

// baseSnapshot keeps the tree as it is before the run, once.
func (w *treeWatch) baseSnapshot(ctx context.Context) {
	if w.o.Tree == nil || w.trees.tried {
		return
	}
	w.trees.tried = true
	snap, err := w.o.Tree.Snapshot(ctx, w.id, 0, workspace.SnapshotOptions{Message: w.plan.Name + ": before the run"})
	if err != nil {
		w.treeWarning(ctx, fmt.Sprintf("no snapshot before the run: %v. Rollback to 0 will not be possible, and protected "+
			"files are not watched", err))
		return
	}
	w.warnOfSkipped(snap.Skipped)
	w.trees.base, w.trees.head, w.trees.headAt = snap.Tree, snap, time.Now()
	w.protectedOutsideGit(ctx) // those of a first look are what later ones are compared with
}

// treeBeforeWork returns the tree that the work is compared with: that before the task's first run, or else before
// this one, with what the person did since. "" is not known.
func (w *treeWatch) treeBeforeWork() string {
	return cmp.Or(delivery.WorkBase(w.o.Private), w.plan.BaseTree, w.trees.base)
}

// adoptBase takes over what an attempt began with, where nothing better is known.
func (w *treeWatch) adoptBase(b attemptdir.Begun) {
	w.trees.base = cmp.Or(w.trees.base, b.TreeBefore)
	w.trees.tried = true
}

// runMeteredJob carries out a job.
func (w *limitedJobs) runMeteredJob(ctx context.Context, job supervisor.Job, onEvent func(agent.Event),
) (supervisor.Result, error) {
	res, err := w.jobs.Do(ctx, job, onEvent)
	w.Spend(job, &res)
	return res, err
}

// resumeMeteredJob is that of the session.
func (w *limitedJobs) resumeMeteredJob(ctx context.Context, job supervisor.Job, onEvent func(agent.Event),
) (supervisor.Result, lanes.Fate, error) {
	res, fate, err := w.jobs.Resume(ctx, job, onEvent, w.warn)
	w.Spend(job, &res)
	return res, fate, err
}

// keepTrees makes what is known of the trees part of the next commit.
func (d *Driver) keepTrees() {
	s, t := &d.setup, &d.worker.trees
	if s.Base != t.base {
		s.Base, d.fresh = t.base, true
	}
}

// restoreTrees finds the run's base again.
func (d *Driver) restoreTrees(ctx context.Context) {
	s, t := &d.setup, &d.worker.trees
	t.base = s.Base
	if d.o.Tree == nil {
		return
	}
	ctx, cancel := d.aftermath(ctx)
	defer cancel()
	snaps, err := d.o.Tree.Snapshots(ctx, d.id)
	if err != nil {
		d.worker.treeWarning(ctx, err.Error())
	}
	if len(snaps) > 0 {
		t.tried, t.head = true, snaps[len(snaps)-1]
		if t.base == "" && snaps[0].N == 0 {
			t.base = snaps[0].Tree
		}
	}
	t.tried = t.tried || d.state.Iteration > 0
	if len(snaps) == 0 && t.tried && d.o.BaseTree != "" {
		d.adoptForeignTrees(ctx)
	}
}

// adoptForeignTrees takes over the trees of a run that was on another machine: its snapshots
// stay there, and the clone here is pawl's own work.
func (d *Driver) adoptForeignTrees(ctx context.Context) {
	t := &d.worker.trees
	if _, _, err := d.o.Tree.Changes(ctx, t.base, d.o.BaseTree); t.base == "" || err != nil {
		t.base = d.o.BaseTree
	}
}

// treeWarning says once, until git works again, that the tree cannot be seen.
// A person who stops the run needs no such line.
func (w *treeWatch) treeWarning(ctx context.Context, text string) {
	if w.trees.blind || ctx.Err() != nil {
		return
	}
	w.trees.blind = true
	w.warn(text)
}

// maxChanged bounds the files that a record lists.
const maxChanged = 1000

// freshFor is how long a snapshot is what the tree is: after that a person may
// have worked in it.
const freshFor = 500 * time.Millisecond

// noteTreeBefore notes the tree before an attempt. A tree that gates or a person changed
// since the last snapshot is seen anew, so that only the agent's own changes
// count as its progress.
func (w *treeWatch) noteTreeBefore(ctx context.Context, c loop.Command, b *attemptdir.Begun) {
	if w.o.Tree == nil {
		return
	}
	if t := &w.trees; time.Since(t.headAt) < freshFor && c.Rewind == 0 {
		b.TreeBefore, b.HeadBefore = t.head.Tree, t.head.Head
		return
	}
	now, err := w.o.Tree.See(ctx, w.id)
	if err != nil {
		w.treeWarning(ctx, fmt.Sprintf("cannot see the tree before the iteration, so it gets no snapshot: %v", err))
		return
	}
	b.TreeBefore, b.HeadBefore = now.Tree, now.Head.Commit
}

// longestTry is the longest wait before a snapshot is tried again that the machine did
// not let be taken.
const longestTry = 4 * time.Second

// snapshot keeps the tree that an agent left and what it changed.
func (w *treeWatch) snapshot(ctx context.Context, s loop.State, r *loop.Record, b attemptdir.Begun) {
	if w.o.Tree == nil {
		return
	}
	w.trees.putBack = w.o.Private.ProtectUncommitted(ctx, w.warn)
	o := workspace.SnapshotOptions{Message: fmt.Sprintf("%s: iteration %d", w.plan.Name, r.Number)}
	if r.Judge() == loop.Waited && !w.runsGates(r) {
		o.Attempt = strconv.Itoa(r.Attempt) // the iteration's own is still to come
	}
	snap, err := w.o.Tree.Snapshot(ctx, w.id, r.Number, o)
	for wait := time.Second; errors.Is(err, workspace.ErrMachine) && wait <= longestTry; wait *= 2 {
		if !process.Sleep(ctx, wait) {
			break
		}
		snap, err = w.o.Tree.Snapshot(ctx, w.id, r.Number, o)
	}
	w.trees.unseen = nil
	if err != nil {
		if errors.Is(err, workspace.ErrMachine) {
			w.trees.unseen = err
		} else if w.trees.base != "" && ctx.Err() == nil { // it could be taken at the start
			f := gate.TamperingFailure([]gate.Violation{{Path: ".git", Why: fmt.Sprintf("no changes seen: %v", err)}})
			r.Tampered, r.Failure = append(r.Tampered, ".git"), &f
		}
		w.treeWarning(ctx, fmt.Sprintf("no snapshot of iteration %d: %v", r.Number, err))
		return
	}
	w.trees.blind = false
	w.warnOfSkipped(snap.Skipped)
	w.trees.head, w.trees.headAt = snap, time.Now()
	r.Snapshot, r.TreeAfter = snap.Commit, snap.Tree
	w.findHidden(ctx)
	w.pruneSnapshots(ctx, s, r.Number)
	if b.TreeBefore == "" {
		return
	}
	r.TreeKnown, r.TreeBefore = true, b.TreeBefore
	if r.TreeBefore != r.TreeAfter {
		w.recordChanges(ctx, r)
	}
	mayEnd := r.Number == s.Limit || r.Signal.Kind == signal.Complete || r.Steps != nil
	if base := w.treeBeforeWork(); mayEnd && base != "" {
		if stat, err := w.o.Tree.DiffStat(ctx, base, r.TreeAfter); err == nil { // it is only shown
			r.Size = &loop.Size{Files: stat.Files, Added: stat.Added, Deleted: stat.Deleted}
		}
	}
	if b.HeadBefore != snap.Head {
		n, err := w.o.Tree.Commits(ctx, b.HeadBefore, snap.Head)
		if err != nil {
			w.warn(fmt.Sprintf("cannot count the commits of iteration %d: %v", r.Number, err))
		}
		r.Commits = n
	}
}

// protectedOutsideGit are the protected files that no snapshot has, and whether they were changed.
func (w *treeWatch) protectedOutsideGit(ctx context.Context) map[string]bool {
	rules := w.plan.Protect
	if len(rules.Patterns) == 0 {
		return nil
	}
	found, err := w.o.Tree.Beyond(ctx, w.id, rules.CoversOne, rules.Patterns)
	if err != nil {
		w.trees.unseen = fmt.Errorf("cannot watch protected files that git does not have: %w", err)
	}
	return found
}

// findHidden looks for files whose change a snapshot cannot show, and for those that git
// is made to ignore, where new files are refused.
func (w *treeWatch) findHidden(ctx context.Context) {
	var err error
	if w.trees.unread, err = w.o.Tree.Unread(ctx, w.id); err != nil {
		w.trees.unseen = err
	}
	for name, changed := range w.protectedOutsideGit(ctx) {
		if changed {
			w.trees.unread = append(w.trees.unread, name)
		}
	}
	if w.trees.hidden = nil; !w.plan.Protect.New {
		return
	}
	hidden, err := w.o.Tree.Hidden(ctx, w.id)
	if err == nil {
		var added []string
		added, err = w.o.Tree.Added(ctx, w.id, w.plan.Protect.CoversOne)
		hidden = append(hidden, added...)
	}
	if err != nil {
		w.trees.unseen = fmt.Errorf("cannot look for new files that git ignores: %w", err)
	}
	w.trees.hidden = hidden
}

const (
	keptLast   = 50 // snapshots of a run that stay, beside those of the start and of the best
	pruneEvery = 10 // iterations
)

// pruneSnapshots drops snapshots between the first and the last ones.
func (w *treeWatch) pruneSnapshots(ctx context.Context, s loop.State, number int) {
	if number <= keptLast || number%pruneEvery != 0 {
		return
	}
	keep := workspace.Keep{First: 1, Last: keptLast}
	if s.Best.Number > 0 {
		keep.Best = []int{s.Best.Number}
	}
	if _, err := w.o.Tree.Prune(ctx, w.id, keep); err != nil {
		w.warn(fmt.Sprintf("cannot remove old snapshots: %v", err))
	}
}

func (w *treeWatch) recordChanges(ctx context.Context, r *loop.Record) {
	changes, more, err := w.listChanges(ctx, r.TreeBefore, r.TreeAfter)
	if err != nil {
		w.warn(fmt.Sprintf("cannot list what iteration %d changed: %v", r.Number, err))
		return
	}
	if more {
		w.warn(fmt.Sprintf("iteration %d changed more than %d paths; the first %d are recorded", r.Number, len(changes),
			maxChanged))
	}
	changes = changes[:min(len(changes), maxChanged)]
	r.Files = append(r.Files, lists.Each(changes, func(c gate.Change) string { return c.Path })...)
}

// listChanges lists how two trees differ; more says that the list is cut.
func (w *treeWatch) listChanges(ctx context.Context, from, to string) (all []gate.Change, more bool, err error) {
	list, more, err := w.o.Tree.Changes(ctx, from, to)
	if err != nil {
		return nil, false, err
	}
	return lists.Each(list, func(c git.Change) gate.Change {
		return gate.Change{Path: c.Path, From: c.From, Status: c.Status, Link: c.IsLink()}
	}), more, nil
}

// warnOfSkipped says once what snapshots leave alone.
func (w *treeWatch) warnOfSkipped(paths []string) {
	if len(paths) == 0 || w.trees.saidSkipped {
		return
	}
	w.trees.saidSkipped = true
	w.warn(fmt.Sprintf("snapshots do not include %s (nested repositories, large files), first: %s",
		fault.Numbered(len(paths), "path"), paths[0]))
}

// rewindToBest puts the tree back to the best snapshot, if nothing changed since the agent's
// end.
func (w *treeWatch) rewindToBest(ctx context.Context, c loop.Command) {
	if w.o.Tree == nil {
		return
	}
	back, err := w.o.Tree.Rewind(ctx, w.id, c.Rewind, w.trees.head.Tree)
	if p := w.o.Private; p != nil && err == nil && back.Refused == "" {
		err = p.BackTo(ctx, c.Rewind)
	}
	why := back.Refused
	if err != nil {
		why = err.Error()
	}
	if why == "" {
		return
	}
	// A pawl that was killed just here has put it back already.
	if now, err := w.o.Tree.See(ctx, w.id); err == nil && now.Tree == back.To.Tree {
		return
	}
	w.warn(fmt.Sprintf("the files were not restored from the best snapshot: %s. The iteration starts from these files",
		why))
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

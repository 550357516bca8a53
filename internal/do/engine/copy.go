package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/workspace"
)

// CopyDir is where the copy of a run is that works on one.
func CopyDir(stateDir, run string) string { return filepath.Join(stateDir, "runs", run, "copy") }

// Result is the last tree that records tell of: what the agent left, and the
// gates judged. False when there is none.
func Result(records []loop.Record) (n int, tree string, ok bool) {
	for _, r := range slices.Backward(records) {
		if r.TreeAfter != "" && r.Outcome != loop.Waited {
			return r.Number, r.TreeAfter, true
		}
	}
	return 0, "", false
}

// startCopy makes the copy of a new run that works on one.
func (d *Driver) startCopy(ctx context.Context) error {
	if !d.plan.Copy {
		return nil
	}
	if d.o.Tree == nil {
		return errors.New("cannot work on a copy of the work tree: there is no git repository")
	}
	k, err := d.o.Tree.MakeCopy(ctx, d.id, filepath.Join(d.runDir, "copy"))
	if err != nil {
		_ = d.o.Tree.Forget(context.WithoutCancel(ctx), d.id) // the first error is the one to tell
		return err
	}
	d.setup.Copy = true
	d.useCopy(k)
	if n := len(k.Left); n > 0 {
		d.warn(fmt.Sprintf("the run's copy lacks %s of the workspace that git ignores, which are too large to be copied, "+
			"first: %s", fault.Numbered(n, "path"), k.Left[0]))
	}
	return nil
}

// findCopy finds the copy of a run again. A run stays where it began.
func (d *Driver) findCopy(ctx context.Context) error {
	switch {
	case d.plan.Copy && !d.setup.Copy:
		return errors.New("the run began in the workspace itself, not in a copy; go on at the level it began with, or " +
			"start anew")
	case !d.setup.Copy:
		return nil
	case !d.plan.Copy:
		return errors.New("the run works on a disposable copy, which only the sandbox of the level paranoid shows; go on " +
			"with --safety paranoid")
	case d.o.Tree == nil:
		return errors.New("the run works on a copy of the work tree, and there is no git repository")
	}
	k, err := d.o.Tree.OpenCopy(ctx, d.id, filepath.Join(d.runDir, "copy"))
	if errors.Is(err, workspace.ErrNoCopy) {
		return fmt.Errorf("%v, so the run cannot go on; what was kept of its result is shown by pawl show %s --diff", err,
			d.id)
	}
	if err != nil {
		return err
	}
	d.useCopy(k)
	return nil
}

// useCopy makes the copy the tree of the run, and what its processes see in
// the place of the workspace.
func (s *session) useCopy(k *workspace.Copy) {
	repo := s.original.Repo
	s.copied, s.o.Tree, s.watched = k, k.Checkout, k.Root
	s.plan.Box = boxThroughCopy(s.plan.Box, k, repo.Top, repo.Dir, repo.Common)
}

// boxThroughCopy is a run's box with the copy in the place of the work tree; nil
// stays nil.
func boxThroughCopy(b *Box, k *workspace.Copy, top string, folders ...string) *Box {
	if b == nil {
		return nil
	}
	box := *b
	box.Gates = throughCopy(box.Gates, k, top, folders...)
	box.Agents = maps.Clone(box.Agents)
	for name, p := range box.Agents {
		box.Agents[name] = throughCopy(p, k, top, folders...)
	}
	return &box
}

// throughCopy shows the copy in the place of the work tree top, and keeps the
// user's repository, whose git folders are given, from being written.
func throughCopy(p sandbox.Policy, k *workspace.Copy, top string, folders ...string) sandbox.Policy {
	p.Write = slices.DeleteFunc(slices.Clone(p.Write), func(path string) bool { return slices.Contains(folders, path) })
	p.Keep = slices.Clone(p.Keep)
	for _, dir := range folders {
		if dir != top && !strings.HasPrefix(dir, top+"/") {
			p.Keep = append(p.Keep, dir)
		}
	}
	p.Binds = slices.Clone(p.Binds)
	for _, v := range k.Views() {
		p.Binds = append(p.Binds, sandbox.Bind{From: v.From, To: v.To, ReadOnly: v.ReadOnly})
	}
	return p
}

// harvest brings what the run has come to into the user's repository, as data.
// The copy of a run that is over and changed nothing goes.
func (d *Driver) harvest(ctx context.Context) {
	if d.copied == nil {
		return
	}
	ctx, cancel := d.aftermath(context.WithoutCancel(ctx))
	defer cancel()
	n, tree, ok := d.worker.trees.head.N, d.worker.trees.head.Tree, d.worker.trees.head.N > 0
	if d.o.Store != nil {
		if records, err := d.o.Store.Iterations(ctx, d.id); err == nil {
			n, tree, ok = Result(records)
		}
	}
	if !ok {
		return
	}
	if err := d.copied.Collect(ctx, n, tree); err != nil {
		d.warn(fmt.Sprintf("the result stays in the run's copy only: %v. pawl apply %s tries again", err, d.id))
		return
	}
	if d.state.Status == loop.Completed && tree == d.worker.trees.base {
		if err := workspace.RemoveCopy(filepath.Join(d.runDir, "copy")); err != nil {
			d.warn(fmt.Sprintf("the run's copy, which holds no change, could not be removed: %v", err))
		}
	}
}

// dropCopy removes the copy of a run that did not come to be.
func (d *Driver) dropCopy(ctx context.Context) {
	if d.copied == nil {
		return
	}
	err := workspace.RemoveCopy(filepath.Join(d.runDir, "copy"))
	if ferr := d.original.Forget(context.WithoutCancel(ctx), d.id); err == nil {
		err = ferr
	}
	if err != nil {
		d.warn(fmt.Sprintf("the run's copy could not be removed: %v", err))
	}
}

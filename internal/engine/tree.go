package engine

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/internal/gate"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/workspace"
)

// maxChanged bounds the files that a record lists.
const maxChanged = 1000

// look notes the tree before an attempt. A tree that gates or a person changed
// since the last snapshot is seen anew, so that only the agent's own changes
// count as its progress.
func (d *Driver) look(ctx context.Context, b *begun) {
	if d.o.Tree == nil {
		return
	}
	tree, head, err := d.o.Tree.Look(ctx, d.id)
	if err != nil {
		d.warn(fmt.Sprintf("cannot see the tree before the iteration: %v", err))
		return
	}
	b.TreeBefore, b.HeadBefore = tree, head
	guarded, err := d.o.Tree.ConfigFingerprint(ctx)
	if err != nil {
		d.warn(fmt.Sprintf("cannot watch git's hooks and configuration: %v", err))
		return
	}
	b.Guarded = &guarded
}

// snapshot keeps the tree that an agent left and what it changed.
func (d *Driver) snapshot(ctx context.Context, r *loop.Record, b begun) {
	if d.o.Tree == nil || b.TreeBefore == "" {
		return
	}
	snap, err := d.o.Tree.Snapshot(ctx, d.id, r.Number, workspace.SnapshotOptions{Message: fmt.Sprintf("%s: iteration %d", d.plan.Name, r.Number)})
	if err != nil {
		d.warn(fmt.Sprintf("no snapshot of iteration %d: %v", r.Number, err))
		return
	}
	d.skipped(snap.Skipped)
	d.head = snap
	r.TreeKnown, r.TreeBefore, r.TreeAfter, r.Snapshot = true, b.TreeBefore, snap.Tree, snap.Commit
	if r.TreeBefore != r.TreeAfter {
		d.changed(ctx, r)
	}
	if b.HeadBefore != snap.Head {
		n, err := d.o.Tree.Commits(ctx, b.HeadBefore, snap.Head)
		if err != nil {
			d.warn(fmt.Sprintf("cannot count the commits of iteration %d: %v", r.Number, err))
		}
		r.Commits = n
	}
}

func (d *Driver) changed(ctx context.Context, r *loop.Record) {
	changes, err := d.changes(ctx, r.TreeBefore, r.TreeAfter)
	if err != nil {
		d.warn(fmt.Sprintf("cannot list what iteration %d changed: %v", r.Number, err))
		return
	}
	for _, c := range changes[:min(len(changes), maxChanged)] {
		r.Files = append(r.Files, c.Path)
	}
}

func (d *Driver) changes(ctx context.Context, from, to string) ([]gate.Change, error) {
	list, more, err := d.o.Tree.Changes(ctx, from, to)
	if err != nil {
		return nil, err
	}
	if more {
		d.warn(fmt.Sprintf("only the first %d changed paths are looked at", len(list)))
	}
	out := make([]gate.Change, len(list))
	for i, c := range list {
		out[i] = gate.Change{Path: c.Path, From: c.From, Status: c.Status}
	}
	return out, nil
}

// skipped says once what snapshots leave alone.
func (d *Driver) skipped(paths []string) {
	if len(paths) == 0 || d.saidSkipped {
		return
	}
	d.saidSkipped = true
	d.warn(fmt.Sprintf("snapshots leave %d path(s) alone (nested repositories, large files), first: %s", len(paths), paths[0]))
}

// rewind puts the tree back to the best snapshot. In the user's own checkout
// it is done only if nothing changed since the agent's end.
func (d *Driver) rewind(ctx context.Context, c loop.Command) {
	if d.o.Tree == nil {
		return
	}
	back, err := d.o.Tree.Rewind(ctx, d.id, c.Rewind, d.head.Tree)
	why := back.Refused
	if err != nil {
		why = err.Error()
	}
	if why != "" {
		d.warn(fmt.Sprintf("the files were not put back to the best snapshot: %s. The iteration starts from what is there", why))
	}
}

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Applied is what came of applying a run's result.
type Applied struct {
	// Changed is the number of paths that the run changed; those of them that
	// are already as the run left them are neither written nor removed.
	Changed int `json:"changed"`
	// Written and Removed are the paths that were changed, or with Check that would be.
	Written []string `json:"written,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Conflicts are why nothing was changed.
	Conflicts []Conflict `json:"conflicts,omitempty"`
	// Recovery is the ref with everything as it was before; see [Checkout.RollbackTo].
	Recovery string `json:"recovery,omitempty"`
}

// Conflict is a path that the run changed and that cannot be written.
type Conflict struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Apply makes the paths that a run changed in its copy what they are there, in
// the work tree of now: from the run's snapshot 0 to its last one. A path
// that is neither what the run began with nor what it left is a conflict, and
// then nothing is changed. Index, branches and all other paths stay as they
// are. With check nothing is changed either way.
//
// A file that git ignores and that is in the way is met while files are written, as is
// one that changes just then. It is a conflict, and what was done is undone. After a kill it can be run again.
func (c *Checkout) Apply(ctx context.Context, run string, check bool) (Applied, error) {
	snaps, err := c.Snapshots(ctx, run)
	if err != nil {
		return Applied{}, err
	}
	if len(snaps) == 0 || snaps[0].N != 0 {
		return Applied{}, fmt.Errorf("cannot apply run %s: its first snapshot is gone", run)
	}
	r, err := c.open(ctx, run)
	if err != nil {
		return Applied{}, err
	}
	defer r.close()
	now, err := r.scan(ctx)
	if err != nil {
		return Applied{}, fmt.Errorf("cannot apply run %s: %w", run, err)
	}
	want := snaps[len(snaps)-1]
	a, todo, err := r.compare(ctx, snaps[0], now, want)
	if err != nil || check || len(a.Conflicts) > 0 || len(todo) == 0 {
		return a, err
	}
	return r.applyAll(ctx, a, todo, now, want)
}

// compare decides about every path that the run changed.
func (r *session) compare(ctx context.Context, base Snapshot, now state, want Snapshot,
) (a Applied, todo []git.Change, err error) {
	theirs, _, err := r.c.shadow.Changes(ctx, base.Tree, want.Tree, false, 0)
	if err != nil {
		return a, nil, err
	}
	mine, err := r.touched(ctx, base.Tree, now.tree)
	if err != nil {
		return a, nil, err
	}
	open, err := r.changesByPath(ctx, now.tree, want.Tree)
	if err != nil {
		return a, nil, err
	}
	a.Changed = len(theirs)
	for _, ch := range theirs {
		next, differs := open[ch.Path]
		if !differs {
			continue
		}
		var left Rollback
		switch {
		case mine[ch.Path]:
			a.conflict(ch.Path, "it was changed here too since the run began")
		case len(r.touchable([]git.Change{next}, now, want, &left)) == 0:
			a.conflict(ch.Path, strings.TrimPrefix(left.Notes[0], fmt.Sprintf("%q was left alone: ", ch.Path)))
		case next.NewObject == "":
			todo, a.Removed = append(todo, next), append(a.Removed, ch.Path)
		default:
			todo, a.Written = append(todo, next), append(a.Written, ch.Path)
		}
	}
	return a, todo, nil
}

func (a *Applied) conflict(p, why string) { a.Conflicts = append(a.Conflicts, Conflict{p, why}) }

// touched are the paths that a person changed: those that are neither as they
// were before the run nor as an earlier result of it that was applied.
func (r *session) touched(ctx context.Context, base, now string) (map[string]bool, error) {
	changes, err := r.changesByPath(ctx, base, now)
	if err != nil {
		return nil, err
	}
	before, known := changes, false
	if tree, rerr := os.ReadFile(r.appliedFile()); rerr == nil {
		if m, cerr := r.changesByPath(ctx, string(tree), now); cerr == nil {
			before, known = m, true
		}
	}
	mine := map[string]bool{}
	for p := range changes {
		if _, since := before[p]; since || !known {
			mine[p] = true
		}
	}
	return mine, nil
}

func (r *session) appliedFile() string { return filepath.Join(r.dir, "applied") }

func (r *session) changesByPath(ctx context.Context, from, to string) (map[string]git.Change, error) {
	all, _, err := r.c.shadow.Changes(ctx, from, to, false, 0)
	m := make(map[string]git.Change, len(all))
	for _, ch := range all {
		m[ch.Path] = ch
	}
	return m, err
}

// applyAll changes the files, all or none.
func (r *session) applyAll(ctx context.Context, a Applied, todo []git.Change, now state, want Snapshot,
) (Applied, error) {
	var err error
	a.Written, a.Removed = nil, nil
	if a.Recovery, err = r.recovery(ctx, now); err != nil {
		return a, fmt.Errorf("cannot keep the state before, so nothing was changed: %w", err)
	}
	var b Rollback
	w := newRestorer(r.c.Repo, r.c.inside())
	w.sweep(now.strays)
	err = r.carryOut(ctx, w, todo, &b)
	if err != nil || len(b.left) > 0 {
		a.Conflicts = b.left
		return a, r.takeBack(context.WithoutCancel(ctx), w, todo, b, a.Recovery, err)
	}
	a.Written, a.Removed = b.Restored, b.Removed
	if err := files.Replace(r.appliedFile(), []byte(want.Tree), 0o600, true); err != nil {
		return a, fmt.Errorf("the files are applied, but that could not be noted: %w", err)
	}
	return a, nil
}

// takeBack undoes the part of todo that was done. Why is the error that ended it; nil
// where something was in the way.
func (r *session) takeBack(ctx context.Context, w *restorer, todo []git.Change, done Rollback, recovery string,
	why error,
) error {
	var back []git.Change
	for _, ch := range todo {
		if slices.Contains(done.Restored, ch.Path) || slices.Contains(done.Removed, ch.Path) {
			ch.OldMode, ch.NewMode, ch.OldObject, ch.NewObject = ch.NewMode, ch.OldMode, ch.NewObject, ch.OldObject
			back = append(back, ch)
		}
	}
	var b Rollback
	err := r.carryOut(ctx, w, back, &b)
	if err == nil && len(b.left) > 0 {
		err = errors.New(b.Notes[0])
	}
	switch {
	case err != nil:
		return fmt.Errorf("cannot apply the run (%w), and not all of it could be taken back (%v): what was there before is "+
			"kept at %s", why, err, recovery)
	case why != nil:
		return fmt.Errorf("cannot apply the run, and nothing was changed: %w", why)
	}
	return nil
}

// Applied reports whether the run's last result, as it was collected, was
// applied at some time.
func (c *Checkout) Applied(ctx context.Context, run string) (bool, error) {
	snaps, err := c.Snapshots(ctx, run)
	if err != nil || len(snaps) == 0 {
		return false, err
	}
	r, err := c.open(ctx, run)
	if err != nil {
		return false, err
	}
	defer r.close()
	tree, err := os.ReadFile(r.appliedFile())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && string(tree) == snaps[len(snaps)-1].Tree, err
}

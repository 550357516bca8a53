package workspace

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/pawl-dev/pawl/internal/git"
)

// rebuild makes the private index anew: from the newest snapshot of the run,
// or at the run's start from the user's index.
func (r *session) rebuild(ctx context.Context) error {
	_ = os.Remove(r.indexFile()) // it is not there or not readable
	*r.mem = memory{last: r.mem.last}
	newest, err := r.newest(ctx)
	if err != nil {
		return err
	}
	if newest != "" {
		err = r.index.ReadTree(ctx, newest)
	} else {
		err = r.seed(ctx)
	}
	if err != nil {
		_ = os.Remove(r.indexFile()) // half made
		return fmt.Errorf("cannot make the private index: %w", err)
	}
	return nil
}

// newest is the tree of the run's newest snapshot, or "".
func (r *session) newest(ctx context.Context) (string, error) {
	all, err := r.c.Snapshots(ctx, r.run)
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[len(all)-1].Tree, nil
}

// seed enters what the user's index has, so that a file which is tracked although it is
// ignored counts as tracked. The next scan reads each file. What a sparse checkout leaves
// out is left out.
func (r *session) seed(ctx context.Context) error {
	all, err := r.c.Repo.IndexEntries(ctx)
	if err != nil { // it is broken: the commit stands in
		all, err = r.committed(ctx)
	}
	if err != nil {
		return err
	}
	there := r.c.present()
	all = slices.DeleteFunc(all, func(e git.Entry) bool {
		leftOut := e.Sparse && !there(e.Path)
		return leftOut || ours(e.Path)
	})
	if err := r.index.ReadTree(ctx, ""); err != nil {
		return err
	}
	return r.index.Set(ctx, all)
}

// committed is what the commit has that is checked out.
func (r *session) committed(ctx context.Context) ([]git.Entry, error) {
	head, err := r.c.Repo.Head(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.index.ReadTree(ctx, head.Commit); err != nil {
		return nil, err
	}
	return r.index.Entries(ctx)
}

// knowNested lists the submodules of the private index, which does not change them.
func (r *session) knowNested(ctx context.Context) error {
	if r.mem.listed {
		return nil
	}
	all, err := r.index.Entries(ctx)
	if err != nil {
		return err
	}
	r.mem.listed, r.mem.nested = true, nil
	for _, e := range all {
		if e.Mode == git.ModeNested {
			r.mem.nested = append(r.mem.nested, e.Path)
		}
	}
	return nil
}

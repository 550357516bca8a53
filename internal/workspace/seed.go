package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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

// seed takes over the user's index, with what it knows about files, so that
// files which did not change need not be read. An entry is taken at its word
// only if the stored object is certain to be the bytes on disk.
func (r *session) seed(ctx context.Context) error {
	all, err := r.copyUser(ctx)
	if err != nil {
		return err
	}
	r.noteUser(all, r.c.indexKey())
	doubt, drop, err := r.doubtful(ctx, all)
	if err != nil {
		return err
	}
	if err := r.index.Remove(ctx, drop); err != nil {
		return err
	}
	if err := r.index.Set(ctx, doubt); err != nil {
		return err
	}
	r.mem.keptKnow = false
	return nil
}

// copyUser makes the private index a copy of the user's, and lists it. An
// index in parts, or in a form that cannot be read alone, is entered line by line.
func (r *session) copyUser(ctx context.Context) ([]git.Entry, error) {
	err := git.CopyIndex(r.c.Repo.Index, r.indexFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil, r.index.ReadTree(ctx, "")
	}
	if err != nil {
		return nil, err
	}
	if all, err := r.index.Entries(ctx); err == nil {
		return all, nil
	}
	_ = os.Remove(r.indexFile()) // not readable
	all, err := r.c.Repo.IndexEntries(ctx)
	if err != nil {
		return r.seedHead(ctx)
	}
	if err := r.index.ReadTree(ctx, ""); err != nil {
		return nil, err
	}
	var sparse []string
	for _, e := range all {
		if e.Sparse {
			sparse = append(sparse, e.Path)
		}
	}
	return all, errors.Join(r.index.Set(ctx, all), r.index.MarkSparse(ctx, sparse))
}

// seedHead is for a user's index that is broken: the commit stands in.
func (r *session) seedHead(ctx context.Context) ([]git.Entry, error) {
	head, err := r.c.Repo.Head(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.index.ReadTree(ctx, head.Commit); err != nil {
		return nil, err
	}
	return r.index.Entries(ctx)
}

// doubtful returns the entries whose files must be read: those that the user
// told git not to look at, and those whose bytes are not the object. Line
// endings and keywords change the size; filters and encodings are asked for.
// Paths of pawl's own are to be dropped.
func (r *session) doubtful(ctx context.Context, all []git.Entry) (doubt []git.Entry, drop []string, err error) {
	var ask []git.Entry
	var paths, objects []string
	var disk []int64
	for _, e := range all {
		switch {
		case ours(e.Path):
			drop = append(drop, e.Path)
		case e.Stage != 0 || e.Mode == git.ModeNested:
		default:
			info, err := os.Lstat(filepath.Join(r.c.Repo.Top, e.Path))
			if err != nil {
				if e.Assumed && !e.Sparse {
					doubt = append(doubt, e)
				}
				continue
			}
			if e.Assumed || e.Sparse || !sameKind(info, e.Mode) {
				doubt = append(doubt, e)
				continue
			}
			ask, paths, objects = append(ask, e), append(paths, e.Path), append(objects, e.Object)
			disk = append(disk, info.Size())
		}
	}
	if len(ask) == 0 {
		return doubt, drop, nil
	}
	filtered, err := r.index.Filtered(ctx, paths)
	if err != nil {
		return nil, nil, err
	}
	sizes, err := r.c.shadow.Sizes(ctx, objects)
	if err != nil {
		return nil, nil, err
	}
	for i, e := range ask {
		if filtered[e.Path] || sizes[i] != disk[i] {
			doubt = append(doubt, e)
		}
	}
	return doubt, drop, nil
}

func sameKind(info fs.FileInfo, mode string) bool {
	switch mode {
	case git.ModeSymlink:
		return info.Mode()&fs.ModeSymlink != 0
	case git.ModeExec:
		return info.Mode().IsRegular() && info.Mode()&0o100 != 0
	default:
		return info.Mode().IsRegular() && info.Mode()&0o100 == 0
	}
}

package pool

import (
	"context"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/keep/store"
)

// followMoved makes the rows those of a repository, or of a state folder, that was
// moved: the pins in the repository prove that it is the one, and device and inode
// that a folder is.
func (p *Pool) followMoved(ctx context.Context) error {
	rows, err := p.o.Store.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Repo == p.repo.Common && pathExists(r.Own) {
			continue
		}
		if p.isInUse(r) || !p.isBasePinned(ctx, r) {
			continue
		}
		next := r
		next.Repo = p.repo.Common
		if own := filepath.Join(p.o.StateDir, "pool", filepath.Base(r.Own)); !pathExists(r.Own) && pathExists(own) {
			next.Own = own
		}
		dir := filepath.Join(p.o.Dir, filepath.Base(r.Dir))
		if id, err := folderID(dir); err == nil && id == r.Folder && !pathExists(r.Dir) {
			next.Dir = dir
		}
		err := p.o.Store.EditWorkspaces(ctx, func(all []store.Workspace) (store.WorkspaceChange, error) {
			for _, now := range all {
				if now == r {
					return store.WorkspaceChange{Put: []store.Workspace{next}}, nil
				}
			}
			return store.WorkspaceChange{}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isBasePinned reports whether the repository keeps the base of a row. A clone that waits
// for a task borrows nothing. For that of a run nothing is kept: its folder is the proof.
func (p *clones) isBasePinned(ctx context.Context, r store.Workspace) bool {
	switch r.Kind {
	case kindWarm:
		return true
	case kindRun:
		id, err := folderID(filepath.Join(p.o.Dir, filepath.Base(r.Dir)))
		return err == nil && id == r.Folder
	}
	commit, err := p.repo.Resolve(ctx, basePrefix+r.ID+"/base")
	return err == nil && commit == r.Base
}

func pathExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

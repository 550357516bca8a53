package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// place is where a repository is, kept beside what pawl knows of it.
type place struct {
	Repo   string `json:"repo"`   // its git directory
	Folder string `json:"folder"` // device and inode of it
}

const placeFile = "repository.json"

// Moved says, when the repository was at another path before, where the state
// is that pawl kept for it there; it is empty when it was not moved.
func (p *Pool) Moved() string { return p.moved }

// find notes where the repository is, and looks for the state of one that was
// moved here: the same folder by device and inode, at a path where nothing is now.
func (p *Pool) find() error {
	mine, err := folderID(p.repo.Common)
	if err != nil {
		return err
	}
	file := filepath.Join(p.o.StateDir, placeFile)
	now := place{p.repo.Common, mine}
	if was, err := readPlace(file); err == nil && was == now {
		return nil
	}
	others, err := filepath.Glob(filepath.Join(filepath.Dir(p.o.StateDir), "*", placeFile))
	if err != nil {
		return err
	}
	for _, other := range others {
		was, err := readPlace(other)
		if err != nil || was.Folder != mine || was.Repo == p.repo.Common || other == file {
			continue
		}
		if _, err := os.Lstat(was.Repo); errors.Is(err, os.ErrNotExist) {
			p.moved = fmt.Sprintf("this repository was moved here from %s; its board, runs and workspaces are in %s. To take "+
				"them along: remove %s and rename that folder to it",
				was.Repo, filepath.Dir(other), p.o.StateDir)
			return nil // the notice comes again until it is done
		}
	}
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return files.Replace(file, data, 0o600, false)
}

func readPlace(file string) (place, error) {
	var v place
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	return v, err
}

// follow makes the rows those of a repository, or of a state folder, that was
// moved: the pins in the repository prove that it is the one, and device and inode
// that a folder is.
func (p *Pool) follow(ctx context.Context) error {
	rows, err := p.o.Store.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Repo == p.repo.Common && exists(r.Own) {
			continue
		}
		elsewhere := r.Repo != p.repo.Common && exists(r.Repo)
		if elsewhere || p.busy(r) || !p.pinned(ctx, r) {
			continue
		}
		next := r
		next.Repo = p.repo.Common
		if own := filepath.Join(p.o.StateDir, "pool", filepath.Base(r.Own)); !exists(r.Own) && exists(own) {
			next.Own = own
		}
		dir := filepath.Join(p.o.Dir, filepath.Base(r.Dir))
		if id, err := folderID(dir); err == nil && id == r.Folder && !exists(r.Dir) {
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

// pinned reports whether the repository keeps the base of a row. A clone that waits
// for a task borrows nothing.
func (p *Pool) pinned(ctx context.Context, r store.Workspace) bool {
	if r.Kind == kindWarm {
		return true
	}
	commit, err := p.repo.Resolve(ctx, basePrefix+r.ID+"/base")
	return err == nil && commit == r.Base
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

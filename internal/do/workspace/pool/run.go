package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// kindRun is the kind of a workspace in which runs of one name work, one after another.
const kindRun = "run"

// RunPrefix begins the ids of workspaces of runs.
const RunPrefix = "run-"

// TakeRun gives the workspace that runs of one name work in: a folder, empty when it is
// new, which the caller fills. The error is [ErrTaken] while a live process works in it,
// and [ErrDisk] when there is no room to start anything. Nothing of it is kept in the
// user's repository.
func (p *Pool) TakeRun(ctx context.Context, id string) (Workspace, error) {
	fail := func(err error) (Workspace, error) { return Workspace{}, takeError(id, err) }
	if !isValidID(id) {
		return fail(errors.New("it is not the id of a workspace"))
	}
	if err := p.ensureDiskRoom(ctx); err != nil {
		return fail(err)
	}
	now := time.Now()
	want := store.Workspace{
		Kind: kindRun, ID: id, State: making, Repo: p.repo.Common, Dir: filepath.Join(p.o.Dir, id), Owner: p.me,
		TakenAt: now, UpdatedAt: now,
	}
	row, was, err := p.claimRow(ctx, want)
	if err != nil {
		return fail(err)
	}
	p.unowned.Delete(row.ID)
	w, err := p.openRunClone(ctx, row, was)
	if err != nil {
		return fail(errors.Join(err, p.unclaimRow(ctx, row, was)))
	}
	return w, nil
}

func (p *Pool) openRunClone(ctx context.Context, row store.Workspace, was string) (Workspace, error) {
	row.Folder = p.folderAfterBoot(row)
	proof := p.proveFolder(row)
	again := proof == nil && (was == leased || was == kept)
	switch {
	case again:
	case was != making && !isFolderGone(row): // work may be in it
		return Workspace{}, fmt.Errorf("%w; if you need nothing in it, remove it", proof)
	default:
		row.Dir, row.Own = filepath.Join(p.o.Dir, row.ID), filepath.Join(p.o.StateDir, "pool", filepath.Base(row.Own))
		for _, dir := range []string{row.Dir, row.Own} {
			if err := files.RemoveAll(dir); err != nil {
				return Workspace{}, fmt.Errorf("cannot remove what is left of an earlier workspace: %w", err)
			}
		}
	}
	lent := filepath.Join(row.Own, lentFolder)
	for _, dir := range []string{row.Dir, filepath.Join(lent, "info")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return Workspace{}, fmt.Errorf("cannot make the folder of the workspace: %w", err)
		}
	}
	alternates := filepath.Join(lent, "info", "alternates")
	if err := files.Replace(alternates, []byte(p.repo.Objects+"\n"), 0o600, false); err != nil {
		return Workspace{}, fmt.Errorf("cannot make the folder of the workspace: %w", err)
	}
	c, release, err := p.openClone(ctx, row) // makes pawl's own git directory of it
	if err != nil {
		return Workspace{}, err
	}
	c.Lent = lent
	_, _ = c.RestoreAlternates() // it has no repository yet, or a broken one, which is told where it is read
	release()
	ports, err := p.takePorts(ctx, row.Dir, row.Ports)
	if err != nil {
		return Workspace{}, err
	}
	folder, err := folderID(row.Dir)
	if err != nil {
		return Workspace{}, err
	}
	row, err = p.changeRow(ctx, row.ID, func(r *store.Workspace) {
		r.State, r.Folder, r.Ports, r.Repo, r.Dir, r.Own = leased, folder, ports, p.repo.Common, row.Dir, row.Own
	})
	if err != nil {
		return Workspace{}, err
	}
	w := p.workspaceOf(row)
	w.Kept, w.Setup = again, nil
	return w, nil
}

// lentFolder is where, beside a clone, its git finds the user's objects: a box shows
// them there, since the user's own .git is not in it.
const lentFolder = "lent"

package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// afterBoot puts in order the workspaces that were used before the machine was
// started last. Nothing in them was synced, so after a power loss files may be half
// of what they were. Those that wait for a task are removed. So is one in which somebody
// worked: what it had is kept under a recovery ref, and its task begins anew. One that
// was only kept stays as it is, if git can work in it. What was collected is in the
// user's repository, and was synced.
func (p *Pool) afterBoot(ctx context.Context) error {
	booted := process.Booted()
	return p.repairEach(ctx, func(r store.Workspace) error {
		switch {
		case !r.UpdatedAt.Before(booted):
		case r.State == warm:
			return p.finishRemoval(ctx, r)
		case r.Kind != kindTask:
		case r.State == leased, r.State == kept:
			return p.checkAfterBoot(ctx, r)
		}
		return nil
	})
}

// checkAfterBoot looks whether a workspace can be worked in after a start of the machine.
func (p *Pool) checkAfterBoot(ctx context.Context, r store.Workspace) error {
	row, err := p.acquireRow(ctx, r)
	if err != nil {
		return nil //nolint:nilerr // another process does it
	}
	broken := p.checkClone(ctx, row)
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), p.unclaimRow(ctx, row, r.State))
	}
	folder := p.folderAfterBoot(row)
	// From here on the row counts as looked at.
	if row, err = p.changeRow(ctx, row.ID, func(row *store.Workspace) { row.Folder = folder }); err != nil {
		return err
	}
	stays := broken == nil && r.State == kept
	if stays || p.proveOrGone(row) != nil {
		return errors.Join(p.pinBaseAndTips(ctx, row), p.unclaimRow(ctx, row, r.State))
	}
	s, err := p.removeClone(ctx, row, true)
	if err != nil {
		return p.disownRow(ctx, row.ID, err.Error())
	}
	why := "it was in use"
	if broken != nil {
		why = broken.Error()
	}
	p.noteEvent(row.ID, "did not survive the crash of the machine and is created again: "+why, s.Ref)
	return nil
}

func (p *Pool) noteEvent(id, what, ref string) {
	text := fmt.Sprintf("the workspace of %s %s", id, what)
	if ref != "" {
		text += "; its files are in " + ref
	}
	p.notes = append(p.notes, text)
}

// checkClone returns an error that names why the clone of a row cannot be worked in.
func (p *clones) checkClone(ctx context.Context, row store.Workspace) error {
	if _, err := os.Lstat(row.Dir); err != nil {
		return err
	}
	c, release, err := p.openClone(ctx, row)
	if err != nil {
		return err
	}
	defer release()
	return c.AfterBoot(ctx, row.Base)
}

// folderAfterBoot is the id that the folder of a row has now, when only the number of
// its device changed, as a start of the machine may do it: the inode is the same,
// and it is on the disk of all workspaces. Else it is what the row says.
func (p *clones) folderAfterBoot(row store.Workspace) string {
	now, err := folderID(row.Dir)
	all, aerr := folderID(p.o.Dir)
	if err != nil || aerr != nil {
		return row.Folder
	}
	_, was, _ := strings.Cut(row.Folder, ":")
	device, inode, _ := strings.Cut(now, ":")
	if disk, _, _ := strings.Cut(all, ":"); inode != was || device != disk {
		return row.Folder
	}
	return now
}

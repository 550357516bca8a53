package pool

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Take gives the workspace of a task: a clone on the branch pawl/<id> at base,
// a commit of the user's repository, or the one that was kept, as it was, with
// its own base. The error is [ErrTaken] while a live process works in it, also
// this one, and [ErrDisk] when there is no room to start anything.
func (p *Pool) Take(ctx context.Context, id, base string) (Workspace, error) {
	return p.TakeAt(ctx, id, base, "")
}

// TakeAt is [Pool.Take] for work that began at base, and that another machine
// brought to the commit head: a new clone has that checked out.
func (p *Pool) TakeAt(ctx context.Context, id, base, head string) (Workspace, error) {
	if !isValidID(id) || strings.HasPrefix(id, kindIntegration+"-") {
		return Workspace{}, fmt.Errorf("cannot create a workspace for %q: it is not the id of a task", id)
	}
	if err := p.ensureDiskRoom(ctx); err != nil {
		return Workspace{}, takeError(id, err)
	}
	return p.takeClone(ctx, store.Workspace{Kind: kindTask, ID: id, Branch: branchPrefix + id, Base: base, Head: head})
}

// Reclaim gives a workspace that is there as [Pool.Take] does, however little room
// there is: to give it back.
func (p *Pool) Reclaim(ctx context.Context, id, base string) (Workspace, error) {
	return p.takeClone(ctx, store.Workspace{Kind: kindTask, ID: id, Branch: branchPrefix + id, Base: base})
}

func takeError(id string, err error) error {
	return fmt.Errorf("cannot take the workspace of %s: %w", id, err)
}

// Integration gives a clone of its own with a commit checked out, to run gates
// in before a landing. Its files are those of the commit and nothing else.
// [Pool.Release] with [Landed] gives it back, whatever came of the gates; nothing
// of it is kept.
func (p *Pool) Integration(ctx context.Context, commit string) (Workspace, error) {
	id := kindIntegration + "-" + newSerial()
	if err := p.ensureDiskRoom(ctx); err != nil {
		return Workspace{}, takeError(id, err)
	}
	return p.takeClone(ctx, store.Workspace{Kind: kindIntegration, ID: id, Branch: branchPrefix + id, Base: commit})
}

// newSerial is a name that no other clone has.
func newSerial() string { return strings.ToLower(rand.Text()[:10]) }

// takeClone gives the clone that want says: kind, id, branch, base and head.
func (p *Pool) takeClone(ctx context.Context, want store.Workspace) (Workspace, error) {
	id := want.ID
	fail := func(err error) (Workspace, error) {
		return Workspace{}, takeError(id, err)
	}
	var err error
	if want.Base, err = p.repo.Resolve(ctx, want.Base); err != nil {
		return fail(err)
	}
	want.State, want.Repo, want.Dir, want.Owner = making, p.repo.Common, filepath.Join(p.o.Dir, id), p.me
	want.TakenAt, want.UpdatedAt = time.Now(), time.Now()
	var notes []string
	if _, ok, err := p.o.Store.Workspace(ctx, id); err != nil {
		return fail(err)
	} else if _, err := os.Lstat(want.Dir); err == nil && !ok {
		notes = append(notes, want.Dir+" stays as it is: this board has not made it, or has lost its record of that; "+
			"remove it if you need nothing of it")
		want.Dir += "-" + newSerial()
	}
	row, was, err := p.claimRow(ctx, want)
	if err != nil {
		return fail(err)
	}
	p.unowned.Delete(id)
	p.step("claimed")
	if was == leased || was == kept {
		w, missing, err := p.resumeKept(ctx, row)
		if err == nil && !missing {
			return w, nil
		}
		if err != nil {
			return fail(errors.Join(err, p.unclaimRow(ctx, row, was)))
		}
		want.Dir, want.Own, want.Ports = row.Dir, row.Own, row.Ports
		row, was = want, making
		notes = append(notes, fmt.Sprintf("its workspace no longer exists; it starts over from %.12s", row.Base))
	}
	w, err := p.makeFolder(ctx, row, was)
	if err != nil {
		if level, why := p.Room(); level >= RoomClean {
			err = fmt.Errorf("%w: %s: %v", ErrDisk, why, err) // git does not always say so
		}
		return fail(errors.Join(err, p.undoMaking(context.WithoutCancel(ctx), row)))
	}
	w.Notes = append(notes, w.Notes...)
	return w, nil
}

// claimRow writes the row of a workspace for this process, and returns the state
// that it was found in: held or kept for one with work in it, making for one that
// has to be made from nothing, warm for one whose folder waits.
func (p *rows) claimRow(ctx context.Context, want store.Workspace) (row store.Workspace, was string, err error) {
	err = p.o.Store.EditWorkspaces(ctx, func(all []store.Workspace) (store.WorkspaceChange, error) {
		var ch store.WorkspaceChange
		var refused error
		row, was, ch, refused = decideTake(all, want, filepath.Join(p.o.StateDir, "pool", newSerial()), p.isInUse)
		return ch, refused
	})
	return row, was, err
}

// decideTake chooses the row that the taker works with when want is taken, and returns
// the state in which that row was found.
func decideTake(all []store.Workspace, want store.Workspace, own string, busy func(store.Workspace) bool,
) (store.Workspace, string, store.WorkspaceChange, error) {
	for _, r := range all {
		if r.ID != want.ID && r.Dir == want.Dir { // the winner of a race has kept its folder
			want.Dir += "-" + filepath.Base(own)
		}
	}
	for _, r := range all {
		if r.ID != want.ID {
			continue
		}
		if r.Owner.PID != 0 && busy(r) {
			return r, "", store.WorkspaceChange{}, fmt.Errorf("%w by process %d", ErrTaken, r.Owner.PID)
		}
		was := r.State
		switch was {
		case leased, kept:
			r.Owner, r.State, r.UpdatedAt = want.Owner, leased, want.UpdatedAt
		default: // half made, or half removed with all of it kept
			own, ports := r.Own, r.Ports
			r, was = want, making
			r.Own, r.Ports = own, ports
		}
		return r, was, store.WorkspaceChange{Put: []store.Workspace{r}}, nil
	}
	for _, r := range all {
		if want.Kind != kindRun && r.Kind == kindWarm && r.State == warm && r.Repo == want.Repo && r.Owner.PID == 0 {
			row := want
			row.Own, row.Folder = r.Own, r.Folder
			return row, warm, store.WorkspaceChange{Drop: []string{r.ID}, Put: []store.Workspace{row}}, nil
		}
	}
	want.Own = own
	return want, making, store.WorkspaceChange{Put: []store.Workspace{want}}, nil
}

// warmCloneDir returns the folder in which a clone waits for its next use.
func (p *clones) warmCloneDir(own string) string {
	return filepath.Join(p.o.Dir, ".warm-"+filepath.Base(own))
}

// resumeKept takes up a workspace that was kept. It is gone when its folder is.
func (p *Pool) resumeKept(ctx context.Context, row store.Workspace) (w Workspace, missing bool, err error) {
	if isFolderGone(row) {
		return Workspace{}, true, nil
	}
	c, release, err := p.openClone(ctx, row)
	if err != nil {
		return Workspace{}, false, err
	}
	defer release()
	ports, err := p.takePorts(ctx, row.Dir, row.Ports)
	if err != nil {
		return Workspace{}, false, err
	}
	var notes []string
	if done, _, _ := strings.Cut(row.Setup, "/"); done != p.copyHash() { // workspace.copy has changed
		open, err := p.copyFiles(ctx, c)
		if err != nil {
			return Workspace{}, false, err
		}
		if len(open) > 0 {
			notes = append(notes, describeOpenFiles(open))
		}
		row.Setup = p.copyHash() + "/"
	}
	row, err = p.changeRow(ctx, row.ID, func(r *store.Workspace) {
		r.Ports, r.Repo, r.Setup = ports, p.repo.Common, row.Setup
	})
	if err != nil {
		return Workspace{}, false, err
	}
	w = p.workspaceOf(row)
	w.Kept, w.Notes = true, notes
	dropAgentLocks(row.Dir)
	switch changed, err := c.RestoreAlternates(); {
	case err != nil:
		w.Notes = append(w.Notes, fmt.Sprintf("its repository is broken, so only its files can be saved: %v", err))
	case changed:
		w.Notes = append(w.Notes, "it borrowed objects from somewhere else; that was corrected")
	}
	return w, false, nil
}

// unclaimRow gives up a row that was claimed, as it was found.
func (p *rows) unclaimRow(ctx context.Context, row store.Workspace, was string) error {
	_, err := p.changeRow(context.WithoutCancel(ctx), row.ID, func(r *store.Workspace) {
		r.Owner, r.State = store.Owner{}, was
	})
	if err != nil {
		p.unowned.Store(row.ID, true)
	}
	return err
}

// makeFolder makes the folder of a row in the state making.
func (p *Pool) makeFolder(ctx context.Context, row store.Workspace, was string) (Workspace, error) {
	c, release, err := p.openClone(ctx, row)
	if err != nil {
		return Workspace{}, err
	}
	defer release()
	if row.Ports, err = p.takePorts(ctx, row.Dir, row.Ports); err != nil {
		return Workspace{}, err
	}
	p.step("ports")
	if err := p.pinBaseAndTips(ctx, row); err != nil {
		return Workspace{}, fmt.Errorf("cannot keep the objects that the workspace borrows: %w", err)
	}
	p.step("pinned")
	if err := p.fillClone(ctx, c, row, was); err != nil {
		return Workspace{}, err
	}
	p.step("filled")
	open, err := p.copyFiles(ctx, c)
	if err == nil && len(open) > 0 {
		err = errors.New(describeOpenFiles(open))
	}
	if err != nil {
		return Workspace{}, err
	}
	folder, err := folderID(row.Dir)
	if err != nil {
		return Workspace{}, err
	}
	done, err := p.changeRow(ctx, row.ID, func(r *store.Workspace) {
		*r = row
		r.State, r.Folder, r.Setup = leased, folder, p.copyHash()+"/"
	})
	if err != nil {
		return Workspace{}, err
	}
	p.step("held")
	return p.workspaceOf(done), nil
}

// fillClone makes the clone in its folder: from one that waits, else from nothing.
func (p *clones) fillClone(ctx context.Context, c *git.Clone, row store.Workspace, was string) error {
	waits := p.warmCloneDir(row.Own)
	if was == warm && p.reuseWarm(ctx, c, row, waits) == nil {
		return nil
	}
	for _, dir := range []string{waits, row.Dir} {
		if err := files.RemoveAll(dir); err != nil {
			return fmt.Errorf("cannot remove what is left of an earlier attempt: %w", err)
		}
	}
	if err := c.Forget(); err != nil {
		return err
	}
	if err := os.Mkdir(row.Dir, 0o700); err != nil {
		return fmt.Errorf("cannot create the folder of the workspace: %w", err)
	}
	p.step("made")
	if err := c.Checkout(ctx, firstCommit(row)); err != nil {
		return err
	}
	p.step("checked out")
	return p.createRepository(ctx, c, row)
}

// reuseWarm takes the folder that waits. An error only means that it is of no use.
func (p *clones) reuseWarm(ctx context.Context, c *git.Clone, row store.Workspace, waits string) error {
	if id, err := folderID(waits); err != nil || id != row.Folder {
		return errors.New("it is another folder")
	}
	if err := os.Rename(waits, row.Dir); err != nil {
		return err
	}
	p.step("renamed")
	if err := c.Checkout(ctx, firstCommit(row)); err != nil {
		return err
	}
	return p.createRepository(ctx, c, row)
}

// createRepository gives the clone its .git.
func (p *clones) createRepository(ctx context.Context, c *git.Clone, row store.Workspace) error {
	head, err := p.repo.Head(ctx)
	if err != nil {
		return err
	}
	return c.CreateRepository(ctx, git.CloneRefs{Branch: row.Branch, Commit: firstCommit(row), Beside: head.Branch})
}

// firstCommit is the commit that a new clone has checked out.
func firstCommit(row store.Workspace) string { return cmp.Or(row.Head, row.Base) }

// undoMaking removes what a failed attempt to make a workspace left. No agent was in it.
func (p *Pool) undoMaking(ctx context.Context, row store.Workspace) error {
	ctx = context.WithoutCancel(ctx)
	if row.State != making {
		return nil
	}
	if err := p.discardClone(ctx, row); err != nil {
		return errors.Join(err, p.unclaimRow(ctx, row, making))
	}
	return nil
}

// pinBaseAndTips makes the user's repository keep the base, and what its refs are at now:
// what an agent writes into its clone is not stored there when the user's has it
// already.
func (p *clones) pinBaseAndTips(ctx context.Context, row store.Workspace) error {
	tips, err := p.repo.Tips(ctx)
	if err != nil {
		return err
	}
	if row.Head != "" {
		tips = append(tips, row.Head)
	}
	for range gcTries {
		var bound string
		if bound, err = p.repo.CommitWithParents(ctx, append(tips, row.Base)); err == nil {
			err = p.repo.SetRefs(ctx, basePrefix+row.ID+"/base", row.Base, basePrefix+row.ID+"/tips", bound)
		}
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

// gcTries is how often what a gc of the user's took between two steps is made.
const gcTries = 3

// ensureDiskRoom refuses when the disk is too full to start anything, after it has
// removed what is idle.
func (p *Pool) ensureDiskRoom(ctx context.Context) error {
	level, why := p.Room()
	if level < RoomClean {
		return nil
	}
	if _, err := p.Relieve(ctx); err != nil {
		return fmt.Errorf("%w: %s: %v", ErrDisk, why, err)
	}
	if level, why = p.Room(); level < RoomClean {
		return nil
	}
	return fmt.Errorf("%w: %s; see what can go: pawl case clean --dry-run", ErrDisk, cmp.Or(why, "no room"))
}

// Swap gives a task the workspace of an agent that raced for it, and that agent the
// task's, where there is one: with their runs, in one transaction. The folders stay
// where they are. It is [ErrTaken] while another process works in one of them.
func (p *Pool) Swap(ctx context.Context, task string, racer Workspace) (Workspace, error) {
	var won store.Workspace
	err := p.keepBorrowedObjects(ctx, task, racer.ID)
	if err == nil {
		err = p.o.Store.SwapRacer(ctx, task, racer.ID, func(all []store.Workspace) (store.WorkspaceChange, error) {
			var ch store.WorkspaceChange
			for _, r := range all {
				if r.ID != task && r.ID != racer.ID {
					continue
				}
				if p.isInUse(r) && r.Owner != p.me {
					return ch, fmt.Errorf("%w by process %d", ErrTaken, r.Owner.PID)
				}
				ch.Drop = append(ch.Drop, r.ID)
				if r.ID == task {
					r.ID = racer.ID
				} else {
					r.ID, won = task, r
					won.ID = task
				}
				r.Branch = branchPrefix + r.ID
				ch.Put = append(ch.Put, r)
			}
			if won.ID == "" {
				return ch, errors.New("it has no workspace")
			}
			return ch, nil
		})
	}
	if err != nil {
		return racer, fmt.Errorf("cannot give %s the workspace of %s: %w", task, racer.ID, err)
	}
	won.Branch = branchPrefix + task
	w := p.workspaceOf(won)
	w.Kept = racer.Kept
	return w, nil
}

// keepBorrowedObjects keeps what each of two clones borrows for the other one as well.
func (p *clones) keepBorrowedObjects(ctx context.Context, a, b string) error {
	var pairs []string
	for from, to := range map[string]string{a: b, b: a} {
		refs, err := p.repo.Refs(ctx, basePrefix+from+"/")
		if err != nil {
			return err
		}
		for _, r := range refs {
			pairs = append(pairs, basePrefix+to+"/of-"+path.Base(r.Name), r.Commit)
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	return p.repo.KeepRefs(ctx, pairs...)
}

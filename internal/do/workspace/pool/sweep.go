package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Entry is a workspace as a person sees it.
type Entry struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"`  // task, integration or warm
	State     string    `json:"state"` // making, held, kept, warm or removing
	Dir       string    `json:"dir"`
	Branch    string    `json:"branch,omitempty"`
	Base      string    `json:"base,omitempty"`
	Commit    string    `json:"commit,omitempty"` // what was collected last
	Ports     int       `json:"ports,omitempty"`
	Why       string    `json:"why,omitempty"`
	Process   int       `json:"process,omitempty"` // the live process that works in it
	Landed    bool      `json:"landed,omitempty"`  // it was given back after its work had landed
	Bytes     int64     `json:"bytes"`             // on the disk
	TakenAt   time.Time `json:"taken_at"`
	KeepUntil time.Time `json:"keep_until,omitzero"`
}

// List is all workspaces, in the order in which they were made.
func (p *Pool) List(ctx context.Context) ([]Entry, error) {
	rows, err := p.o.Store.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	return lists.Each(rows, p.entryOfRow), nil
}

// Find is the workspace with an id, which a process may work in.
func (p *Pool) Find(ctx context.Context, id string) (w Workspace, ok bool, err error) {
	r, ok, err := p.o.Store.Workspace(ctx, id)
	if err != nil || !ok {
		return Workspace{}, false, err
	}
	return p.workspaceOf(r), true, nil
}

func (p *Pool) entryOfRow(r store.Workspace) Entry {
	e := Entry{
		ID: r.ID, Kind: r.Kind, State: r.State, Dir: r.Dir,
		Branch: r.Branch, Base: r.Base, Commit: r.Head, Ports: r.Ports,
		Why: r.Why, Bytes: treeSize(r.Dir), TakenAt: r.TakenAt, KeepUntil: r.KeepUntil,
		Landed: r.Landed,
	}
	if p.isInUse(r) {
		e.Process = r.Owner.PID
	}
	return e
}

// Verdict is what a clean-up does with a workspace, and why.
type Verdict struct {
	Entry
	Remove bool     `json:"remove"`
	Reason string   `json:"reason"`
	Ref    string   `json:"ref,omitempty"`  // where its work was kept
	Lost   []string `json:"lost,omitempty"` // what went with it: ignored files, and what no ref can hold
}

// Clean removes workspaces that are of no use any more, and says of each what
// it did and why. With ids, it looks only at those, and a person has given them
// up. With dry it only reports what would be done.
func (p *Pool) Clean(ctx context.Context, ids []string, dry bool) ([]Verdict, error) {
	rows, err := p.o.Store.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	var all []Verdict
	for _, r := range rows {
		named := slices.Contains(ids, r.ID)
		if len(ids) > 0 && !named {
			continue
		}
		all = append(all, p.cleanWorkspace(ctx, r, question{named: named}, dry))
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
	}
	return all, nil
}

func (p *Pool) cleanWorkspace(ctx context.Context, r store.Workspace, q question, dry bool) Verdict {
	v := Verdict{Entry: p.entryOfRow(r)}
	p.inspectWorkspace(ctx, r, &q)
	v.Remove, v.Reason = judgeRow(r, q)
	if !v.Remove {
		return v
	}
	if dry {
		v.Lost = p.ignoredFiles(ctx, r)
		return v
	}
	row, err := p.acquireRow(ctx, r)
	if err == nil {
		v.Lost = p.ignoredFiles(ctx, row)
		var s saved
		if s, err = p.removeClone(ctx, row, q.named); err == nil {
			v.Ref, v.Lost = s.Ref, append(v.Lost, s.Left...)
			return v
		}
		err = errors.Join(err, p.disownRow(ctx, r.ID, r.Why))
	}
	v.Remove, v.Reason, v.Lost = false, err.Error(), nil
	return v
}

// inspectWorkspace finds out what has to be known of a workspace.
func (p *Pool) inspectWorkspace(ctx context.Context, r store.Workspace, q *question) {
	q.now, q.gone, q.proof = process.Cautious(), isFolderGone(r), p.proveOrGone(r)
	q.landed = q.landed || r.Landed
	switch c, err := p.o.Store.Case(ctx, r.ID); {
	case p.isInUse(r):
		q.busy = fmt.Sprintf("used by process %d", r.Owner.PID)
	case err != nil: // removed from the board, or no task at all
	case c.Status == board.Active:
		q.busy = "the task is active; stop its run, or start the autopilot, which cleans up after a crash"
	case c.Status == board.Done:
		q.landed = true
	}
	q.busy = cmp.Or(q.busy, processIn(r.Dir))
}

// question is what is known when it is decided about a workspace.
type question struct {
	named  bool   // a person named it
	landed bool   // its work is on its target
	busy   string // who works in it
	proof  error  // why it cannot be proved to be the folder that was made
	gone   bool   // somebody removed the folder
	now    time.Time
}

// judgeRow decides whether a workspace goes, with the reason.
func judgeRow(r store.Workspace, q question) (remove bool, why string) {
	switch {
	case q.busy != "":
		return false, q.busy
	case r.State == making:
		return true, "it was never finished"
	case r.State == removing:
		return true, "its removal was interrupted; all of it is kept"
	case q.proof != nil:
		return false, "it cannot be proved to be the folder that was made: " + q.proof.Error()
	case r.Kind == kindWarm:
		return true, "it waits for a task; nothing is in it"
	case r.Kind == kindIntegration:
		return true, "its run has ended"
	case q.named:
		return true, "you named it"
	case q.landed:
		return true, "its work has landed"
	case !r.KeepUntil.IsZero() && q.now.After(r.KeepUntil):
		return true, "it was kept for workspace.retention"
	}
	if q.gone {
		return false, "its folder no longer exists; to remove the entry: pawl case clean " + r.ID
	}
	why = cmp.Or(r.Why, "it was left over")
	if !r.KeepUntil.IsZero() {
		why += "; kept until " + r.KeepUntil.Local().Format("2006-01-02 15:04")
	}
	return false, why + "; to remove it now: pawl case clean " + r.ID
}

// proveOrGone is [clones.proveFolder]; a folder that somebody removed is no objection.
func (p *clones) proveOrGone(r store.Workspace) error {
	if isFolderGone(r) {
		return nil
	}
	return p.proveFolder(r)
}

// isFolderGone reports whether somebody removed the folder of a workspace.
func isFolderGone(r store.Workspace) bool {
	_, err := os.Lstat(r.Dir)
	return errors.Is(err, os.ErrNotExist)
}

// ignoredFiles are the ignored files of a workspace, those of pawl aside. They are in
// no commit.
func (p *clones) ignoredFiles(ctx context.Context, r store.Workspace) []string {
	if r.Kind != kindTask || r.Folder == "" {
		return nil
	}
	c, release, err := p.openClone(ctx, r)
	if err != nil {
		return nil
	}
	defer release()
	all, err := c.Ignored(ctx)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(name string) bool { return name == ".pawl/" })
}

// acquireRow makes this process the owner of a row whose owner is dead or nobody,
// if it is as it was read.
func (p *rows) acquireRow(ctx context.Context, was store.Workspace) (store.Workspace, error) {
	return p.editWorkspaceRow(ctx, was.ID, func(r *store.Workspace) error {
		switch {
		case p.isInUse(*r):
			return fmt.Errorf("%w by process %d", ErrTaken, r.Owner.PID)
		case *r != was:
			return errors.New("another process changed it in the meantime")
		}
		r.Owner = p.me
		return nil
	})
}

// removeClone removes a workspace that this process owns, after it has saved it. What
// no ref can hold keeps it, unless a person gave it up. When it fails, the caller
// lets the row go.
func (p *Pool) removeClone(ctx context.Context, row store.Workspace, givenUp bool) (saved, error) {
	s, err := p.saveBeforeRemoval(ctx, row, givenUp)
	if err != nil {
		return s, err
	}
	if row, err = p.changeRow(ctx, row.ID, func(r *store.Workspace) { r.State = removing }); err != nil {
		return s, err
	}
	p.step("removing")
	return s, p.discardClone(ctx, row)
}

// disownRow gives up a row that could not be removed: half removed, it is finished by
// the next one; else it is kept.
func (p *rows) disownRow(ctx context.Context, id, why string) error {
	_, err := p.changeRow(context.WithoutCancel(ctx), id, func(r *store.Workspace) {
		r.Owner, r.Why = store.Owner{}, why
		if r.State == leased {
			r.State, r.KeepUntil = kept, time.Now().Add(p.o.Retention)
		}
	})
	return err
}

// saveBeforeRemoval saves what must be kept before a folder is removed.
func (p *Pool) saveBeforeRemoval(ctx context.Context, row store.Workspace, givenUp bool) (saved, error) {
	if row.State == making || row.State == removing || row.Kind != kindTask || isFolderGone(row) {
		return saved{}, nil
	}
	if err := p.proveFolder(row); err != nil {
		return saved{}, err
	}
	s, err := p.saveWork(ctx, row, false)
	if err != nil {
		return s, fmt.Errorf("its content cannot be saved: %w", err)
	}
	if len(s.Left) > 0 && !givenUp {
		return s, errors.New(namePaths(s.Left, "cannot be saved", "cannot be saved") +
			"; to remove it all the same: pawl case clean " + row.ID)
	}
	return s, nil
}

// Sweep removes workspaces that were kept for the retention, and those that were
// given back while somebody was still in them. Those that must stay are left, with a
// reason; those of gates that somebody is in still, without a word. What could not be
// released is put in order first.
func (p *Pool) Sweep(ctx context.Context) ([]Verdict, error) {
	if err := p.repairDead(ctx); err != nil {
		return nil, err
	}
	rows, err := p.o.Store.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	var all []Verdict
	for _, r := range rows {
		over := false
		switch r.Kind {
		case kindTask, kindRun:
			expired := !r.KeepUntil.IsZero() && process.Cautious().After(r.KeepUntil)
			given := r.Landed && !p.o.KeepOnSuccess
			over = expired || given
		case kindIntegration:
			over = p.proveOrGone(r) == nil && processIn(r.Dir) == ""
		}
		if r.State == kept && over {
			all = append(all, p.cleanWorkspace(ctx, r, question{}, false))
		}
	}
	return all, nil
}

// Relieve removes workspaces in which nobody works, those that wait for a task
// first, then the oldest, until there is room again.
func (p *Pool) Relieve(ctx context.Context) ([]Verdict, error) {
	rows, err := p.o.Store.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b store.Workspace) int {
		first := func(r store.Workspace) int {
			if r.Kind == kindWarm {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(first(a), first(b)), a.UpdatedAt.Compare(b.UpdatedAt))
	})
	var all []Verdict
	for _, r := range rows {
		if level, _ := p.Room(); level < RoomClean || ctx.Err() != nil {
			break
		}
		if r.State != kept && r.State != warm {
			continue
		}
		v := p.cleanWorkspace(ctx, r, question{landed: true}, false)
		if v.Remove && r.Kind == kindTask {
			v.Reason = "the disk is nearly full"
		}
		all = append(all, v)
	}
	return all, ctx.Err()
}

// repairDead finishes what processes that are dead left behind.
func (p *Pool) repairDead(ctx context.Context) error {
	return p.repairEach(ctx, func(r store.Workspace) error {
		switch {
		case r.Kind == kindIntegration && processIn(r.Dir) != "": // gates outlive their process for a while
		case r.State == making, r.State == removing, r.Kind == kindIntegration:
			return p.finishRemoval(ctx, r)
		case r.State == leased:
			return p.keepOrphan(ctx, r)
		}
		return nil
	})
}

// repairEach repairs the workspaces of this repository in which no live process works.
func (p *Pool) repairEach(ctx context.Context, repair func(store.Workspace) error) error {
	all, err := p.o.Store.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if p.isInUse(r) || r.Repo != p.repo.Common {
			continue
		}
		if err := repair(r); err != nil && !errors.Is(err, ErrTaken) {
			return fmt.Errorf("cannot repair the workspace of %s: %w", r.ID, err)
		}
	}
	return nil
}

// finishRemoval removes what holds nothing that could be lost. When it cannot be
// removed, it stays for the next one who tries.
func (p *Pool) finishRemoval(ctx context.Context, r store.Workspace) error {
	row, err := p.acquireRow(ctx, r)
	if err != nil {
		return nil //nolint:nilerr // another process does it
	}
	if row.Folder != "" {
		folder := p.folderAfterBoot(row)
		if row, err = p.changeRow(ctx, row.ID, func(r *store.Workspace) { r.Folder = folder }); err != nil {
			return err
		}
	}
	made := row.State == leased || row.State == kept
	if made && row.Kind == kindIntegration && p.proveOrGone(row) != nil {
		return p.keepForRetention(ctx, row.ID, "it cannot be proved to be the folder that was made")
	}
	if _, err := p.removeClone(ctx, row, false); err != nil {
		return p.disownRow(ctx, row.ID, err.Error())
	}
	return nil
}

// keepOrphan keeps a workspace whose process is gone. One that was being given back
// after its work had landed is not: whoever looks next does it.
func (p *Pool) keepOrphan(ctx context.Context, r store.Workspace) error {
	row, err := p.acquireRow(ctx, r)
	if err != nil {
		return nil //nolint:nilerr // another process does it
	}
	if row.Landed {
		if _, err := p.changeRow(ctx, r.ID, func(r *store.Workspace) { r.Landed = false }); err != nil {
			return err
		}
	}
	return p.keepForRetention(ctx, r.ID, fmt.Sprintf("process %d, which used it, has ended", r.Owner.PID))
}

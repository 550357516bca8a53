package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// ErrNone says that the task has no workspace.
var ErrNone = errors.New("there is no workspace")

// Point is a state of a workspace: what is checked out, and the files. The zero
// Point is the base.
type Point struct {
	Head string // commit
	Tree string // of the files
}

// Rollback puts the workspace of a task, in which nobody works, back to a point,
// and returns the recovery ref that has what was there before. Ignored files stay
// as they are. It is [ErrTaken] while a process works in it, [ErrNone] without one.
func (p *Pool) Rollback(ctx context.Context, id string, to Point) (ref string, err error) {
	ref, err = p.rollBackClone(ctx, id, to)
	if err != nil {
		return ref, fmt.Errorf("cannot roll back the workspace of %s: %w", id, err)
	}
	return ref, nil
}

func (p *Pool) rollBackClone(ctx context.Context, id string, to Point) (string, error) {
	found, ok, err := p.o.Store.Workspace(ctx, id)
	if err != nil {
		return "", err
	}
	if !ok || found.State != kept {
		if ok && isOwnerAlive(found.Owner) {
			return "", fmt.Errorf("%w by process %d", ErrTaken, found.Owner.PID)
		}
		return "", ErrNone
	}
	if isFolderGone(found) {
		return "", ErrNone
	}
	if err := p.proveFolder(found); err != nil {
		return "", err
	}
	if who := processIn(found.Dir); who != "" {
		return "", fmt.Errorf("%w: %s", ErrTaken, who)
	}
	row, err := p.acquireRow(ctx, found)
	if err != nil {
		return "", err
	}
	ref, err := p.restorePoint(ctx, row, to)
	why := row.Why
	if err == nil {
		why = "it was rolled back"
	}
	return ref, errors.Join(err, p.keepForRetention(context.WithoutCancel(ctx), id, why))
}

// restorePoint saves what is there and restores a point. Run again, it finishes what
// was interrupted.
func (p *works) restorePoint(ctx context.Context, row store.Workspace, to Point) (string, error) {
	s, err := p.saveWork(ctx, row, true)
	if err != nil {
		return "", fmt.Errorf("its content cannot be saved, so nothing was changed: %w", err)
	}
	p.step("saved before")
	c, release, err := p.openClone(ctx, row)
	if err != nil {
		return s.Ref, err
	}
	defer release()
	to.Head = cmp.Or(to.Head, row.Base)
	to.Tree = cmp.Or(to.Tree, to.Head)
	head, broken := c.Head()
	if broken == nil {
		_, broken = c.RestoreAlternates()
	}
	if broken == nil {
		_, _, broken = p.enterAll(ctx, c, cmp.Or(head.Commit, row.Base))
	}
	if broken != nil { // it gets a new repository
		err = c.DropAgentObjects()
		if err == nil {
			_, _, err = p.enterAll(ctx, c, row.Base)
		}
	}
	if err == nil {
		err = c.Checkout(ctx, to.Tree)
	}
	if err != nil {
		return s.Ref, err
	}
	p.step("files are back")
	if broken == nil {
		return s.Ref, c.Attach(row.Branch, to.Head)
	}
	if err := files.RemoveAll(filepath.Join(row.Dir, ".git")); err != nil {
		return s.Ref, err
	}
	row.Base, row.Head = to.Head, ""
	return s.Ref, p.createRepository(ctx, c, row)
}

// Recovered is the point that a recovery of the task keeps: the newest, or what
// is empty when there is none.
func (p *works) Recovered(ctx context.Context, id string) (Point, Recovery, error) {
	all, err := p.Recoveries(ctx, id)
	if err != nil || len(all) == 0 {
		return Point{}, Recovery{}, err
	}
	last := all[len(all)-1]
	refs, err := p.repo.Refs(ctx, last.Ref)
	if err != nil || len(refs) != 1 || len(refs[0].Parents) == 0 {
		return Point{}, last, errors.Join(err, os.ErrNotExist)
	}
	return Point{Head: refs[0].Parents[0], Tree: refs[0].Tree}, last, nil
}

// Mend removes refs of pawl's own that lead to nothing, and says so; "" when none does.
func (p *works) Mend(ctx context.Context) (note string, err error) {
	gone, err := p.repo.MendRefs(ctx)
	if len(gone) > 0 {
		note = fmt.Sprintf("removed %d of pawl's own refs, whose commits are missing: %s",
			len(gone), strings.Join(gone[:min(len(gone), 3)], ", "))
	}
	return note, err
}

// MergeSuffix is what the id of a workspace has after that of a task whose work
// is brought together with the target there.
const MergeSuffix = "-merge"

// Recovery is a ref that keeps what was in a workspace before it was changed or
// removed.
type Recovery struct {
	Task   string // whose work it is
	N      int    // of the workspace's, 1-based
	Ref    string
	Commit string
	When   time.Time
}

// Recoveries lists what was kept of the workspace with an id, oldest first; of
// all workspaces with an empty one, by task. A task can have several: its own,
// those of agents that race for it, and the one where its work is brought together with the target.
func (p *works) Recoveries(ctx context.Context, id string) ([]Recovery, error) {
	prefix := recoveryPrefix
	if id != "" {
		prefix += id + "/"
	}
	refs, err := p.repo.Refs(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var all []Recovery
	for _, r := range refs {
		owner, number, _ := strings.Cut(strings.TrimPrefix(r.Name, recoveryPrefix), "/")
		n, err := strconv.Atoi(number)
		task := board.TaskOf(owner)
		if _, _, isCase := board.ParseID(task); isCase && err == nil { // runs have theirs beside them
			all = append(all, Recovery{task, n, r.Name, r.Commit, r.When})
		}
	}
	slices.SortFunc(all, func(a, b Recovery) int {
		return cmp.Or(strings.Compare(a.Task, b.Task), cmp.Compare(a.N, b.N), strings.Compare(a.Ref, b.Ref))
	})
	return all, nil
}

// Outdated is true for what was kept longer ago than the retention.
func (p *works) Outdated(r Recovery, now time.Time) bool {
	return p.o.Retention > 0 && r.When.Before(now.Add(-p.o.Retention))
}

// DropRecoveries deletes recovery refs. One that was moved meanwhile stays, and
// is an error. The objects stay in the repository until git collects them.
func (p *works) DropRecoveries(ctx context.Context, list []Recovery) error {
	refs := lists.Each(list, func(r Recovery) git.Ref { return git.Ref{Name: r.Ref, Commit: r.Commit} })
	if err := p.repo.DeleteRefs(ctx, refs); err != nil {
		return fmt.Errorf("cannot delete recovery refs: %w", err)
	}
	return nil
}

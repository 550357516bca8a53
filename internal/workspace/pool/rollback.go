package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/store"
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
	ref, err = p.rollback(ctx, id, to)
	if err != nil {
		return ref, fmt.Errorf("cannot roll back the workspace of %s: %w", id, err)
	}
	return ref, nil
}

func (p *Pool) rollback(ctx context.Context, id string, to Point) (string, error) {
	found, ok, err := p.o.Store.Workspace(ctx, id)
	if err != nil {
		return "", err
	}
	if !ok || found.State != kept {
		if ok && alive(found.Owner) {
			return "", fmt.Errorf("%w by process %d", ErrTaken, found.Owner.PID)
		}
		return "", ErrNone
	}
	if gone(found) {
		return "", ErrNone
	}
	if err := p.prove(found); err != nil {
		return "", err
	}
	if who := used(found.Dir); who != "" {
		return "", fmt.Errorf("%w: %s", ErrTaken, who)
	}
	row, err := p.acquire(ctx, found)
	if err != nil {
		return "", err
	}
	ref, err := p.goTo(ctx, row, to)
	why := row.Why
	if err == nil {
		why = "it was rolled back"
	}
	return ref, errors.Join(err, p.keep(context.WithoutCancel(ctx), id, why))
}

// goTo saves what is there and restores a point. Run again, it finishes what
// was interrupted.
func (p *Pool) goTo(ctx context.Context, row store.Workspace, to Point) (string, error) {
	s, err := p.save(ctx, row, true)
	if err != nil {
		return "", fmt.Errorf("what is in it cannot be saved, so nothing was changed: %w", err)
	}
	p.step("saved before")
	c, release, err := p.clone(ctx, row)
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
func (p *Pool) Recovered(ctx context.Context, id string) (Point, Recovery, error) {
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

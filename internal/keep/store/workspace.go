package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

// WorkspaceTable keeps the private clones of this machine.
type WorkspaceTable struct{ *DB }

// Workspace is the row of a private clone. Times are kept in whole
// milliseconds and come back in UTC.
type Workspace struct {
	ID     string // the task; of a clone that waits for one, a name of its own
	Kind   string // "task", "integration" or "warm"
	State  string // "making", "held", "kept", "warm" or "removing"
	Why    string // why it is kept
	Repo   string // git directory of the repository that it borrows from
	Dir    string // the folder
	Own    string // pawl's folder for it
	Folder string // device and inode of the folder, empty before it is there
	Branch string
	Base   string
	Head   string // commit that was collected last, empty for none
	Ports  int    // first of the block, 0 for none
	Setup  string // hash of the setup that was done, empty for none
	Landed bool   // its work has landed
	Owner  Owner  // the process that works with it; the zero Owner means none

	TakenAt   time.Time
	UpdatedAt time.Time
	KeepUntil time.Time // zero is without end
}

// maxWorkspaces bounds what is read; a machine has room for far fewer.
const maxWorkspaces = 10_000

const workspaceColumns = `id, kind, state, why, repo, dir, own, folder, branch, base, head, ports, setup, landed,
	owner_pid, owner_start, owner_boot, owner_host, taken_at, updated_at, keep_until`

// Workspaces lists all rows in the order in which they were made.
func (s WorkspaceTable) Workspaces(ctx context.Context) ([]Workspace, error) {
	all, err := s.readWorkspaces(ctx, &s.reads)
	return all, s.explainError(ctx, "list the workspaces", err)
}

// Workspace finds a row; ok is false when there is none.
func (s WorkspaceTable) Workspace(ctx context.Context, id string) (w Workspace, ok bool, err error) {
	all, err := s.Workspaces(ctx)
	for _, w := range all {
		if w.ID == id {
			return w, true, err
		}
	}
	return Workspace{}, false, err
}

// readWorkspaces reads the rows of this place. An owner of another boot whose lease is over
// is none.
func (s WorkspaceTable) readWorkspaces(ctx context.Context, w *statements) ([]Workspace, error) {
	all, err := rows.ListAll(ctx, w, func(v *Workspace) []any {
		return []any{
			scanID(s.place, &v.ID), &v.Kind, &v.State, &v.Why, &v.Repo, &v.Dir, &v.Own, &v.Folder, &v.Branch, &v.Base,
			&v.Head, &v.Ports, &v.Setup, &v.Landed, &v.Owner, &v.TakenAt, &v.UpdatedAt, &v.KeepUntil,
		}
	}, `SELECT `+workspaceColumns+` FROM workspaces WHERE id >= $1 AND id < $2 ORDER BY rowid LIMIT $3`,
		s.place, s.place+"\U0010FFFF", maxWorkspaces)
	if err != nil || !s.shared {
		return all, err
	}
	lives, err := s.aliveOrLeased(ctx, w, func(Owner) bool { return true })
	for i := range all {
		if !lives(all[i].Owner) {
			all[i].Owner = Owner{}
		}
	}
	return all, err
}

// scanID scans an id without the place that it begins with.
func scanID(place string, id *string) rows.Column {
	return func(stored any) error {
		*id = strings.TrimPrefix(string(rows.BytesOf(stored)), place)
		return nil
	}
}

// WorkspaceChange is the result of an edit: rows to drop, then rows to put. A row
// that is put replaces the one with its id.
type WorkspaceChange struct {
	Drop []string
	Put  []Workspace
}

// EditWorkspaces reads all rows, asks edit what is to change, and stores that:
// all in one transaction, so of two processes that want one workspace the
// second sees what the first did. Edit must be quick and must not call the
// store; its error ends the call, is returned as it is, and nothing is stored.
// What is stored survives a power loss.
func (s WorkspaceTable) EditWorkspaces(ctx context.Context, edit func(all []Workspace) (WorkspaceChange, error)) error {
	return s.editWorkspaces(ctx, edit, func(context.Context, *statements) error { return nil })
}

// SwapRacer gives a task what an agent that raced for it has, and the other way
// round: edit swaps the rows of their workspaces, and the runs of the race swap their
// names in the same transaction. The runs may have no owner that lives.
func (s WorkspaceTable) SwapRacer(
	ctx context.Context, task, racer string, edit func(all []Workspace) (WorkspaceChange, error),
) error {
	return s.editWorkspaces(ctx, edit, func(ctx context.Context, w *statements) error {
		_, err := w.Exec(ctx, `UPDATE runs SET name = CASE name WHEN $1 THEN $2 ELSE $1 END
			WHERE kind = 'task' AND name IN ($1, $2) AND started_at >= (SELECT min(started_at) FROM (
			SELECT max(started_at) AS started_at FROM runs WHERE kind = 'task' AND name IN ($1, $2)
			GROUP BY name) AS latest)`, task, racer)
		return err
	})
}

func (s WorkspaceTable) editWorkspaces(ctx context.Context, edit func(all []Workspace) (WorkspaceChange, error),
	also func(context.Context, *statements) error) error {
	var refused error
	err := s.runWrite(ctx, powerSafe, func(ctx context.Context, w *statements) error {
		all, err := s.readWorkspaces(ctx, w)
		if err != nil {
			return err
		}
		var ch WorkspaceChange
		if ch, refused = edit(all); refused != nil {
			return refused
		}
		for _, id := range ch.Drop {
			w.Do(ctx, `DELETE FROM workspaces WHERE id = $1`, s.place+id)
		}
		for _, v := range ch.Put {
			if err := putWorkspace(ctx, w, s.place, v); err != nil {
				return err
			}
		}
		return also(ctx, w)
	})
	if refused != nil {
		return refused
	}
	return s.explainError(ctx, "store what is known of workspaces", err)
}

var putWorkspaceQuery = rows.UpsertSQL("workspaces", 1, workspaceColumns)

func putWorkspace(ctx context.Context, w *statements, place string, v Workspace) error {
	if v.ID == "" || v.Dir == "" || v.Repo == "" {
		return fmt.Errorf("cannot store workspace %q: it needs an id, a folder and a repository", v.ID)
	}
	_, err := w.Exec(ctx, putWorkspaceQuery(),
		place+v.ID, v.Kind, v.State, v.Why, v.Repo, v.Dir, v.Own, v.Folder, v.Branch, v.Base, v.Head, v.Ports, v.Setup,
		v.Landed, v.Owner, v.TakenAt, v.UpdatedAt, v.KeepUntil)
	return err
}

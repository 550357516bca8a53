package action

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/store"
)

// doneElsewhere is why a task is put off that its list says is done.
const doneElsewhere = "it is done in its list"

// UpdateList brings the board to a list. What is new is added. What is there, by its ref or its
// id, and without either by its title, follows the list until work on it begins.
func (p *Operator) UpdateList(
	ctx context.Context, drafts []board.Draft,
) (added []board.Case, changed, left int, err error) {
	ids, err := p.names(ctx)
	if err != nil {
		return nil, 0, 0, err
	}
	var fresh []board.Draft
	var known []board.Case
	place := make([]int, len(drafts)+1) // of a draft among the fresh ones
	at := make([]string, len(drafts)+1) // the id of a draft that is known
	for i, d := range drafts {
		c := board.Tidy(d.Case)
		if c.ID = ids[c.Ref]; c.Ref == "" {
			c.ID = ids["title "+c.Title]
		}
		if c.ID != "" {
			known, at[i+1] = append(known, c), c.ID
			continue
		}
		if at[d.In] != "" {
			d.Case.Parent = at[d.In]
		}
		d.In = place[d.In]
		fresh = append(fresh, d)
		place[i+1] = len(fresh)
	}
	if len(fresh) > 0 {
		if added, err = p.Store.AddCases(ctx, fresh, board.Person, time.Now()); err != nil {
			return nil, 0, 0, err
		}
	}
	for _, c := range added {
		ids[c.Ref] = c.ID
	}
	for _, c := range known {
		how, err := p.followList(ctx, c, ids)
		if err != nil {
			return added, changed, left, err
		}
		switch how {
		case followed:
			changed++
		case begun:
			left++
		}
	}
	return added, changed, left, nil
}

// names are the ids of the cases of the board, by all that a list can call them.
func (p *Operator) names(ctx context.Context) (map[string]string, error) {
	all, err := p.Store.Cases(ctx, store.CaseFilter{})
	ids := make(map[string]string, 3*len(all))
	for _, c := range all {
		ids["title "+c.Title], ids[c.ID] = c.ID, c.ID
	}
	for _, c := range all {
		if c.Ref != "" {
			ids[c.Ref] = c.ID
		}
	}
	delete(ids, "")
	return ids, err
}

// RefsToIDs puts ids in the place of the refs among names of cases. Other names stay.
func (p *Operator) RefsToIDs(ctx context.Context, names []string) ([]string, error) {
	isID := func(name string) bool { _, _, ok := board.ParseID(name); return ok }
	if !slices.ContainsFunc(names, func(name string) bool { return !isID(name) }) {
		return names, nil
	}
	all, err := p.Store.Cases(ctx, store.CaseFilter{})
	out := slices.Clone(names)
	for i, name := range names {
		for _, c := range all {
			if c.Ref != "" && c.Ref == name && !isID(name) {
				out[i] = c.ID
			}
		}
	}
	return out, err
}

// following is what became of a case that a list names.
type following int

const (
	same following = iota
	followed
	begun // it stays as it is
)

// errSame ends an edit that changes nothing.
var errSame = errors.New("nothing is different")

// followList brings one case to what a list says.
func (p *Operator) followList(ctx context.Context, c board.Case, ids map[string]string) (following, error) {
	old, err := p.Store.Case(ctx, c.ID)
	if err != nil || old.Status == board.Done {
		return same, err
	}
	_, err = p.Store.Latest(ctx, p.Root, c.ID)
	if err == nil || !slices.Contains([]board.Status{board.Pending, board.Blocked, board.Deferred}, old.Status) {
		return begun, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return same, err
	}
	how := same
	move := board.Change{By: board.Person, Why: doneElsewhere, At: time.Now()}
	switch {
	case c.Status == board.Done && old.Status != board.Deferred && old.Type == board.Task:
		move.Action = board.Defer
	case c.Status != board.Done && c.Status != board.Deferred && old.Status == board.Deferred &&
		old.Why == doneElsewhere:
		move.Action, move.Why = board.Undefer, "it is open in its list again"
	}
	if move.Action != "" {
		if _, err = p.Store.MoveCase(ctx, c.ID, move); err != nil {
			return same, err
		}
		how = followed
	}
	needs := make([]string, len(c.Needs))
	for i, name := range c.Needs {
		if needs[i] = ids[name]; needs[i] == "" {
			needs[i] = name
		}
	}
	_, err = p.Store.EditCase(ctx, c.ID, board.Person, time.Now(), func(to *board.Case) error {
		is := to.Title == c.Title && to.Description == c.Description && to.Priority == c.Priority &&
			slices.Equal(to.Acceptance, c.Acceptance) && slices.Equal(to.Tags, c.Tags) &&
			slices.Equal(slices.Sorted(slices.Values(to.Needs)), slices.Sorted(slices.Values(needs)))
		if is {
			return errSame
		}
		to.Title, to.Description, to.Acceptance = c.Title, c.Description, c.Acceptance
		to.Priority, to.Tags = c.Priority, c.Tags
		to.Needs = needs
		return nil
	})
	if errors.Is(err, errSame) {
		return how, nil
	}
	return followed, err
}

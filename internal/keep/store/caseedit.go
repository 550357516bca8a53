package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

func (b *cases) editCase(ctx context.Context, id string, edit func(*board.Case) error) error {
	before, err := caseWithLists(ctx, b.w, id)
	if err != nil {
		return err
	}
	if err := board.CanEdit(&before); err != nil {
		return err
	}
	wish := before
	wish.Acceptance, wish.Tags, wish.Needs = slices.Clone(before.Acceptance), slices.Clone(before.Tags),
		slices.Clone(before.Needs)
	wish.Checks = board.Checks{Verify: slices.Clone(before.Verify), Sealed: slices.Clone(before.Sealed)}
	if err := edit(&wish); err != nil {
		return err
	}
	wish = board.Tidy(wish)
	after := before
	after.Title, after.Description = wish.Title, wish.Description
	after.Acceptance, after.Tags = wish.Acceptance, wish.Tags
	after.Priority, after.Parent, after.Needs, after.Control = wish.Priority, wish.Parent, wish.Needs, wish.Control
	after.Checks = wish.Checks
	after.UpdatedAt = b.now
	if wrong := board.Check(after); len(wrong) > 0 {
		return &board.ProblemsError{Problems: []board.Problem{{Text: strings.Join(wrong, "\n")}}}
	}
	if err := b.resolveNames(ctx, &after); err != nil {
		return err
	}
	b.storeTexts(ctx, &after)
	changed := board.Changed(&before, &after)
	if len(changed) == 0 {
		return nil
	}
	b.appendEntry(ctx, id, board.Entry{At: b.now, Action: board.Edit, By: b.by, From: before.Status,
		To: before.Status, Why: strings.Join(changed, ", ")})
	return b.saveLinks(ctx, before, after)
}

// resolveNames replaces the refs of an edited case by ids. It refuses a name that does
// not exist.
func (b *cases) resolveNames(ctx context.Context, c *board.Case) error {
	var problems board.ProblemsError
	for i, name := range c.Needs {
		need, ok, err := b.findByName(ctx, board.Normal(name))
		if err != nil {
			return err
		}
		if !ok {
			problems.Problems = append(problems.Problems,
				board.Problem{Text: fmt.Sprintf("%s cannot need %q: it is not on the board", c.ID, name)})
		}
		c.Needs[i] = need.ID
	}
	if c.Parent != "" {
		parent, ok, err := b.findByName(ctx, board.Normal(c.Parent))
		if err != nil {
			return err
		}
		if !ok || parent.Type != board.Operation {
			problems.Problems = append(problems.Problems,
				board.Problem{Text: fmt.Sprintf("%q cannot be the parent of %s: it is no operation on the board",
					c.Parent, c.ID)})
		}
		c.Parent = parent.ID
	}
	if len(problems.Problems) > 0 {
		return &problems
	}
	*c = board.Tidy(*c)
	return nil
}

// saveLinks stores an edited case with its links, and refuses a cycle.
func (b *cases) saveLinks(ctx context.Context, before, after board.Case) error {
	gone, come := stringsWithout(before.Needs, after.Needs), stringsWithout(after.Needs, before.Needs)
	for _, need := range gone {
		b.w.Do(ctx, `DELETE FROM case_needs WHERE dependent = $1 AND need = $2`, after.ID, need)
	}
	for _, need := range come {
		b.w.Do(ctx, insertNeed, after.ID, need)
	}
	if after.Parent != before.Parent && after.Parent != "" {
		if err := b.checkNesting(ctx, after.ID, after.Parent); err != nil {
			return err
		}
	}
	b.saveCase(ctx, &after)
	if len(come) > 0 || after.Parent != before.Parent {
		path, err := board.Cycle([]string{after.ID}, func(id string) ([]string, error) { return b.blockersOf(ctx, id) })
		if err != nil {
			return err
		}
		if path != nil {
			return &board.CycleError{Path: path}
		}
	}
	counted := slices.Concat(gone, come)
	for _, parent := range []string{before.Parent, after.Parent} {
		if parent != "" && before.Parent != after.Parent {
			counted = append(counted, parent)
		}
	}
	return b.updateCounters(ctx, append(counted, after.ID)...)
}

// checkNesting refuses an operation inside itself, and one nested too deep.
func (b *cases) checkNesting(ctx context.Context, id, parent string) error {
	deep := 0
	for up := parent; up != ""; deep++ {
		if up == id {
			return &board.CycleError{Path: []string{id, id}}
		}
		c, err := existingCase(ctx, b.w, up)
		if err != nil {
			return err
		}
		up = c.Parent
	}
	below, err := b.nestingDepth(ctx, id)
	if err == nil && deep+below > board.MaxDepth {
		err = &board.RefusalError{ID: id,
			Why: fmt.Sprintf("cannot edit %s: it would be nested in more than %d operations", id, board.MaxDepth)}
	}
	return err
}

// nestingDepth returns how many levels of children a case has: 0 without children.
func (b *cases) nestingDepth(ctx context.Context, id string) (deep int, err error) {
	_, err = b.w.One(ctx, `WITH RECURSIVE below (id, deep) AS (
			SELECT id, 0 FROM cases WHERE id = $1 UNION ALL
			SELECT c.id, b.deep + 1 FROM below b JOIN cases c ON c.parent = b.id AND c.parent <> '')
		SELECT max(deep) FROM below`, []any{id}, &deep)
	return deep, err
}

func (b *cases) removeCase(ctx context.Context, id string) error {
	c, err := caseWithLists(ctx, b.w, id)
	if err != nil {
		return err
	}
	dependents, err := rows.ReadTexts(ctx, b.w, dependentsQuery, id)
	if err != nil {
		return err
	}
	if err := board.CanRemove(&c, dependents); err != nil {
		return err
	}
	b.w.Do(ctx, `DELETE FROM cases WHERE id = $1`, id)
	counted := c.Needs
	if c.Parent != "" {
		counted = append(counted, c.Parent)
	}
	if err := b.updateCounters(ctx, counted...); err != nil {
		return err
	}
	b.appendEntry(ctx, id, board.Entry{At: b.now, Action: board.Remove, By: b.by, From: c.Status, Why: c.Title})
	return nil
}

package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

// cases changes the board within one transaction, and keeps all counters.
type cases struct {
	w   *statements
	by  board.Actor
	now time.Time

	numbers map[board.Type]int64 // the last ones, once a new id was needed
}

// moveCase carries out a change of a case's status, with what it means for others.
func moveCase(ctx context.Context, w *statements, id string, ch board.Change) error {
	c, err := existingCase(ctx, w, id)
	if err != nil {
		return err
	}
	return (&cases{w: w, by: ch.By, now: ch.At}).moveCase(ctx, c, ch)
}

func (b *cases) addDrafts(ctx context.Context, drafts []board.Draft) ([]board.Case, error) {
	a, err := board.Resolve(drafts, board.Known{
		Find:    func(name string) (board.Case, bool, error) { return b.findByName(ctx, name) },
		Waits:   func(id string) ([]string, error) { return b.blockersOf(ctx, id) },
		Awaited: func(id string) (bool, error) { return b.hasDependents(ctx, id) },
		NewID:   func(t board.Type) (string, error) { return b.nextCaseID(ctx, t) },
	})
	if err != nil {
		return nil, err
	}
	for t, last := range b.numbers {
		b.w.Do(ctx, putNumber(), string(t), last)
	}
	var last int64
	if _, err := b.w.One(ctx, `SELECT coalesce(max(seq), 0) FROM cases`, nil, &last); err != nil {
		return nil, err
	}
	for i := range a.Cases {
		b.insertCase(ctx, &a.Cases[i])
	}
	b.w.Do(ctx, `INSERT INTO case_history (id, at, action, actor, person, host, from_status, to_status, why)
		SELECT id, created_at, $1, $2, $3, $4, '', status, why FROM cases WHERE seq > $5 ORDER BY seq`,
		string(board.Add), string(b.by), b.nameActor(b.by), b.w.Host, last)
	for i := range a.Cases { // each need has its row by now
		for _, need := range a.Cases[i].Needs {
			b.w.Do(ctx, insertNeed, a.Cases[i].ID, need)
		}
	}
	return a.Cases, b.countNamed(ctx, a)
}

// countNamed brings the cases up to date that the new ones name, and then those of the
// new ones that are below one of these.
func (b *cases) countNamed(ctx context.Context, a board.Added) error {
	if err := b.updateCounters(ctx, a.Named...); err != nil {
		return err
	}
	for i := range a.Cases {
		c := &a.Cases[i]
		if _, old := slices.BinarySearch(a.Named, c.Parent); !old {
			continue
		}
		err := b.updateCounters(ctx, c.ID)
		if err != nil {
			return err
		}
		now, err := existingCase(ctx, b.w, c.ID)
		if err != nil {
			return err
		}
		c.Siblings, c.SiblingsDone, c.Held = now.Siblings, now.SiblingsDone, now.Held
	}
	return nil
}

const insertNeed = `INSERT INTO case_needs (dependent, need) VALUES ($1, $2)`

// findByName returns the case with that id or ref. An operation comes with its needs.
func (b *cases) findByName(ctx context.Context, name string) (c board.Case, ok bool, err error) {
	if _, _, isID := board.ParseID(name); isID {
		c, ok, err = findCase(ctx, b.w, oneCase, name)
	}
	if err == nil && !ok {
		c, ok, err = findCase(ctx, b.w, caseOfRef, name)
	}
	if err == nil && ok && c.Type == board.Operation {
		c.Needs, err = rows.ReadTexts(ctx, b.w, needsQuery, c.ID)
	}
	return c, ok, err
}

// blockersOf returns the cases that a case waits for: its needs, its children, and
// the needs of the cases above it. A done task waits for nothing.
func (b *cases) blockersOf(ctx context.Context, id string) ([]string, error) {
	return rows.ReadTexts(ctx, b.w, `WITH RECURSIVE above (id) AS (
			SELECT id FROM cases WHERE id = $1 AND NOT (type = 'task' AND status = 'done')
			UNION SELECT c.parent FROM cases c JOIN above a ON a.id = c.id WHERE c.parent <> '')
		SELECT n.need FROM above a JOIN case_needs n ON n.dependent = a.id
		UNION ALL SELECT c.id FROM cases c WHERE c.parent = $1 AND c.parent <> ''`, id)
}

// hasDependents reports whether a case, or one above it, is needed by another that is not
// a done task.
func (b *cases) hasDependents(ctx context.Context, id string) (yes bool, err error) {
	_, err = b.w.One(ctx, `WITH RECURSIVE above (id) AS (
			SELECT id FROM cases WHERE id = $1 UNION SELECT c.parent FROM cases c JOIN above a ON a.id = c.id
			WHERE c.parent <> '')
		SELECT EXISTS (SELECT 1 FROM above a JOIN case_needs n ON n.need = a.id JOIN cases c ON c.id = n.dependent
			WHERE NOT (c.type = 'task' AND c.status = 'done'))`, []any{id}, &yes)
	return yes, err
}

func (b *cases) nextCaseID(ctx context.Context, t board.Type) (string, error) {
	if _, known := b.numbers[t]; !known {
		var last int64
		if _, err := b.w.One(ctx, `SELECT last
			FROM case_numbers WHERE type = $1`, []any{string(t)}, &last); err != nil {
			return "", err
		}
		if b.numbers == nil {
			b.numbers = map[board.Type]int64{}
		}
		b.numbers[t] = last
	}
	b.numbers[t]++
	return board.ID(t, b.numbers[t]), nil
}

var putNumber = rows.UpsertSQL("case_numbers", 1, "type, last")

var putCase = rows.UpsertSQL("cases", 0, `id, number, type, title, tags, priority, parent, ref, status, why,
	retries, created_at, updated_at, ready, score, unmet, unblocks, held, children, children_done`)

// insertCase stores everything of a new case except its needs.
func (b *cases) insertCase(ctx context.Context, c *board.Case) {
	c.CreatedAt, c.UpdatedAt = b.now.UTC().Truncate(time.Millisecond), b.now.UTC().Truncate(time.Millisecond)
	_, number, _ := board.ParseID(c.ID)
	ready, score := rankCase(c)
	b.w.Do(ctx, putCase(),
		c.ID, number, string(c.Type), c.Title, rows.JoinList(c.Tags), c.Priority, c.Parent, c.Ref, string(c.Status),
		c.Why, c.Retries, c.CreatedAt, c.UpdatedAt, ready, score, c.Unmet, c.Unblocks, c.Held,
		c.Children, c.ChildrenDone)
	if hasTexts(c) {
		b.storeTexts(ctx, c)
	}
}

func hasTexts(c *board.Case) bool {
	return c.Description != "" || len(c.Acceptance)+len(c.Verify)+len(c.Sealed) > 0 || c.Control != nil
}

var putTexts = rows.UpsertSQL("case_texts", 1, "id, description, acceptance, control, verify, sealed")

func (b *cases) storeTexts(ctx context.Context, c *board.Case) {
	if !hasTexts(c) {
		b.w.Do(ctx, `DELETE FROM case_texts WHERE id = $1`, c.ID)
		return
	}
	b.w.Do(ctx, putTexts(), c.ID, c.Description, rows.ToJSON(c.Acceptance), rows.ToJSON(c.Control),
		rows.ToJSON(c.Verify), rows.ToJSON(c.Sealed))
}

func (b *cases) appendEntry(ctx context.Context, id string, e board.Entry) {
	b.w.Do(ctx, `INSERT INTO case_history (id, `+entryColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		id, e.At, string(e.Action), string(e.By), b.nameActor(e.By), b.w.Host, string(e.From), string(e.To), e.Why)
}

// nameActor returns the name of a person who acts; "" for pawl itself.
func (b *cases) nameActor(by board.Actor) string {
	if by != board.Person {
		return ""
	}
	return b.w.Person()
}

// rankCase returns the stored state by which the next task is found.
func rankCase(c *board.Case) (ready bool, score int) {
	if c.IsReady() {
		score, _ = board.Score(c)
		return true, score
	}
	return false, 0
}

// saveCase stores what can change of a case, and whether it is ready by that.
func (b *cases) saveCase(ctx context.Context, c *board.Case) {
	ready, score := rankCase(c)
	b.w.Do(ctx, `UPDATE cases SET title = $1, tags = $2, priority = $3, parent = $4, status = $5, why = $6,
		retries = $7, updated_at = $8,
			ready = $9, score = $10, unmet = $11, unblocks = $12,
			held = $13, children = $14, children_done = $15 WHERE id = $16`,
		c.Title, rows.JoinList(c.Tags), c.Priority, c.Parent, string(c.Status), c.Why, c.Retries,
		c.UpdatedAt, ready, score, c.Unmet, c.Unblocks, c.Held, c.Children, c.ChildrenDone, c.ID)
}

// moveCase changes the status of a case, and the cases that depend on it.
func (b *cases) moveCase(ctx context.Context, c board.Case, ch board.Change) error {
	moved, entry, err := board.Move(c, ch)
	if err != nil {
		return err
	}
	b.appendEntry(ctx, c.ID, entry)
	return b.storeChanged(ctx, c, moved)
}

// storeChanged stores a case that changed, and updates the cases that depend on it.
func (b *cases) storeChanged(ctx context.Context, before, after board.Case) error {
	b.saveCase(ctx, &after)
	near := board.NearComplete(after.Children, after.ChildrenDone)
	if near != board.NearComplete(before.Children, before.ChildrenDone) {
		bonus := -board.ScoreNearComplete
		if near {
			bonus = board.ScoreNearComplete
		}
		b.w.Do(ctx, `UPDATE cases SET score = score + $1 WHERE parent = $2 AND parent <> '' AND ready = 1`,
			bonus, after.ID)
	}
	var queries []string
	if before.Holds() != after.Holds() {
		queries = append(queries, casesOfParent)
	}
	if (before.Status == board.Done) != (after.Status == board.Done) {
		queries = append(queries, dependentsQuery, needsQuery, parentQuery)
	}
	for _, query := range queries {
		ids, err := rows.ReadTexts(ctx, b.w, query, after.ID)
		if err == nil {
			err = b.updateCounters(ctx, ids...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// updateCounters computes the stored counters of cases again. It terminates, since
// operations cannot contain each other and needs change no status.
func (b *cases) updateCounters(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		before, after, err := b.countCase(ctx, id)
		if err != nil {
			return err
		}
		if err := b.storeChanged(ctx, before, after); err != nil {
			return err
		}
		if err := b.finishOperation(ctx, after); err != nil {
			return err
		}
	}
	return nil
}

// countCase reads a case as it is stored, and with its counters as they should be.
func (b *cases) countCase(ctx context.Context, id string) (before, after board.Case, err error) {
	var unmet, unblocks, children, done int
	ok, err := b.w.One(ctx, `SELECT `+caseColumns+`,
		(SELECT count(*) FROM case_needs n JOIN cases k ON k.id = n.need
		WHERE n.dependent = c.id AND k.status <> 'done'),
		(SELECT count(*) FROM case_needs n JOIN cases k ON k.id = n.dependent
		WHERE n.need = c.id AND k.status <> 'done'),
		(SELECT count(*) FROM cases k WHERE k.parent = c.id AND k.parent <> ''),
		(SELECT count(*) FILTER (WHERE k.status = 'done') FROM cases k WHERE k.parent = c.id AND k.parent <> '')`+
		caseTables+` WHERE c.id = $1`, []any{id},
		append(caseFields(&before), &unmet, &unblocks, &children, &done)...)
	after = before
	after.Unmet, after.Unblocks, after.Children, after.ChildrenDone, after.Held = unmet, unblocks, children, done, false
	if err == nil && !ok {
		err = fmt.Errorf("%w: %s", ErrNoCase, id)
	}
	if err == nil && before.Parent != "" {
		var parent board.Case
		parent, err = existingCase(ctx, b.w, before.Parent)
		after.Held = parent.Holds()
	}
	return before, after, err
}

// finishOperation makes an operation done when everything in it is, and else reopens it.
func (b *cases) finishOperation(ctx context.Context, c board.Case) error {
	change := board.Change{By: board.Pawl, At: b.now}
	switch all := c.Children > 0 && c.Children == c.ChildrenDone; {
	case all && c.Status != board.Done:
		change.Action = board.Finish
	case !all && c.Children > 0 && c.Status == board.Done:
		change.Action = board.Reopen
	default:
		return nil
	}
	return b.moveCase(ctx, c, change)
}

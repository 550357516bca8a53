package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/board"
)

// AddCases adds cases to the board, all or none, and returns them with their
// ids, in order. They are on disk when it returns. The error is a
// [*board.ProblemsError] when something is wrong with a draft.
func (s *Store) AddCases(ctx context.Context, drafts []board.Draft, by board.Actor, now time.Time) (added []board.Case, err error) {
	err = s.transact(ctx, powerSafe, func(ctx context.Context, w *statements) error {
		added, err = (&cases{w: w, by: by, now: now}).add(ctx, drafts)
		return err
	})
	return added, s.explainCase(ctx, "add to the board", err)
}

// MoveCase carries out a change of a case's status, with all that it means
// for other cases. A person's change and a landing are on disk when it
// returns. The error is a [*board.RefusalError], or [ErrNoCase].
func (s *Store) MoveCase(ctx context.Context, id string, ch board.Change) (c board.Case, err error) {
	d := crashSafe
	if ch.By == board.Person || ch.Action == board.Land {
		d = powerSafe
	}
	err = s.transact(ctx, d, func(ctx context.Context, w *statements) error {
		b := &cases{w: w, by: ch.By, now: ch.At}
		if c, err = b.require(ctx, id); err != nil {
			return err
		}
		c, err = b.move(ctx, c, ch)
		return err
	})
	if err != nil {
		return c, s.explainCase(ctx, "change "+id, err)
	}
	return s.Case(ctx, id)
}

// EditCase changes what a case says: title, texts, tags, priority, parent,
// needs. What edit does to other fields is not stored. Edit may be called
// again, and its error ends the call. Other errors are [*board.ProblemsError],
// [*board.CycleError], [*board.RefusalError] and [ErrNoCase].
func (s *Store) EditCase(ctx context.Context, id string, by board.Actor, now time.Time, edit func(*board.Case) error) (c board.Case, err error) {
	var refused error // by edit: not ours to explain
	err = s.transact(ctx, powerSafe, func(ctx context.Context, w *statements) error {
		return (&cases{w: w, by: by, now: now}).edit(ctx, id, func(c *board.Case) error {
			refused = edit(c)
			return refused
		})
	})
	if refused != nil {
		return c, refused
	}
	if err != nil {
		return c, s.explainCase(ctx, "edit "+id, err)
	}
	return s.Case(ctx, id)
}

// RemoveCase takes a case off the board; its history stays. One that others
// need, that holds others, or that a loop works on is refused with a
// [*board.RefusalError].
func (s *Store) RemoveCase(ctx context.Context, id string, by board.Actor, now time.Time) error {
	err := s.transact(ctx, powerSafe, func(ctx context.Context, w *statements) error {
		return (&cases{w: w, by: by, now: now}).remove(ctx, id)
	})
	return s.explainCase(ctx, "remove "+id, err)
}

// Case returns a case with all its texts and needs, or [ErrNoCase].
func (s *Store) Case(ctx context.Context, id string) (board.Case, error) {
	c, err := fullCase(ctx, &s.reads, id)
	return c, s.explainCase(ctx, "read "+id, err)
}

// Dependents returns the ids of the cases that need a case, in order.
func (s *Store) Dependents(ctx context.Context, id string) ([]string, error) {
	list, err := idsOf(ctx, &s.reads, dependentsQuery, id)
	return list, s.explainCase(ctx, "read what needs "+id, err)
}

// CaseHistory returns what was done with a case, oldest first; also of one
// that was removed.
func (s *Store) CaseHistory(ctx context.Context, id string) ([]board.Entry, error) {
	var list []board.Entry
	err := s.reads.each(ctx, func(row scanner) error {
		var e board.Entry
		var when int64
		if err := row.Scan(&when, &e.Action, &e.By, &e.From, &e.To, &e.Why); err != nil {
			return err
		}
		e.At = at(when)
		list = append(list, e)
		return nil
	}, `SELECT at, action, actor, from_status, to_status, why FROM case_history WHERE id = $1 ORDER BY seq`, id)
	return list, s.explainCase(ctx, "read the history of "+id, err)
}

// CaseFilter says which cases to list. Its zero value is all of them.
type CaseFilter struct {
	Status []board.Status // one of these
	Open   bool           // not done
	Ready  bool           // ready tasks only, as they are started
	Type   board.Type
	Tag    string
	Parent string
	// Within is cases with these ids, and all below them; Tags is one of these,
	// NotTags none of these.
	Within, Tags, NotTags []string
	Limit                 int // 0 is no limit
}

// ActiveTasks are the ids of those that a loop works on.
func (s *Store) ActiveTasks(ctx context.Context) (map[string]bool, error) {
	list, err := idsOf(ctx, &s.reads, `SELECT id FROM cases WHERE status = 'active' AND type = 'task'`)
	ids := make(map[string]bool, len(list))
	for _, id := range list {
		ids[id] = true
	}
	return ids, s.explainCase(ctx, "list the tasks that are worked on", err)
}

// Cases lists cases without their descriptions and criteria, as they were
// added, or with Ready as they are started.
func (s *Store) Cases(ctx context.Context, f CaseFilter) ([]board.Case, error) {
	where, args := f.where()
	query := listedCase + where
	if f.Ready {
		query += ` ORDER BY c.priority DESC, c.score DESC, c.created_at, c.number`
	} else {
		query += ` ORDER BY c.seq`
	}
	if f.Limit > 0 {
		args = append(args, f.Limit)
		query += fmt.Sprintf(" LIMIT $%d", len(args))
	}
	var list []board.Case
	err := s.reads.each(ctx, func(row scanner) error {
		var needs string
		c, err := scanCase(row, &needs)
		c.Needs = split(needs, ",")
		list = append(list, c)
		return err
	}, query, args...)
	return list, s.explainCase(ctx, "list the board", err)
}

func (f CaseFilter) where() (string, []any) {
	var conds []string
	var args []any
	add := func(cond string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			cond = strings.Replace(cond, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		conds = append(conds, cond)
	}
	if len(f.Status) > 0 {
		values := make([]any, len(f.Status))
		for i, s := range f.Status {
			values[i] = string(s)
		}
		add(`c.status IN (?`+strings.Repeat(`, ?`, len(values)-1)+`)`, values...)
	}
	if f.Open {
		add(`c.status <> ?`, string(board.Done))
	}
	if f.Ready {
		add(`c.ready = 1`)
	}
	if f.Type != "" {
		add(`c.type = ?`, string(f.Type))
	}
	if f.Tag != "" {
		add(`instr(lower(c.tags), ?) > 0`, "\n"+strings.ToLower(f.Tag)+"\n")
	}
	if f.Parent != "" {
		add(`c.parent = ?`, f.Parent)
	}
	f.narrow(add)
	if len(conds) == 0 {
		return "", nil
	}
	return ` WHERE ` + strings.Join(conds, ` AND `), args
}

// narrow adds the conditions of a sprint.
func (f CaseFilter) narrow(add func(cond string, values ...any)) {
	anyOf := func(cond, glue string, values []string) {
		args := make([]any, len(values))
		for i, v := range values {
			args[i] = "\n" + strings.ToLower(v) + "\n"
		}
		add(`(`+cond+strings.Repeat(glue+cond, len(values)-1)+`)`, args...)
	}
	if len(f.Within) > 0 {
		args := make([]any, len(f.Within))
		for i, v := range f.Within {
			args[i] = v
		}
		add(`c.id IN (WITH RECURSIVE below (id) AS (
			SELECT id FROM cases WHERE id IN (?`+strings.Repeat(`, ?`, len(args)-1)+`)
			UNION SELECT k.id FROM below b JOIN cases k ON k.parent = b.id AND k.parent <> '') SELECT id FROM below)`, args...)
	}
	if len(f.Tags) > 0 {
		anyOf(`instr(lower(c.tags), ?) > 0`, ` OR `, f.Tags)
	}
	if len(f.NotTags) > 0 {
		anyOf(`instr(lower(c.tags), ?) = 0`, ` AND `, f.NotTags)
	}
}

// NextCase chooses the task to start next; ids in exclude are passed over. It
// is an index look-up, however large the board is. ok is false when no task
// is ready.
func (s *Store) NextCase(ctx context.Context, exclude []string) (next board.Choice, ok bool, err error) {
	return s.NextCaseOf(ctx, CaseFilter{}, exclude)
}

// NextCaseOf is [Store.NextCase] among the cases of a filter.
func (s *Store) NextCaseOf(ctx context.Context, f CaseFilter, exclude []string) (next board.Choice, ok bool, err error) {
	// Two more than are passed over: the best, and the one it is compared with.
	f.Ready, f.Limit = true, len(exclude)+2
	list, err := s.Cases(ctx, f)
	if err != nil {
		return next, false, err
	}
	next, ok = board.Next(list, exclude)
	return next, ok, nil
}

// CaseCounts is how many cases have each status, and how many tasks are ready.
func (s *Store) CaseCounts(ctx context.Context) (counts map[board.Status]int, ready int, err error) {
	counts = map[board.Status]int{}
	err = s.reads.each(ctx, func(row scanner) error {
		var status board.Status
		var n int
		err := row.Scan(&status, &n)
		counts[status] = n
		return err
	}, `SELECT status, count(*) FROM cases GROUP BY status`)
	if err == nil {
		_, err = s.reads.one(ctx, `SELECT count(*) FROM cases WHERE ready = 1`, nil, &ready)
	}
	return counts, ready, s.explainCase(ctx, "count the board", err)
}

// explainCase leaves alone what the board itself says to a person.
func (s *Store) explainCase(ctx context.Context, what string, err error) error {
	var refusal *board.RefusalError
	var problems *board.ProblemsError
	var cycle *board.CycleError
	if errors.As(err, &refusal) || errors.As(err, &problems) || errors.As(err, &cycle) {
		return err
	}
	return s.explain(ctx, what, err)
}

// The columns of a case without its texts; p is its parent.
const (
	caseColumns = `c.id, c.type, c.title, c.tags, c.priority, c.parent, c.ref, c.status, c.why, c.retries, c.created_at, c.updated_at,
		c.unmet, c.unblocks, c.held, c.children, c.children_done, coalesce(p.children, 0), coalesce(p.children_done, 0)`
	caseTables      = ` FROM cases c LEFT JOIN cases p ON p.id = c.parent`
	oneCase         = `SELECT ` + caseColumns + caseTables + ` WHERE c.id = $1`
	caseOfRef       = `SELECT ` + caseColumns + caseTables + ` WHERE c.ref = $1 AND c.ref <> ''`
	casesOfParent   = `SELECT c.id FROM cases c WHERE c.parent = $1 AND c.parent <> '' ORDER BY c.seq`
	needsQuery      = `SELECT n.need FROM case_needs n JOIN cases c ON c.id = n.need WHERE n.dependent = $1 ORDER BY c.seq`
	dependentsQuery = `SELECT n.dependent FROM case_needs n JOIN cases c ON c.id = n.dependent WHERE n.need = $1 ORDER BY c.seq`
	listedCase      = `SELECT ` + caseColumns + `, coalesce((SELECT group_concat(need) FROM case_needs WHERE dependent = c.id), '')` + caseTables
)

// scanCase reads the columns of a case, and into more what comes after them.
func scanCase(row scanner, more ...any) (board.Case, error) {
	var c board.Case
	var tags string
	var created, updated int64
	dest := []any{
		&c.ID, &c.Type, &c.Title, &tags, &c.Priority, &c.Parent, &c.Ref, &c.Status, &c.Why, &c.Retries, &created, &updated,
		&c.Unmet, &c.Unblocks, &c.Held, &c.Children, &c.ChildrenDone, &c.Siblings, &c.SiblingsDone,
	}
	err := row.Scan(append(dest, more...)...)
	c.Tags, c.CreatedAt, c.UpdatedAt = split(strings.Trim(tags, "\n"), "\n"), at(created), at(updated)
	return c, err
}

// findCase reads a case without its texts and needs.
func findCase(ctx context.Context, w *statements, query, key string) (c board.Case, ok bool, err error) {
	err = w.each(ctx, func(row scanner) error {
		c, err = scanCase(row)
		ok = err == nil
		return err
	}, query, key)
	return c, ok, err
}

func fullCase(ctx context.Context, w *statements, id string) (board.Case, error) {
	c, ok, err := findCase(ctx, w, oneCase, id)
	if err != nil {
		return c, err
	}
	if !ok {
		return c, fmt.Errorf("%w: %s", ErrNoCase, id)
	}
	if c.Needs, err = idsOf(ctx, w, needsQuery, id); err != nil {
		return c, err
	}
	var acceptance string
	ok, err = w.one(ctx, `SELECT description, acceptance FROM case_texts WHERE id = $1`, []any{id}, &c.Description, &acceptance)
	if err == nil && ok {
		err = json.Unmarshal([]byte(acceptance), &c.Acceptance)
	}
	return c, err
}

// idsOf reads a column of ids.
func idsOf(ctx context.Context, w *statements, query string, args ...any) ([]string, error) {
	var list []string
	err := w.each(ctx, func(row scanner) error {
		var id string
		err := row.Scan(&id)
		list = append(list, id)
		return err
	}, query, args...)
	return list, err
}

func split(s, by string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, by)
}

func joinTags(tags []string) string {
	if len(tags) == 0 {
		return ""
	}
	return "\n" + strings.Join(tags, "\n") + "\n"
}

// missing is what of a is not in b.
func missing(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

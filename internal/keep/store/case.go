package store

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

// CaseTables keep the cases of the board: their texts, needs, history, limits and reviews.
type CaseTables struct{ *DB }

// AddCases adds cases to the board, all or none, and returns them with their
// ids, in order. They are on disk when it returns. The error is a
// [*board.ProblemsError] when something is wrong with a draft.
func (s CaseTables) AddCases(ctx context.Context, drafts []board.Draft, by board.Actor, now time.Time) ([]board.Case,
	error) {
	return changeValue(ctx, s.DB, powerSafe, "add to the board",
		func(ctx context.Context, w *statements) ([]board.Case, error) {
			return (&cases{w: w, by: by, now: now}).addDrafts(ctx, drafts)
		})
}

// MoveCase carries out a change of a case's status, with all that it means
// for other cases. A person's change and a landing are on disk when it
// returns. The error is a [*board.RefusalError], or [ErrNoCase].
func (s CaseTables) MoveCase(ctx context.Context, id string, ch board.Change) (c board.Case, err error) {
	d := durability(ch.By == board.Person || ch.Action == board.Land)
	err = s.changeAs(ctx, d, "change "+id, func(ctx context.Context, w *statements) error {
		return moveCase(ctx, w, id, ch)
	})
	if err != nil {
		return c, err
	}
	return s.Case(ctx, id)
}

// EditCase changes what a case says: title, texts, tags, priority, parent,
// needs. What edit does to other fields is not stored. Edit may be called
// again, and its error ends the call. Other errors are [*board.ProblemsError],
// [*board.CycleError], [*board.RefusalError] and [ErrNoCase].
func (s CaseTables) EditCase(ctx context.Context, id string, by board.Actor, now time.Time,
	edit func(*board.Case) error) (c board.Case, err error) {
	var refused error // by edit: not ours to explain
	err = s.changeAs(ctx, powerSafe, "edit "+id, func(ctx context.Context, w *statements) error {
		return (&cases{w: w, by: by, now: now}).editCase(ctx, id, func(c *board.Case) error {
			refused = edit(c)
			return refused
		})
	})
	if refused != nil {
		return c, refused
	}
	if err != nil {
		return c, err
	}
	return s.Case(ctx, id)
}

// RemoveCase takes a case off the board; its history stays. One that others
// need, that holds others, or that a loop works on is refused with a
// [*board.RefusalError].
func (s CaseTables) RemoveCase(ctx context.Context, id string, by board.Actor, now time.Time) error {
	return s.changeAs(ctx, powerSafe, "remove "+id, func(ctx context.Context, w *statements) error {
		return (&cases{w: w, by: by, now: now}).removeCase(ctx, id)
	})
}

// Case returns a case with all its texts and needs, or [ErrNoCase].
func (s CaseTables) Case(ctx context.Context, id string) (board.Case, error) {
	c, err := caseWithLists(ctx, &s.reads, id)
	return c, s.explainError(ctx, "read "+id, err)
}

// Dependents returns the ids of the cases that need a case, in order.
func (s CaseTables) Dependents(ctx context.Context, id string) ([]string, error) {
	return readRows(ctx, s.DB, "read what needs "+id, rows.TextField, dependentsQuery, id)
}

// Needed returns the ids of the cases that others need.
func (s CaseTables) Needed(ctx context.Context) ([]string, error) {
	return readRows(ctx, s.DB, "read what is needed", rows.TextField, `SELECT DISTINCT need FROM case_needs`)
}

// CaseHistory returns what was done with a case, oldest first; also of one
// that was removed.
func (s CaseTables) CaseHistory(ctx context.Context, id string) ([]board.Entry, error) {
	return readRows(ctx, s.DB, "read the history of "+id, entryFields,
		`SELECT `+entryColumns+` FROM case_history WHERE id = $1 ORDER BY seq`, id)
}

const entryColumns = `at, action, actor, person, host, from_status, to_status, why`

func entryFields(e *board.Entry) []any {
	return []any{&e.At, &e.Action, &e.By, &e.Person, &e.Host, &e.From, &e.To, &e.Why}
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
	Issues                bool // that come from a forge
	Labelled              bool // that not every worker may work on
	OwnAgent              bool // whose tags say who works on them
	Limit                 int  // 0 is no limit
}

// ActiveTasks are the ids of those that a loop works on.
func (s CaseTables) ActiveTasks(ctx context.Context) (map[string]bool, error) {
	active, err := rows.ReadTexts(ctx, &s.reads, `SELECT id FROM cases WHERE status = 'active' AND type = 'task'`)
	return lists.Set(active), s.explainError(ctx, "list the tasks that are worked on", err)
}

// Cases lists cases without their descriptions and criteria, as they were
// added, or with Ready as they are started.
func (s CaseTables) Cases(ctx context.Context, f CaseFilter) ([]board.Case, error) {
	c := f.whereCases()
	query := `SELECT ` + listedColumns + caseTables + c.Where()
	if f.Ready {
		query += ` ORDER BY c.priority DESC, c.score DESC, c.created_at, c.number`
	} else {
		query += ` ORDER BY c.seq`
	}
	if f.Limit > 0 {
		query += c.Limit(f.Limit)
	}
	return readRows(ctx, s.DB, "list the board", listedFields, query, c.Args...)
}

func (f CaseFilter) whereCases() *rows.Conditions {
	c := &rows.Conditions{}
	if len(f.Status) > 0 {
		rows.AnyOf(c, `c.status IN (…)`, f.Status)
	}
	if f.Open {
		c.Add(`c.status <> ?`, string(board.Done))
	}
	if f.Ready {
		c.Add(`c.ready = 1`)
	}
	if f.Type != "" {
		c.Add(`c.type = ?`, string(f.Type))
	}
	if f.Tag != "" {
		c.Add(hasTag, tagPattern(f.Tag))
	}
	if f.Issues {
		c.Add(`c.ref <> '' AND c.ref >= 'issue#' AND c.ref < 'issue$'`)
	}
	if f.Labelled {
		c.Add(`instr(lower(c.tags), ?) > 0`, "\n"+board.LabelTag)
	}
	if f.OwnAgent {
		c.Add(`instr(lower(c.tags), ?) > 0`, "\n"+board.AgentTag)
	}
	if f.Parent != "" {
		c.Add(`c.parent = ?`, f.Parent)
	}
	if len(f.Within) > 0 {
		rows.AnyOf(c, `c.id IN (WITH RECURSIVE below (id) AS (SELECT id FROM cases WHERE id IN (…)
			UNION SELECT k.id FROM below b JOIN cases k ON k.parent = b.id AND k.parent <> '') SELECT id
			FROM below)`, f.Within)
	}
	if len(f.Tags) > 0 {
		tags := lists.Each(f.Tags, func(tag string) any { return tagPattern(tag) })
		c.Add(`(`+hasTag+strings.Repeat(` OR `+hasTag, len(tags)-1)+`)`, tags...)
	}
	for _, tag := range f.NotTags {
		c.Add(`NOT `+hasTag, tagPattern(tag))
	}
	return c
}

// hasTag is true for a case with a tag, as tagPattern writes it.
const hasTag = `(instr(lower(c.tags), ?) > 0)`

func tagPattern(tag string) string { return "\n" + strings.ToLower(tag) + "\n" }

// NextCaseOf chooses the task to start next among the cases of a filter; ids in
// exclude are passed over. It is an index look-up, however large the board is.
// ok is false when no task is ready.
func (s CaseTables) NextCaseOf(ctx context.Context, f CaseFilter, exclude []string) (next board.Choice, ok bool,
	err error) {
	// Two more than are passed over: the best, and the one it is compared with.
	f.Ready, f.Limit = true, len(exclude)+2
	ready, err := s.Cases(ctx, f)
	if err != nil {
		return next, false, err
	}
	next, ok = board.Next(ready, exclude)
	return next, ok, nil
}

// CaseCounts is how many tasks have each status, and how many are ready. An operation is no task.
func (s CaseTables) CaseCounts(ctx context.Context) (counts map[board.Status]int, ready int, err error) {
	counts = map[board.Status]int{}
	err = s.reads.Each(ctx, func(row rows.Row) error {
		var status board.Status
		var n int
		err := row.Scan(&status, &n)
		counts[status] = n
		return err
	}, `SELECT status, count(*) FROM cases WHERE type <> 'operation' GROUP BY status`)
	if err == nil {
		_, err = s.reads.One(ctx, `SELECT count(*) FROM cases WHERE ready = 1`, nil, &ready)
	}
	return counts, ready, s.explainError(ctx, "count the board", err)
}

// The columns of a case without its texts; p is its parent.
const (
	caseColumns = `c.id, c.type, c.title, c.tags, c.priority, c.parent, c.ref, c.status, c.why, c.retries,
		c.created_at, c.updated_at,
		c.unmet, c.unblocks, c.held, c.children, c.children_done, coalesce(p.children, 0), coalesce(p.children_done, 0)`
	caseTables    = ` FROM cases c LEFT JOIN cases p ON p.id = c.parent`
	oneCase       = `SELECT ` + caseColumns + caseTables + ` WHERE c.id = $1`
	caseOfRef     = `SELECT ` + caseColumns + caseTables + ` WHERE c.ref = $1 AND c.ref <> ''`
	casesOfParent = `SELECT c.id FROM cases c WHERE c.parent = $1 AND c.parent <> '' ORDER BY c.seq`
	parentQuery   = `SELECT c.parent FROM cases c WHERE c.id = $1 AND c.parent <> ''`
	needsQuery    = `SELECT n.need FROM case_needs n JOIN cases c ON c.id = n.need WHERE n.dependent = $1
		ORDER BY c.seq`
	dependentsQuery = `SELECT n.dependent FROM case_needs n JOIN cases c ON c.id = n.dependent
		WHERE n.need = $1 ORDER BY c.seq`
	// The needs of a case come with a listed one as a text.
	listedColumns = caseColumns + `, coalesce((SELECT string_agg(need, ',') FROM case_needs
		WHERE dependent = c.id), '')`
)

func caseFields(c *board.Case) []any {
	return []any{
		&c.ID, &c.Type, &c.Title, rows.ScanList(&c.Tags, "\n"), &c.Priority, &c.Parent, &c.Ref, &c.Status, &c.Why,
		&c.Retries, &c.CreatedAt, &c.UpdatedAt, &c.Unmet, &c.Unblocks, &c.Held,
		&c.Children, &c.ChildrenDone, &c.Siblings, &c.SiblingsDone,
	}
}

func listedFields(c *board.Case) []any {
	return append(caseFields(c), rows.ScanList(&c.Needs, ","))
}

// findCase reads a case without its texts and needs.
func findCase(ctx context.Context, w *statements, query, key string) (c board.Case, ok bool, err error) {
	return rows.FindFirst(ctx, w, caseFields, query, key)
}

// existingCase reads a case that has to be on the board.
func existingCase(ctx context.Context, w *statements, id string) (board.Case, error) {
	return rows.RequireFirst(ctx, w, ErrNoCase, id, caseFields, oneCase, id)
}

func caseWithLists(ctx context.Context, w *statements, id string) (board.Case, error) {
	c, err := existingCase(ctx, w, id)
	if err != nil {
		return c, err
	}
	if c.Needs, err = rows.ReadTexts(ctx, w, needsQuery, id); err != nil {
		return c, err
	}
	_, err = w.One(ctx, `SELECT description, acceptance, control, verify, sealed FROM case_texts
		WHERE id = $1`, []any{id},
		&c.Description, rows.ScanJSON(&c.Acceptance), rows.ScanJSON(&c.Control), rows.ScanJSON(&c.Verify),
		rows.ScanJSON(&c.Sealed))
	return c, err
}

// stringsWithout returns the strings of a that are not in b.
func stringsWithout(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// CaseLimits are those of one task, over the configuration's; 0 is none.
type CaseLimits struct {
	MaxIterations int
	Timeout       time.Duration
	At            time.Time // of the last change; zero: there are none
}

// SetCaseLimits stores the limits of a task; a 0 leaves the one that is there.
func (s CaseTables) SetCaseLimits(ctx context.Context, id string, l CaseLimits) error {
	return s.changeAs(ctx, powerSafe, "store the limits of "+id, func(ctx context.Context, w *statements) error {
		if _, err := existingCase(ctx, w, id); err != nil {
			return err
		}
		_, err := w.Exec(ctx, `INSERT INTO case_limits (id, max_iterations, timeout, at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (id) DO UPDATE SET at = $4,
				max_iterations = CASE WHEN $2 > 0 THEN $2 ELSE case_limits.max_iterations END,
				timeout = CASE WHEN $3 > 0 THEN $3 ELSE case_limits.timeout END`,
			id, l.MaxIterations, l.Timeout, l.At)
		return err
	})
}

// CaseLimits returns the limits of a task; they are zero if it has none of its own.
func (s CaseTables) CaseLimits(ctx context.Context, id string) (l CaseLimits, err error) {
	_, err = s.reads.One(ctx, `SELECT max_iterations, timeout, at FROM case_limits WHERE id = $1`, []any{id},
		&l.MaxIterations, &l.Timeout, &l.At)
	return l, s.explainError(ctx, "read the limits of "+id, err)
}

// The decisions of a person about verified work.
const (
	Approved = "approved"
	Redo     = "redo"
	Rejected = "rejected"
)

// CaseReview is one that was asked for.
type CaseReview struct {
	Seq       int64
	Case      string
	Run       string
	Work      json.RawMessage // what is to land
	Why       string          // it was asked for
	AskedAt   time.Time
	Decision  string // "" while it is open
	Feedback  string
	DecidedAt time.Time
}

// AskReview stores that a task's verified work waits for a person, in one
// transaction with the change of its status. An older open one is replaced.
func (s CaseTables) AskReview(ctx context.Context, r CaseReview, ch board.Change) error {
	return s.changeAs(ctx, crashSafe, "ask for the review of "+r.Case, func(ctx context.Context, w *statements) error {
		if err := moveCase(ctx, w, r.Case, ch); err != nil {
			return err
		}
		w.Do(ctx, `DELETE FROM case_reviews WHERE id = $1 AND decision = ''`, r.Case)
		_, err := w.Exec(ctx, `INSERT INTO case_reviews (id, run, work, why, asked_at, decision, feedback, decided_at)
			VALUES ($1, $2, $3, $4, $5, '', '', 0)`,
			r.Case, r.Run, r.Work, r.Why, r.AskedAt)
		return err
	})
}

// Verdict is what a person decided about verified work.
type Verdict struct {
	Case     string
	Review   int64  // the Seq of the review that it is about; 0 is whichever is open
	Decision string // Approved, Redo or Rejected
	Feedback string
	Change   board.Change // who decided and when
	Land     *QueueAsk    // what is asked of the queue with it; nil is nothing
}

// DecideReview stores a person's verdict about the open review of a task, with
// the change of its status and what is to land, where there is any. It is on
// disk when it returns. ok is false when the review is not open: nothing is
// stored then.
func (s CaseTables) DecideReview(ctx context.Context, v Verdict) (ok bool, err error) {
	return changeValue(ctx, s.DB, powerSafe, "decide about "+v.Case,
		func(ctx context.Context, w *statements) (bool, error) {
			found, err := readReviews(ctx, w, ` WHERE id = $1 AND decision = ''
				AND CAST($2 AS BIGINT) IN (0, seq)`, v.Case, v.Review)
			if err != nil || len(found) == 0 {
				return false, err
			}
			err = moveCase(ctx, w, v.Case, v.Change)
			if err == nil && v.Land != nil {
				_, err = askQueue(ctx, w, *v.Land)
			}
			if err == nil {
				w.Do(ctx, `UPDATE case_reviews SET decision = $1, feedback = $2, decided_at = $3 WHERE seq = $4`,
					v.Decision, v.Feedback, v.Change.At, found[0].Seq)
			}
			return true, err
		})
}

// OpenReviews returns the reviews that have no decision yet, the oldest first.
func (s CaseTables) OpenReviews(ctx context.Context, limit int) ([]CaseReview, error) {
	found, err := readReviews(ctx, &s.reads, ` WHERE decision = '' ORDER BY seq LIMIT $1`, limit)
	return found, s.explainError(ctx, "list what waits for a review", err)
}

// CaseReviews returns the reviews of a task, the oldest first.
func (s CaseTables) CaseReviews(ctx context.Context, id string) ([]CaseReview, error) {
	found, err := readReviews(ctx, &s.reads, ` WHERE id = $1 ORDER BY seq`, id)
	return found, s.explainError(ctx, "read the reviews of "+id, err)
}

func readReviews(ctx context.Context, from *statements, where string, args ...any) ([]CaseReview, error) {
	return rows.ListAll(ctx, from, func(r *CaseReview) []any {
		return []any{
			&r.Seq, &r.Case, &r.Run, &r.Work, &r.Why, &r.AskedAt, &r.Decision, &r.Feedback, &r.DecidedAt,
		}
	}, `SELECT seq, id, run, work, why, asked_at, decision, feedback, decided_at FROM case_reviews`+where, args...)
}

// Attention counts what waits for people: reviews that are open, tasks that a
// person has to act on, reviews included, and tasks that failed or timed out.
func (s CaseTables) Attention(ctx context.Context) (reviews, waiting, failed int, err error) {
	_, err = s.reads.One(ctx, `SELECT (SELECT count(*) FROM case_reviews WHERE decision = ''),
		(SELECT count(*) FROM cases WHERE status = 'blocked' AND type = 'task'),
		(SELECT count(*) FROM cases WHERE status IN ('failed', 'timeout')
		AND type = 'task')`, nil, &reviews, &waiting, &failed)
	return reviews, reviews + waiting, failed, s.explainError(ctx, "count what waits for people", err)
}

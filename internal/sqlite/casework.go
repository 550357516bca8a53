package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/board"
)

// CaseLimits are those of one task, over the configuration's; 0 is none.
type CaseLimits struct {
	MaxIterations int
	Timeout       time.Duration
	At            time.Time // of the last change; zero: there are none
}

// SetCaseLimits stores the limits of a task; a 0 leaves the one that is there.
func (s *Store) SetCaseLimits(ctx context.Context, id string, l CaseLimits) error {
	err := s.transact(ctx, powerSafe, func(ctx context.Context, w *statements) error {
		if _, ok, err := findCase(ctx, w, oneCase, id); err != nil {
			return err
		} else if !ok {
			return fmt.Errorf("%w: %s", ErrNoCase, id)
		}
		_, err := w.exec(ctx, `INSERT INTO case_limits (id, max_iterations, timeout, at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (id) DO UPDATE SET at = $4,
				max_iterations = CASE WHEN $2 > 0 THEN $2 ELSE max_iterations END, timeout = CASE WHEN $3 > 0 THEN $3 ELSE timeout END`,
			id, l.MaxIterations, l.Timeout.Milliseconds(), ms(l.At))
		return err
	})
	return s.explain(ctx, "store the limits of "+id, err)
}

// CaseLimits are those of a task; zero when it has none of its own.
func (s *Store) CaseLimits(ctx context.Context, id string) (l CaseLimits, err error) {
	var timeout, when int64
	_, err = s.reads.one(ctx, `SELECT max_iterations, timeout, at FROM case_limits WHERE id = $1`, []any{id}, &l.MaxIterations, &timeout, &when)
	l.Timeout, l.At = time.Duration(timeout)*time.Millisecond, at(when)
	return l, s.explain(ctx, "read the limits of "+id, err)
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
func (s *Store) AskReview(ctx context.Context, r CaseReview, ch board.Change) error {
	err := s.transact(ctx, crashSafe, func(ctx context.Context, w *statements) error {
		b := &cases{w: w, by: ch.By, now: ch.At}
		c, err := b.require(ctx, r.Case)
		if err == nil {
			_, err = b.move(ctx, c, ch)
		}
		if err != nil {
			return err
		}
		if _, err := w.exec(ctx, `DELETE FROM case_reviews WHERE id = $1 AND decision = ''`, r.Case); err != nil {
			return err
		}
		_, err = w.exec(ctx, `INSERT INTO case_reviews (id, run, work, why, asked_at, decision, feedback, decided_at) VALUES ($1, $2, $3, $4, $5, '', '', 0)`,
			r.Case, r.Run, string(r.Work), r.Why, ms(r.AskedAt))
		return err
	})
	return s.explainCase(ctx, "ask for the review of "+r.Case, err)
}

// Verdict is what a person decided about verified work.
type Verdict struct {
	Case     string
	Review   int64  // the Seq of the review that it is about; 0 is whichever is open
	Decision string // Approved, Redo or Rejected
	Feedback string
	Change   board.Change // who decided and when; without an Action the task stays as it is
	Land     *QueueAsk    // what is asked of the queue with it; nil is nothing
}

// DecideReview stores a person's verdict about the open review of a task, with
// the change of its status and what is to land, where there is any. It is on
// disk when it returns. ok is false when the review is not open: nothing is
// stored then.
func (s *Store) DecideReview(ctx context.Context, v Verdict) (ok bool, err error) {
	err = s.transact(ctx, powerSafe, func(ctx context.Context, w *statements) error {
		list, err := reviews(ctx, w, ` WHERE id = $1 AND decision = '' AND $2 IN (0, seq)`, v.Case, v.Review)
		if ok = err == nil && len(list) > 0; !ok {
			return err
		}
		if v.Change.Action != "" {
			b := &cases{w: w, by: v.Change.By, now: v.Change.At}
			c, err := b.require(ctx, v.Case)
			if err == nil {
				_, err = b.move(ctx, c, v.Change)
			}
			if err != nil {
				return err
			}
		}
		if v.Land != nil {
			if _, err := askQueue(ctx, w, *v.Land); err != nil {
				return err
			}
		}
		_, err = w.exec(ctx, `UPDATE case_reviews SET decision = $1, feedback = $2, decided_at = $3 WHERE seq = $4`,
			v.Decision, v.Feedback, ms(v.Change.At), list[0].Seq)
		return err
	})
	return ok && err == nil, s.explainCase(ctx, "decide about "+v.Case, err)
}

// OpenReviews are those that wait for a person, the oldest first.
func (s *Store) OpenReviews(ctx context.Context, limit int) ([]CaseReview, error) {
	list, err := reviews(ctx, &s.reads, ` WHERE decision = '' ORDER BY seq LIMIT $1`, limit)
	return list, s.explain(ctx, "list what waits for a review", err)
}

// CaseReviews are those of a task, the oldest first.
func (s *Store) CaseReviews(ctx context.Context, id string) ([]CaseReview, error) {
	list, err := reviews(ctx, &s.reads, ` WHERE id = $1 ORDER BY seq`, id)
	return list, s.explain(ctx, "read the reviews of "+id, err)
}

func reviews(ctx context.Context, from *statements, where string, args ...any) ([]CaseReview, error) {
	var list []CaseReview
	err := from.each(ctx, func(row scanner) error {
		var r CaseReview
		var asked, decided int64
		var work []byte
		err := row.Scan(&r.Seq, &r.Case, &r.Run, &work, &r.Why, &asked, &r.Decision, &r.Feedback, &decided)
		r.Work, r.AskedAt, r.DecidedAt = raw(work), at(asked), at(decided)
		list = append(list, r)
		return err
	}, `SELECT seq, id, run, work, why, asked_at, decision, feedback, decided_at FROM case_reviews`+where, args...)
	return list, err
}

// Attention counts what waits for people: reviews that are open, and tasks
// that a person has to act on, reviews included.
func (s *Store) Attention(ctx context.Context) (reviews, waiting int, err error) {
	_, err = s.reads.one(ctx, `SELECT (SELECT count(*) FROM case_reviews WHERE decision = ''),
		(SELECT count(*) FROM cases WHERE status = 'blocked' AND type = 'task')`, nil, &reviews, &waiting)
	return reviews, reviews + waiting, s.explain(ctx, "count what waits for people", err)
}

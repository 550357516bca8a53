package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
)

// CaseLimits are those of one task, over the configuration's; 0 is none.
type CaseLimits struct {
	MaxIterations int
	Timeout       time.Duration
	At            time.Time // of the last change; zero: there are none
}

// SetCaseLimits stores the limits of a task; a 0 leaves the one that is there.
func (s *Store) SetCaseLimits(ctx context.Context, id string, l CaseLimits) error {
	return s.change(ctx, powerSafe, "store the limits of "+id, func(ctx context.Context, w *statements) error {
		if _, err := (&cases{w: w}).require(ctx, id); err != nil {
			return err
		}
		_, err := w.exec(ctx, `INSERT INTO case_limits (id, max_iterations, timeout, at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (id) DO UPDATE SET at = $4,
				max_iterations = CASE WHEN $2 > 0 THEN $2 ELSE case_limits.max_iterations END,
				timeout = CASE WHEN $3 > 0 THEN $3 ELSE case_limits.timeout END`,
			id, l.MaxIterations, l.Timeout.Milliseconds(), ms(l.At))
		return err
	})
}

// CaseLimits are those of a task; zero when it has none of its own.
func (s *Store) CaseLimits(ctx context.Context, id string) (l CaseLimits, err error) {
	_, err = s.reads.one(ctx, `SELECT max_iterations, timeout, at FROM case_limits WHERE id = $1`, []any{id},
		&l.MaxIterations, took(&l.Timeout), when(&l.At))
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
	return s.change(ctx, crashSafe, "ask for the review of "+r.Case, func(ctx context.Context, w *statements) error {
		if err := moveCase(ctx, w, r.Case, ch); err != nil {
			return err
		}
		if _, err := w.exec(ctx, `DELETE FROM case_reviews WHERE id = $1 AND decision = ''`, r.Case); err != nil {
			return err
		}
		_, err := w.exec(ctx, `INSERT INTO case_reviews (id, run, work, why, asked_at, decision, feedback, decided_at)
			VALUES ($1, $2, $3, $4, $5, '', '', 0)`,
			r.Case, r.Run, string(r.Work), r.Why, ms(r.AskedAt))
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
func (s *Store) DecideReview(ctx context.Context, v Verdict) (ok bool, err error) {
	err = s.transact(ctx, powerSafe, func(ctx context.Context, w *statements) error {
		found, err := reviews(ctx, w, ` WHERE id = $1 AND decision = '' AND CAST($2 AS BIGINT) IN (0, seq)`, v.Case, v.Review)
		if ok = err == nil && len(found) > 0; !ok {
			return err
		}
		if err := moveCase(ctx, w, v.Case, v.Change); err != nil {
			return err
		}
		if v.Land != nil {
			if _, err := askQueue(ctx, w, *v.Land); err != nil {
				return err
			}
		}
		_, err = w.exec(ctx, `UPDATE case_reviews SET decision = $1, feedback = $2, decided_at = $3 WHERE seq = $4`,
			v.Decision, v.Feedback, ms(v.Change.At), found[0].Seq)
		return err
	})
	return ok && err == nil, s.explain(ctx, "decide about "+v.Case, err)
}

// OpenReviews are those that wait for a person, the oldest first.
func (s *Store) OpenReviews(ctx context.Context, limit int) ([]CaseReview, error) {
	found, err := reviews(ctx, &s.reads, ` WHERE decision = '' ORDER BY seq LIMIT $1`, limit)
	return found, s.explain(ctx, "list what waits for a review", err)
}

// CaseReviews are those of a task, the oldest first.
func (s *Store) CaseReviews(ctx context.Context, id string) ([]CaseReview, error) {
	found, err := reviews(ctx, &s.reads, ` WHERE id = $1 ORDER BY seq`, id)
	return found, s.explain(ctx, "read the reviews of "+id, err)
}

func reviews(ctx context.Context, from *statements, where string, args ...any) ([]CaseReview, error) {
	return list(ctx, from, func(r *CaseReview) []any {
		return []any{
			&r.Seq, &r.Case, &r.Run, raw(&r.Work), &r.Why, when(&r.AskedAt), &r.Decision, &r.Feedback, when(&r.DecidedAt),
		}
	}, `SELECT seq, id, run, work, why, asked_at, decision, feedback, decided_at FROM case_reviews`+where, args...)
}

// Attention counts what waits for people: reviews that are open, tasks that a
// person has to act on, reviews included, and tasks that failed or timed out.
func (s *Store) Attention(ctx context.Context) (reviews, waiting, failed int, err error) {
	_, err = s.reads.one(ctx, `SELECT (SELECT count(*) FROM case_reviews WHERE decision = ''),
		(SELECT count(*) FROM cases WHERE status = 'blocked' AND type = 'task'),
		(SELECT count(*) FROM cases WHERE status IN ('failed', 'timeout') AND type = 'task')`, nil, &reviews, &waiting, &failed)
	return reviews, reviews + waiting, failed, s.explain(ctx, "count what waits for people", err)
}

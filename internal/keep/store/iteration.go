package store

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// encode makes a record JSON; none is "".
func encode(r *loop.Record) (string, error) {
	if r == nil {
		return "", nil
	}
	b, err := json.Marshal(r)
	return string(b), err
}

var putIteration = upsert("iterations", 3, "run, number, attempt, outcome, started_at, elapsed, record")

func upsertIteration(ctx context.Context, w *statements, run string, r *loop.Record, record string) error {
	_, err := w.exec(ctx, putIteration(),
		run, r.Number, r.Attempt, string(r.Outcome), ms(r.StartedAt), r.Elapsed.Milliseconds(), record)
	return err
}

// Iterations returns all iterations of a run with all their attempts, in
// order. A run may have a hundred thousand of them: where the last ones do,
// ask [Store.LastIterations].
func (s *Store) Iterations(ctx context.Context, run string) ([]loop.Record, error) {
	records, err := s.records(ctx, `SELECT record FROM iterations WHERE run = $1 ORDER BY number, attempt`, run)
	return records, s.explain(ctx, "read the iterations of run "+run, err)
}

// LastIterations returns at most the last n iterations of a run, attempts
// counted one by one, in order. Its cost depends on n only.
func (s *Store) LastIterations(ctx context.Context, run string, n int) ([]loop.Record, error) {
	records, err := s.records(ctx,
		`SELECT record FROM iterations WHERE run = $1 ORDER BY number DESC, attempt DESC LIMIT $2`,
		run, max(n, 0))
	slices.Reverse(records)
	return records, s.explain(ctx, "read the iterations of run "+run, err)
}

// Sent are the commits that runs of a task have sent to other machines, and those that
// they began at.
func (s *Store) Sent(ctx context.Context, task string) (map[string]bool, error) {
	records, err := s.records(ctx, `SELECT record FROM iterations JOIN runs ON runs.id = iterations.run
		WHERE kind = 'task' AND `+taskOfRun+` = $1`, task)
	sent := map[string]bool{}
	for _, r := range records {
		if r.Pushed != nil {
			sent[r.Pushed.Base], sent[r.Pushed.Commit] = true, true
		}
	}
	return sent, s.explain(ctx, "read what was sent of "+task, err)
}

func (s *Store) records(ctx context.Context, query string, args ...any) ([]loop.Record, error) {
	return list(ctx, &s.reads, func(r *loop.Record) []any { return []any{document(r)} }, query, args...)
}

package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/journal"
)

// Step statuses. A step that is skipped has no row: whether it runs is asked
// anew each time.
const (
	StepRunning     = "running"
	StepSuccess     = "success"
	StepFailure     = "failure"
	StepCancelled   = "cancelled"   // stopped by a person or by another step's failure
	StepInterrupted = "interrupted" // nobody knows how it ended
	StepAsking      = "asking"      // waits for a person
	StepRefused     = "refused"     // it succeeded; a gate or a review refuses it, or what it builds on
)

// StepRun is one execution of a step.
type StepRun struct {
	Run, Step          string
	N                  int // of the step's executions in the run, from 1
	Iteration, Attempt int
	Status             string
	// Hash is of what the workflow says, Input of what the step was given.
	Hash, Input string
	StartedAt   time.Time
	Elapsed     time.Duration
	// Record is for who runs steps; Output is what the step printed or said, cut.
	Record json.RawMessage
	Output string
}

// PutStep stores an execution of a step, over an earlier state of the same, and
// the event beside the run's story that tells of it. Repeating it tells of it
// again. It returns [ErrNotOwner] when the run is not owner's any more.
func (s *Store) PutStep(ctx context.Context, owner Owner, st StepRun, e journal.Event) error {
	what := fmt.Sprintf("store step %s of run %s", st.Step, st.Run)
	if e.Run != st.Run || e.N != 0 || owner.PID == 0 {
		return fmt.Errorf("cannot %s: its event belongs to run %q", what, e.Run)
	}
	err := s.transact(ctx, crashSafe, func(ctx context.Context, w *statements) error {
		row, ok, err := head(ctx, w, st.Run)
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("%w: %s", ErrNotFound, st.Run)
		case row.owner != owner:
			return fmt.Errorf("%w (process %d on %s)", ErrNotOwner, row.owner.PID, row.owner.Host)
		}
		_, err = w.exec(ctx, `INSERT INTO steps (run, step, n, iteration, attempt, status, hash, input, started_at, elapsed, record, output)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
			ON CONFLICT (run, step, n) DO UPDATE SET iteration = excluded.iteration, attempt = excluded.attempt, status = excluded.status,
				hash = excluded.hash, input = excluded.input, started_at = excluded.started_at, elapsed = excluded.elapsed,
				record = excluded.record, output = excluded.output`,
			st.Run, st.Step, st.N, st.Iteration, st.Attempt, st.Status, st.Hash, st.Input, ms(st.StartedAt), st.Elapsed.Milliseconds(),
			string(st.Record), st.Output)
		if err != nil {
			return err
		}
		_, err = insertEvent(ctx, w, e)
		return err
	})
	return s.explain(ctx, what, err)
}

// Steps returns the executions of all steps of a run, in the order in which
// they were begun, without their outputs.
func (s *Store) Steps(ctx context.Context, run string) ([]StepRun, error) {
	return s.steps(ctx, run, `''`)
}

// StepsWithOutput is [Store.Steps] with what the steps printed or said.
func (s *Store) StepsWithOutput(ctx context.Context, run string) ([]StepRun, error) {
	return s.steps(ctx, run, `output`)
}

func (s *Store) steps(ctx context.Context, run, output string) ([]StepRun, error) {
	var list []StepRun
	err := s.reads.each(ctx, func(row scanner) error {
		st := StepRun{Run: run}
		var started, elapsed int64
		var record []byte
		if err := row.Scan(&st.Step, &st.N, &st.Iteration, &st.Attempt, &st.Status, &st.Hash, &st.Input, &started, &elapsed, &record, &st.Output); err != nil {
			return err
		}
		st.StartedAt, st.Elapsed, st.Record = at(started), time.Duration(elapsed)*time.Millisecond, raw(record)
		list = append(list, st)
		return nil
	}, `SELECT step, n, iteration, attempt, status, hash, input, started_at, elapsed, record, `+output+`
		FROM steps WHERE run = $1 ORDER BY rowid`, run)
	return list, s.explain(ctx, "read the steps of run "+run, err)
}

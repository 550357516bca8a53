package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/journal"
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

const stepColumns = `run, step, n, iteration, attempt, status, hash, input, started_at, elapsed, record`

var putStep = upsert("steps", 3, stepColumns+", output")

// PutStep stores an execution of a step, over an earlier state of the same, and
// the event beside the run's story that tells of it. Repeating it tells of it
// again. It returns [ErrNotOwner] when the run is not owner's any more.
func (s *Store) PutStep(ctx context.Context, owner Owner, st StepRun, e journal.Event) error {
	what := fmt.Sprintf("store step %s of run %s", st.Step, st.Run)
	if e.Run != st.Run || e.N != 0 || owner.PID == 0 {
		return fmt.Errorf("cannot %s: its event belongs to run %q", what, e.Run)
	}
	return s.change(ctx, crashSafe, what, func(ctx context.Context, w *statements) error {
		row, ok, err := head(ctx, w, st.Run)
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("%w: %s", ErrNotFound, st.Run)
		case row.owner != owner:
			return fmt.Errorf("%w (process %d on %s)", ErrNotOwner, row.owner.PID, row.owner.Host)
		}
		_, err = w.exec(ctx, putStep(),
			st.Run, st.Step, st.N, st.Iteration, st.Attempt, st.Status, st.Hash, st.Input, ms(st.StartedAt),
			st.Elapsed.Milliseconds(),
			string(st.Record), st.Output)
		if err != nil {
			return err
		}
		_, err = insertEvent(ctx, w, e)
		return err
	})
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
	return read(ctx, s, "read the steps of run "+run, func(st *StepRun) []any {
		return []any{
			&st.Run, &st.Step, &st.N, &st.Iteration, &st.Attempt, &st.Status, &st.Hash, &st.Input,
			when(&st.StartedAt), took(&st.Elapsed), raw(&st.Record), &st.Output,
		}
	}, `SELECT `+stepColumns+`, `+output+` FROM steps WHERE run = $1 ORDER BY rowid`, run)
}

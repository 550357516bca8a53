package store

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/keep/journal"
)

// Step is one step of a run: an event, and what is true after it.
type Step struct {
	// Run is the run after the event. Its id, Owner and everything that may
	// change count; kind, name, root and start stay as they were created.
	// With EndedAt set the run has no owner after the commit.
	Run Run
	// Event has the number that follows the last stored one.
	Event journal.Event
	// Record, when set, is the iteration that the event is about. The same
	// number and attempt again replaces it.
	Record *loop.Record
	// Learned is what the iteration showed of strategies.
	Learned []strategy.Credit
	// Taken are the ids of control rows that the event carries out. They are
	// marked in the same transaction, so that a crash loses no answer.
	Taken []int64
	// Release gives the run up: nobody owns it after the commit.
	Release bool
}

// Commit stores a step in one transaction, before its command is carried out.
// When it returns, kill -9 does not undo it. It may be repeated when its fate
// is not known: a step that is stored already changes nothing.
//
// It returns [ErrNotOwner] when the run is not Run.Owner's any more,
// [ErrOutOfOrder] when the event's number leaves a gap or belongs to another
// event, [ErrNotFound], or an error of the database.
//
// In a shared database the step that frees a run also survives a crash of the server:
// whoever ordered the run settles it then, and nobody looks at it again.
func (s *Store) Commit(ctx context.Context, step Step) error {
	return s.commit(ctx, durability(s.shared && step.frees()), step)
}

func (s *Store) commit(ctx context.Context, d durability, step Step) error {
	what := fmt.Sprintf("store event %d of run %s", step.Event.N, step.Run.ID)
	if step.Event.Run != step.Run.ID || step.Event.N < 1 {
		return fmt.Errorf("cannot %s: it belongs to run %q", what, step.Event.Run)
	}
	record, err := encode(step.Record)
	if err != nil {
		return fmt.Errorf("cannot %s: %v", what, err)
	}
	return s.change(ctx, d, what, func(ctx context.Context, w *statements) error {
		moved, err := updateRun(ctx, w, step)
		if err != nil {
			return err
		}
		if !moved {
			return explainRefusal(ctx, w, step)
		}
		return storeStep(ctx, w, step, record)
	})
}

// storeStep stores what belongs to a step beside the run's row.
func storeStep(ctx context.Context, w *statements, step Step, record string) error {
	if _, err := insertEvent(ctx, w, step.Event); err != nil {
		return err
	}
	if len(step.Run.Setup) > 0 {
		_, err := w.exec(ctx, `UPDATE setups SET setup = $1 WHERE run = $2 AND setup <> $1`, string(step.Run.Setup),
			step.Run.ID)
		if err != nil {
			return err
		}
	}
	if step.Record != nil {
		if err := upsertIteration(ctx, w, step.Run.ID, step.Record, record); err != nil {
			return err
		}
	}
	if err := learn(ctx, w, step.Learned, step.Event.At); err != nil {
		return err
	}
	for _, id := range step.Taken {
		_, err := w.exec(ctx, `UPDATE controls SET taken_at = $1 WHERE id = $2 AND run = $3 AND taken_at = 0`,
			ms(step.Event.At), id, step.Run.ID)
		if err != nil {
			return err
		}
	}
	return nil
}

// updateRun moves the row to the step's number if it is at the number before
// and belongs to the step's owner; moved is false when it is not so.
func updateRun(ctx context.Context, w *statements, step Step) (moved bool, err error) {
	r, after := step.Run, step.Run.Owner
	if r.Owner.PID == 0 {
		return false, nil // nobody owns nothing: only a process may commit
	}
	if step.frees() {
		after = Owner{}
	}
	rows, err := w.exec(ctx, `UPDATE runs SET status = $1, why = $2, n = $3, iteration = $4, max_iterations = $5,
		agent = coalesce(nullif($6, ''), agent),
			cost = $7, cost_known = $8, tokens_in = $9, tokens_out = $10,
			owner_pid = $11, owner_start = $12, owner_boot = $13, owner_host = $14,
			updated_at = $15, ended_at = $16, elapsed = $17, state = $18
		WHERE id = $19 AND n = $20 AND owner_pid = $21 AND owner_start = $22 AND owner_boot = $23 AND owner_host = $24`,
		r.Status, r.Why, step.Event.N, r.Iteration, r.MaxIterations, r.Agent,
		r.Cost, r.CostKnown, r.TokensIn, r.TokensOut,
		after.PID, after.Start, after.Boot, after.Host,
		ms(updatedAt(r, step.Event)), ms(r.EndedAt), r.Elapsed.Milliseconds(), string(r.State),
		r.ID, step.Event.N-1, r.Owner.PID, r.Owner.Start, r.Owner.Boot, r.Owner.Host)
	return rows == 1, err
}

// frees is true when nobody owns the run after the step.
func (step Step) frees() bool { return step.Release || !step.Run.EndedAt.IsZero() }

// explainRefusal says why the row did not move: nil when the step is stored already.
func explainRefusal(ctx context.Context, w *statements, step Step) error {
	row, ok, err := head(ctx, w, step.Run.ID)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: %s", ErrNotFound, step.Run.ID)
	}
	// The step that freed the run finds it free when it is repeated. With any other
	// owner, another process drives the run. That is an error even if our event is
	// stored: our caller would act on it a second time.
	ours := step.Run.Owner.PID != 0 && row.owner == step.Run.Owner
	freed := row.owner == Owner{} && row.n == step.Event.N && step.frees()
	if !ours && !freed {
		return fmt.Errorf("%w (process %d on %s)", ErrNotOwner, row.owner.PID, row.owner.Host)
	}
	if stored, err := isStored(ctx, w, step.Event); stored || err != nil {
		return err
	}
	return &OrderError{row.n}
}

// runHead is what says who may store which event of a run next.
type runHead struct {
	n     int64
	owner Owner
}

func head(ctx context.Context, w *statements, run string) (h runHead, ok bool, err error) {
	ok, err = w.one(ctx, `SELECT n, owner_pid, owner_start, owner_boot, owner_host FROM runs WHERE id = $1`, []any{run},
		&h.n, &h.owner.PID, &h.owner.Start, &h.owner.Boot, &h.owner.Host)
	return h, ok, err
}

package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store/rows"
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
	// Release gives the run up: it has no owner after the commit.
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
// In a shared database the step that frees a run also survives a crash of the server: the
// process that ordered the run then records its result, and does not read it again.
func (s RunTables) Commit(ctx context.Context, step Step) error {
	return s.commitStep(ctx, durability(s.shared && step.freesRun()), step)
}

func (s RunTables) commitStep(ctx context.Context, d durability, step Step) error {
	what := fmt.Sprintf("store event %d of run %s", step.Event.N, step.Run.ID)
	if step.Event.Run != step.Run.ID || step.Event.N < 1 {
		return fmt.Errorf("cannot %s: it belongs to run %q", what, step.Event.Run)
	}
	return s.changeAs(ctx, d, what, func(ctx context.Context, w *statements) error {
		moved, err := updateRun(ctx, w, step)
		if err != nil {
			return err
		}
		if !moved {
			return explainRefusal(ctx, w, step)
		}
		return storeStep(ctx, w, step)
	})
}

// storeStep stores what belongs to a step beside the run's row.
func storeStep(ctx context.Context, w *statements, step Step) error {
	if _, err := insertEvent(ctx, w, step.Event); err != nil {
		return err
	}
	if len(step.Run.Setup) > 0 {
		const save = `UPDATE setups SET setup = $1 WHERE run = $2 AND setup <> $1`
		w.Do(ctx, save, step.Run.Setup, step.Run.ID)
	}
	if step.Record != nil {
		r := step.Record
		w.Do(ctx, putIteration(), step.Run.ID, r.Number, r.Attempt, string(r.Outcome), r.StartedAt, r.Elapsed,
			rows.ToJSON(r))
	}
	for _, credit := range step.Learned {
		if err := storeCredit(ctx, w, credit, step.Event.At); err != nil {
			return err
		}
	}
	for _, id := range step.Taken {
		w.Do(ctx, `UPDATE controls SET taken_at = $1 WHERE id = $2 AND run = $3 AND taken_at = 0`,
			step.Event.At, id, step.Run.ID)
	}
	return nil
}

// updateRun moves the row to the step's number if it is at the number before
// and belongs to the step's owner; moved is false when it is not so.
func updateRun(ctx context.Context, w *statements, step Step) (moved bool, err error) {
	r, after := step.Run, step.Run.Owner
	if r.Owner.PID == 0 {
		return false, nil // the zero Owner owns no run: only a process may commit
	}
	if step.freesRun() {
		after = Owner{Host: r.Owner.Host} // where it was worked on
	}
	rows, err := w.Exec(ctx, `UPDATE runs SET status = $1, why = $2, n = $3, iteration = $4, max_iterations = $5,
		agent = coalesce(nullif($6, ''), agent),
			cost = $7, cost_known = $8, tokens_in = $9, tokens_out = $10,
			owner_pid = $11, owner_start = $12, owner_boot = $13, owner_host = $14,
			updated_at = $15, ended_at = $16, elapsed = $17, state = $18
		WHERE id = $19 AND n = $20 AND owner_pid = $21 AND owner_start = $22 AND owner_boot = $23 AND owner_host = $24`,
		r.Status, r.Why, step.Event.N, r.Iteration, r.MaxIterations, r.Agent, r.Cost, r.costKnown(), r.TokensIn,
		r.TokensOut, after, updatedAt(r, step.Event), r.EndedAt, r.Elapsed, r.State, r.ID, step.Event.N-1, r.Owner)
	return rows == 1, err
}

// freesRun reports whether the run has no owner after the step.
func (step Step) freesRun() bool { return step.Release || !step.Run.EndedAt.IsZero() }

// explainRefusal returns the error of a commit that changed no row. It is nil if the step
// is stored already.
func explainRefusal(ctx context.Context, w *statements, step Step) error {
	row, err := existingHead(ctx, w, step.Run.ID)
	if err != nil {
		return err
	}
	// The step that freed the run finds it free when it is repeated. With any other
	// owner, another process drives the run. That is an error even if our event is
	// stored: our caller would act on it a second time.
	ours := step.Run.Owner.PID != 0 && row.owner == step.Run.Owner
	freed := row.owner.PID == 0 && row.n == step.Event.N && step.freesRun()
	if !ours && !freed {
		return row.refuseOthers()
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

// refuseOthers returns the error for a process that is not the run's owner.
func (h runHead) refuseOthers() error {
	return fmt.Errorf("%w (process %d on %s)", ErrNotOwner, h.owner.PID, h.owner.Host)
}

// existingHead reads the head of a run that has to be there.
func existingHead(ctx context.Context, w *statements, run string) (runHead, error) {
	return rows.RequireFirst(ctx, w, ErrNotFound, run, func(h *runHead) []any {
		return []any{&h.n, &h.owner}
	}, `SELECT n, owner_pid, owner_start, owner_boot, owner_host FROM runs WHERE id = $1`, run)
}

// Step statuses. A step that is skipped has no row: whether it runs is asked
// anew each time.
const (
	StepRunning     = "running"
	StepSuccess     = "success"
	StepFailure     = "failure"
	StepCancelled   = "cancelled"   // stopped by a person or by another step's failure
	StepInterrupted = "interrupted" // how it ended is not known
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

var putStep = rows.UpsertSQL("steps", 3, stepColumns+", output")

// PutStep stores an execution of a step, over an earlier state of the same, and an
// event about it beside the run's own. Each call adds an event, also when it is
// repeated. It returns [ErrNotOwner] when the run is not owner's any more.
func (s RunTables) PutStep(ctx context.Context, owner Owner, st StepRun, e journal.Event) error {
	what := fmt.Sprintf("store step %s of run %s", st.Step, st.Run)
	if e.Run != st.Run || e.N != 0 || owner.PID == 0 {
		return fmt.Errorf("cannot %s: its event belongs to run %q", what, e.Run)
	}
	return s.changeAs(ctx, crashSafe, what, func(ctx context.Context, w *statements) error {
		row, err := existingHead(ctx, w, st.Run)
		if err == nil && row.owner != owner {
			err = row.refuseOthers()
		}
		if err != nil {
			return err
		}
		w.Do(ctx, putStep(),
			st.Run, st.Step, st.N, st.Iteration, st.Attempt, st.Status, st.Hash, st.Input, st.StartedAt, st.Elapsed,
			st.Record, st.Output)
		_, err = insertEvent(ctx, w, e)
		return err
	})
}

// Steps returns the executions of all steps of a run, in the order in which
// they were begun, without their outputs.
func (s RunTables) Steps(ctx context.Context, run string) ([]StepRun, error) {
	return s.readSteps(ctx, run, `''`)
}

// StepsWithOutput is [RunTables.Steps] with what the steps printed or said.
func (s RunTables) StepsWithOutput(ctx context.Context, run string) ([]StepRun, error) {
	return s.readSteps(ctx, run, `output`)
}

func (s RunTables) readSteps(ctx context.Context, run, output string) ([]StepRun, error) {
	return readRows(ctx, s.DB, "read the steps of run "+run, func(st *StepRun) []any {
		return []any{
			&st.Run, &st.Step, &st.N, &st.Iteration, &st.Attempt, &st.Status, &st.Hash, &st.Input,
			&st.StartedAt, &st.Elapsed, &st.Record, &st.Output,
		}
	}, `SELECT `+stepColumns+`, `+output+` FROM steps WHERE run = $1 ORDER BY rowid`, run)
}

// The store is where the journal lives.
var (
	_ journal.Source   = (*Store)(nil)
	_ journal.Appender = (*Store)(nil)
)

// EventTable keeps the journal: what happened to runs and queues, in order.
type EventTable struct{ *DB }

// insertEvent returns the event's seq. It runs in the transaction that
// changes what the event is about.
func insertEvent(ctx context.Context, w *statements, e journal.Event) (seq int64, err error) {
	n := sql.NullInt64{Int64: e.N, Valid: e.N != 0}
	_, err = w.One(ctx, `INSERT INTO events (run, n, at, kind, data) VALUES ($1, $2, $3, $4, $5) RETURNING seq`,
		[]any{e.Run, n, e.At, e.Kind, e.Data}, &seq)
	return seq, err
}

// isStored is true when this very event is there under its number.
func isStored(ctx context.Context, w *statements, e journal.Event) (bool, error) {
	var found int
	return w.One(ctx, `SELECT 1 FROM events WHERE run = $1 AND n = $2 AND at = $3 AND kind = $4 AND data = $5`,
		[]any{e.Run, e.N, e.At, e.Kind, e.Data}, &found)
}

// Append stores an event beside the story of its run and returns its seq. Its
// N must be 0: numbered events come with [RunTables.Create] and [RunTables.Commit].
// Unlike those, it is stored again when it is repeated.
func (s EventTable) Append(ctx context.Context, e journal.Event) (seq int64, err error) {
	what := "store the event " + e.Kind + " of run " + e.Run
	if e.N != 0 {
		return 0, fmt.Errorf("cannot %s: a numbered event needs the state after it", what)
	}
	return changeValue(ctx, s.DB, crashSafe, what,
		func(ctx context.Context, w *statements) (int64, error) { return insertEvent(ctx, w, e) })
}

const eventColumns = `seq, run, n, at, kind, data`

// Events returns the events of a run with a higher seq than after, oldest
// first, at most limit and at most 1,000; of all runs when run is empty.
func (s EventTable) Events(ctx context.Context, run string, after int64, limit int) ([]journal.Event, error) {
	limit = min(max(limit, 0), MaxPage)
	query, args := `SELECT `+eventColumns+` FROM events WHERE seq > $1 ORDER BY seq LIMIT $2`, []any{after, limit}
	if run != "" {
		query, args = `SELECT `+eventColumns+` FROM events WHERE run = $1 AND seq > $2
			ORDER BY seq LIMIT $3`, []any{run,
			after, limit}
	}
	return readRows(ctx, s.DB, "read the events of run "+run, eventFields, query, args...)
}

// LastEvents returns the last events of a run, the latest first, at most limit
// and at most 1,000.
func (s EventTable) LastEvents(ctx context.Context, run string, limit int) ([]journal.Event, error) {
	return readRows(ctx, s.DB, "read the last events of "+run, eventFields,
		`SELECT `+eventColumns+` FROM events WHERE run = $1 ORDER BY seq DESC LIMIT $2`,
		run, min(max(limit, 0), MaxPage))
}

func eventFields(e *journal.Event) []any {
	return []any{&e.Seq, &e.Run, rows.ScanNumber(&e.N), &e.At, &e.Kind, &e.Data}
}

// updatedAt is the time of the last change of a run.
func updatedAt(r Run, e journal.Event) time.Time {
	if r.UpdatedAt.IsZero() {
		return e.At
	}
	return r.UpdatedAt
}

var putIteration = rows.UpsertSQL("iterations", 3, "run, number, attempt, outcome, started_at, elapsed, record")

// Iterations returns all iterations of a run with all their attempts, in
// order. A run may have a hundred thousand of them: where the last ones do,
// ask [RunTables.LastIterations].
func (s RunTables) Iterations(ctx context.Context, run string) ([]loop.Record, error) {
	return s.readRecords(ctx, "read the iterations of run "+run,
		`SELECT record FROM iterations WHERE run = $1 ORDER BY number, attempt`, run)
}

// LastIterations returns at most the last n iterations of a run, attempts
// counted one by one, in order. Its cost depends on n only.
func (s RunTables) LastIterations(ctx context.Context, run string, n int) ([]loop.Record, error) {
	records, err := s.readRecords(ctx, "read the iterations of run "+run,
		`SELECT record FROM iterations WHERE run = $1 ORDER BY number DESC, attempt DESC LIMIT $2`,
		run, max(n, 0))
	slices.Reverse(records)
	return records, err
}

// Sent are the commits that runs of a task have sent to other machines, and those that
// they began at.
func (s RunTables) Sent(ctx context.Context, task string) (map[string]bool, error) {
	records, err := s.readRecords(ctx, "read what was sent of "+task,
		`SELECT record FROM iterations JOIN runs ON runs.id = iterations.run
		WHERE kind = 'task' AND `+taskOfRun+` = $1`, task)
	sent := map[string]bool{}
	for _, r := range records {
		if r.Pushed != nil {
			sent[r.Pushed.Base], sent[r.Pushed.Commit] = true, true
		}
	}
	return sent, err
}

func (s RunTables) readRecords(ctx context.Context, what, query string, args ...any) ([]loop.Record, error) {
	return readRows(ctx, s.DB, what, func(r *loop.Record) []any { return []any{rows.ScanJSON(r)} }, query, args...)
}

package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

// Queue is a merge queue as it is stored. The zero Owner means that no process works on it.
type Queue struct {
	Target    string
	N         int64 // number of the last step, 0 before the first
	State     queue.State
	Owner     Owner
	UpdatedAt time.Time
}

// QueueOwnedError names the process that works on a queue already.
type QueueOwnedError struct {
	Target string
	Owner  Owner
}

func (e *QueueOwnedError) Error() string {
	return fmt.Sprintf("another pawl lands on %s: process %d on %s", e.Target, e.Owner.PID, e.Owner.Host)
}

// Is makes the error an ErrRunning.
func (e *QueueOwnedError) Is(target error) bool { return target == ErrRunning }

// QueueTables keep the merge queues with their entries, what is asked of them, what
// landed, and the verdicts of their gates.
type QueueTables struct{ *DB }

// TakeQueue makes owner the owner of a target's queue, and the queue when
// there is none. While another owner is alive it refuses with a
// [QueueOwnedError]. Of two that take a queue at once only one wins.
func (s QueueTables) TakeQueue(ctx context.Context, target string, owner Owner, now time.Time,
	alive func(Owner) bool) (q Queue, err error) {
	what := "take the queue of " + target
	if owner.PID == 0 || target == "" {
		return q, fmt.Errorf("cannot %s: it needs a target and an owner", what)
	}
	err = s.runWrite(ctx, crashSafe, func(ctx context.Context, w *statements) error {
		if q, _, err = readQueue(ctx, w, target); err != nil {
			return err
		}
		refusal := &QueueOwnedError{Target: target, Owner: q.Owner}
		before := q.Owner
		if before == owner {
			before = Owner{}
		}
		if err := s.replaceOwner(ctx, w, before, owner, alive, refusal); err != nil {
			return err
		}
		q.Target, q.Owner, q.State.Target = target, owner, target
		_, err = w.Exec(ctx, `
			INSERT INTO queues (target, n, owner_pid, owner_start, owner_boot, owner_host, updated_at, state)
			VALUES ($1, 0, $2, $3, $4, $5, $6, '{}')
			ON CONFLICT (target) DO UPDATE SET owner_pid = $2, owner_start = $3, owner_boot = $4, owner_host = $5`,
			target, owner, now)
		return err
	})
	return q, s.explainError(ctx, what, err)
}

// LeaveQueue ends the ownership of owner, if it is the owner.
func (s QueueTables) LeaveQueue(ctx context.Context, target string, owner Owner) error {
	return s.execOne(ctx, crashSafe, "leave the queue of "+target,
		`UPDATE queues SET owner_pid = 0, owner_start = '', owner_boot = '', owner_host = ''
			WHERE target = $1 AND owner_pid = $2 AND owner_start = $3 AND owner_boot = $4 AND owner_host = $5`,
		target, owner)
}

// QueueStep is one step of a queue: what it is after an event.
type QueueStep struct {
	Queue  Queue         // Target, Owner, and the N that follows the stored one
	Before []queue.Entry // the entries before the step
	State  queue.State   // after it, with what it means in Out
	Taken  []int64       // ids of asks that the event carries out
	At     time.Time
}

// CommitQueue stores a step in one transaction, with landings, what they mean
// on the board, and an event for each note. A landing, and the command to make
// one, are on disk when it returns.
//
// It returns [ErrNotOwner] when the queue has another owner, [ErrOutOfOrder]
// when the number does not follow. A case that is not on the board, or where
// it is to be already, is passed over.
func (s QueueTables) CommitQueue(ctx context.Context, step QueueStep) error {
	d := durability(len(step.State.Out.Landings) > 0 || step.State.Command.Kind == queue.DoLand || len(step.Taken) > 0)
	return s.changeAs(ctx, d, fmt.Sprintf("store step %d of the queue of %s", step.Queue.N, step.Queue.Target),
		func(ctx context.Context, w *statements) error {
			if err := updateQueue(ctx, w, step); err != nil {
				return err
			}
			putEntries(ctx, w, step)
			for _, id := range step.Taken {
				w.Do(ctx, `UPDATE queue_asks SET taken_at = $1 WHERE id = $2`, step.At, id)
			}
			return storeStepEffects(ctx, w, step)
		})
}

func updateQueue(ctx context.Context, w *statements, step QueueStep) error {
	q, bare := step.Queue, step.State
	bare.Entries = nil
	n, err := w.Exec(ctx, `UPDATE queues SET n = $1, updated_at = $2, state = $3
		WHERE target = $4 AND n = $5 AND owner_pid = $6 AND owner_start = $7 AND owner_boot = $8 AND owner_host = $9`,
		q.N, step.At, rows.ToJSON(bare), q.Target, q.N-1, q.Owner)
	if err != nil || n == 1 {
		return err
	}
	now, ok, err := readQueue(ctx, w, q.Target)
	switch {
	case err != nil:
		return err
	case ok && now.Owner == q.Owner:
		return fmt.Errorf("%w: step %d follows %d", ErrOutOfOrder, q.N, now.N)
	}
	return fmt.Errorf("%w: the queue of %s", ErrNotOwner, q.Target)
}

var putEntry = rows.UpsertSQL("queue_entries", 2, "target, task, entry")

// putEntries writes the entries that a step changed.
func putEntries(ctx context.Context, w *statements, step QueueStep) {
	old := make(map[string]*queue.Entry, len(step.Before))
	for i := range step.Before {
		old[step.Before[i].ID] = &step.Before[i]
	}
	for i := range step.State.Entries {
		e := &step.State.Entries[i]
		was := old[e.ID]
		delete(old, e.ID)
		if was != nil && reflect.DeepEqual(was, e) {
			continue
		}
		w.Do(ctx, putEntry(), step.Queue.Target, e.ID, rows.ToJSON(e))
	}
	for id := range old {
		w.Do(ctx, `DELETE FROM queue_entries WHERE target = $1 AND task = $2`, step.Queue.Target, id)
	}
}

// QueueRun is the name under which events of a queue are in the journal.
func QueueRun(target string) string { return "queue:" + target }

// storeStepEffects stores what a step means beside the queue itself.
func storeStepEffects(ctx context.Context, w *statements, step QueueStep) error {
	for i := range step.State.Out.Landings {
		l := &step.State.Out.Landings[i]
		w.Do(ctx, `INSERT INTO landings (target, task, id, at, data) VALUES ($1, $2, $3, $4, $5)`,
			step.Queue.Target, l.Task, l.Commit, l.At, rows.ToJSON(l))
	}
	for _, m := range step.State.Out.Cases {
		if err := moveQueued(ctx, w, m, step.At); err != nil {
			return err
		}
	}
	for _, n := range step.State.Out.Notes {
		e, err := journal.New(QueueRun(step.Queue.Target), 0, step.At, "queue."+string(n.Kind), n)
		if err != nil {
			return err
		}
		if _, err := insertEvent(ctx, w, e); err != nil {
			return err
		}
	}
	return nil
}

var queueActions = map[queue.Movement]board.Action{
	queue.MoveQueued: board.Enqueue, queue.MoveLanded: board.Land, queue.MoveBlocked: board.Block,
	queue.MoveRevert: board.Revert, queue.MoveReopen: board.Reopen,
	queue.MoveKept: board.Keep, queue.MoveDropped: board.Drop,
}

// moveQueued moves a case as the queue says. What the board refuses is no
// error: a case may be where it is to be, or not be on the board at all.
func moveQueued(ctx context.Context, w *statements, m queue.CaseMove, at time.Time) error {
	err := moveCase(ctx, w, m.ID, board.Change{Action: queueActions[m.Move], By: board.Pawl, Why: m.Why, At: at})
	if err == nil && m.Move == queue.MoveReopen {
		err = holdAgain(ctx, w, m.ID, at)
	}
	var refusal *board.RefusalError
	if errors.Is(err, ErrNoCase) || errors.As(err, &refusal) {
		return nil
	}
	return err
}

// holdAgain puts a reopened task on hold if that is the last that a person did with it while it was taken back.
func holdAgain(ctx context.Context, w *statements, id string, at time.Time) error {
	last, _, err := rows.FindFirst(ctx, w, entryFields, `SELECT `+entryColumns+` FROM case_history
		WHERE id = $1 AND action NOT IN ($2, $3, $4) ORDER BY seq DESC LIMIT 1`,
		id, string(board.Edit), string(board.Enqueue), string(board.Reopen))
	isHold := last.Action == board.Block || last.Action == board.Defer
	if err != nil || last.By != board.Person || !isHold {
		return err
	}
	return moveCase(ctx, w, id, board.Change{Action: last.Action, By: board.Person, Why: last.Why, At: at})
}

// readQueue returns a queue with its entries. One query reads both, so no reader sees half
// of a step.
func readQueue(ctx context.Context, from *statements, target string) (q Queue, ok bool, err error) {
	err = from.Each(ctx, func(row rows.Row) error {
		var task string
		var data []byte
		if err := row.Scan(&task, &data, &q.N, &q.Owner, &q.UpdatedAt); err != nil {
			return err
		}
		if task == "" {
			ok = true
			return json.Unmarshal(data, &q.State)
		}
		var e queue.Entry
		err := json.Unmarshal(data, &e)
		q.State.Entries = append(q.State.Entries, e)
		return err
	}, `SELECT task, entry, n, owner_pid, owner_start, owner_boot, owner_host, updated_at
		FROM queue_entries e JOIN queues q ON q.target = e.target WHERE e.target = $1
		UNION ALL SELECT '', state, n, owner_pid, owner_start, owner_boot, owner_host, updated_at
		FROM queues WHERE target = $1 ORDER BY task`, target)
	if ok {
		q.Target, q.State.Target = target, target
	}
	return q, ok, err
}

// Queue returns a target's queue; ok is false when nothing was ever queued for it.
func (s QueueTables) Queue(ctx context.Context, target string) (q Queue, ok bool, err error) {
	if q, ok, err = readQueue(ctx, &s.reads, target); err == nil {
		err = s.clearDeadOwners(ctx, &q.Owner)
	}
	return q, ok, s.explainError(ctx, "read the queue of "+target, err)
}

// QueueTargets returns the targets that have a queue or entries that wait for
// one, by name.
func (s QueueTables) QueueTargets(ctx context.Context) ([]string, error) {
	return readRows(ctx, s.DB, "list the queues", rows.TextField,
		`SELECT target FROM queues UNION SELECT target FROM queue_asks WHERE taken_at = 0 ORDER BY target`)
}

// QueueAsk is something that is asked of a queue, until its owner takes it.
type QueueAsk struct {
	ID     int64 // rises
	Target string
	Event  queue.Event
	At     time.Time
}

// AskQueue stores what is asked of a queue; it is on disk when it returns. A
// task that is added becomes one in review in the same transaction, so that
// it is not started again.
func (s QueueTables) AskQueue(ctx context.Context, ask QueueAsk) (id int64, err error) {
	return changeValue(ctx, s.DB, powerSafe, "ask the queue of "+ask.Target,
		func(ctx context.Context, w *statements) (int64, error) { return askQueue(ctx, w, ask) })
}

func askQueue(ctx context.Context, w *statements, ask QueueAsk) (id int64, err error) {
	if ask.Event.Kind == queue.Added && ask.Event.Entry != nil {
		m := queue.CaseMove{ID: ask.Event.Entry.ID, Move: queue.MoveQueued, Why: "its change waits to be landed"}
		if why := ask.Event.Entry.Revert; why != "" {
			m.Move, m.Why = queue.MoveRevert, "its landing is to be taken back: "+why
		}
		if err := moveQueued(ctx, w, m, ask.At); err != nil {
			return 0, err
		}
	}
	_, err = w.One(ctx, `INSERT INTO queue_asks (target, event, at, taken_at) VALUES ($1, $2, $3, 0) RETURNING id`,
		[]any{ask.Target, rows.ToJSON(ask.Event), ask.At}, &id)
	return id, err
}

// QueueAsks returns what is asked of a queue and not taken, oldest first, at
// most limit. Who carries one out names its id in [QueueStep].Taken.
func (s QueueTables) QueueAsks(ctx context.Context, target string, limit int) ([]QueueAsk, error) {
	return readRows(ctx, s.DB, "read what is asked of the queue of "+target,
		func(a *QueueAsk) []any {
			return []any{&a.ID, &a.Target, rows.ScanJSON(&a.Event), &a.At}
		},
		`SELECT id, target, event, at FROM queue_asks WHERE target = $1 AND taken_at = 0
			ORDER BY id LIMIT $2`, target, limit)
}

// UnmetNeeds returns what a task needs, or an operation above it does, and has
// not landed.
func (s CaseTables) UnmetNeeds(ctx context.Context, id string) ([]string, error) {
	return readRows(ctx, s.DB, "read what "+id+" needs", rows.TextField, `WITH RECURSIVE above (id) AS (
			SELECT id FROM cases WHERE id = $1 UNION SELECT c.parent FROM cases c JOIN above a ON a.id = c.id
			WHERE c.parent <> '')
		SELECT DISTINCT n.need FROM above a JOIN case_needs n ON n.dependent = a.id JOIN cases c ON c.id = n.need
		WHERE c.status <> 'done' ORDER BY n.need`, id)
}

// Landings returns what landed on a target, the last first, at most limit;
// with a task, only its landings.
func (s QueueTables) Landings(ctx context.Context, target, task string, limit int) ([]queue.Landing, error) {
	return readRows(ctx, s.DB, "list what landed on "+target,
		func(l *queue.Landing) []any { return []any{rows.ScanJSON(l)} },
		`SELECT data FROM landings WHERE target = $1 AND ($2 = '' OR task = $2)
			ORDER BY seq DESC LIMIT $3`, target, task, limit)
}

// TaskLandings returns what landed of some tasks, on whichever target, the last first.
func (s QueueTables) TaskLandings(ctx context.Context, tasks []string) ([]queue.Landing, error) {
	c := &rows.Conditions{}
	rows.AnyOf(c, `task IN (…)`, tasks)
	return readRows(ctx, s.DB, "list the landings of tasks",
		func(l *queue.Landing) []any { return []any{rows.ScanJSON(l)} },
		`SELECT data FROM landings`+c.Where()+` ORDER BY seq DESC`, c.Args...)
}

// LandCases makes tasks done that landed and are not done on the board, and
// returns their ids.
func (s CaseTables) LandCases(ctx context.Context, landed []queue.Landing, now time.Time) (moved []string, err error) {
	return changeValue(ctx, s.DB, powerSafe, "repair the board",
		func(ctx context.Context, w *statements) ([]string, error) {
			var moved []string
			for _, l := range landed {
				c, ok, err := findCase(ctx, w, oneCase, l.Task)
				isOpen := ok && c.Status != board.Done
				if err == nil && isOpen {
					why := "its change is on the target, as " + l.Commit
					err = moveQueued(ctx, w, queue.CaseMove{ID: l.Task, Move: queue.MoveLanded, Why: why}, now)
					moved = append(moved, l.Task)
				}
				if err != nil {
					return nil, err
				}
			}
			return moved, nil
		})
}

// GateRecord is the verdict of the gates on a tree.
type GateRecord struct {
	Key     string          `json:"-"` // of tree, definition of the gates and environment
	At      time.Time       `json:"-"`
	Verdict queue.Verdict   `json:"verdict"`
	Gates   json.RawMessage `json:"gates,omitempty"` // how each ended
}

// GateRecord returns a stored verdict; ok is false when there is none.
func (s QueueTables) GateRecord(ctx context.Context, key string) (r GateRecord, ok bool, err error) {
	r, ok, err = rows.FindFirst(ctx, &s.reads,
		func(r *GateRecord) []any { return []any{&r.Key, &r.At, rows.ScanJSON(r)} },
		`SELECT key, at, record FROM gate_records WHERE key = $1`, key)
	return r, ok, s.explainError(ctx, "read a gate record", err)
}

// PutGateRecord stores a verdict in place of an older one.
func (s QueueTables) PutGateRecord(ctx context.Context, r GateRecord) error {
	return s.execOne(ctx, crashSafe, "store a gate record", putGateRecord(), r.Key, r.Verdict.Tree, r.Verdict.Green,
		r.At, rows.ToJSON(r))
}

var putGateRecord = rows.UpsertSQL("gate_records", 1, "key, tree, green, at, record")

// GreenTree reports whether a tree has a green record, under any gates.
func (s QueueTables) GreenTree(ctx context.Context, tree string) (bool, error) {
	var found int
	ok, err := s.reads.One(ctx, `SELECT 1 FROM gate_records WHERE tree = $1 AND green = 1 LIMIT 1`, []any{tree}, &found)
	return ok, s.explainError(ctx, "read a gate record", err)
}

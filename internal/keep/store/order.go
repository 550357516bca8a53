package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

// Order is what an autopilot has an engine order for a task. What the engine says is believed
// only where it is this.
type Order struct {
	Case      string
	Workflow  string // as the engine calls it; no other order ever has the name
	Execution string // the engine's own id of it; "" until that is known
	Base      string // the commit that the work begins at; "" is where the worker's checkout is
	Asked     map[string]string
	Result    json.RawMessage // as the worker has it; nil until the run rests
	Secret    string          // of the board's workers: what one proves by it, a worker said
	At        time.Time
}

// ErrNoOrder says that there is no such order, or that it is over.
var ErrNoOrder = errors.New("no autopilot of this board has ordered it")

const thisStart = `(SELECT max(seq) FROM case_history WHERE id = $1 AND action = 'start')`

// PlaceOrder stores an order in place of the task's last one. Its task has to be active.
func (s AutopilotTables) PlaceOrder(ctx context.Context, o Order) error {
	return s.changeAs(ctx, crashSafe, "order "+o.Case, func(ctx context.Context, w *statements) error {
		w.Do(ctx, `DELETE FROM orders WHERE id = $1`, o.Case)
		n, err := w.Exec(ctx, `INSERT INTO orders (id, revision, workflow, execution, base, asked, result, secret, at)
			SELECT $1, `+thisStart+`, $2, '', $3, $4, '', $5, $6 FROM cases WHERE id = $1 AND status = $7`,
			o.Case, o.Workflow, o.Base, rows.ToJSON(o.Asked), o.Secret, o.At, string(board.Active))
		if err == nil && n == 0 {
			err = fmt.Errorf("%w: %s is not active", ErrNoOrder, o.Case)
		}
		return err
	})
}

// Order finds the order of a task that is active, since it was started last; else it is [ErrNoOrder].
func (s AutopilotTables) Order(ctx context.Context, task string) (Order, error) {
	o, err := rows.RequireFirst(ctx, &s.reads, ErrNoOrder, task, func(o *Order) []any {
		return []any{&o.Case, &o.Workflow, &o.Execution, &o.Base, rows.ScanJSON(&o.Asked), &o.Result,
			&o.Secret, &o.At}
	}, `SELECT o.id, o.workflow, o.execution, o.base, o.asked, o.result, o.secret, o.at
		FROM orders o JOIN cases c ON c.id = o.id
		WHERE o.id = $1 AND c.status = $2 AND o.revision = `+thisStart, task, string(board.Active))
	return o, s.explainError(ctx, "read the order of "+task, err)
}

// NameExecution stores what the engine calls the execution of an order, once.
func (s AutopilotTables) NameExecution(ctx context.Context, o Order) error {
	return s.execOne(ctx, crashSafe, "store that "+o.Case+" is ordered",
		`UPDATE orders SET execution = $1 WHERE id = $2 AND workflow = $3 AND execution = ''`,
		o.Execution, o.Case, o.Workflow)
}

// EndOrder stores the result of an order.
func (s AutopilotTables) EndOrder(ctx context.Context, o Order) error {
	return s.execOne(ctx, crashSafe, "store the result of "+o.Case,
		`UPDATE orders SET result = $1 WHERE id = $2 AND workflow = $3 AND result = ''`,
		o.Result, o.Case, o.Workflow)
}

// DropOrder forgets the order of a task.
func (s AutopilotTables) DropOrder(ctx context.Context, task string) error {
	return s.execOne(ctx, crashSafe, "take the order of "+task+" back", `DELETE FROM orders WHERE id = $1`, task)
}

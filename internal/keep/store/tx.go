package store

import (
	"context"
	"database/sql"
	"errors"
	"os"

	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

// durability is what a commit survives.
type durability bool

const (
	crashSafe durability = false // kill -9; a power loss may take the last commits
	powerSafe durability = true  // a power loss too: the log is on disk when it returns
)

// attempts is how often a busy database is asked for the lock, each time for
// a while. The waiting is not fair, so a single wait may lose.
const attempts = 20

// retryBusy repeats try while its error may pass. The first time in vain it says
// what is waited for. A connection that is found lost is opened again before.
func retryBusy[T any](ctx context.Context, s *DB, try func() (T, error)) (T, error) {
	var v T
	var err error
	told := s.tell == nil
	for i := range attempts {
		v, err = try()
		if err == nil || !s.db.Passing(err) || ctx.Err() != nil {
			return v, err
		}
		if !told && (i > 0 || !s.db.Lost(err)) {
			told = true
			s.tell(s.db.Waited(err))
		}
	}
	return v, err
}

// statements are those of one connection, or of all that read.
type statements = rows.Statements

// connection is the writing connection with its prepared statements. BEGIN
// and COMMIT are its own: with database/sql's Tx, statements that were
// prepared once could not be used on a connection held for good.
type connection struct {
	turn  chan struct{} // holds one token: the goroutine that has it writes
	conn  *sql.Conn     // nil until it is needed, and again when it was lost
	stmts rows.Statements
}

func newConnection() *connection {
	w := &connection{turn: make(chan struct{}, 1)}
	w.stmts.Host, _ = os.Hostname() // without a name it is ""
	w.stmts.Person = func() string { return "" }
	w.turn <- struct{}{}
	return w
}

// SetPerson says who uses this process. name is called when a person's change is stored.
func (s *DB) SetPerson(name func() string) { s.write.stmts.Person = name }

func (w *connection) closeConn() error {
	<-w.turn
	defer func() { w.turn <- struct{}{} }()
	return w.dropConnection()
}

// dropConnection closes the connection; the next write opens another one.
func (w *connection) dropConnection() error {
	w.stmts.Close()
	if w.conn == nil {
		return nil
	}
	err := w.conn.Close()
	w.conn = nil
	if errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return err
}

// openWriter returns the writing connection, and opens it if there is none. The caller has the
// turn, or the store for itself.
func (s *DB) openWriter(ctx context.Context) (*sql.Conn, error) {
	w := s.write
	if w.conn == nil {
		conn, err := s.db.Writer(ctx)
		if err != nil {
			return nil, err
		}
		w.conn = conn
		w.stmts.Prepare, w.stmts.Values = conn.PrepareContext, s.db.Values
	}
	return w.conn, nil
}

// runWrite runs do in one write transaction: all of it is stored, or nothing.
// The lock is taken at the begin, so what do reads is still true when it
// writes. do must not call methods of the store.
func (s *DB) runWrite(ctx context.Context, d durability, do func(ctx context.Context, w *statements) error) error {
	w := s.write
	select {
	case <-w.turn:
		defer func() { w.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	conn, err := s.beginTransaction(ctx, d)
	if err == nil {
		err = s.finishTx(ctx, d, do)
	} else if conn != nil {
		s.db.End(context.WithoutCancel(ctx), conn, bool(d), false)
	}
	if err != nil && s.db.Lost(err) {
		_ = w.dropConnection() // it is lost
	}
	return err
}

// beginTransaction opens a transaction. Nothing is done yet, so it is tried again where
// that may help.
func (s *DB) beginTransaction(ctx context.Context, d durability) (*sql.Conn, error) {
	return retryBusy(ctx, s, func() (*sql.Conn, error) {
		conn, err := s.openWriter(ctx)
		if err == nil {
			err = s.db.Begin(ctx, conn, bool(d))
		}
		if err != nil && s.db.Lost(err) {
			_ = s.write.dropConnection()
			return nil, err
		}
		return conn, err
	})
}

// changeAs runs [DB.runWrite]; what is the action that an error names.
func (s *DB) changeAs(ctx context.Context, d durability, what string,
	do func(ctx context.Context, w *statements) error) error {
	return s.explainError(ctx, what, s.runWrite(ctx, d, do))
}

// changeValue runs [DB.changeAs], and returns what do returns; the zero value if nothing
// was stored.
func changeValue[T any](ctx context.Context, s *DB, d durability, what string,
	do func(ctx context.Context, w *statements) (T, error)) (v T, err error) {
	err = s.changeAs(ctx, d, what, func(ctx context.Context, w *statements) (err error) {
		v, err = do(ctx, w)
		return err
	})
	if err != nil {
		v = *new(T)
	}
	return v, err
}

// finishTx runs do in the open transaction and commits, or rolls back. From the
// commit on ctx does not count any more: it would leave open what happened.
func (s *DB) finishTx(ctx context.Context, d durability, do func(ctx context.Context, w *statements) error) error {
	done := false
	conn, hard := s.write.conn, context.WithoutCancel(ctx)
	defer func() { s.db.End(hard, conn, bool(d), done) }()
	if err := s.checkOwnTurn(ctx, &s.write.stmts); err != nil {
		return err
	}
	w := &s.write.stmts
	if err := w.Run(func() error { return do(ctx, w) }); err != nil {
		return err
	}
	if err := s.db.Commit(hard, conn); err != nil {
		return err
	}
	done = true
	return nil
}

// readRows runs [rows.List] on the store; what is the action that an error names.
func readRows[T any](ctx context.Context, s *DB, what string, fields func(*T) []any, query string, args ...any) ([]T,
	error) {
	all, err := rows.ListAll(ctx, &s.reads, fields, query, args...)
	return all, s.explainError(ctx, what, err)
}

// execOne runs one statement that writes, in a transaction of its own.
func (s *DB) execOne(ctx context.Context, d durability, what, query string, args ...any) error {
	return s.changeAs(ctx, d, what, func(ctx context.Context, w *statements) error {
		_, err := w.Exec(ctx, query, args...)
		return err
	})
}

// costKnown is stored as 1 where all of the cost is known, and as 2 where it is at least so much.
func (r *Run) costKnown() (n int) {
	for _, known := range []bool{r.CostKnown, r.CostKnown && r.CostPartial} {
		if known {
			n++
		}
	}
	return n
}

// readCostKnown reads the number that [Run.costKnown] returned.
func readCostKnown(r *Run) rows.Column {
	return func(stored any) error {
		r.CostKnown, r.CostPartial = rows.ToInteger(stored) > 0, rows.ToInteger(stored) > 1
		return nil
	}
}

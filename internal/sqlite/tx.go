package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"sync"

	"github.com/ncruces/go-sqlite3"
)

// durability is what a commit survives.
type durability bool

const (
	crashSafe durability = false // kill -9; a power loss may take the last commits
	powerSafe durability = true  // a power loss too: the log is on disk when it returns
)

// attempts is how often a busy database is asked for the lock, each time for
// up to [turn]. SQLite's waiting is not fair, so a single wait may lose.
const attempts = 20

// insist repeats try while the database is busy. It calls told when the first
// attempt was in vain.
func insist[T any](ctx context.Context, told func(), try func() (T, error)) (T, error) {
	var v T
	var err error
	for i := range attempts {
		v, err = try()
		if !errors.Is(err, sqlite3.BUSY) || ctx.Err() != nil {
			return v, err
		}
		if i == 0 {
			told()
		}
	}
	return v, err
}

// connection is the writing connection with its prepared statements. BEGIN
// and COMMIT are its own: with database/sql's Tx, statements that were
// prepared once could not be used on a connection held for good.
type connection struct {
	turn  chan struct{} // holds one token: whoever has it writes
	conn  *sql.Conn
	stmts statements
}

func newConnection(c *sql.Conn) *connection {
	w := &connection{turn: make(chan struct{}, 1), conn: c}
	w.stmts.prepare = c.PrepareContext
	w.turn <- struct{}{}
	return w
}

func (w *connection) close() error {
	<-w.turn
	defer func() { w.turn <- struct{}{} }()
	w.stmts.close()
	if err := w.conn.Close(); !errors.Is(err, sql.ErrConnDone) {
		return err
	}
	return nil
}

// transact runs do in one write transaction: all of it is stored, or nothing.
// The lock is taken at the begin, so what do reads is still true when it
// writes. do must not call methods of the store.
func (s *Store) transact(ctx context.Context, d durability, do func(ctx context.Context, w *statements) error) error {
	w := s.write
	select {
	case <-w.turn:
		defer func() { w.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if d == powerSafe {
		if _, err := w.conn.ExecContext(ctx, `PRAGMA synchronous = FULL`); err != nil {
			return err
		}
		defer func() {
			// It cannot fail outside of a transaction; if it did, commits would be slower.
			_, _ = w.conn.ExecContext(context.WithoutCancel(ctx), `PRAGMA synchronous = NORMAL`)
		}()
	}
	_, err := insist(ctx, s.waits, func() (sql.Result, error) { return w.conn.ExecContext(ctx, `BEGIN IMMEDIATE`) })
	if err != nil {
		return err
	}
	return w.finish(ctx, do)
}

// finish runs do in the open transaction and commits, or rolls back. From the
// commit on ctx does not count any more: it would leave open what happened.
func (w *connection) finish(ctx context.Context, do func(ctx context.Context, w *statements) error) error {
	done := false
	hard := context.WithoutCancel(ctx)
	defer func() {
		if !done {
			// SQLite has rolled back by itself after a full disk; then this fails, rightly.
			_, _ = w.conn.ExecContext(hard, `ROLLBACK`)
		}
	}()
	if err := do(ctx, &w.stmts); err != nil {
		return err
	}
	if _, err := w.conn.ExecContext(hard, `COMMIT`); err != nil {
		return err
	}
	done = true
	return nil
}

// statements are prepared once, and used by the SQL text.
type statements struct {
	prepare func(ctx context.Context, query string) (*sql.Stmt, error)

	mu   sync.Mutex
	made map[string]*sql.Stmt
}

func (c *statements) get(ctx context.Context, query string) (*sql.Stmt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st, ok := c.made[query]; ok {
		return st, nil
	}
	// A statement outlives the call that needed it first.
	st, err := c.prepare(context.WithoutCancel(ctx), query) //nolint:sqlclosecheck // close closes all
	if err != nil {
		return nil, err
	}
	if c.made == nil {
		c.made = map[string]*sql.Stmt{}
	}
	c.made[query] = st
	return st, nil
}

// exec returns the number of rows that were changed.
func (c *statements) exec(ctx context.Context, query string, args ...any) (int64, error) {
	st, err := c.get(ctx, query) //nolint:sqlclosecheck // it is kept
	if err != nil {
		return 0, err
	}
	result, err := st.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// each calls scan for every row; scan's error ends it.
func (c *statements) each(ctx context.Context, scan func(row scanner) error, query string, args ...any) error {
	st, err := c.get(ctx, query) //nolint:sqlclosecheck // it is kept
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err has what went wrong
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// one scans the first row into dest; ok is false when there is none.
func (c *statements) one(ctx context.Context, query string, args []any, dest ...any) (ok bool, err error) {
	st, err := c.get(ctx, query) //nolint:sqlclosecheck // it is kept
	if err != nil {
		return false, err
	}
	err = st.QueryRowContext(ctx, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func (c *statements) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, st := range c.made {
		_ = st.Close() // nothing is stored by it
	}
	c.made = nil
}

// scanner is a row.
type scanner interface{ Scan(dest ...any) error }

func itoa(n int) string { return strconv.Itoa(n) }

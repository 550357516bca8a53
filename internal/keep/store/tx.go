package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
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

// connection is the writing connection with its prepared statements. BEGIN
// and COMMIT are its own: with database/sql's Tx, statements that were
// prepared once could not be used on a connection held for good.
type connection struct {
	turn  chan struct{} // holds one token: the goroutine that has it writes
	conn  *sql.Conn     // nil until it is needed, and again when it was lost
	stmts statements
}

func newConnection() *connection {
	w := &connection{turn: make(chan struct{}, 1)}
	w.turn <- struct{}{}
	return w
}

func (w *connection) closeConn() error {
	<-w.turn
	defer func() { w.turn <- struct{}{} }()
	return w.dropConnection()
}

// dropConnection closes the connection; the next write opens another one.
func (w *connection) dropConnection() error {
	w.stmts.close()
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

// conn returns the writing connection, and opens it if there is none. The caller has the
// turn, or the store for itself.
func (s *DB) conn(ctx context.Context) (*sql.Conn, error) {
	w := s.write
	if w.conn == nil {
		conn, err := s.db.Writer(ctx)
		if err != nil {
			return nil, err
		}
		w.conn = conn
		w.stmts.prepare, w.stmts.values = conn.PrepareContext, s.db.Values
	}
	return w.conn, nil
}

// transact runs do in one write transaction: all of it is stored, or nothing.
// The lock is taken at the begin, so what do reads is still true when it
// writes. do must not call methods of the store.
func (s *DB) transact(ctx context.Context, d durability, do func(ctx context.Context, w *statements) error) error {
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
		conn, err := s.conn(ctx)
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

// changeAs runs [DB.transact]; what is the action that an error names.
func (s *DB) changeAs(ctx context.Context, d durability, what string,
	do func(ctx context.Context, w *statements) error) error {
	return s.explainError(ctx, what, s.transact(ctx, d, do))
}

// changeValue runs [DB.changeAs], and returns what do returns.
func changeValue[T any](ctx context.Context, s *DB, d durability, what string,
	do func(ctx context.Context, w *statements) (T, error)) (v T, err error) {
	err = s.changeAs(ctx, d, what, func(ctx context.Context, w *statements) (err error) {
		v, err = do(ctx, w)
		return err
	})
	return v, err
}

// finishTx runs do in the open transaction and commits, or rolls back. From the
// commit on ctx does not count any more: it would leave open what happened.
func (s *DB) finishTx(ctx context.Context, d durability, do func(ctx context.Context, w *statements) error) error {
	done := false
	conn, hard := s.write.conn, context.WithoutCancel(ctx)
	defer func() { s.db.End(hard, conn, bool(d), done) }()
	if err := s.inTurn(ctx, &s.write.stmts); err != nil {
		return err
	}
	if err := do(ctx, &s.write.stmts); err != nil {
		return err
	}
	if err := s.db.Commit(hard, conn); err != nil {
		return err
	}
	done = true
	return nil
}

// statements are prepared once, and used by the SQL text.
type statements struct {
	prepare func(ctx context.Context, query string) (*sql.Stmt, error)
	values  func(args []any) []any

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
	result, err := st.ExecContext(ctx, c.values(args)...)
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
	rows, err := st.QueryContext(ctx, c.values(args)...)
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
	err = st.QueryRowContext(ctx, c.values(args)...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// listRows reads the rows of a query; fields says where the columns of one go.
func listRows[T any](ctx context.Context, from *statements, fields func(*T) []any, query string, args ...any) ([]T,
	error) {
	var all []T
	err := from.each(ctx, func(row scanner) error {
		var v T
		err := row.Scan(fields(&v)...)
		all = append(all, v)
		return err
	}, query, args...)
	return all, err
}

// firstRow returns the first row of [listRows]; ok is false when there is none.
func firstRow[T any](ctx context.Context, from *statements, fields func(*T) []any, query string, args ...any) (v T,
	ok bool, err error) {
	all, err := listRows(ctx, from, fields, query, args...)
	if err != nil || len(all) == 0 {
		return v, false, err
	}
	return all[0], true, nil
}

// requireRow is [firstRow] where there has to be one: without, the error is missing, and
// names the key.
func requireRow[T any](ctx context.Context, from *statements, missing error, key string, fields func(*T) []any,
	query string, args ...any) (T, error) {
	v, ok, err := firstRow(ctx, from, fields, query, args...)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %s", missing, key)
	}
	return v, err
}

// readRows runs [listRows] on the store; what is the action that an error names.
func readRows[T any](ctx context.Context, s *DB, what string, fields func(*T) []any, query string, args ...any) ([]T,
	error) {
	all, err := listRows(ctx, &s.reads, fields, query, args...)
	return all, s.explainError(ctx, what, err)
}

// readTexts reads a column of texts.
func readTexts(ctx context.Context, from *statements, query string, args ...any) ([]string, error) {
	return listRows(ctx, from, textField, query, args...)
}

// textField returns the field of a row that is one text.
func textField(to *string) []any { return []any{to} }

// execOne runs one statement that writes, in a transaction of its own.
func (s *DB) execOne(ctx context.Context, d durability, what, query string, args ...any) error {
	return s.changeAs(ctx, d, what, func(ctx context.Context, w *statements) error {
		_, err := w.exec(ctx, query, args...)
		return err
	})
}

// upsertSQL returns the SQL that stores a row in place of the one that has the same
// first columns, as many as the key has. It is put together on first use.
func upsertSQL(table string, key int, columns string) func() string {
	return sync.OnceValue(func() string { return buildUpsert(table, key, columns) })
}

func buildUpsert(table string, key int, columns string) string {
	names := strings.Fields(strings.ReplaceAll(columns, ",", " "))
	var marks, sets []string
	for i, name := range names {
		marks = append(marks, "$"+itoa(i+1))
		if i >= key {
			sets = append(sets, name+" = excluded."+name)
		}
	}
	return `INSERT INTO ` + table + ` (` + columns + `) VALUES (` + strings.Join(marks, ", ") + `)
		ON CONFLICT (` + strings.Join(names[:key], ", ") + `) DO UPDATE SET ` + strings.Join(sets, ", ")
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

// column reads a column that is stored in another form than a field has.
type column func(stored any) error

// Scan makes it a [sql.Scanner].
func (c column) Scan(stored any) error { return c(stored) }

// scanTime scans a time.
func scanTime(t *time.Time) column {
	return func(stored any) error {
		*t = fromMS(toInteger(stored))
		return nil
	}
}

// toInteger returns a stored number, which may be written out: a sum in PostgreSQL is.
func toInteger(stored any) int64 {
	if n, ok := stored.(int64); ok {
		return n
	}
	n, _ := strconv.ParseInt(string(bytesOf(stored)), 10, 64)
	return n
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
func readCostKnown(r *Run) column {
	return func(stored any) error {
		r.CostKnown, r.CostPartial = toInteger(stored) > 0, toInteger(stored) > 1
		return nil
	}
}

// scanDuration scans a duration.
func scanDuration(d *time.Duration) column {
	return func(stored any) error {
		*d = time.Duration(toInteger(stored)) * time.Millisecond
		return nil
	}
}

// scanJSON scans JSON into what v points to.
func scanJSON(v any) column {
	return func(stored any) error { return json.Unmarshal(bytesOf(stored), v) }
}

// raw scans JSON as it is; nil for an empty column.
func raw(to *json.RawMessage) column {
	return func(stored any) error {
		*to = nil
		if b := bytesOf(stored); len(b) > 0 {
			*to = b
		}
		return nil
	}
}

// bytesOf is a copy of a stored text.
func bytesOf(stored any) []byte {
	switch text := stored.(type) {
	case string:
		return []byte(text)
	case []byte:
		return slices.Clone(text)
	}
	return nil
}

// toMS returns a time in milliseconds, as it is stored.
func toMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// fromMS returns the time of stored milliseconds.
func fromMS(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func itoa(n int) string { return strconv.Itoa(n) }

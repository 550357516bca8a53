// Package rows has what the parts of the store say SQL with: statements that are
// prepared once, rows that become values, the forms in which columns are stored, and
// conditions that are put together. It knows no table.
package rows

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Statements are prepared once, and used by the SQL text.
type Statements struct {
	Prepare func(ctx context.Context, query string) (*sql.Stmt, error)
	Values  func(args []any) []any
	// Host is the machine that this process runs on, and Person who uses it; they go into what is recorded.
	Host   string
	Person func() string

	mu     sync.Mutex
	made   map[string]*sql.Stmt
	failed error
}

// Do executes a statement of a transaction. When it fails, all that follows fails in the
// same way, and so does the transaction: see [Statements.Run].
func (c *Statements) Do(ctx context.Context, query string, args ...any) {
	_, c.failed = c.Exec(ctx, query, args...)
}

// Run runs the statements of a transaction, and returns the first error.
func (c *Statements) Run(do func() error) error {
	c.failed = nil
	err := do()
	err, c.failed = cmp.Or(c.failed, err), nil
	return err
}

// preparedStatement returns a statement, with its values as they are stored.
func (c *Statements) preparedStatement(ctx context.Context, query string, args []any) (*sql.Stmt, []any, error) {
	if c.failed != nil {
		return nil, nil, c.failed
	}
	args, err := storedForm(args)
	if err != nil {
		return nil, nil, err
	}
	args = c.Values(args)
	c.mu.Lock()
	defer c.mu.Unlock()
	if st, ok := c.made[query]; ok {
		return st, args, nil
	}
	// A statement outlives the call that needed it first.
	st, err := c.Prepare(context.WithoutCancel(ctx), query) //nolint:sqlclosecheck // close closes all
	if err != nil {
		return nil, nil, err
	}
	if c.made == nil {
		c.made = map[string]*sql.Stmt{}
	}
	c.made[query] = st
	return st, args, nil
}

// Exec returns the number of rows that were changed.
func (c *Statements) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	st, args, err := c.preparedStatement(ctx, query, args) //nolint:sqlclosecheck // it is kept
	if err != nil {
		return 0, err
	}
	result, err := st.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Each calls scan for every row; scan's error ends it.
func (c *Statements) Each(ctx context.Context, scan func(row Row) error, query string, args ...any) error {
	st, args, err := c.preparedStatement(ctx, query, args) //nolint:sqlclosecheck // it is kept
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err has what went wrong
	for rows.Next() {
		if err := scan(Row{rows}); err != nil {
			return err
		}
	}
	return rows.Err()
}

// One scans the first row into dest; ok is false when there is none.
func (c *Statements) One(ctx context.Context, query string, args []any, dest ...any) (ok bool, err error) {
	st, args, err := c.preparedStatement(ctx, query, args) //nolint:sqlclosecheck // it is kept
	if err != nil {
		return false, err
	}
	err = st.QueryRowContext(ctx, args...).Scan(scanInto(dest)...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// ListAll reads the rows of a query; fields says where the columns of one go.
func ListAll[T any](ctx context.Context, from *Statements, fields func(*T) []any, query string, args ...any) ([]T,
	error) {
	var all []T
	err := from.Each(ctx, func(row Row) error {
		var v T
		err := row.Scan(fields(&v)...)
		all = append(all, v)
		return err
	}, query, args...)
	return all, err
}

// FindFirst returns the first row of [ListAll]; ok is false when there is none.
func FindFirst[T any](ctx context.Context, from *Statements, fields func(*T) []any, query string, args ...any) (v T,
	ok bool, err error) {
	all, err := ListAll(ctx, from, fields, query, args...)
	if err != nil || len(all) == 0 {
		return v, false, err
	}
	return all[0], true, nil
}

// RequireFirst is [FindFirst] where there has to be one: without, the error is missing, and
// names the key.
func RequireFirst[T any](ctx context.Context, from *Statements, missing error, key string, fields func(*T) []any,
	query string, args ...any) (T, error) {
	v, ok, err := FindFirst(ctx, from, fields, query, args...)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %s", missing, key)
	}
	return v, err
}

// ReadTexts reads a column of texts.
func ReadTexts(ctx context.Context, from *Statements, query string, args ...any) ([]string, error) {
	return ListAll(ctx, from, TextField, query, args...)
}

// TextField returns the field of a row that is one text.
func TextField(to *string) []any { return []any{to} }

// UpsertSQL returns the SQL that stores a row in place of the one that has the same
// first columns, as many as the key has; without a key it only inserts. It is put together on first use.
func UpsertSQL(table string, key int, columns string) func() string {
	return sync.OnceValue(func() string {
		names := strings.Fields(strings.ReplaceAll(columns, ",", " "))
		sets := lists.Each(names[key:], func(name string) string { return name + " = excluded." + name })
		insert := `INSERT INTO ` + table + ` (` + columns + `) VALUES ` + Placeholders(1, len(names))
		if key == 0 {
			return insert
		}
		return insert + `
		ON CONFLICT (` + strings.Join(names[:key], ", ") + `) DO UPDATE SET ` + strings.Join(sets, ", ")
	})
}

// Close closes the statements; those that are needed afterwards are prepared again.
func (c *Statements) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, st := range c.made {
		_ = st.Close() // nothing is stored by it
	}
	c.made = nil
}

// Placeholders returns the SQL for the values of some rows.
func Placeholders(rows, columns int) string {
	var b strings.Builder
	for i := range rows * columns {
		switch {
		case i == 0:
			b.WriteString("(")
		case i%columns == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		b.WriteString("$" + formatInt(i+1))
	}
	return b.String() + ")"
}

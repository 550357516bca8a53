package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/internal/keep/store/database"
)

// identity is what no other board has: not one that was dropped and made anew, and not one that was put
// back from a copy, since the row of that was written by another transaction, mostly in another table.
const identity = `id || ' ' || tableoid || ' ' || xmin`

// Identify notes which board this is. From then on nothing is written to another one that takes its place.
// It has a connection of its own: one that is kept is dead once the server is restarted, and the first who reads
// then hears of it.
func (d *DB) Identify(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, d.config.Copy())
	if err != nil {
		return err
	}
	err = conn.QueryRow(ctx, `SELECT `+identity+` FROM identity`).Scan(&d.identity)
	return errors.Join(err, conn.Close(ctx))
}

// Same is [database.ErrGone] once another board has taken the place of this one.
func (d *DB) Same(ctx context.Context) error {
	return d.judgeIdentity(d.reader.QueryRowContext(ctx, d.sameBoard()).Scan(new(int)))
}

// sameBoard is a statement that fails on another board.
func (d *DB) sameBoard() string {
	if d.identity == "" {
		return `SELECT 1`
	}
	return fmt.Sprintf(`SELECT 1 / count(*) FROM identity WHERE %s = '%s'`, identity, d.identity)
}

// judgeIdentity notes that the board is another one, for good.
func (d *DB) judgeIdentity(err error) error {
	isOther := errorCode(err) == "22012" || errorCode(err) == "42P01" // none is counted; there is no such table
	if isOther {
		d.gone.Store(true)
	}
	if !d.gone.Load() {
		return err
	}
	return fmt.Errorf("%w: the board at %s was put back from a copy, dropped or made anew. What was started before "+
		"stores nothing there; start it again", database.ErrGone, d.Name())
}

// GiveUp has the board count as another one.
func (d *DB) GiveUp() error {
	d.gone.Store(true)
	return d.judgeIdentity(nil)
}

// checkSameBoard asks on the connection of the notices.
func (d *DB) checkSameBoard(ctx context.Context, conn *pgx.Conn) error {
	return d.judgeIdentity(conn.QueryRow(ctx, d.sameBoard()).Scan(new(int)))
}

package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// glance is how long it is looked for notices that have come.
const glance = time.Millisecond

// Version is the number of the notices that came, and of the times that the
// connection for them was opened: what happened before is not known then.
func (d *DB) Version(ctx context.Context) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watch == nil || d.watch.IsClosed() {
		if err := d.listen(ctx); err != nil {
			return d.version, err
		}
	}
	for {
		soon, cancel := context.WithTimeout(ctx, glance)
		_, err := d.watch.WaitForNotification(soon)
		cancel()
		switch {
		case err == nil:
			d.version++
		case ctx.Err() != nil:
			return d.version, ctx.Err()
		case pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded):
			return d.version, nil
		default: // the next call opens another one
			d.unwatch()
			return d.version, err
		}
	}
}

func (d *DB) listen(ctx context.Context) error {
	d.unwatch()
	conn, err := pgx.ConnectConfig(ctx, d.config.Copy())
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{d.schema}.Sanitize()); err != nil {
		_ = conn.Close(ctx)
		return err
	}
	d.watch = conn
	d.version++
	return nil
}

func (d *DB) unwatch() {
	if d.watch != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = d.watch.Close(ctx) // nothing is stored by it
		cancel()
		d.watch = nil
	}
}

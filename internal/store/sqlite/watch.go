package sqlite

import (
	"context"
	"os"
	"time"
)

// Version costs microseconds where nothing was written.
func (d *DB) Version(ctx context.Context) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.written()
	if !now.at.IsZero() && now == d.asked {
		return d.version, nil
	}
	// What is written in the tick of the clock in which it was asked would look the same.
	settled := now.at.Before(time.Now().Add(-settling))
	if err := d.removed(now); err != nil {
		return 0, err
	}
	version, err := d.dataVersion(ctx)
	if d.version, d.asked = version, now; err != nil || !settled {
		d.asked = written{}
	}
	return version, err
}

// written is when the log of the database was written to last, and how long it is then.
type written struct {
	at   time.Time
	size int64
}

// settling is more than two ticks of a file system's clock.
const settling = time.Second

// written is zero where there is no log: then nothing can be told.
func (d *DB) written() written {
	info, err := os.Stat(d.path + "-wal")
	if err != nil {
		return written{}
	}
	return written{info.ModTime(), info.Size()}
}

func (d *DB) dataVersion(ctx context.Context) (version int64, err error) {
	if d.watch == nil {
		// The number belongs to a connection: it must always be the same one.
		if d.watch, err = d.reader.Conn(ctx); err != nil {
			d.watch = nil
			return 0, err
		}
	}
	err = d.watch.QueryRowContext(ctx, `PRAGMA data_version`).Scan(&version)
	return version, err
}

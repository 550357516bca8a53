// Package sqlite keeps a store in one file of SQLite, for one machine. It opens,
// locks, copies and watches the file; the queries are the store's. It never
// deletes or replaces a database that it cannot read.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"

	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store/database"
)

//go:embed migrations/*.sql schema.sql
var steps embed.FS

// Limits of the connections.
const (
	// busy is how long one statement that reads waits for other processes.
	busy = 10 * time.Second
	// turn is how long one attempt to write waits for them; the store makes several.
	turn = 1500 * time.Millisecond
	// readers is how many reads run at once, the one that watches included.
	readers = 5
	// keepWAL is what the log file shrinks to after a checkpoint, in bytes.
	keepWAL = 16 << 20
)

// DB is an open file.
type DB struct {
	path   string
	writer *sql.DB
	reader *sql.DB

	mu      sync.Mutex // guards the next three
	watch   *sql.Conn  // of Version; opened when first asked
	version int64      // that it gave last
	asked   written    // what that depends on
}

// Open opens the file at an absolute path, and makes it when there is none:
// folders for the user alone (0700), the file too (0600). used is true where it
// had something in it. The database is there also with an error, to explain it.
func Open(path string) (d *DB, used bool, err error) {
	d = &DB{path: path}
	if err := d.errorLost(); err != nil {
		return d, false, err
	}
	info, err := os.Stat(path)
	used = err == nil && info.Size() > 0
	if err := createFile(path); err != nil {
		return d, used, err
	}
	if d.writer, err = driver.Open(d.dataSource(), prepareWriter); err != nil {
		return d, used, err
	}
	d.writer.SetMaxOpenConns(1)
	if d.reader, err = driver.Open(d.dataSource(), prepareReader); err != nil {
		return d, used, err
	}
	d.reader.SetMaxOpenConns(readers)
	d.reader.SetMaxIdleConns(2)
	return d, used, nil
}

// createFile makes the folders and an empty file, so that both are private from
// their first moment. An existing file stays as it is.
func createFile(path string) error {
	if err := files.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the path is the caller's choice
	if err != nil {
		return err
	}
	return f.Close()
}

// dataSource names the file as a URI, so that any character may be in the path.
// modeof gives the log file the mode of the database.
func (d *DB) dataSource() string {
	// SQLite knows %20 for a blank, and takes a plus for a plus.
	mode := strings.ReplaceAll(url.QueryEscape(d.path), "+", "%20")
	u := url.URL{Scheme: "file", Path: d.path, RawQuery: "modeof=" + mode}
	return u.String()
}

func prepareWriter(c *sqlite3.Conn) error {
	if err := c.BusyTimeout(turn); err != nil {
		return err
	}
	return c.Exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;
		PRAGMA journal_size_limit = ` + strconv.Itoa(keepWAL))
}

func prepareReader(c *sqlite3.Conn) error {
	if err := c.BusyTimeout(busy); err != nil {
		return err
	}
	return c.Exec(`PRAGMA query_only = ON`)
}

// Name is the absolute path of the file.
func (d *DB) Name() string { return d.path }

// Reader is the pool for reading.
func (d *DB) Reader() *sql.DB { return d.reader }

// Writer opens the only connection that writes. Turning on the write-ahead log
// needs the file alone for a moment, and SQLite does not wait for that one by
// itself when two processes make a database at once: the error passes.
func (d *DB) Writer(ctx context.Context) (*sql.Conn, error) { return d.writer.Conn(ctx) }

// Begin takes the lock at the begin, so what is read is still true when it is written.
func (d *DB) Begin(ctx context.Context, c *sql.Conn, durable bool) error {
	if durable {
		if _, err := c.ExecContext(ctx, `PRAGMA synchronous = FULL`); err != nil {
			return err
		}
	}
	_, err := c.ExecContext(ctx, `BEGIN IMMEDIATE`)
	return err
}

// Commit commits.
func (d *DB) Commit(ctx context.Context, c *sql.Conn) error {
	_, err := c.ExecContext(ctx, `COMMIT`)
	return err
}

// End rolls back what was not committed.
func (d *DB) End(ctx context.Context, c *sql.Conn, durable, committed bool) {
	if !committed {
		// SQLite has rolled back by itself after a full disk; then this fails, rightly.
		_, _ = c.ExecContext(ctx, `ROLLBACK`)
	}
	if durable {
		// It cannot fail outside of a transaction; if it did, commits would be slower.
		_, _ = c.ExecContext(ctx, `PRAGMA synchronous = NORMAL`)
	}
}

// Values are taken as they are.
func (d *DB) Values(args []any) []any { return args }

// Steps are the files of the schema.
func (d *DB) Steps() (files fs.FS, migrated string) {
	return steps, `SELECT count(*) FROM sqlite_schema WHERE name = 'migrations'`
}

// Close closes the file; to close twice does nothing.
func (d *DB) Close() error {
	var errs []error
	d.mu.Lock()
	if d.watch != nil {
		errs = append(errs, d.watch.Close())
		d.watch = nil
	}
	d.mu.Unlock()
	for _, pool := range []*sql.DB{d.reader, d.writer} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(errs...)
}

// Check reads the whole database and finds what is damaged. It takes seconds for
// a gigabyte.
func (d *DB) Check(ctx context.Context) error {
	var found string
	err := d.reader.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&found)
	if err == nil && found != "ok" {
		err = errors.Join(sqlite3.CORRUPT, errors.New(found))
	}
	return err
}

// Passing is true while others have the file locked.
func (d *DB) Passing(err error) bool { return errors.Is(err, sqlite3.BUSY) }

// Lost is never true: a file stays.
func (d *DB) Lost(error) bool { return false }

// Ended reports whether the call failed because its context was done.
func (d *DB) Ended(err error) bool { return errors.Is(err, sqlite3.INTERRUPT) }

// Diagnose says which error it is, and what the person can do about it.
func (d *DB) Diagnose(err error) (text string, kind error) {
	advice, kind := diagnoseError(err)
	switch {
	case kind == nil:
		return "", nil
	case errors.Is(kind, database.ErrBusy):
		return fmt.Sprintf("%s has %s locked; %s", d.lockHolder(), d.path, advice), kind
	case errors.Is(kind, database.ErrDamaged):
		advice = d.restoreHint()
	case errors.Is(err, sqlite3.IOERR): // also of a disk on which the log's index finds no page
		if free, ferr := files.Free(filepath.Dir(d.path)); ferr == nil && free < 1<<20 {
			err, advice = syscall.ENOSPC, "make room on its disk"
		}
	}
	return fmt.Sprintf("%s: %v; %s", d.path, err, advice), kind
}

func diagnoseError(err error) (advice string, kind error) {
	switch {
	case errors.Is(err, sqlite3.NOTADB), errors.Is(err, sqlite3.CORRUPT):
		return "", database.ErrDamaged
	case errors.Is(err, sqlite3.FULL), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room on its disk", database.ErrUnwritable
	case errors.Is(err, sqlite3.READONLY), errors.Is(err, sqlite3.PERM), errors.Is(err, sqlite3.AUTH),
		errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "make the file and its folder writable for you", database.ErrUnwritable
	case errors.Is(err, sqlite3.CANTOPEN), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG),
		errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, fs.ErrNotExist):
		return "check that its folder exists and is writable for you", database.ErrUnwritable
	case errors.Is(err, sqlite3.IOERR), errors.Is(err, syscall.EIO):
		return "check its disk, and that its file system can map files (mmap)", database.ErrUnwritable
	case errors.Is(err, sqlite3.BUSY):
		return "let it end, or end it, and try again", database.ErrBusy
	}
	return "", nil
}

// Where SQLite keeps its locks. Readers lock bytes of the database, and an exclusive
// user locks all of these. The writer locks a byte in the index of the log.
const (
	aloneAt   = 0x40000002
	aloneLen  = 510
	writerAt  = 120
	writerLen = 1
)

// Waited is who has the file locked.
func (d *DB) Waited(error) string { return "which " + d.lockHolder() + " has locked" }

// lockHolder names the process that has the database locked, if the system knows it.
func (d *DB) lockHolder() string {
	return cmp.Or(files.Holder(d.path+"-shm", writerAt, writerLen), files.Holder(d.path, aloneAt, aloneLen),
		"another process")
}

// Version costs microseconds where nothing was written.
func (d *DB) Version(ctx context.Context) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.logState()
	if !now.at.IsZero() && now == d.asked {
		return d.version, nil
	}
	// What is written in the tick of the clock in which it was asked would look the same.
	settled := now.at.Before(time.Now().Add(-settling))
	if err := d.errorRemoved(now); err != nil {
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

// logState returns the zero value if there is no log: then nothing can be detected.
func (d *DB) logState() written {
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

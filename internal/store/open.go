package store

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"

	"github.com/pawl-dev/pawl/internal/files"
)

// Limits of the connections.
const (
	// busy is how long one statement that reads waits for other processes.
	busy = 10 * time.Second
	// turn is how long one attempt to write waits for them; there are [attempts].
	turn = 1500 * time.Millisecond
	// readers is how many reads run at once, the one that watches included.
	readers = 5
	// keepWAL is what the log file shrinks to after a checkpoint, in bytes.
	keepWAL = 16 << 20
)

// Store is an open database. All methods may be called by many goroutines;
// writes go one after another through one connection, reads beside them.
type Store struct {
	path string
	tell func(holder string) // of who is waited for; nil: nobody

	writer *sql.DB
	reader *sql.DB
	write  *connection // the writer's only connection

	mu      sync.Mutex // guards the next three
	watch   *sql.Conn  // of DataVersion; opened when first asked
	version int64      // that it gave last
	asked   written    // what that depends on
	reads   statements // on the reader's pool
}

// Open opens the database at path, and makes it when there is none: folders
// for the user alone (0700), the file too (0600). It brings an older database
// up to date, and makes a copy of it once a day. Opening is cheap; connections for
// reading are made when needed.
//
// Errors are [ErrUnwritable], [ErrDamaged], [ErrNewer], [ErrBusy] or ctx's.
func Open(ctx context.Context, path string) (*Store, error) {
	s := &Store{path: path}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, s.explain(ctx, "open the database", err)
	}
	s.path = abs
	if err := s.lost(); err != nil {
		return nil, err
	}
	info, err := os.Stat(abs)
	used := err == nil && info.Size() > 0
	if err := create(abs); err != nil {
		return nil, s.explain(ctx, "open the database", err)
	}
	if err := s.connect(ctx); err != nil {
		_ = s.Close() // the error that matters is the one at hand
		return nil, s.explain(ctx, "open the database", err)
	}
	if err := s.migrate(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	if used {
		s.BackUp(ctx)
	}
	return s, nil
}

// create makes the folders and an empty file, so that both are private from
// their first moment. An existing file stays as it is.
func create(path string) error {
	if err := files.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the path is the caller's choice
	if err != nil {
		return err
	}
	return f.Close()
}

// connect opens the writing connection, and prepares the pool for reading.
func (s *Store) connect(ctx context.Context) error {
	var err error
	if s.writer, err = driver.Open(s.dsn(), prepareWriter); err != nil {
		return err
	}
	s.writer.SetMaxOpenConns(1)
	if s.reader, err = driver.Open(s.dsn(), prepareReader); err != nil {
		return err
	}
	s.reader.SetMaxOpenConns(readers)
	s.reader.SetMaxIdleConns(2)
	s.reads.prepare = s.reader.PrepareContext

	conn, err := s.writerConn(ctx)
	if err != nil {
		return err
	}
	s.write = newConnection(conn)
	return nil
}

// writerConn tries again when the database is busy: turning on the
// write-ahead log needs the file alone for a moment, and SQLite does not wait
// for that one by itself when two processes make a database at once.
func (s *Store) writerConn(ctx context.Context) (*sql.Conn, error) {
	return retryBusy(ctx, s.waits, func() (*sql.Conn, error) { return s.writer.Conn(ctx) })
}

// dsn names the file as a URI, so that any character may be in the path.
// modeof gives the log file the mode of the database.
func (s *Store) dsn() string {
	// SQLite knows %20 for a blank, and takes a plus for a plus.
	mode := strings.ReplaceAll(url.QueryEscape(s.path), "+", "%20")
	u := url.URL{Scheme: "file", Path: s.path, RawQuery: "modeof=" + mode}
	return u.String()
}

func prepareWriter(c *sqlite3.Conn) error {
	if err := c.BusyTimeout(turn); err != nil {
		return err
	}
	return c.Exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;
		PRAGMA journal_size_limit = ` + itoa(keepWAL))
}

func prepareReader(c *sqlite3.Conn) error {
	if err := c.BusyTimeout(busy); err != nil {
		return err
	}
	return c.Exec(`PRAGMA query_only = ON`)
}

// Close closes the database. It waits for a write in flight; to close twice
// does nothing.
func (s *Store) Close() error {
	var errs []error
	s.mu.Lock()
	if s.watch != nil {
		errs = append(errs, s.watch.Close())
		s.watch = nil
	}
	s.mu.Unlock()
	s.reads.close()
	if s.reader != nil {
		errs = append(errs, s.reader.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.Close())
	}
	return s.explain(context.Background(), "close the database", errors.Join(errs...))
}

// Path is the absolute path of the database file.
func (s *Store) Path() string { return s.path }

// Check reads the whole database and returns [ErrDamaged] with what it found.
// It takes seconds for a gigabyte; it is for the doctor, not for a start.
func (s *Store) Check(ctx context.Context) error {
	var found string
	err := s.reader.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&found)
	if err == nil && found != "ok" {
		err = errors.Join(sqlite3.CORRUPT, errors.New(found))
	}
	return s.explain(ctx, "check the database", err)
}

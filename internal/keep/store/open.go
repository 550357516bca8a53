package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/outputs"
	"github.com/pawl-dev/pawl/internal/keep/store/database"
	"github.com/pawl-dev/pawl/internal/keep/store/postgres"
	"github.com/pawl-dev/pawl/internal/keep/store/rows"
	"github.com/pawl-dev/pawl/internal/keep/store/sqlite"
)

// Store is an open database with all of its parts: a part keeps some tables, and has the
// methods about them. All methods may be called by many goroutines; writes go one after
// another through one connection, reads beside them.
type Store struct {
	*DB
	RunTables
	EventTable
	CaseTables
	QueueTables
	AutopilotTables
	WorkspaceTable
	WorkerTable
	TrialTable
	Statistics
}

// DB is what the parts of a store share: the connections, the transaction, the words of
// an error, and the leases of owners.
type DB struct {
	db   database.Database
	tell func(why string) // gets what is waited for; may be nil

	write *connection
	reads rows.Statements // on the reader's pool

	shared bool            // several people and machines have it: roots are theirs
	place  string          // what the ids of this machine's clones begin with
	files  *outputs.Folder // nil where machines share no outputs
	leases leases
	turn   atomic.Int64 // [Autopilot].Turn while this process drives it; 0 otherwise
}

// Open opens the database at path, and makes it when there is none: folders
// for the user alone (0700), the file too (0600). It brings an older database
// up to date, and makes a copy of it once an hour. Opening is cheap; connections for
// reading are made when needed.
//
// Errors are [ErrUnwritable], [ErrDamaged], [ErrNewer], [ErrBusy] or ctx's.
func Open(ctx context.Context, path string) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, newStore(&sqlite.DB{}).explainError(ctx, "open the database", err)
	}
	db, used, err := sqlite.Open(abs)
	s, err := openSchema(ctx, db, err)
	if err == nil && used {
		s.BackUp(ctx)
	}
	return s, err
}

// Restore puts the last copy that Open made in the place of a file that is gone or
// damaged, and says what it did. What was there is kept beside it.
func Restore(ctx context.Context, path string) (done string, err error) {
	return sqlite.Restore(ctx, path)
}

// There is false where a file has neither a database nor a copy of one.
func There(path string) bool {
	_, err := os.Stat(path)
	_, copied := os.Stat(path + ".backup")
	return err == nil || copied == nil
}

// Shared is a database that several people and machines have.
type Shared struct {
	Address    string // postgres://user@host/database
	Repository string // what the repository is called on all machines
	Place      string // what this machine's folders of it are called among them
	// Boot is that of owners whose processes can be seen from here; "" leaves it to their Host.
	Boot string
	// Files is the folder where they share what the runs of a board print; "" is nowhere.
	Files string
	// Lease is how long a process of another machine counts as alive without a sign of
	// life; 0 is 30 seconds.
	Lease time.Duration
}

// OpenShared opens the board of a repository in a database of PostgreSQL, and makes
// it when there is none. Errors are those of [Open], [ErrAway] and [ErrRefused].
func OpenShared(ctx context.Context, o Shared) (*Store, error) {
	db, err := postgres.Open(ctx, o.Address, o.Repository)
	s, err := openSchema(ctx, db, err)
	if err == nil {
		s.place, s.leases.over, s.leases.boot = o.Place+"\n", cmp.Or(o.Lease, leaseOver), o.Boot
		if o.Files != "" {
			_, schema := db.Board()
			s.files = &outputs.Folder{Path: o.Files, Board: schema}
		}
	}
	return s, err
}

// openSchema makes the store of a database, unless there was an error.
func openSchema(ctx context.Context, db database.Database, err error) (*Store, error) {
	s := newStore(db)
	if err == nil {
		_, err = retryBusy(ctx, s.DB, func() (*sql.Conn, error) { return s.openWriter(ctx) })
	}
	if err == nil {
		err = s.migrateSchema(ctx)
	}
	if board, shared := db.(*postgres.DB); shared && err == nil {
		err = board.Identify(ctx)
	}
	if err != nil {
		_ = s.Close() // the error that matters is the one at hand
		return nil, s.explainError(ctx, "open the database", err)
	}
	return s, nil
}

// newStore returns the store of a database that has its schema.
func newStore(db database.Database) *Store {
	_, shared := db.(*postgres.DB)
	d := &DB{
		db: db, write: newConnection(), shared: shared,
		reads: rows.Statements{Prepare: db.Reader().PrepareContext, Values: db.Values},
	}
	return &Store{
		d, RunTables{d}, EventTable{d}, CaseTables{d}, QueueTables{d}, AutopilotTables{d}, WorkspaceTable{d},
		WorkerTable{d}, TrialTable{d}, Statistics{d},
	}
}

// Close closes the database. It waits for a write in flight; to close twice
// does nothing.
func (s *DB) Close() error {
	s.endLeases()
	s.reads.Close()
	return s.explainError(context.Background(), "close the database", errors.Join(s.write.closeConn(), s.db.Close()))
}

// Path is the absolute path of the database file, or the address of the database.
func (s *DB) Path() string { return s.db.Name() }

// BoardName returns the name of a board in a shared database; "" if the board is a file.
func (s *DB) BoardName() string {
	name := ""
	if db, shared := s.db.(*postgres.DB); shared {
		name, _ = db.Board()
	}
	return name
}

// OutputsFolder returns the folder in which all machines of the board find the output of
// runs. It is nil if they share none.
func (s *Store) OutputsFolder() *outputs.Folder {
	if s == nil {
		return nil
	}
	return s.files
}

// Check looks for damage and returns [ErrDamaged] with what it found. It is for
// the doctor, not for a start.
func (s *DB) Check(ctx context.Context) error {
	return s.explainError(ctx, "check the database", s.db.Check(ctx))
}

// BackUp makes a copy if it is time for one.
func (s *DB) BackUp(ctx context.Context) { s.db.BackUp(ctx) }

// OnWait sets a function that is called when a write has waited a while for the
// database: once a write, by the goroutine that writes. why continues a sentence that
// begins with "the database". OnWait must be called before the store is used.
func (s *DB) OnWait(tell func(why string)) { s.tell = tell }

// DataVersion returns another number whenever any connection of any process
// has committed since the call before. It is made for polling; the number
// means nothing else, and differs between two stores.
func (s *DB) DataVersion(ctx context.Context) (int64, error) {
	version, err := s.db.Version(ctx)
	return version, s.explainError(ctx, "look for changes", err)
}

// migrateSchema brings the schema up to date. A database that is up to date is only
// read. All steps that it lacks are one transaction, which first looks again: of
// two processes one makes them and the other finds them made, and where one step
// fails the database is left as it was.
func (s *DB) migrateSchema(ctx context.Context) error {
	files, _ := s.db.Steps()
	steps, err := database.Migrations(files)
	if err != nil {
		return fmt.Errorf("this pawl is built wrongly: %v", err)
	}
	return s.migrateTo(ctx, steps)
}

func (s *DB) migrateTo(ctx context.Context, steps []database.Migration) error {
	for {
		applied, err := s.readApplied(ctx)
		if err != nil {
			return err
		}
		if err := s.checkMigrations(steps, applied); err != nil {
			return err
		}
		if len(applied) == len(steps) {
			return nil
		}
		if err := s.applySteps(ctx, steps[len(applied):]); err != nil && !errors.Is(err, errMeanwhile) {
			return s.explainError(ctx, "bring the database up to date", err)
		}
	}
}

// readApplied returns the checksums of the steps that the database has.
func (s *DB) readApplied(ctx context.Context) ([]string, error) {
	var sums []string
	_, migrated := s.db.Steps()
	err := s.transactRead(ctx, func(w *statements) error {
		var has int
		if _, err := w.One(ctx, migrated, nil, &has); err != nil || has == 0 {
			return err
		}
		var err error
		sums, err = rows.ReadTexts(ctx, w, `SELECT checksum FROM migrations ORDER BY number`)
		return err
	})
	return sums, err
}

// transactRead reads on the writing connection, without its lock on the file:
// a start then needs no second connection.
func (s *DB) transactRead(ctx context.Context, do func(w *statements) error) error {
	select {
	case <-s.write.turn:
		defer func() { s.write.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, err := s.openWriter(ctx); err != nil {
		return err
	}
	return do(&s.write.stmts)
}

// checkMigrations compares the applied steps of the schema with those that this build
// knows.
func (s *DB) checkMigrations(steps []database.Migration, applied []string) error {
	for i, sum := range applied[:min(len(applied), len(steps))] {
		if sum != steps[i].Checksum {
			return fmt.Errorf("step %s of %s was made by another build of pawl; use that build, "+
				"or start with an empty database", steps[i].Name, s.Path())
		}
	}
	if len(applied) > len(steps) {
		older := s.db.Older(len(steps))
		if older != "" {
			older = ", or go back to how it was before the upgrade: " + older
		}
		return fmt.Errorf("%w: %s (its schema is %d, this one knows %d); use the newer pawl%s",
			ErrNewer, s.Path(), len(applied), len(steps), older)
	}
	return nil
}

// errMeanwhile says that another process made the steps.
var errMeanwhile = errors.New("another process made the steps")

// applySteps makes the steps. A database that has some already is copied first, under
// the same lock: it is the copy of what they found.
func (s *DB) applySteps(ctx context.Context, steps []database.Migration) error {
	// A server may lose its power while we go on, with a schema that we think is there.
	return s.runWrite(ctx, durability(s.shared), func(ctx context.Context, w *statements) error {
		const table = `CREATE TABLE IF NOT EXISTS migrations (
			number BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)`
		if _, err := s.write.conn.ExecContext(ctx, table); err != nil {
			return err
		}
		var last int
		if _, err := w.One(ctx, `SELECT coalesce(max(number), 0) FROM migrations`, nil, &last); err != nil {
			return err
		}
		if last != steps[0].Number-1 {
			return errMeanwhile
		}
		if last > 0 {
			if err := s.db.Keep(ctx, last); err != nil {
				return err
			}
		}
		for _, step := range database.ToDo(steps, last == 0) {
			if _, err := s.write.conn.ExecContext(ctx, step.SQL); err != nil {
				return fmt.Errorf("step %s: %w", step.Name, err)
			}
		}
		for _, step := range steps {
			w.Do(ctx, `INSERT INTO migrations (number, name, checksum, applied_at) VALUES ($1, $2, $3, $4)`,
				step.Number, step.Name, step.Checksum, time.Now())
		}
		return nil
	})
}

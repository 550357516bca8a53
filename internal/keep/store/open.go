package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/outputs"
	"github.com/pawl-dev/pawl/internal/keep/store/database"
	"github.com/pawl-dev/pawl/internal/keep/store/postgres"
	"github.com/pawl-dev/pawl/internal/keep/store/sqlite"
)

// Store is an open database. All methods may be called by many goroutines;
// writes go one after another through one connection, reads beside them.
type Store struct {
	db   database.Database
	tell func(why string) // what is waited for; nil: nobody

	write *connection
	reads statements // on the reader's pool

	shared bool           // several people and machines have it: roots are theirs
	place  string         // what the ids of this machine's clones begin with
	files  outputs.Shared // nil where machines share no outputs
	leases leases
	turn   atomic.Int64 // of the autopilot that this process drives for whoever can; 0 is none
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
		return nil, over(&sqlite.DB{}).explain(ctx, "open the database", err)
	}
	db, used, err := sqlite.Open(abs)
	s, err := opened(ctx, db, err)
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
	// Files is where they share what the runs of a board print; nil is nowhere.
	Files func(board string) outputs.Shared
	// Lease is how long a process of another machine counts as alive that is not heard
	// of; 0 is 30 seconds.
	Lease time.Duration
}

// OpenShared opens the board of a repository in a database of PostgreSQL, and makes
// it when there is none. Errors are those of [Open], [ErrAway] and [ErrRefused].
func OpenShared(ctx context.Context, o Shared) (*Store, error) {
	db, err := postgres.Open(ctx, o.Address, o.Repository)
	s, err := opened(ctx, db, err)
	if err == nil {
		s.place, s.leases.over, s.leases.boot = o.Place+"\n", cmp.Or(o.Lease, leaseOver), o.Boot
		if o.Files != nil {
			_, schema := db.Board()
			s.files = o.Files(schema)
		}
	}
	return s, err
}

// opened makes the store of a database, unless there was an error.
func opened(ctx context.Context, db database.Database, err error) (*Store, error) {
	s := over(db)
	if err == nil {
		_, err = retryBusy(ctx, s, func() (*sql.Conn, error) { return s.conn(ctx) })
	}
	if err == nil {
		err = s.migrate(ctx)
	}
	if err != nil {
		_ = s.Close() // the error that matters is the one at hand
		return nil, s.explain(ctx, "open the database", err)
	}
	return s, nil
}

// over is the store of a database that has its schema.
func over(db database.Database) *Store {
	_, shared := db.(*postgres.DB)
	return &Store{
		db: db, write: newConnection(), shared: shared,
		reads: statements{prepare: db.Reader().PrepareContext, values: db.Values},
	}
}

// Close closes the database. It waits for a write in flight; to close twice
// does nothing.
func (s *Store) Close() error {
	s.endLeases()
	s.reads.close()
	err := errors.Join(s.write.close(), s.db.Close())
	if s.files != nil {
		err = errors.Join(err, s.files.Close())
	}
	return s.explain(context.Background(), "close the database", err)
}

// Path is the absolute path of the database file, or the address of the database.
func (s *Store) Path() string { return s.db.Name() }

// Board is what a board that several machines share is called there; "" is a file.
func (s *Store) Board() string {
	name := ""
	if db, shared := s.db.(*postgres.DB); shared {
		name, _ = db.Board()
	}
	return name
}

// Files is where all machines of the board find what runs print; nil is nowhere.
func (s *Store) Files() outputs.Shared {
	if s == nil {
		return nil
	}
	return s.files
}

// Check looks for damage and returns [ErrDamaged] with what it found. It is for
// the doctor, not for a start.
func (s *Store) Check(ctx context.Context) error {
	return s.explain(ctx, "check the database", s.db.Check(ctx))
}

// BackUp makes a copy if it is time for one.
func (s *Store) BackUp(ctx context.Context) { s.db.BackUp(ctx) }

// OnWait has tell called when a write has waited a while for the database, once a
// write, by the goroutine that writes; why goes on from "the database". It is
// set before the store is used.
func (s *Store) OnWait(tell func(why string)) { s.tell = tell }

// DataVersion returns another number whenever any connection of any process
// has committed since the call before. It is made for polling; the number
// means nothing else, and differs between two stores.
func (s *Store) DataVersion(ctx context.Context) (int64, error) {
	version, err := s.db.Version(ctx)
	return version, s.explain(ctx, "look for changes", err)
}

// Package database is what the databases have in common that a store may be kept
// in: a file of SQLite for one machine, or PostgreSQL for several people and
// machines. The queries are the store's; what differs is behind [Database].
package database

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// What callers branch on, with errors.Is.
var (
	// ErrUnwritable: disk full, read-only, no permission, or the disk fails.
	// Nothing of the failed call is stored.
	ErrUnwritable = errors.New("the database cannot be written")
	// ErrDamaged: the file is no database, or a damaged one.
	ErrDamaged = errors.New("the database is damaged")
	// ErrGone: somebody removed it while it was in use. What is written is lost.
	ErrGone = errors.New("the database was removed while it was in use")
	// ErrNewer: a newer pawl wrote the database.
	ErrNewer = errors.New("the database is of a newer pawl")
	// ErrBusy: other processes held the database for too long. Nothing of the
	// failed call is stored; the same again may work.
	ErrBusy = errors.New("the database is busy")
	// ErrAway: the server cannot be reached, or went away in the middle.
	ErrAway = errors.New("the database cannot be reached")
	// ErrRefused: the server does not let this user or this database in.
	ErrRefused = errors.New("the database refuses")
)

// Database is one of them, open. Its writing connection is used by one goroutine at a time.
type Database interface {
	// Name is what messages call it: a path, or an address without its password.
	Name() string
	// Reader is the pool for reading.
	Reader() *sql.DB
	// Writer opens a connection that writes.
	Writer(ctx context.Context) (*sql.Conn, error)
	// Begin begins a transaction and takes the lock of all who write this board.
	// A durable one survives a loss of power once its Commit has returned.
	Begin(ctx context.Context, c *sql.Conn, durable bool) error
	Commit(ctx context.Context, c *sql.Conn) error
	// End is called after every transaction; it ends one that was not committed.
	End(ctx context.Context, c *sql.Conn, durable, committed bool)
	// Values brings the values of a statement into a form that the database takes.
	Values(args []any) []any
	// Passing is true for an error of Begin or Writer that may pass by itself.
	Passing(err error) bool
	// Lost is true when the connection cannot be used any more.
	Lost(err error) bool
	// Ended reports whether the call failed because its context was done.
	Ended(err error) bool
	// Diagnose says which of the errors above an error is, and all that a person has to
	// know; kind is nil when it is none of them.
	Diagnose(err error) (text string, kind error)
	// Waited is whom or what a call waits for, in words.
	Waited(err error) string
	// Version is another number whenever anybody has committed since the call before.
	Version(ctx context.Context) (int64, error)
	// Steps are the files of its schema, and Migrated is a query for 1 where the table of
	// those that were applied is there.
	Steps() (files fs.FS, migrated string)
	// Keep keeps a copy of a database whose schema is brought up to date from a number.
	Keep(ctx context.Context, schema int) error
	// Older says how such a copy is put back; "" without one.
	Older(schema int) string
	// BackUp makes a copy if it is time for one.
	BackUp(ctx context.Context)
	// Check looks for damage.
	Check(ctx context.Context) error
	Close() error
}

// Migration is one step of the schema: NNNN_name.sql, numbered from 1 without
// gaps. A released one is never edited; its checksum would not fit any more.
type Migration struct {
	Number   int
	Name     string
	SQL      string
	Checksum string
	// Whole is the schema after the last step, for an empty database; "" where it is not written down.
	Whole string
}

// ToDo are the steps that a database lacks, or the one that makes all of them for one that is empty.
func ToDo(steps []Migration, empty bool) []Migration {
	if whole := steps[len(steps)-1].Whole; empty && whole != "" {
		return []Migration{{Name: "schema.sql", SQL: whole}}
	}
	return steps
}

// Migrations reads the steps in order.
func Migrations(files fs.FS) ([]Migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	steps := make([]Migration, 0, len(names))
	for i, path := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "migrations/"), ".sql")
		digits, _, _ := strings.Cut(name, "_")
		number, err := strconv.Atoi(digits)
		if err != nil || number != i+1 {
			return nil, fmt.Errorf("migration %s should have the number %04d", path, i+1)
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		steps = append(steps, Migration{Number: number, Name: name, SQL: string(text),
			Checksum: hex.EncodeToString(sum[:])})
	}
	whole, _ := fs.ReadFile(files, "schema.sql")
	if last := len(steps) - 1; last >= 0 && strings.HasPrefix(string(whole), "-- After "+steps[last].Name+":") {
		steps[last].Whole = string(whole)
	}
	return steps, nil
}

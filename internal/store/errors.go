package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawl-dev/pawl/internal/board"
)

// What callers branch on, with errors.Is.
var (
	// ErrNotFound: no such run.
	ErrNotFound = errors.New("no such run")
	// ErrNoCase: no such case on the board.
	ErrNoCase = errors.New("no such case")
	// ErrAmbiguous: the shortened id fits several runs; see [AmbiguousError].
	ErrAmbiguous = errors.New("several runs fit")
	// ErrRunning: a live process drives the run already; see [RunningError].
	ErrRunning = errors.New("already running")
	// ErrNotOwner: another process has taken the run; stop driving it.
	ErrNotOwner = errors.New("the run belongs to another process now")
	// ErrOutOfOrder: the event's number does not follow the last stored one.
	ErrOutOfOrder = errors.New("event out of order")
	// ErrUnwritable: disk full, read-only, no permission, or the disk fails.
	// Nothing of the failed call is stored.
	ErrUnwritable = errors.New("the database cannot be written")
	// ErrDamaged: the file is no database, or a damaged one.
	ErrDamaged = errors.New("the database is damaged")
	// ErrNewer: a newer pawl wrote the database.
	ErrNewer = errors.New("the database is of a newer pawl")
	// ErrBusy: other processes held the database for too long. Nothing of the
	// failed call is stored; the same again may work.
	ErrBusy = errors.New("the database is busy")
)

// RunningError names the run, and the process that drives it.
type RunningError struct {
	Run   string
	Name  string
	Owner Owner
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("%s is already running: run %s, process %d on %s", e.Name, e.Run, e.Owner.PID, e.Owner.Host)
}

// Is makes the error an ErrRunning.
func (e *RunningError) Is(target error) bool { return target == ErrRunning }

// AmbiguousError names runs that a shortened id could mean.
type AmbiguousError struct {
	Prefix string
	Runs   []string // ids, the first ten in order
	More   bool     // there are more than these
}

func (e *AmbiguousError) Error() string {
	more := ""
	if e.More {
		more = ", …"
	}
	return fmt.Sprintf("run %s is ambiguous: %s%s", e.Prefix, strings.Join(e.Runs, ", "), more)
}

// Is makes the error an ErrAmbiguous.
func (e *AmbiguousError) Is(target error) bool { return target == ErrAmbiguous }

// explain turns an error of the driver or of the file system into one of
// ours, with what was tried and what the person can do about it.
func (s *Store) explain(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	var refusal *board.RefusalError
	var problems *board.ProblemsError
	var cycle *board.CycleError
	if errors.As(err, &refusal) || errors.As(err, &problems) || errors.As(err, &cycle) {
		return err // the board itself says it to a person
	}
	// A context that ended is the caller's own doing, however the driver puts it.
	ended := errors.Is(err, sqlite3.INTERRUPT) || errors.Is(err, ctx.Err())
	if ended && ctx.Err() != nil {
		return fmt.Errorf("cannot %s: %w", what, ctx.Err())
	}
	if isOurs(err) {
		return fmt.Errorf("cannot %s: %w", what, err)
	}
	advice, kind := diagnose(err)
	if kind == nil {
		return fmt.Errorf("cannot %s: %v", what, err)
	}
	if errors.Is(kind, ErrBusy) {
		return fmt.Errorf("cannot %s: %w: %s has %s locked; %s", what, kind, s.holder(), s.path, advice)
	}
	if errors.Is(kind, ErrDamaged) {
		advice = s.restoring()
	}
	return fmt.Errorf("cannot %s: %w: %s: %v; %s", what, kind, s.path, err, advice)
}

// isOurs is true for what the store itself found out.
func isOurs(err error) bool {
	for _, known := range []error{ErrNotFound, ErrNoCase, ErrAmbiguous, ErrRunning, ErrNotOwner, ErrOutOfOrder} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// diagnose says which of our errors a driver's or file system's error is, and
// what to do next; nil when it is none of them.
func diagnose(err error) (advice string, kind error) {
	switch {
	case errors.Is(err, sqlite3.NOTADB), errors.Is(err, sqlite3.CORRUPT):
		return "", ErrDamaged
	case errors.Is(err, sqlite3.FULL), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room on its disk", ErrUnwritable
	case errors.Is(err, sqlite3.READONLY), errors.Is(err, sqlite3.PERM), errors.Is(err, sqlite3.AUTH),
		errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "make the file and its folder writable for you", ErrUnwritable
	case errors.Is(err, sqlite3.CANTOPEN), errors.Is(err, syscall.ENOTDIR), errors.Is(err,
		syscall.ENAMETOOLONG), errors.Is(err, syscall.EISDIR),
		errors.Is(err, syscall.ELOOP), errors.Is(err, fs.ErrNotExist):
		return "check that its folder exists and is writable for you", ErrUnwritable
	case errors.Is(err, sqlite3.IOERR), errors.Is(err, syscall.EIO):
		return "check its disk", ErrUnwritable
	case errors.Is(err, sqlite3.BUSY):
		return "let it end, or end it, and try again", ErrBusy
	}
	return "", nil
}

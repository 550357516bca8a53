package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/store/database"
)

// What callers branch on, with errors.Is.
var (
	// ErrNotFound: no such run.
	ErrNotFound = errors.New("no such run")
	// ErrNoCase: no such case on the board.
	ErrNoCase = errors.New("no such task")
	// ErrAmbiguous: the shortened id fits several runs; see [AmbiguousError].
	ErrAmbiguous = errors.New("several runs fit")
	// ErrRunning: a live process drives the run already; see [RunningError].
	ErrRunning = errors.New("already running")
	// ErrNotOwner: another process has taken the run; stop driving it.
	ErrNotOwner = errors.New("the run belongs to another process now")
	// ErrOutOfOrder: the event's number does not follow the last stored one.
	ErrOutOfOrder = errors.New("event out of order")
	// What the database itself is to blame for; see there.
	ErrUnwritable = database.ErrUnwritable
	ErrDamaged    = database.ErrDamaged
	ErrGone       = database.ErrGone
	ErrNewer      = database.ErrNewer
	ErrBusy       = database.ErrBusy
	ErrAway       = database.ErrAway
	ErrRefused    = database.ErrRefused
)

// OrderError is an event of a run that does not follow the last one stored.
type OrderError struct{ Stored int64 }

func (e *OrderError) Error() string {
	return fmt.Sprintf("%v: the last one stored is %d", ErrOutOfOrder, e.Stored)
}

// Is makes the error an ErrOutOfOrder.
func (e *OrderError) Is(target error) bool { return target == ErrOutOfOrder }

// RunningError names the run, and the process that drives it.
type RunningError struct {
	Run   string
	Name  string
	Owner Owner
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("%s is already running: run %s, %v", e.Name, e.Run, e.Owner)
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

// explainError turns an error of the driver or of the file system into one of
// ours, with what was tried and what the person can do about it.
func (s *DB) explainError(ctx context.Context, what string, err error) error {
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
	ended := s.db.Ended(err) || errors.Is(err, ctx.Err())
	if ended && ctx.Err() != nil {
		return fmt.Errorf("cannot %s: %w", what, ctx.Err())
	}
	if isStoreError(err) {
		return fmt.Errorf("cannot %s: %w", what, err)
	}
	text, kind := s.db.Diagnose(err)
	if kind == nil {
		return fmt.Errorf("cannot %s: %v", what, err)
	}
	return fmt.Errorf("cannot %s: %w: %s", what, kind, text)
}

// isStoreError reports whether the store itself made err, and not the database.
func isStoreError(err error) bool {
	known := []error{ErrNotFound, ErrNoCase, ErrAmbiguous, ErrRunning, ErrNotOwner, ErrOutOfOrder,
		ErrDamaged, ErrGone, ErrNewer, ErrRefused, ErrNotEmpty, ErrNoOrder}
	return slices.ContainsFunc(known, func(one error) bool { return errors.Is(err, one) })
}

// Package recorder writes the steps of a run to the database, in their order. While the
// database cannot be written they wait in memory, and what it lost in a crash is written again.
package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Recorder is that of one run.
type Recorder struct {
	Store *store.Store
	// MayDrive reports whether another owner may be driving a run.
	MayDrive func(store.Owner) bool
	Warn     func(string)
	// Strict: the run ends when a copy took the database's place, which is behind the run.
	Strict bool

	unsaved []write
	written []write // stored in the last minute
	given   bool    // nothing is stored any more
	broken  bool    // warned that the database cannot be written
}

// write is what waits for the database: the run's creation or a step.
type write struct {
	create *store.Run
	step   store.Step
}

// Unsaved is how many writes wait.
func (r *Recorder) Unsaved() int { return len(r.unsaved) }

// Create stores a new run. If it cannot be, and may says true of the error, it waits in memory.
func (r *Recorder) Create(ctx context.Context, run store.Run, e journal.Event, may func(error) bool) error {
	created := write{create: &run, step: store.Step{Event: e}}
	err := r.performWrite(ctx, created)
	if err == nil || !may(err) {
		return err
	}
	r.unsaved = append(r.unsaved, created)
	return r.noteUnsaved(err)
}

// Commit stores a step after all that waits. The error is that the run is not this process's
// any more.
func (r *Recorder) Commit(ctx context.Context, step store.Step) error {
	if r.given {
		return nil
	}
	r.unsaved = append(r.unsaved, write{step: step})
	return r.Flush(ctx)
}

// mostUnsaved bounds what waits in memory for a database that cannot be
// written; after that the run goes on unrecorded.
const mostUnsaved = 1000

// Flush writes what waits, in order. The error is as that of Commit.
func (r *Recorder) Flush(ctx context.Context) (lost error) {
	for len(r.unsaved) > 0 {
		err := r.performWrite(ctx, r.unsaved[0])
		if err == nil {
			r.unsaved = r.unsaved[1:]
		} else if !r.writesAgain(err) {
			lost = r.noteUnsaved(err)
			break
		}
	}
	switch {
	case len(r.unsaved) == 0:
		r.unsaved, r.broken = nil, false
	case len(r.unsaved) > mostUnsaved:
		r.Warn(fmt.Sprintf("more than %d events wait for the database: the run continues without a record",
			mostUnsaved))
		r.unsaved, r.given = nil, true
	}
	return lost
}

// lossTime is how much a database may lose that crashed, or was restored while no one looked.
const lossTime = time.Minute

func (r *Recorder) performWrite(ctx context.Context, w write) (err error) {
	if w.create != nil {
		err = r.Store.Create(ctx, *w.create, w.step.Event, r.MayDrive)
	} else {
		err = r.Store.Commit(ctx, w.step)
	}
	if err == nil {
		old := w.step.Event.At.Add(-lossTime)
		r.written = append(slices.DeleteFunc(r.written, func(w write) bool { return w.step.Event.At.Before(old) }), w)
	}
	return err
}

// writesAgain makes what the database had, and lost in a crash, wait once more.
func (r *Recorder) writesAgain(err error) bool {
	next := int64(1)
	if gap, ok := errors.AsType[*store.OrderError](err); ok {
		next = gap.Stored + 1
	} else if !errors.Is(err, store.ErrNotFound) {
		return false
	}
	for i, w := range r.written {
		if w.step.Event.N == next {
			r.unsaved, r.written = append(slices.Clone(r.written[i:]), r.unsaved...), r.written[:i]
			return true
		}
	}
	return false
}

// noteUnsaved says once that the database cannot be written. A run that another
// process has by now is not ours any more.
func (r *Recorder) noteUnsaved(err error) (lost error) {
	older := errors.Is(err, store.ErrOutOfOrder) || errors.Is(err, store.ErrNotFound)
	taken := errors.Is(err, store.ErrNotOwner) || errors.Is(err, store.ErrRunning)
	copied := r.Strict && older // a copy took the database's place: its run goes on from what that says
	if taken || copied {
		return err
	}
	if !r.broken {
		r.broken = true
		r.Warn(fmt.Sprintf("the run is not recorded: %v. It continues in memory, with its limits", err))
	}
	return nil
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// A task that is worked on while nobody looks begins no iteration whose result
// could not be stored: it waits until it can. A procedure has somebody who looks
// on, and goes on in memory.

// roomEvery is how soon it is seen that something can be stored again.
const roomEvery = time.Second

// patient is true for a run that waits while nothing can be stored.
func (s *session) patient() bool { return s.plan.Policy.Kind == loop.Task }

// awaitRoom waits until each disk that the run is stored on has room. It is false
// when ctx ended first.
func (w *worker) awaitRoom(ctx context.Context) bool {
	for said := false; w.patient(); said = true {
		why := w.short()
		if why == "" {
			return true
		}
		if !said {
			w.warn(why + "; the run waits until there is room")
		}
		if !process.Sleep(ctx, roomEvery) {
			return false
		}
	}
	return true
}

// errNoRoom is that somebody asked a run to stop while it waited for room.
var errNoRoom = errors.New("it was stopped while it waited for room on the disk")

// withRoom does something again, for a task, that failed since a disk is full.
func (w *worker) withRoom(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || !w.patient() || errors.Is(err, supervisor.ErrTaken) {
			return err
		}
		full := w.short() != "" || strings.Contains(err.Error(), syscall.ENOSPC.Error()) // a supervisor only says it
		if !full {
			return err
		}
		w.warn(err.Error() + "; it is tried again")
		if !process.Sleep(ctx, roomEvery) || !w.awaitRoom(ctx) {
			return errNoRoom
		}
	}
}

// short names a disk that has too little room; "" is none.
func (s *session) short() string {
	for _, dir := range []string{s.o.StateDir, s.plan.Root, s.plan.project()} {
		if free, err := files.Free(dir); err == nil && free < leastRoom {
			return files.FreeText(free, dir)
		}
	}
	return ""
}

// blameDisk makes of an agent that failed by itself on a full disk one that pawl
// ended for that, as it does with one that lives longer: the work is not at fault.
func (w *worker) blameDisk(r *loop.Record, res supervisor.Result) {
	byItself := r.Exit.Ended == loop.NotEnded && r.Exit.Code != 0 && len(res.Agent.Errors) == 0
	if !byItself || !w.patient() {
		return
	}
	if why := w.short(); why != "" {
		r.Exit.Ended, r.Exit.Why = loop.EndedDisk, why+"; the agent failed meanwhile"
	}
}

// unsavedFirst is the command of a task whose last event is not stored yet: to try
// that again. A person who asks it to stop is not kept waiting.
func (d *Driver) unsavedFirst() bool {
	return len(d.unsaved) > 0 && d.patient() && d.state.StopAsked == loop.NoCause
}

// flushAll stores what a task came to, however long that takes, unless somebody
// asks it to stop.
func (d *Driver) flushAll(ctx context.Context) {
	for d.unsavedFirst() && !d.asked && d.lost == nil && process.Sleep(ctx, roomEvery) {
		select {
		case <-d.stops:
			return
		case <-d.kill:
			return
		default:
			d.flush(context.WithoutCancel(ctx))
		}
	}
}

// homeless says why the run cannot go on: the folder that it works in was removed, or
// what it is stored in. "" is that it can.
func (s *session) homeless() (why string) {
	if _, err := os.Stat(s.watched); errors.Is(err, fs.ErrNotExist) {
		return "the folder " + s.watched + " was removed while the run worked in it, with what had not landed; a task " +
			"begins anew, in a new folder, by pawl case retry"
	}
	if s.o.Store == nil {
		return ""
	}
	if _, err := s.o.Store.DataVersion(context.Background()); errors.Is(err, store.ErrGone) {
		return err.Error() + "; what the agent did is in " + s.watched
	}
	return ""
}

// lostFolder makes the record that of a run without a folder, if it is one. Nothing is
// tried again: an agent that is started elsewhere works at nothing, and pays for it.
func (w *worker) lostFolder(r *loop.Record) bool {
	why := w.homeless()
	if why == "" || stopped(r.Exit) {
		return false
	}
	r.Exit.Ended, r.Failure = loop.EndedGone, &failure.Analysis{
		Class: failure.Unknown, Kind: failure.Permanent, Severity: failure.Critical,
		Fingerprint: "folder-gone", Summary: why,
	}
	return true
}

// An agent's program is away or half written while somebody updates it. The work is
// not at fault: the program is waited for, and started again.

// AwayFor is how long a program that is away is waited for.
const AwayFor = 2 * time.Minute

const (
	untouched = 10 * time.Second // since its last change a program may be half written
	atOnce    = time.Minute      // an agent that fails within it may have failed by that
)

// sinceHere is when this pawl began: what was changed before is a person's own.
var sinceHere = time.Now()

// ErrNoProgram is that an agent cannot be started.
var ErrNoProgram = errors.New("is not an executable program here")

// withProgram runs an agent's job, again after its program was away or half written.
// A job is kept before it starts again.
func (w *worker) withProgram(ctx context.Context, job *supervisor.Job, keep func() error,
	run func() (supervisor.Result, error),
) (supervisor.Result, error) {
	id, by := job.ID, time.Now().Add(AwayFor)
	for try := 2; ; try++ {
		res, err := run()
		why, still := w.away(*job, res)
		if err != nil || why == "" || !time.Now().Before(by) {
			return res, err
		}
		w.warn(fmt.Sprintf("%s; it may be being updated, so it is waited for (%s at most)", why, loop.Duration(AwayFor)))
		if !job.AwaitProgram(ctx, still, by) && ctx.Err() != nil {
			res.Exit.Ended = loop.EndedStop
			return res, err
		}
		job.ID = fmt.Sprintf("%s%s%d", id, againMark, try)
		if err := keep(); err != nil {
			return res, err
		}
	}
}

// againMark is between a job's name and the number of its start.
const againMark = "+"

// away says that a job failed since its program was not there, or not whole; "" that it
// did not. The program is whole when it was left alone for still. One that agents may
// write is theirs to keep.
func (w *worker) away(job supervisor.Job, res supervisor.Result) (why string, still time.Duration) {
	x := res.Exit
	well := x.Code == 0 && x.Signal == ""
	if well || x.Ended != loop.NotEnded || res.Agent.Usage.Output > 0 {
		return "", 0
	}
	program, changed := job.Program()
	if _, own := files.Below(w.plan.Root, program); own {
		return "", 0
	}
	recent := changed.After(sinceHere) && changed.After(res.StartedAt.Add(-untouched)) && res.Elapsed < atOnce
	switch {
	case changed.IsZero():
		return fmt.Sprintf("the agent's program %s is away", program), 0
	case recent, strings.Contains(res.Error, syscall.ETXTBSY.Error()):
		return fmt.Sprintf("the agent failed at once, and its program %s was just changed", program), untouched
	}
	return "", 0
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
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

// leastRoom must stay free on the disk of the workspace, in bytes.
const leastRoom = 100 << 20

// waitsForStorage reports whether the run waits while nothing can be stored.
func (s *session) waitsForStorage() bool { return s.plan.Policy.Kind == loop.Task }

// awaitRoom waits until each disk that the run is stored on has room. It is false
// when ctx ended first.
func (s *session) awaitRoom(ctx context.Context) bool {
	for said := false; s.waitsForStorage(); said = true {
		why := s.fullDisk()
		if why == "" {
			return true
		}
		if !said {
			s.warn(why + "; the run waits until there is room")
		}
		if !process.Sleep(ctx, roomEvery) {
			return false
		}
	}
	return true
}

// errNoRoom is that somebody asked a run to stop while it waited for room.
var errNoRoom = errors.New("it was stopped while it waited for room on the disk")

// retryWhenDiskFull does something again, for a task, that failed since a disk is full.
func (s *session) retryWhenDiskFull(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || !s.waitsForStorage() || errors.Is(err, supervisor.ErrTaken) {
			return err
		}
		full := s.fullDisk() != "" || strings.Contains(err.Error(), syscall.ENOSPC.Error()) // a supervisor only says it
		if !full {
			return err
		}
		s.warn(err.Error() + "; it is tried again")
		if !process.Sleep(ctx, roomEvery) || !s.awaitRoom(ctx) {
			return errNoRoom
		}
	}
}

// fullDisk names a disk that has too little room; "" is none.
func (s *session) fullDisk() string {
	for _, dir := range []string{s.o.StateDir, s.plan.Root, s.plan.ProjectRoot()} {
		if free, err := files.Free(dir); err == nil && free < leastRoom {
			return files.FreeText(free, dir)
		}
	}
	return ""
}

// blameDisk makes of an agent that failed by itself on a full disk one that pawl
// ended for that, as it does with one that lives longer: the work is not at fault.
func (s *session) blameDisk(r *loop.Record, res supervisor.Result) {
	byItself := r.Exit.Ended == loop.NotEnded && r.Exit.Code != 0 && len(res.Agent.Errors) == 0
	if !byItself || !s.waitsForStorage() {
		return
	}
	if why := s.fullDisk(); why != "" {
		r.Exit.Ended, r.Exit.Why = loop.EndedDisk, why+"; the agent failed in the meantime"
	}
}

// unsavedFirst is the command of a task whose last event is not stored yet: to try
// that again. A person who asks it to stop is not kept waiting.
func (d *Driver) unsavedFirst() bool {
	return d.recorder.Unsaved() > 0 && d.waitsForStorage() && d.state.StopAsked == loop.NoCause
}

// flushUntilStored stores what a task came to, however long that takes, unless somebody
// asks it to stop.
func (d *Driver) flushUntilStored(ctx context.Context) {
	for d.unsavedFirst() && !d.asked && d.lost == nil && process.Sleep(ctx, roomEvery) {
		select {
		case <-d.stops:
			return
		case <-d.kill:
			return
		default:
			d.flushUnsaved(context.WithoutCancel(ctx))
		}
	}
}

// reasonNoFolder returns why the run cannot continue when its folder or its storage was
// removed; "" when both are there. A shared board keeps no files of the run: without it the run continues.
func (s *session) reasonNoFolder() (why string) {
	if _, err := os.Stat(s.watched); errors.Is(err, fs.ErrNotExist) {
		return "the folder " + s.watched + " was removed during the run, with work that had not landed; a task " +
			"starts over in a new folder with 'pawl case retry'"
	}
	_, err := s.o.Store.DataVersion(context.Background())
	if isShared := s.o.Store.BoardName() != ""; isShared || !errors.Is(err, store.ErrGone) {
		return ""
	}
	return err.Error() + "; what the agent did is in " + s.watched
}

// lostFolder makes the record that of a run without a folder, if it is one. Nothing is
// tried again: an agent that is started elsewhere works at nothing, and pays for it.
func (s *session) lostFolder(r *loop.Record) bool {
	why := s.reasonNoFolder()
	if why == "" || ending.WasStopped(r.Exit) {
		return false
	}
	r.Exit.Ended, r.Failure = loop.EndedGone, &failure.Analysis{
		Class: failure.Unknown, Kind: failure.Permanent, Severity: failure.Critical,
		Fingerprint: "folder-gone", Summary: why,
	}
	return true
}

// AwayFor is how long a program that is away is waited for.
const AwayFor = 2 * time.Minute

// ErrNoProgram is that an agent cannot be started.
var ErrNoProgram = errors.New("is not an executable program here")

// awaitProgram waits for an agent's program that is not there while somebody updates it:
// the work is not at fault. One that agents may write is theirs to keep.
func (w *worker) awaitProgram(ctx context.Context, job supervisor.Job) {
	program := job.Args[0]
	_, own := files.Below(w.plan.Root, program)
	relative := strings.Contains(program, "/") && !filepath.IsAbs(program)
	if own || relative {
		return
	}
	by := time.Now().Add(AwayFor)
	for said := false; !job.HasProgram() && time.Now().Before(by); said = true {
		if !said {
			w.warn(fmt.Sprintf("the agent's program %s is missing, as during an update; pawl waits up to %s for it",
				program, loop.Duration(AwayFor)))
		}
		if !process.Sleep(ctx, time.Second) {
			return
		}
	}
}

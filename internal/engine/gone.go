package engine

import (
	"errors"
	"io/fs"
	"os"

	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

// homeless reports whether somebody removed the folder that the run works in.
func (s *session) homeless() bool {
	_, err := os.Stat(s.plan.Root)
	return errors.Is(err, fs.ErrNotExist)
}

// lostFolder makes the record that of a run without a folder, if it is one.
func (w *worker) lostFolder(r *loop.Record) bool {
	if !w.homeless() || stopped(r.Exit) {
		return false
	}
	r.Exit.Ended, r.Failure = loop.EndedGone, w.goneFailure()
	return true
}

// goneFailure is that of a run without a folder. Nothing is tried again: an agent
// that is started elsewhere works at nothing, and pays for it.
func (s *session) goneFailure() *failure.Analysis {
	return &failure.Analysis{
		Class: failure.Unknown, Kind: failure.Permanent, Severity: failure.Critical, Fingerprint: "folder-gone",
		Summary: "the folder " + s.plan.Root + " was removed while the run worked in it, with what had not landed; a task " +
			"begins anew, in a new folder, by pawl case retry",
	}
}

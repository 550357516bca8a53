package engine

import (
	"errors"
	"io/fs"
	"os"

	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

// homeless reports whether somebody removed the folder that the run works in.
func (d *Driver) homeless() bool {
	_, err := os.Stat(d.plan.Root)
	return errors.Is(err, fs.ErrNotExist)
}

// lostFolder makes the record that of a run without a folder, if it is one.
func (d *Driver) lostFolder(r *loop.Record) bool {
	if !d.homeless() || stopped(r.Exit) {
		return false
	}
	r.Exit.Ended, r.Failure = loop.EndedGone, d.goneFailure()
	return true
}

// goneFailure is that of a run without a folder. Nothing is tried again: an agent
// that is started elsewhere works at nothing, and pays for it.
func (d *Driver) goneFailure() *failure.Analysis {
	return &failure.Analysis{
		Class: failure.Unknown, Kind: failure.Permanent, Severity: failure.Critical, Fingerprint: "folder-gone",
		Summary: "the folder " + d.plan.Root + " was removed while the run worked in it, with what had not landed; a task begins anew, in a new folder, by pawl case retry",
	}
}

package supervisor

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/process"
)

// watchIdle ends the job when it has been silent for too long. It looks at the
// watched tree only when the output has been silent for the whole limit.
func (t *task) watchIdle(ctx context.Context, dog *watchdog) {
	limit := t.job.Limits.Idle
	if limit <= 0 {
		return
	}
	for left := limit; process.Sleep(ctx, max(left, time.Millisecond)); {
		left = t.untilSilent(t.lastOutput())
		if left <= 0 && t.alive(dog) {
			left = limit
		}
		if left <= 0 && t.job.Watch != "" {
			walk, cancel := context.WithTimeout(ctx, walkBound)
			if at, ok := newerThan(walk, t.job.Watch, time.Now().Add(-limit)); ok {
				left = t.untilSilent(at)
			}
			cancel()
			left = max(left, t.untilSilent(t.lastOutput())) // output may have come during the walk
		}
		if left <= 0 {
			t.end(loop.EndedIdle)
			return
		}
	}
}

func (t *task) lastOutput() time.Time { return time.Unix(0, t.seen.Load()) }

// untilSilent is how long the job may still be silent after its last sign of life.
func (t *task) untilSilent(life time.Time) time.Duration {
	return min(t.job.Limits.Idle-time.Since(life), t.job.Limits.Idle)
}

// watchEntries bounds one look at a tree.
const watchEntries = 500_000

// newerThan reports whether a file or folder below root changed after t, and
// when; the first one found ends the search. Git's objects and pawl's own
// files do not count. A tree over the bound counts as unchanged beyond it.
func newerThan(ctx context.Context, root string, t time.Time) (time.Time, bool) {
	var found time.Time
	seen := 0
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read cannot be seen to change
		}
		if seen++; seen > watchEntries || ctx.Err() != nil {
			return filepath.SkipAll
		}
		if d.IsDir() && skipped(path) {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // gone meanwhile: its folder's time says so
		}
		if at := changed(info); at.After(t) {
			found = at
			return filepath.SkipAll
		}
		return nil
	})
	return found, !found.IsZero()
}

func skipped(dir string) bool {
	name := filepath.Base(dir)
	if name == "objects" {
		return filepath.Base(filepath.Dir(dir)) == ".git"
	}
	return name == ".pawl"
}

// diskEvery is how often the free room is looked at: a fast disk takes a
// gigabyte or two in that time.
const diskEvery = time.Second

// leastFree is how many bytes must stay free on the disk of the job's folder: a
// full disk takes pawl's own records with it, and everything else on the
// machine. 0 is no such limit.
func leastFree(job Job) uint64 {
	free, err := files.Free(job.Dir)
	if job.Limits.Room <= 0 || err != nil {
		return 0
	}
	return min(uint64(job.Limits.Room), free/10)
}

// watchDisk ends the job before it fills the disk.
func (t *task) watchDisk(ctx context.Context, least uint64) {
	for least > 0 && process.Sleep(ctx, diskEvery) {
		if free, err := files.Free(t.job.Dir); err == nil && free < least {
			const why = "only %.1f MB are free on the disk of %s; free some: what the agent wrote is the first suspect"
			t.endFor(loop.EndedDisk, fmt.Sprintf(why, float64(free)/1e6, t.job.Dir))
			return
		}
	}
}

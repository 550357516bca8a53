// Package retention removes what is over: runs that ended long ago, their output,
// old events, and refs of clones that are gone; and it packs loose objects. What a
// run that may go on needs stays, and so does what waits for a person. It never
// touches a work tree, a branch or anything outside of pawl's own folders and refs,
// and decides only by what [Options] say.
package retention

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/outputs"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Options say how long things are kept; 0 is for ever.
type Options struct {
	StateDir string
	Store    *store.Store
	Tree     *workspace.Checkout // nil outside of git

	Runs   time.Duration // runs, after their end
	Most   int           // runs that have ended
	Output time.Duration // what agents and gates of a run printed, after its end
	Events time.Duration
	Keep   time.Duration // snapshots of runs

	Now time.Time
	Dry bool // only say what would go
}

// Report lists what was removed, or would be.
type Report struct {
	Runs    int   `json:"runs"`
	Outputs int   `json:"outputs"` // of iterations
	Bytes   int64 `json:"bytes"`   // of these and of runs
	Events  int   `json:"events"`
	Refs    int   `json:"refs"`
	Broken  int   `json:"broken_refs,omitempty"` // refs of pawl's own that led to nothing
	Packed  int   `json:"packed"`                // loose objects
	// Kept are runs that would go, if their verified work were in the person's files.
	Kept int `json:"kept,omitempty"`
}

// looseMost is how many loose objects are left alone.
const looseMost = 1000

// Sweep removes what is over. It continues after an error, and returns all of them.
func Sweep(ctx context.Context, o Options) (Report, error) {
	var r Report
	if !o.Dry {
		o.Store.BackUp(ctx) // also of a pawl that runs for weeks
	}
	err := errors.Join(o.mendRefs(ctx, &r), o.removeEvents(ctx, &r), o.sweepRuns(ctx, &r))
	if o.Tree != nil {
		err = errors.Join(err, o.removeRefs(ctx, &r), o.packLoose(ctx, &r))
	}
	return r, err
}

// Interval is how often who keeps running sweeps.
const Interval = time.Hour

// Due is true when the last sweep was a while ago, and notes that there is one now.
func Due(stateDir string, now time.Time) bool {
	path := filepath.Join(stateDir, "swept")
	info, err := os.Stat(path)
	if err == nil && now.Sub(info.ModTime()) < Interval && !info.ModTime().After(now) {
		return false
	}
	return files.Replace(path, nil, 0o600, false) == nil
}

// mendRefs removes refs that lead to nothing: with one of them, nothing else is found.
func (o *Options) mendRefs(ctx context.Context, r *Report) error {
	if o.Tree == nil || o.Dry {
		return nil
	}
	gone, err := o.Tree.Repo.MendRefs(ctx)
	r.Broken = len(gone)
	return err
}

// sweepRuns removes runs and outputs.
func (o *Options) sweepRuns(ctx context.Context, r *Report) error {
	ended, err := o.Store.EndedRuns(ctx)
	if err != nil {
		return err
	}
	snapshots, err := o.snapshotRefs(ctx)
	if err != nil {
		return err
	}
	for i, run := range ended {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		dir := filepath.Join(o.StateDir, "runs", run.ID)
		old := o.Runs > 0 && o.Now.Sub(run.EndedAt) > o.Runs
		over := run.Kind == "task" && !run.Open // it is not resumed, even if it failed
		done := loop.Status(run.Status) == loop.Completed || !run.Last || over
		tooMany := o.Most > 0 && i >= o.Most && done
		forgotten := o.Keep > 0 && o.Now.Sub(run.EndedAt) > o.Keep
		waits := slices.Contains([]bool{old, tooMany, forgotten}, true) && o.isAwaited(ctx, run.ID)
		switch {
		case run.Open && run.Last, o.isStillWorkedOn(&run):
			continue
		case waits:
			r.Kept++
			continue
		}
		goes := old || tooMany
		worthless := goes && over // a run whose task is done is not rolled back
		drops := forgotten || worthless
		if drops && len(snapshots[run.ID]) > 0 {
			err = errors.Join(err, o.forgetSnapshots(ctx, run.ID, snapshots))
		}
		hasSnapshots := len(snapshots[run.ID]) > 0
		switch {
		case goes && !hasSnapshots:
			err = errors.Join(err, o.removeRun(ctx, run, dir, r))
		case o.Output > 0 && o.Now.Sub(run.EndedAt) > o.Output:
			err = errors.Join(err, o.dropOutput(dir, r), o.removeShared(run.ID))
		}
	}
	return err
}

// isAwaited reports whether verified work of the run is not in the person's files.
func (o *Options) isAwaited(ctx context.Context, id string) bool {
	run, err := o.Store.Run(ctx, id)
	return err == nil && storedrun.WaitsForDelivery(run)
}

// isStillWorkedOn reports whether the run has an owner who lives, or its agent may outlive a pawl that
// was killed just now.
func (o *Options) isStillWorkedOn(run *store.EndedRun) bool {
	ago := o.Now.Sub(run.EndedAt)
	justNow := 0 <= ago && ago < 2*supervisor.DefaultLease
	if run.Owner.PID == 0 {
		return false
	}
	return justNow || storedrun.Alive(run.Owner)
}

// snapshotRefs by run.
func (o *Options) snapshotRefs(ctx context.Context) (map[string][]git.Ref, error) {
	kept := map[string][]git.Ref{}
	if o.Tree == nil {
		return kept, nil
	}
	const prefix = "refs/pawl/runs/"
	refs, err := o.Tree.Store.Refs(ctx, prefix)
	for _, ref := range refs {
		run, _, _ := strings.Cut(strings.TrimPrefix(ref.Name, prefix), "/")
		kept[run] = append(kept[run], ref)
	}
	return kept, err
}

// forgetSnapshots drops the snapshots of a run.
func (o *Options) forgetSnapshots(ctx context.Context, run string, snapshots map[string][]git.Ref) error {
	delete(snapshots, run)
	if o.Dry {
		return nil
	}
	return o.Tree.Forget(ctx, run)
}

// removeRun removes a run: its row, then its files, so that what is left is found again.
func (o *Options) removeRun(ctx context.Context, run store.EndedRun, dir string, r *Report) error {
	r.Runs++
	r.Bytes += sizeOfFolder(dir)
	if o.Dry {
		return nil
	}
	if err := o.Store.DropRun(ctx, run); err != nil {
		return err
	}
	return errors.Join(removeFolder(dir), o.removeShared(run.ID))
}

// dropOutput removes the folders of a run's iterations.
func (o *Options) dropOutput(dir string, r *Report) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if _, nerr := strconv.Atoi(e.Name()); nerr != nil || !e.IsDir() {
			continue
		}
		r.Outputs++
		r.Bytes += sizeOfFolder(filepath.Join(dir, e.Name()))
		if !o.Dry {
			err = errors.Join(err, removeFolder(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// removeShared removes what the other machines see of a run's output.
func (o *Options) removeShared(run string) error {
	if o.Dry {
		return nil
	}
	return outputs.Remove(o.Store.OutputsFolder(), run)
}

func removeFolder(dir string) error {
	if err := files.RemoveAll(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove what a run left: %w", err)
	}
	return nil
}

// sizeOfFolder the files of a folder, as far as they can be seen.
func sizeOfFolder(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is only shown to a person
		}
		if info, ierr := e.Info(); ierr == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n
}

// removeEvents removes old events.
func (o *Options) removeEvents(ctx context.Context, r *Report) error {
	if o.Events <= 0 {
		return nil
	}
	before := o.Now.Add(-o.Events)
	n, err := o.Store.CountEvents(ctx, before)
	if err != nil || n == 0 {
		return err
	}
	r.Events = n
	if o.Dry {
		return nil
	}
	return o.Store.DropEvents(ctx, before)
}

// removeRefs removes what was collected of clones, once the task is done and the clone is
// gone: the queue has had it. Each clone in which work was brought together with the
// target leaves one; a task's own is left where git could not remove it.
func (o *Options) removeRefs(ctx context.Context, r *Report) error {
	const prefix = "refs/pawl/tasks/"
	refs, err := o.Tree.Repo.Refs(ctx, prefix)
	if err != nil {
		return err
	}
	var over []git.Ref
	for _, ref := range refs {
		open, err := o.isStillNeeded(ctx, strings.TrimPrefix(ref.Name, prefix))
		if err != nil {
			return err
		}
		if !open {
			over = append(over, ref)
		}
	}
	r.Refs = len(over)
	if o.Dry {
		return nil
	}
	return o.Tree.Repo.DeleteRefs(ctx, over)
}

// isStillNeeded reports whether the task of the clone is not done, or the clone is there.
func (o *Options) isStillNeeded(ctx context.Context, clone string) (bool, error) {
	_, there, err := o.Store.Workspace(ctx, clone)
	if err != nil || there {
		return true, err
	}
	task := board.TaskOf(clone)
	c, err := o.Store.Case(ctx, task)
	if errors.Is(err, store.ErrNoCase) {
		return task == clone, nil // it may be all that is left of the work
	}
	return c.Status != board.Done, err
}

// packLoose puts loose objects into packs when they are many, and makes few packs of many.
func (o *Options) packLoose(ctx context.Context, r *Report) error {
	n, err := o.Tree.Store.Loose(ctx)
	if err == nil && !o.Dry {
		err = o.Tree.Repo.JoinPacks(ctx) // each landing left one
	}
	if err != nil || n <= looseMost {
		return err
	}
	if r.Packed = n; o.Dry {
		return nil
	}
	return o.Tree.Store.Compact(ctx)
}

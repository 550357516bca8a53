package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/statefile"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// noteWorkplace notes where the run is worked on.
func (d *Driver) noteWorkplace() {
	if !d.o.Settles { // else the work stays where it is
		d.setup.Host, d.setup.Place = d.owner.Host, d.plan.Root
	}
}

// createRun stores the run before anything is done for it. When the database
// cannot be written, a procedure goes on in memory, and anything else does not
// start.
func (d *Driver) createRun(ctx context.Context, e journal.Event) error {
	d.n, e.N = 1, 1
	d.setup.Flags, d.setup.Sandbox, d.setup.Checks = d.plan.Flags, d.plan.Sandbox, d.plan.StoredChecks()
	d.setup.TaskBase = d.plan.BaseTree
	d.noteWorkplace()
	row := d.currentRow(e.At)
	row.Setup = storedrun.Encode(d.setup)
	return d.recorder.Create(ctx, row, e, func(err error) bool {
		return !errors.Is(err, store.ErrRunning) && ctx.Err() == nil && d.plan.Policy.Kind == loop.Procedure
	})
}

// learnedTallies returns what the runs before learned about strategies; nothing, when
// that cannot be read.
func (d *Driver) learnedTallies(ctx context.Context) []strategy.Tally {
	list, err := d.o.Store.Learned(ctx)
	if err != nil {
		d.warn(err.Error())
		return nil
	}
	return lists.Each(list, func(one store.Learned) strategy.Tally { return one.Tally })
}

// storeEvent commits one event with the state after it. When the database cannot
// be written the step waits in memory for the next chance.
func (d *Driver) storeEvent(ctx context.Context, e journal.Event, r *loop.Record, end *store.Run) {
	d.n++
	e.N = d.n
	step := store.Step{Run: d.currentRow(e.At), Event: e, Record: r, Taken: d.taken, Learned: d.credits}
	if d.fresh {
		step.Run.Setup = storedrun.Encode(d.setup)
	}
	if end != nil {
		step.Run.EndedAt, step.Release = end.EndedAt, true
	}
	d.taken, d.credits, d.fresh = nil, nil, false
	d.noteRunLost(d.recorder.Commit(context.WithoutCancel(ctx), step))
}

// flushUnsaved writes what waits for the database.
func (d *Driver) flushUnsaved(ctx context.Context) { d.noteRunLost(d.recorder.Flush(ctx)) }

// noteRunLost keeps why the run is not this process's any more.
func (d *Driver) noteRunLost(err error) {
	switch {
	case err == nil:
	case errors.Is(err, store.ErrNotOwner), errors.Is(err, store.ErrRunning):
		d.lost = fmt.Errorf("%w: run %s", ErrTaken, d.id)
	default:
		d.lost = err
	}
}

// currentRow is the run's row for the current state.
func (d *Driver) currentRow(at time.Time) store.Run {
	s := d.state
	iteration, why := s.Iteration, s.Why
	if s.Status.Active() {
		if s.PendingReview == nil { // what is held is used up and goes on
			iteration++
		}
		if len(d.plan.Gates) == 0 {
			why = "No verification configured"
		}
		if c := s.Command; c.Kind == loop.Wait {
			why = "until " + untilText(c.Until, at) + " (" + c.Why + ")"
		}
	}
	agent := ""
	if s.Command.Kind == loop.Run { // a reviewer does not work on it
		agent = s.Command.Agent
	}
	return store.Run{
		ID: d.id, Kind: d.plan.Kind, Name: d.plan.Name, Root: d.plan.ProjectRoot(), Status: string(s.Status), Why: why,
		State: storedrun.Encode(s), Iteration: iteration, MaxIterations: s.Limit, Agent: agent,
		Cost: int64(s.Spent.Cost), CostKnown: s.Spent.CostKnown, CostPartial: s.Spent.CostPartial,
		TokensIn: s.Spent.TokensIn, TokensOut: s.Spent.TokensOut,
		Owner: d.owner, StartedAt: s.StartedAt, UpdatedAt: at, Elapsed: s.Spent.Wall,
	}
}

// untilText is a time of day, with its date when that is another day's.
func untilText(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return t.Format("2006-01-02 15:04")
	}
	return t.Format("15:04")
}

// saveStateFile writes the image of the current state. A run that completed
// leaves no file. That it cannot be written is said once and changes nothing.
func (d *Driver) saveStateFile(last bool) {
	if d.reasonNoFolder() != "" {
		return // the run says so, and no folder is made in its place
	}
	var err error
	if last && d.state.Status == loop.Completed {
		err = statefile.Remove(d.stateFileRoot(), d.plan.Name)
	} else {
		// While the run goes on, the next iteration writes it again, and the
		// database rules; only what stays must outlive a power loss.
		err = statefile.Write(d.stateFileRoot(), d.plan.Name, d.stateFile(), !d.state.Status.Active())
	}
	if err != nil && !d.stale {
		d.warn(fmt.Sprintf("the state file is not up to date: %v. The run continues", err))
	}
	d.stale = err != nil
}

// stateFile is the state file for the current state.
func (d *Driver) stateFile() statefile.File {
	s := d.state
	f := statefile.File{
		Iteration: s.Iteration, MaxIterations: s.Limit, ConsecutiveFailures: s.Guards.Failures,
		FailureThreshold: s.Policy.FailureThreshold,
		StartedAt:        s.StartedAt.UTC().Truncate(time.Second), LastIterationAt: s.LastAt.UTC().Truncate(time.Second),
		Status: string(s.Status), ProcedureName: d.plan.Name,
		Run: d.id, Why: s.Why,
	}
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
	f.ElapsedPerIteration = lists.Each(d.elapsed, seconds)
	if n := len(s.Recent); n > 0 && s.Recent[n-1].Cut {
		f.InterruptedIteration = s.Recent[n-1].Number
	}
	if s.Status.Active() {
		f.Next = s.Iteration + 1
		f.Owner = &d.self
	}
	return f
}

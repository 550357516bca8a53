package storedrun

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/statefile"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Archive ends a run that nobody will go on with, and what of it still runs here.
// Its history stays.
func Archive(ctx context.Context, db *store.Store, id, why string) error {
	return ArchiveOf(ctx, db, id, why, Alive)
}

// ArchiveOf is [Archive] for who knows better whether an owner may still drive the run.
func ArchiveOf(ctx context.Context, db *store.Store, id, why string, drives func(store.Owner) bool) error {
	self, err := process.Self()
	if err != nil {
		return fmt.Errorf("cannot archive run %s: %v", id, err)
	}
	run, err := db.Take(ctx, id, OwnerOf(self), drives)
	if err != nil {
		return err
	}
	if _, err := process.Sweep(ctx, supervisor.Mark(id), lanes.SweepGrace); err != nil {
		return fmt.Errorf("cannot end what run %s left: %v", id, err)
	}
	now := time.Now()
	if loop.Status(run.Status).Active() {
		run.Status = string(loop.Interrupted)
	} else if err := discardState(&run, why); err != nil {
		return err
	}
	run.Why, run.EndedAt, run.UpdatedAt = why, now, now
	e, err := journal.New(id, run.N+1, now, journal.Finished, journal.End{Status: run.Status, Why: why,
		Iteration: run.Iteration, Elapsed: run.Elapsed})
	if err != nil {
		return err
	}
	return db.Commit(ctx, store.Step{Run: run, Event: e, Release: true})
}

// discardState lets a run at rest ask for nothing any more.
func discardState(run *store.Run, why string) error {
	var s loop.State
	err := json.Unmarshal(run.State, &s)
	if err == nil {
		s.Discard(why)
		run.State, err = json.Marshal(s)
	}
	if err != nil {
		return fmt.Errorf("cannot archive run %s: %v", run.ID, err)
	}
	run.Status = string(s.Status)
	return nil
}

// Import makes a run of a state file of which the database knows nothing: the
// database was lost, or another tool wrote the file. It has the file's counts
// and its maximum, and can be resumed. [statefile.ErrNone] when there is none.
func Import(ctx context.Context, db *store.Store, root, procedure string) (store.Run, error) {
	f, err := statefile.Read(statefile.Path(root, procedure))
	if err != nil {
		return store.Run{}, err
	}
	st := loop.Status(f.Status)
	if st.Active() {
		if !f.OwnerDead() {
			return store.Run{}, fmt.Errorf("the state file of %s says %q, and it may still be running", procedure,
				f.Status)
		}
		st = loop.Interrupted
	}
	self, err := process.Self()
	if err != nil {
		return store.Run{}, fmt.Errorf("cannot import the state file: %v", err)
	}
	state := loop.State{
		Status: st, Why: "imported from its state file", StartedAt: f.StartedAt,
		LastAt: f.LastIterationAt, Iteration: f.Iteration,
		Limit: f.MaxIterations, Choosing: loop.Choosing{Strategy: "default"}, Best: loop.Best{Score: -1},
		Guards: loop.Guards{Failures: f.ConsecutiveFailures},
		Policy: loop.Policy{Kind: loop.Procedure, MaxIterations: f.MaxIterations},
	}
	for _, e := range f.ElapsedPerIteration {
		if d, err := time.ParseDuration(e); err == nil {
			state.Spent.Active += d
		}
	}
	state.Spent.Wall = state.Spent.Active
	return createImported(ctx, db, root, procedure, state, self)
}

// flagsOfMaximum is how a run was started whose maximum was named: it holds when the run
// is resumed, whatever the configuration says.
func flagsOfMaximum(maximum int) json.RawMessage {
	return Encode(map[string]any{"flags": map[string]string{"max_iterations": fmt.Sprint(maximum)}})
}

func createImported(ctx context.Context, db *store.Store, root, procedure string, state loop.State,
	self process.Identity,
) (store.Run, error) {
	now := time.Now()
	data, err := json.Marshal(state)
	if err != nil {
		return store.Run{}, err
	}
	run := store.Run{
		ID: NewID(), Kind: "procedure", Name: procedure, Root: root, Setup: flagsOfMaximum(state.Limit),
		Status: string(state.Status), Why: state.Why, State: data,
		Iteration: state.Iteration, MaxIterations: state.Limit, Owner: OwnerOf(self),
		StartedAt: state.StartedAt, UpdatedAt: now, Elapsed: state.Spent.Wall,
	}
	e, err := journal.New(run.ID, 1, now, journal.RunCreated,
		journal.Created{Kind: run.Kind, Name: procedure, Root: root,
			MaxIterations: state.Limit})
	if err != nil {
		return run, err
	}
	if err := db.Create(ctx, run, e, Alive); err != nil {
		return run, err
	}
	e, err = journal.New(run.ID, 2, now, journal.Warning, journal.Notice{Text: "imported from its state file"})
	if err != nil {
		return run, err
	}
	return run, db.Commit(ctx, store.Step{Run: run, Event: e, Release: true})
}

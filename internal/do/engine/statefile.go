package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/statefile"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// saveStateFile writes the image of the current state. A run that completed
// leaves no file. That it cannot be written is said once and changes nothing.
func (d *Driver) saveStateFile(last bool) {
	if d.homeless() != "" {
		return // the run says so, and no folder is made in its place
	}
	var err error
	if last && d.state.Status == loop.Completed {
		err = statefile.Remove(d.plan.Root, d.plan.Name)
	} else {
		// While the run goes on, the next iteration writes it again, and the
		// database rules; only what stays must outlive a power loss.
		err = statefile.Write(d.plan.Root, d.plan.Name, d.stateFile(), !d.state.Status.Active())
	}
	if err != nil && !d.stale {
		d.warn(fmt.Sprintf("the state file is not up to date: %v. The run goes on", err))
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
		ElapsedPerIteration: make([]string, len(d.elapsed)), Run: d.id, Why: s.Why,
	}
	for i, e := range d.elapsed {
		f.ElapsedPerIteration[i] = fmt.Sprintf("%.1fs", e.Seconds())
	}
	if n := len(s.Recent); n > 0 && s.Recent[n-1].Cut {
		f.InterruptedIteration = s.Recent[n-1].Number
	}
	if s.Status.Active() {
		f.Next = s.Iteration + 1
		f.Owner = &d.self
	}
	return f
}

// OwnerOf is a process as the database knows it.
func OwnerOf(id process.Identity) store.Owner {
	return store.Owner{PID: id.PID, Start: fmt.Sprint(id.Start), Boot: id.Boot + " " + id.Space, Host: id.Host}
}

// Alive says whether a run's owner lives, or may live.
func Alive(o store.Owner) bool {
	if o.PID == 0 {
		return false
	}
	id := process.Identity{PID: o.PID, Host: o.Host}
	if _, err := fmt.Sscan(o.Start, &id.Start); err != nil {
		return true
	}
	id.Boot, id.Space, _ = strings.Cut(o.Boot, " ")
	return process.Alive(id)
}

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
	if _, err := process.Sweep(ctx, supervisor.Mark(id), sweepGrace); err != nil {
		return fmt.Errorf("cannot end what run %s left: %v", id, err)
	}
	now := time.Now()
	if loop.Status(run.Status).Active() {
		run.Status = string(loop.Interrupted)
	} else if err := discard(&run, why); err != nil {
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

// discard lets a run at rest ask for nothing any more.
func discard(run *store.Run, why string) error {
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

// EndUnattended ends what a run whose pawl is gone still has running.
func EndUnattended(ctx context.Context, runDir, id string) error {
	for _, many := range []bool{true, false} { // in lanes first: the run's mark is on all
		l := newSupervisors(runDir, id, supervisor.Options{})
		l.many = many
		if _, err := l.find(ctx, func(string) bool { return false }, func(string) {}); err != nil {
			return err
		}
	}
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
			return store.Run{}, fmt.Errorf("the state file of %s says %q, and nothing proves that it does not run", procedure,
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
		Limit: f.MaxIterations, Strategy: "default", Best: loop.Best{Score: -1},
		Guards: loop.Guards{Failures: f.ConsecutiveFailures},
		Policy: loop.Policy{Kind: loop.Procedure, MaxIterations: f.MaxIterations},
	}
	for _, e := range f.ElapsedPerIteration {
		if d, err := time.ParseDuration(e); err == nil {
			state.Spent.Active += d
		}
	}
	state.Spent.Wall = state.Spent.Active
	return create(ctx, db, root, procedure, state, self)
}

// named is how a run was started whose maximum was named: it holds when the run
// is resumed, whatever the configuration says.
func named(maximum int) json.RawMessage {
	return encode(map[string]any{"flags": map[string]string{"max_iterations": fmt.Sprint(maximum)}})
}

func create(ctx context.Context, db *store.Store, root, procedure string, state loop.State,
	self process.Identity,
) (store.Run, error) {
	now := time.Now()
	data, err := json.Marshal(state)
	if err != nil {
		return store.Run{}, err
	}
	run := store.Run{
		ID: NewID(), Kind: "procedure", Name: procedure, Root: root, Setup: named(state.Limit),
		Status: string(state.Status), Why: state.Why, State: data,
		Iteration: state.Iteration, MaxIterations: state.Limit, Owner: OwnerOf(self),
		StartedAt: state.StartedAt, UpdatedAt: now, Elapsed: state.Spent.Wall,
	}
	e, err := journal.New(run.ID, 1, now, journal.RunCreated, journal.Created{Kind: run.Kind, Name: procedure, Root: root,
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

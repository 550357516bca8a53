package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/statefile"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Setup is what a resume needs beside the kernel's state. What is stored
// outlives the code: fields can be added, but names must not change.
type Setup struct {
	Flags json.RawMessage `json:"flags,omitempty"`
	// Sandbox says what is enforced by the operating system.
	Sandbox string `json:"sandbox,omitempty"`
	// Checks are the gates that the run's work goes through, in their order; nil of a run
	// that was made from a state file.
	Checks []runplan.Check `json:"checks"`
	// Private is the id of the workspace that the run works in, where its work is delivered
	// to the root; "" is none. Deliveries are those that were made.
	Private    string               `json:"private,omitempty"`
	Deliveries []delivery.Delivered `json:"deliveries,omitempty"`
	// Undelivered says why verified work of the run is not in the checkout; "" is that there
	// is none, or that it is there.
	Undelivered      string `json:"undelivered,omitempty"`
	UndeliveredFiles int    `json:"undelivered_files,omitempty"`
	// Needs: it takes a person to bring it there.
	UndeliveredNeeds bool `json:"undelivered_needs,omitempty"`
	// Choose is true when a person has to choose between their lines and the agent's before anything else.
	Choose bool `json:"choose,omitempty"`
	// Only is what of the work is in the workspace alone.
	Only []workspace.Conflict `json:"only,omitempty"`
	// Host is the machine that has its work, and Place where its agents worked there, when
	// that is not the run's root.
	Host  string `json:"host,omitempty"`
	Place string `json:"place,omitempty"`
	// Base is the tree that tampering is measured against.
	Base string `json:"base,omitempty"`
	// TaskBase is the tree before the first run of its task; "" is that of a run without a task.
	TaskBase string `json:"task_base,omitempty"`
}

// unsaved is a write that waits for the database: the run's creation or a step.
type unsaved struct {
	create *store.Run
	step   store.Step
}

// settle notes where the run is worked on.
func (d *Driver) settle() {
	d.setup.Host, d.setup.Place = d.owner.Host, ""
	if d.plan.Project != "" && d.plan.Project != d.plan.Root {
		d.setup.Place = d.plan.Root
	}
}

// create stores the run before anything is done for it. When the database
// cannot be written, a procedure goes on in memory, and anything else does not
// start.
func (d *Driver) create(ctx context.Context, e journal.Event) error {
	d.n, e.N = 1, 1
	d.setup.Flags, d.setup.Sandbox, d.setup.Checks = d.plan.Flags, d.plan.Sandbox, d.plan.StoredChecks()
	d.setup.TaskBase = d.plan.BaseTree
	d.settle()
	row := d.row(e.At)
	row.Setup = encode(d.setup)
	created := unsaved{create: &row, step: store.Step{Event: e}}
	err := d.write(ctx, created)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrRunning), ctx.Err() != nil, d.plan.Policy.Kind != loop.Procedure:
		return err
	}
	d.unsaved = append(d.unsaved, created)
	d.notStored(err)
	return nil
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

// store commits one event with the state after it. When the database cannot
// be written the step waits in memory for the next chance.
func (d *Driver) store(ctx context.Context, e journal.Event, r *loop.Record, end *store.Run) {
	d.n++
	e.N = d.n
	step := store.Step{Run: d.row(e.At), Event: e, Record: r, Taken: d.taken, Learned: d.credits}
	if d.fresh {
		step.Run.Setup = encode(d.setup)
	}
	if end != nil {
		step.Run.EndedAt, step.Release = end.EndedAt, true
	}
	d.taken, d.credits, d.fresh = nil, nil, false
	if d.given {
		return
	}
	d.unsaved = append(d.unsaved, unsaved{step: step})
	d.flush(context.WithoutCancel(ctx))
}

// maxUnsaved bounds what waits in memory for a database that cannot be
// written; after that the run goes on unrecorded.
const maxUnsaved = 1000

// flush writes what waits, in order.
func (d *Driver) flush(ctx context.Context) {
	for len(d.unsaved) > 0 {
		err := d.write(ctx, d.unsaved[0])
		if err == nil {
			d.unsaved = d.unsaved[1:]
		} else if !d.storesAgain(err) {
			d.notStored(err)
			break
		}
	}
	switch {
	case len(d.unsaved) == 0:
		d.unsaved, d.broken = nil, false
	case len(d.unsaved) > maxUnsaved:
		d.warn(fmt.Sprintf("more than %d events wait for the database: the run continues without a record", maxUnsaved))
		d.unsaved, d.given = nil, true
	}
}

// lossTime is how much a database may lose that crashed, or was restored while nobody looked.
const lossTime = time.Minute

func (d *Driver) write(ctx context.Context, u unsaved) (err error) {
	if u.create != nil {
		err = d.o.Store.Create(ctx, *u.create, u.step.Event, d.mayStillDrive)
	} else {
		err = d.o.Store.Commit(ctx, u.step)
	}
	if err == nil {
		old := u.step.Event.At.Add(-lossTime)
		d.written = append(slices.DeleteFunc(d.written, func(w unsaved) bool { return w.step.Event.At.Before(old) }), u)
	}
	return err
}

// storesAgain has written again what the database had, and lost in a crash.
func (d *Driver) storesAgain(err error) bool {
	next := int64(1)
	if gap, ok := errors.AsType[*store.OrderError](err); ok {
		next = gap.Stored + 1
	} else if !errors.Is(err, store.ErrNotFound) {
		return false
	}
	for i, w := range d.written {
		if w.step.Event.N == next {
			d.unsaved, d.written = append(slices.Clone(d.written[i:]), d.unsaved...), d.written[:i]
			return true
		}
	}
	return false
}

// notStored says once that the database cannot be written. A run that another
// process has by now is not ours any more.
func (d *Driver) notStored(err error) {
	older := errors.Is(err, store.ErrOutOfOrder) || errors.Is(err, store.ErrNotFound)
	switch {
	case errors.Is(err, store.ErrNotOwner), errors.Is(err, store.ErrRunning):
		d.lost = fmt.Errorf("%w: run %s", ErrTaken, d.id)
		return
	case d.waitsForStorage() && older:
		d.lost = err // a copy took the database's place: its run goes on from what that says
		return
	}
	if !d.broken {
		d.broken = true
		d.warn(fmt.Sprintf("the run is not recorded: %v. It continues in memory, with its limits", err))
	}
}

// row is the run's row for the current state.
func (d *Driver) row(at time.Time) store.Run {
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
		State: encode(s), Iteration: iteration, MaxIterations: s.Limit, Agent: agent,
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
	if _, err := process.Sweep(ctx, supervisor.Mark(id), lanes.SweepGrace); err != nil {
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

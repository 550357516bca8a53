package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
)

// NewID makes a run id: the moment in seconds, then chance, so that ids sort
// by time and a few characters tell the runs of a day apart.
func NewID() string {
	const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	var b [8]byte
	_, _ = rand.Read(b[:])
	for i := range b {
		b[i] = alphabet[b[i]%32]
	}
	return string(b[:])
}

// Start drives a new run to its end. A live run of the same name is refused
// with a [sqlite.RunningError].
func Start(ctx context.Context, o Options) (*Driver, error) {
	d, err := newDriver(o, NewID())
	if err != nil {
		return nil, err
	}
	now := time.Now()
	e := d.event(loop.Event{Kind: loop.Started, Policy: &o.Plan.Policy})
	e.At = now
	var c loop.Command
	d.state, c = loop.Step(loop.State{}, e)
	if err := d.create(ctx, d.journalled(e, c)); err != nil {
		return nil, err
	}
	d.saveStateFile(false)
	d.notify(Notice{Kind: RunStarted, Command: c})
	d.baseSnapshot(ctx)
	d.tell(e, c)
	return d, d.drive(ctx)
}

// create stores the run before anything is done for it.
func (d *Driver) create(ctx context.Context, e journal.Event) error {
	d.n, e.N = 1, 1
	if d.o.Store == nil {
		return nil
	}
	row := d.row(e.At)
	row.Setup = encode(setup{Flags: d.plan.Flags})
	err := d.o.Store.Create(ctx, row, e, Alive)
	if err == nil || errors.Is(err, sqlite.ErrRunning) {
		return err
	}
	d.warn(fmt.Sprintf("the run is not recorded: %v. It goes on in memory, with its limits", err))
	d.o.Store = nil
	return nil
}

// setup is what a resume needs beside the kernel's state.
type setup struct {
	Flags  json.RawMessage `json:"flags,omitempty"`
	Base   string          `json:"base,omitempty"`
	Lifted []string        `json:"lifted,omitempty"`
}

// baseSnapshot keeps the tree as it is before the run.
func (d *Driver) baseSnapshot(ctx context.Context) {
	if d.o.Tree == nil {
		return
	}
	snap, err := d.o.Tree.Snapshot(ctx, d.id, 0, workspace.SnapshotOptions{Message: d.plan.Name + ": before the run"})
	if err != nil {
		d.warn(fmt.Sprintf("no snapshot before the run: %v. Rollback to 0 will not be possible", err))
		return
	}
	d.skipped(snap.Skipped)
	d.base, d.head = snap.Tree, snap
}

// Resume goes on with a run that nobody drives. The event is Resumed or
// Answered; when the run was active, i.e. its pawl died, it is neither: the
// command that was being carried out is taken up again.
func Resume(ctx context.Context, o Options, id string, e loop.Event) (*Driver, error) {
	d, err := newDriver(o, id)
	if err != nil {
		return nil, err
	}
	run, err := o.Store.Take(ctx, id, d.owner, Alive)
	if err != nil {
		return nil, err
	}
	if err := d.load(ctx, run); err != nil {
		return nil, err
	}
	d.takeOldControls(ctx)
	adopted, err := d.takeUp(ctx, run)
	if err != nil {
		return nil, err
	}
	if !d.state.Status.Active() {
		if err := d.state.CanResume(e.Policy); err != nil && e.Kind == loop.Resumed {
			d.release(ctx)
			return nil, err
		}
		e.Seed, e.At = d.event(e).Seed, time.Now()
		d.notify(Notice{Kind: RunResumed, Text: string(run.Status)})
		d.apply(ctx, e)
	} else {
		d.notify(Notice{Kind: RunResumed, Text: adoption(adopted)})
	}
	return d, d.drive(ctx)
}

func adoption(adopted bool) string {
	if adopted {
		return "the agent is still running and goes on"
	}
	return "crashed"
}

// load restores what the run knows.
func (d *Driver) load(ctx context.Context, run sqlite.Run) error {
	if err := json.Unmarshal(run.State, &d.state); err != nil {
		return fmt.Errorf("cannot read the state of run %s: %v", run.ID, err)
	}
	var s setup
	if len(run.Setup) > 0 {
		if err := json.Unmarshal(run.Setup, &s); err != nil {
			return fmt.Errorf("cannot read the set-up of run %s: %v", run.ID, err)
		}
	}
	d.n = run.N
	d.lifted = s.Lifted
	records, err := d.o.Store.Iterations(ctx, run.ID)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Outcome != loop.Waited {
			d.elapsed = append(d.elapsed, r.Elapsed)
		}
	}
	d.restoreTrees(ctx, records)
	return nil
}

// restoreTrees finds the run's base again. Paths that a person changed between
// two sessions are lifted: they are no tampering of the agent.
func (d *Driver) restoreTrees(ctx context.Context, records []loop.Record) {
	if d.o.Tree == nil {
		return
	}
	snaps, err := d.o.Tree.Snapshots(ctx, d.id)
	if err != nil || len(snaps) == 0 {
		d.baseSnapshot(ctx)
		return
	}
	d.base, d.head = snaps[0].Tree, snaps[len(snaps)-1]
	if d.state.Status.Active() || len(records) == 0 {
		return // an agent may still be at work: nothing can be told apart
	}
	tree, _, err := d.o.Tree.Look(ctx, d.id)
	if err != nil || tree == d.head.Tree {
		return
	}
	changes, err := d.changes(ctx, d.head.Tree, tree)
	if err != nil {
		return
	}
	for _, c := range changes {
		d.lifted = append(d.lifted, c.Path)
	}
}

// takeUp finds what an earlier pawl left running for this run.
func (d *Driver) takeUp(ctx context.Context, run sqlite.Run) (adopted bool, err error) {
	job := ""
	if c := d.state.Command; d.state.Status == loop.Running && c.Kind == loop.Run {
		job = fmt.Sprintf("%d.%d", c.Iteration, c.Attempt)
	}
	adopted, err = d.attach(ctx, job)
	if err != nil {
		return false, fmt.Errorf("cannot take up run %s: %v", run.ID, err)
	}
	return adopted, nil
}

// takeOldControls marks what was asked of the session before with the first
// commit of this one: an answer is in its event, and an old stop is no stop of
// this session.
func (d *Driver) takeOldControls(ctx context.Context) {
	rows, err := d.o.Store.Controls(ctx, d.id)
	if err != nil {
		d.warn(err.Error())
	}
	for _, r := range rows {
		d.seen[r.ID] = true
		d.taken = append(d.taken, r.ID)
	}
}

// release gives up a run that was taken but does not go on.
func (d *Driver) release(ctx context.Context) {
	now := time.Now()
	end := d.row(now)
	d.store(ctx, d.newEvent("warning", now, nil), nil, &end)
}

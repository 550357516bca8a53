package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/attemptdir"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// takeOverStoredRun makes the stored run this driver's: its state, its trees, and what
// an earlier pawl left running.
func (d *Driver) takeOverStoredRun(ctx context.Context, run store.Run, e loop.Event) error {
	if err := d.loadRun(ctx, run); err != nil {
		return err
	}
	if err := checkContinues(d.state, e); err != nil {
		return err
	}
	if _, err := os.Stat(d.runDir); errors.Is(err, fs.ErrNotExist) {
		d.worker.missing = d.state.Status.Active()
	}
	if err := d.makeRunDir(); err != nil {
		return err
	}
	if err := d.enterAgain(ctx); err != nil {
		return err
	}
	adopted, err := d.adoptRunningJobs(ctx)
	if err != nil {
		return fmt.Errorf("cannot take over run %s: %v", run.ID, err)
	}
	d.restoreTrees(ctx)
	anew := d.pendingDecision() == nil // else the session goes on that another process began
	if anew {
		d.takeOldControls(ctx, e.Kind)
	}
	if !d.state.Status.Active() {
		return nil
	}
	if anew {
		d.forgetAbsence(adopted)
	}
	if anew && e.Kind == loop.Resumed {
		raised, _ := loop.Step(d.state, e)
		if adopted {
			raised.Command.Agent = d.state.Command.Agent
		}
		d.setState(raised)
	}
	d.storeEvent(ctx, d.newEvent(journal.RunResumed, time.Now(), journal.Resumed{From: run.Status, PID: d.owner.PID,
		Adopted: adopted}), nil, nil)
	if d.lost == nil {
		d.saveStateFile(false)
		text := "crashed"
		if adopted {
			text = "the agent is still running and continues"
		}
		d.notify(Notice{Kind: RunResumed, Text: text})
	}
	return nil
}

// loadRun restores what the run knows.
func (d *Driver) loadRun(ctx context.Context, run store.Run) error {
	s, err := storedrun.StateOf(run)
	if err != nil {
		return err
	}
	if len(run.Setup) > 0 {
		if err := json.Unmarshal(run.Setup, &d.setup); err != nil {
			return fmt.Errorf("cannot read the set-up of run %s: %v", run.ID, err)
		}
	}
	records, err := d.o.Store.Iterations(ctx, run.ID)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Outcome != loop.Waited {
			d.elapsed = append(d.elapsed, r.Elapsed)
		}
	}
	if len(records) > 0 && d.setup.Base == "" {
		d.setup.Base = records[0].TreeBefore
	}
	if len(d.plan.Flags) > 0 {
		d.setup.Flags = d.plan.Flags
	}
	if d.plan.Sandbox != "" {
		d.setup.Sandbox = d.plan.Sandbox
	}
	d.foreign = d.setup.Checks == nil
	d.setup.Checks = d.plan.StoredChecks()
	d.noteWorkplace()
	d.setState(s)
	d.n, d.from, d.fresh = run.N, run.Status, true
	return nil
}

// adoptRunningJobs finds what an earlier pawl left running for this run. The job that
// the run waits for goes on; anything else is ended.
func (d *Driver) adoptRunningJobs(ctx context.Context) (adopted bool, err error) {
	n, err := d.jobs.Find(ctx, func(job string) bool {
		awaited := d.state.Status == loop.Running && job == attemptdir.JobOf(d.state.Command)
		return d.o.Work != nil || awaited
	}, d.warn)
	return n > 0, err
}

// forgetAbsence takes the time in which nothing was done for the run off its
// clock. What an attempt worked on after its pawl was gone stays on it.
func (d *Driver) forgetAbsence(adopted bool) {
	s := d.state
	if s.Command.Kind == loop.Wait {
		d.worker.WaitAtMost(s.Command.Until.Sub(s.LastAt))
	}
	if adopted {
		return
	}
	worked := time.Duration(0)
	if s.Status == loop.Running {
		worked = max(0, d.attempt(s.Command.Iteration, s.Command.Attempt).LastChange().Sub(s.LastAt))
	}
	s.LastAt = time.Now().Add(-worked)
	d.setState(s)
}

// takeOldControls marks what was asked of the session before with the first
// commit of this one: an answer is in its event, and an old stop is no stop of
// this session. An answer that does not count now waits on, and so do messages.
func (d *Driver) takeOldControls(ctx context.Context, by loop.EventKind) {
	rows, err := d.o.Store.Controls(ctx, d.id)
	if err != nil {
		d.warn(err.Error())
	}
	for _, r := range rows {
		d.seen[r.ID] = true
		if r.Kind == store.ControlMessage {
			continue // it is for the next prompt, whenever that is
		}
		if !r.IsAnswer() || by == loop.Answered {
			d.taken = append(d.taken, r.ID)
		}
	}
}

// releaseUnresumed releases a run that was taken but does not go on, with its state as
// it was. A run whose pawl died while it finished is finished by this.
func (d *Driver) releaseUnresumed(ctx context.Context, run store.Run, why error) {
	ctx = context.WithoutCancel(ctx)
	now := time.Now()
	e := d.newEvent(journal.Warning, now, journal.Notice{Text: "not resumed: " + why.Error()})
	if st := d.state.Status; st != "" && !st.Active() {
		kind, over := storedrun.RestOf(st)
		if over && run.EndedAt.IsZero() {
			run.EndedAt = run.UpdatedAt
		}
		e = d.endEvent(kind, now)
	}
	e.N = run.N + 1
	run.Owner, run.Setup = d.owner, nil
	if err := d.o.Store.Commit(ctx, store.Step{Run: run, Event: e, Release: true}); err != nil {
		d.warn(fmt.Sprintf("cannot give back run %s: %v", run.ID, err))
	}
	if d.state.Status == loop.Completed {
		d.saveStateFile(true)
	}
	d.jobs.Close(d.warn)
}

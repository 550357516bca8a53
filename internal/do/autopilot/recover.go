package autopilot

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// recoverActive puts in order what a crash left: tasks that are active although
// no process drives them. It returns those whose runs continue in slots.
func (p *attempts) recoverActive(ctx context.Context) (adopt []string, err error) {
	active, err := p.o.Store.Cases(ctx, store.CaseFilter{Status: []board.Status{board.Active}, Type: board.Task})
	if err == nil {
		err = p.endStrays(ctx, active)
	}
	if err == nil {
		err = p.o.Store.DropSlot(ctx, "")
	}
	if err != nil {
		return nil, err
	}
	// what they drive the engine knows: they may own what a crash of the database brought back
	var workers []store.Worker
	if p.o.Elsewhere != nil {
		if workers, err = p.o.Store.Workers(ctx); err == nil {
			err = p.endLostRuns(ctx, workers)
		}
		if err != nil {
			return nil, err
		}
	}
	found := make([]schedule.Found, 0, len(active))
	runs := map[string]string{}
	for _, c := range active {
		f, run, err := p.findLastRun(ctx, c)
		if err != nil {
			return nil, err
		}
		if !f.Alive && !f.Ordered && isDrivenByPerson(run.Owner, workers) {
			continue
		}
		found, runs[c.ID] = append(found, f), run.ID
	}
	for _, r := range schedule.Recover(found, p.o.Settings.MaxParallel) {
		if r.Adopt {
			adopt = append(adopt, r.Case)
		} else if err := p.returnTaskToBoard(ctx, r, runs[r.Case]); err != nil {
			return nil, err
		}
		p.notify(Notice{Kind: Recovered, Case: r.Case, Text: r.Why})
	}
	return adopt, nil
}

// isDrivenByPerson reports whether the owner of the run is alive, and no worker.
func isDrivenByPerson(o store.Owner, workers []store.Worker) bool {
	return o.PID != 0 && storedrun.Alive(o) && !slices.ContainsFunc(workers, func(w store.Worker) bool {
		return w.PID == o.PID && w.Host == o.Host
	})
}

// endLostRuns ends the runs whose end the database has lost: their tasks are decided, and they
// do not resume.
func (p *attempts) endLostRuns(ctx context.Context, workers []store.Worker) error {
	runs, err := p.o.Store.Runs(ctx, store.RunQuery{Active: true})
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.Kind != string(loop.Task) || !loop.Status(r.Status).Active() || isDrivenByPerson(r.Owner, workers) {
			continue
		}
		task := board.TaskOf(r.Name)
		c, err := p.o.Store.Case(ctx, task)
		if settled := []board.Status{board.Done, board.Review}; err != nil || !slices.Contains(settled, c.Status) {
			continue // it continues, or is not asked for
		}
		works, err := p.o.Elsewhere.Works(ctx, task)
		if err == nil && !works {
			nobody := func(store.Owner) bool { return false } // drives it: the engine says so
			err = storedrun.ArchiveOf(ctx, p.o.Store, r.ID, "its end is missing from the database", nobody)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endStrays ends what still runs for tasks that had a slot and are active no
// more, such as those that landed while their loop went on: it would be one
// agent more than there are slots.
func (p *attempts) endStrays(ctx context.Context, active []board.Case) error {
	slots, err := p.o.Store.Slots(ctx)
	if err != nil {
		return err
	}
	for _, l := range slots {
		if l.Run == "" || slices.ContainsFunc(active, func(c board.Case) bool { return c.ID == l.Case }) {
			continue
		}
		run, err := p.o.Store.Run(ctx, l.Run)
		byHand := run.Owner.PID != 0 && storedrun.Alive(run.Owner)
		if err != nil || byHand {
			continue // err: it is forgotten
		}
		if err := lanes.EndUnattended(ctx, p.folderOfRun(l.Run), l.Run); err != nil {
			return fmt.Errorf("cannot end what %s left running: %v", l.Case, err)
		}
	}
	return nil
}

// findLastRun looks at the last run of an active task. While an agent that races for it is
// still running, it is that one's.
func (p *attempts) findLastRun(ctx context.Context, c board.Case) (schedule.Found, store.Run, error) {
	f := schedule.Found{Case: c.ID}
	history, err := p.o.Store.CaseHistory(ctx, c.ID)
	if err != nil {
		return f, store.Run{}, err
	}
	f.ActiveAt = schedule.Since(history, board.Active) // its texts may have been edited since
	run, err := p.addLastRun(ctx, c.ID, &f)
	for n := 2; n <= board.MaxRacers && err == nil && p.o.Elsewhere == nil && !f.Alive; n++ {
		raced := schedule.Found{Case: c.ID, ActiveAt: f.ActiveAt}
		if _, err = p.addLastRun(ctx, board.RacerName(c.ID, n), &raced); raced.Alive {
			f = raced
		}
	}
	return f, run, err
}

// addLastRun adds the last run of a name.
func (p *attempts) addLastRun(ctx context.Context, name string, f *schedule.Found) (store.Run, error) {
	if p.o.Elsewhere != nil { // asked before the run is read, which may end just now
		var err error
		if f.Ordered, err = p.o.Elsewhere.Works(ctx, f.Case); err != nil {
			return store.Run{}, err
		}
	}
	run, err := p.o.Store.Latest(ctx, p.o.Root, name)
	if errors.Is(err, store.ErrNotFound) {
		return run, nil
	}
	if err != nil {
		return run, err
	}
	s, err := storedrun.StateOf(run)
	if err != nil || p.diedWithMachine(run, s) {
		return run, err
	}
	f.Run, f.TouchedAt = &s, run.UpdatedAt
	if p.o.Elsewhere == nil && s.Status.Active() {
		st, err := supervisor.Probe(ctx, p.folderOfRun(run.ID))
		f.Alive = err == nil && st.Job != nil
	}
	return run, err
}

// beginRun starts a run, or resumes the last one. What one that cannot be resumed still has
// running is ended.
func (p *attempts) beginRun(
	ctx context.Context, l *slot, o engine.Options, mode schedule.StartMode, past schedule.Past, last store.Run,
) (*engine.Driver, error) {
	if mode == schedule.GoOn || mode == schedule.Answer {
		e, err := p.resumption(ctx, last.ID, mode, &o.Plan.Policy)
		if err != nil {
			return nil, err
		}
		return engine.Resume(ctx, o, last.ID, e)
	}
	if past.Run != nil && past.Run.Status.Active() {
		if err := lanes.EndUnattended(ctx, p.folderOfRun(last.ID), last.ID); err != nil {
			return nil, err
		}
	}
	if err := p.setOthersUse(ctx, l, &o.Plan.Policy, ""); err != nil {
		return nil, err
	}
	return engine.Start(ctx, o)
}

func (p *attempts) resumption(ctx context.Context, run string, mode schedule.StartMode, pol *loop.Policy,
) (loop.Event, error) {
	e := loop.Event{Kind: loop.Resumed, Policy: pol}
	if mode != schedule.Answer {
		return e, nil
	}
	rows, err := p.o.Store.Controls(ctx, run)
	for _, r := range rows {
		if a, ok := storedrun.Reply(r, pol); ok {
			e = a
		}
	}
	return e, err
}

// diedWithMachine reports whether a run was under way, or had just ended, when the
// machine did: what it says of its files may not be true any more, since those were
// not synced. Its task is begun anew. Other machines have what they need elsewhere.
func (p *reporter) diedWithMachine(run store.Run, s loop.State) bool {
	under := s.Status.Active() || s.Status == loop.Completed
	if p.o.Remote != "" || !under {
		return false
	}
	return run.UpdatedAt.Before(process.Booted())
}

func (p *reporter) folderOfRun(run string) string { return runFolderBelow(p.o.StateDir, run) }

func runFolderBelow(stateDir, run string) string { return filepath.Join(stateDir, "runs", run) }

// returnTaskToBoard ends what is left of a task's run, and puts the task back.
func (p *attempts) returnTaskToBoard(ctx context.Context, r schedule.Recovery, run string) error {
	for n := 2; n <= board.MaxRacers; n++ {
		if err := p.endRacer(ctx, board.RacerName(r.Case, n)); err != nil {
			return fmt.Errorf("cannot end what %s left running: %v", r.Case, err)
		}
	}
	if run != "" {
		if err := lanes.EndUnattended(ctx, p.folderOfRun(run), run); err != nil {
			return fmt.Errorf("cannot end what %s left running: %v", r.Case, err)
		}
	}
	change := board.Change{Action: r.Action, By: board.Pawl, Why: r.Why, At: time.Now()}
	_, err := p.o.Store.MoveCase(ctx, r.Case, change)
	if faultOf(err) == schedule.OfBoard {
		return nil
	}
	return err
}

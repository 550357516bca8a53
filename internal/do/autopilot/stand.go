package autopilot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/do/drive"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file has the autopilot that outlives its process: what it needs is in the database
// that several machines share, and one of their workers continues it.

// handed is what another process needs beside the state, as it is stored.
type handed struct {
	Filter store.CaseFilter  `json:"filter"`
	Sprint *Sprint           `json:"sprint,omitempty"`
	Asked  map[string]string `json:"asked,omitempty"`
}

// HandOver begins an autopilot, and leaves it to a worker that stands by. While one is on it
// refuses with a [store.RunningError].
func HandOver(ctx context.Context, o Options) error {
	now := time.Now()
	state, _ := schedule.Step(schedule.State{}, schedule.Event{Kind: schedule.Began, At: now, Settings: o.Settings})
	_, err := o.Store.TakeAutopilot(ctx, store.Autopilot{
		Session: storedrun.NewID(), Phase: string(state.Phase), Mode: string(state.Mode),
		MaxParallel: o.Settings.MaxParallel,
		StartedAt:   now, UpdatedAt: now, State: encodeJSON(state),
		Options: encodeJSON(handed{o.Filter, o.Sprint, o.Asked}),
	}, storedrun.Alive)
	return err
}

const (
	standEvery = 2 * time.Second  // between two looks for an autopilot without a process
	standAgain = 10 * time.Second // after this process could not go on with it
)

// opener makes what an autopilot works with, with a store of its own, until leave is called.
type opener = func(context.Context) (o Options, leave func(), err error)

// StandBy continues the autopilot that is on while no other process drives it, and hands
// it on when ctx is done. wait returns after that.
func StandBy(ctx context.Context, db *store.Store, log *slog.Logger, open opener) (wait func()) {
	var standing sync.WaitGroup
	standing.Go(func() { waitToTakeOver(ctx, db, log, open) })
	return standing.Wait
}

func waitToTakeOver(ctx context.Context, db *store.Store, log *slog.Logger, open opener) {
	self, _ := process.Self() // none, where that is not known
	for ctx.Err() == nil {
		wait := standEvery
		err := db.Same(ctx)
		if errors.Is(err, store.ErrGone) {
			return // the worker says so
		}
		a, _, err := db.Autopilot(ctx)
		driven := storedrun.Alive(a.Owner) && a.Owner != storedrun.OwnerOf(self)
		if err == nil && a.On() && !driven && !overview.IsBetterElsewhere(ctx, db) {
			err = driveUntilEnd(ctx, db, log, open)
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("this worker does not take over the autopilot: " + err.Error())
			wait = standAgain
		}
		drive.Sleep(ctx, time.Now().Add(wait))
	}
}

// driveUntilEnd drives the autopilot until it ends, or another worker can do it and this one cannot.
func driveUntilEnd(ctx context.Context, db *store.Store, log *slog.Logger, open opener) error {
	o, leave, err := open(ctx)
	if err != nil {
		return err
	}
	defer leave()
	o.GoOn = true
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for process.Sleep(ctx, standEvery) {
			if overview.IsBetterElsewhere(ctx, db) {
				log.Warn("this worker hands the autopilot on, as another one lacks nothing")
				cancel()
			}
		}
	}()
	if _, err = Run(ctx, o); errors.Is(err, store.ErrRunning) || errors.Is(err, store.ErrNotOwner) {
		return nil // somebody was quicker
	}
	return err
}

// inheritState begins where the process before ended.
func (p *pilot) inheritState(ctx context.Context) (err error) {
	if p.row, err = p.o.Store.GoOnAutopilot(ctx, p.row.Owner, storedrun.Alive); err != nil {
		return err
	}
	var h handed
	if err := errors.Join(json.Unmarshal(p.row.Options, &h), json.Unmarshal(p.row.State, &p.state)); err != nil {
		return fmt.Errorf("cannot read the state of the autopilot: %v", err)
	}
	p.o.Filter, p.o.Sprint, p.o.Asked, p.o.Settings = h.Filter, h.Sprint, h.Asked, p.state.Settings
	return nil
}

// isReplaced reports whether the error shows that another process owns the autopilot.
func (p *pilot) isReplaced(err error) bool {
	lost := p.row.On() && errors.Is(err, store.ErrNotOwner)
	p.left = p.left || lost
	return p.left
}

// beginsAnew reports whether the database may have lost what was stored last. It has less then
// than what is known here, so the autopilot is left to the next that reads it.
func (p *pilot) beginsAnew(ctx context.Context) bool {
	if p.o.GoOn || len(p.row.Options) > 0 {
		if again, err := p.o.Store.Restarted(ctx); err == nil && again {
			p.left = true
		}
	}
	return p.left
}

// releaseAutopilot leaves the autopilot to another process. The tasks go on.
func (p *pilot) releaseAutopilot(ctx context.Context) {
	p.row.Owner, p.row.State = store.Owner{}, encodeJSON(p.state)
	err := p.o.Store.SaveAutopilot(context.WithoutCancel(ctx), p.row)
	if err != nil && !errors.Is(err, store.ErrNotOwner) {
		p.o.Log.Warn(err.Error())
	}
}

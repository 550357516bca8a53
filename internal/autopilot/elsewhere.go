package autopilot

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/schedule"
	"github.com/pawl-dev/pawl/internal/store"
)

// Elsewhere has tasks worked by other processes, which share the database.
type Elsewhere interface {
	// Work has a task worked until its run rests, or joins who works it already.
	Work(ctx context.Context, task string) (schedule.Outcome, queue.Entry, error)
	// Look has what the database asks of the task's run heard, also while it waits.
	Look(ctx context.Context, task string) error
	// Workers is how many wait for tasks.
	Workers(ctx context.Context) (int, error)
	// Kill ends the work on a task at once.
	Kill(ctx context.Context, task string) error
}

// elsewhere is the end of a task's work in another process.
type elsewhere struct {
	outcome schedule.Outcome
	err     error
}

// workElsewhere is a slot whose task is worked by another process. What is asked
// of the slot goes there by the database.
func (p *pilot) workElsewhere(ctx context.Context, l *slot) schedule.Outcome {
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan elsewhere, 1)
	go func() {
		var e elsewhere
		e.outcome, l.result, e.err = p.o.Elsewhere.Work(work, l.task.ID)
		ended <- e
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	asked := "" // and did not reach the run yet
	for {
		select {
		case e := <-ended:
			if e.err != nil {
				return schedule.Outcome{NotStarted: true, Machine: true, Why: e.err.Error()}
			}
			return e.outcome
		case <-l.stops:
			asked = store.ControlStop
		case <-l.pauses:
			asked = store.ControlPause
		case <-l.kill:
			return p.kill(ctx, l, cancel, ended)
		case <-tick.C:
			if asked == "" {
				continue
			}
			begun, err := p.ask(ctx, l.task.ID, asked)
			switch {
			case err != nil:
				p.o.Log.Warn(err.Error()) // it is asked again
			case !begun && asked == store.ControlStop:
				return p.kill(ctx, l, cancel, ended)
			default:
				asked = ""
			}
		}
	}
}

// ask hands something on to the run of a task; false when it has none that is at work.
func (p *pilot) ask(ctx context.Context, task, what string) (begun bool, err error) {
	run, err := p.o.Store.Latest(ctx, p.o.Root, task)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil || !loop.Status(run.Status).Active() {
		return false, err
	}
	if _, err = p.o.Store.AddControl(ctx, store.Control{Run: run.ID, Kind: what, At: time.Now()}); err != nil {
		return true, err
	}
	return true, p.o.Elsewhere.Look(ctx, task)
}

func (p *pilot) kill(ctx context.Context, l *slot, cancel context.CancelFunc, ended <-chan elsewhere) schedule.Outcome {
	if err := p.o.Elsewhere.Kill(ctx, l.task.ID); err != nil {
		p.o.Log.Warn(err.Error())
	}
	cancel()
	<-ended
	return schedule.Outcome{Status: loop.Interrupted, Why: "the work on it was ended at once"}
}

package engine

import (
	"context"
	"errors"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Kernel decides for a run whose state is kept elsewhere, as loop.Step does for
// one that is kept here. The driver stores what it decides, and carries it out.
// While such a run waits nobody drives it: [Start] and [Resume] return
// [ErrWaits], and whoever keeps the state resumes it when the wait is over.
type Kernel interface {
	// Step returns the state after e, and the command. s is the state here, and
	// counts only where the kernel has none yet. After an error nothing is stored,
	// and the driver ends with it.
	Step(ctx context.Context, run string, s loop.State, e loop.Event) (loop.State, loop.Command, error)
	// Pending is what was decided last, which may not be stored here; nil for none.
	Pending() *loop.Decision
}

// ErrWaits is that a run waits whose state is kept elsewhere.
var ErrWaits = errors.New("the run waits")

func (d *Driver) stepKernel(ctx context.Context, s loop.State, e loop.Event) (loop.State, loop.Command, error) {
	if k := d.o.Kernel; k != nil {
		return k.Step(ctx, d.id, s, e)
	}
	after, c := loop.Step(s, e)
	return after, c, nil
}

// pendingDecision returns what was decided before this driver began; nil for none.
func (d *Driver) pendingDecision() *loop.Decision {
	if d.o.Kernel == nil {
		return nil
	}
	return d.o.Kernel.Pending()
}

// followPending stores what was decided before this driver began, if the one
// before had not. It is false when nothing was.
func (d *Driver) followPending(ctx context.Context) bool {
	p := d.pendingDecision()
	switch {
	case p == nil:
	case p.State.Seq > d.state.Seq:
		d.worker.missing = false
		d.storeDecision(ctx, input{event: p.Event}, p.State, p.Whole())
	default: // whoever stored it may have begun it, perhaps on another machine
		d.worker.missing = d.state.Status == loop.Running
	}
	return p != nil
}

// mayStillDrive reports whether another owner may be driving the run. Where the state is
// kept elsewhere, the run belongs to the pawl that it was given to.
func (d *Driver) mayStillDrive(o store.Owner) bool { return d.o.Kernel == nil && storedrun.Alive(o) }

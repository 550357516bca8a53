package engine

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/do/engine/greenfiles"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/workspace"
)

// Start drives a new run to its end. A live run of the same name is refused
// with a [store.RunningError].
func Start(ctx context.Context, o Options) (*Driver, error) {
	return StartAs(ctx, o, storedrun.NewID())
}

// StartAs is [Start] with the run's id, which no run may have yet.
func StartAs(ctx context.Context, o Options, id string) (*Driver, error) {
	d, err := newDriver(o, id)
	if err != nil {
		return nil, err
	}
	if err := d.makeRunDir(); err != nil {
		return nil, err
	}
	if err := d.fillWorkspace(ctx); err != nil {
		_ = os.Remove(d.runDir)
		return nil, err
	}
	started := loop.Event{Kind: loop.Started, Policy: &o.Plan.Policy, Learned: d.learnedTallies(ctx), Memory: o.Memory}
	in := input{event: d.worker.stampEvent(started)}
	s, c, err := d.stepKernel(ctx, loop.State{}, in.event)
	if err != nil {
		_ = os.Remove(d.runDir)
		return nil, err
	}
	d.setState(s)
	if err := d.createRun(ctx, d.journalled(in, c, nil)); err != nil {
		_ = os.Remove(d.runDir) // empty, and of no run
		return nil, err
	}
	d.saveStateFile(false)
	d.notify(Notice{Kind: RunStarted, Command: c})
	d.notifyOf(in, c)
	err = d.driveUntilRest(ctx)
	return d, err
}

// Resume goes on with a run that nobody drives. The event is Resumed or
// Answered. When the run was active, i.e. its pawl died, the command that was
// being carried out is taken up again instead; the event counts only if that
// command was to be the session's last, because a person had asked so.
//
// An error that comes before anything is done leaves the run as it was.
func Resume(ctx context.Context, o Options, id string, e loop.Event) (*Driver, error) {
	d, err := newDriver(o, id)
	if err != nil {
		return nil, err
	}
	if err := d.mayResume(ctx, e); err != nil {
		return nil, err
	}
	run, err := o.Store.Take(ctx, id, d.owner, d.mayStillDrive)
	if err != nil {
		return nil, err
	}
	if err := d.takeOverStoredRun(ctx, run, e); err != nil {
		d.releaseUnresumed(ctx, run, err)
		return nil, err
	}
	if d.lost != nil {
		return nil, d.lost
	}
	switch {
	case d.followPending(ctx):
	case d.state.Status.Active():
		d.again = &loop.Event{Kind: loop.Resumed, Policy: e.Policy}
	default:
		d.applyEvent(ctx, input{event: d.worker.stampEvent(e)})
	}
	err = d.driveUntilRest(ctx)
	return d, err
}

// mayResume refuses without taking the run, so that nothing is written for it.
func (d *Driver) mayResume(ctx context.Context, e loop.Event) error {
	run, err := d.o.Store.Run(ctx, d.id)
	if err != nil {
		return err
	}
	if run.Owner.PID != 0 {
		return nil // alive: Take refuses; dead: its end is to be stored first
	}
	s, err := storedrun.StateOf(run)
	if err != nil {
		return err
	}
	return checkContinues(s, e)
}

// checkContinues returns an error that names why e does not let a run in that state
// continue; nil when it does, or when the run's own command is to be finished.
func checkContinues(s loop.State, e loop.Event) error {
	if s.Status.Active() {
		return nil
	}
	if e.Kind == loop.Resumed {
		return s.CanResume(e.Policy)
	}
	if _, c := loop.Step(s, e); c.Kind == loop.NoCommand {
		return fmt.Errorf("the run cannot continue with %q: it is %s", e.Kind, s.Status)
	}
	return nil
}

// verifyBase runs the gates once on the files as they are, before the first agent of a
// run. What is red already is for the first prompt. A gate that cannot run here ends the
// run: then it returns the record of the iteration that was not begun.
//
// It may be stopped meanwhile: its caller looks at ctx.
func (w *judge) verifyBase(ctx context.Context, s loop.State) *loop.Record {
	c := s.Command
	// an agent worked, or this is known
	if !w.plan.OnBase || len(w.plan.Gates) == 0 || s.Spent.Active > 0 || w.red != "" {
		return nil
	}
	w.baseSnapshot(ctx)
	if greenfiles.IsGreen(w.o.StateDir, &w.plan, w.trees.base) {
		return nil
	}
	w.notify(Notice{Kind: Note, Text: "running the gates once on the files as they are, before the first agent"})
	base := c
	base.Iteration = 0
	defer w.dropCaches(w.attempt(0, c.Attempt).CachesFolder())
	isOfTask := func(s gate.Spec) bool { return s.Origin != "" } // these are to be red, see tryChecks
	rep, red, err := w.baseGates(ctx, base, slices.DeleteFunc(w.gatesOfIteration(base), isOfTask))
	if w.plan.Box.BeganCold(w.attempt(0, c.Attempt).CachesFolder()) {
		w.notify(Notice{Kind: Note, Text: sandbox.ColdCaches()})
	}
	f := rep.Failure
	switch {
	case ctx.Err() != nil, err != nil, rep.Stopped: // the gates of the iteration say it
	case f != nil && w.noProgram(f):
		r := ending.NotStarted(c, fmt.Errorf("gate %s cannot run here, so no agent was started: %s%s", f.Step, f.Summary,
			w.setUpFirst()))
		r.Failure.Class, r.Failure.Actions = f.Class, f.Actions
		return r
	case len(red) > 0:
		all := strings.Join(red, "; ")
		hint := ""
		if f.Class == failure.Dependency {
			hint = w.setUpFirst()
		}
		w.notify(Notice{Kind: Note, Text: "already red: " + all + hint})
		w.red = "Already red, before you did anything: " + all
	case f == nil:
		greenfiles.KeepTree(w.o.StateDir, &w.plan, w.trees.base)
	}
	return nil
}

// noProgram is true where a gate's program is not there: not on this machine, or not in
// files that a set-up would have put it into.
func (s *session) noProgram(f *failure.Analysis) bool {
	stays := f.Kind == failure.Permanent || len(s.plan.SetUp) > 0
	return f.Class == failure.MissingCommand && stays
}

// setUpFirst says how the user's own files get what the clone of a task is given.
func (s *session) setUpFirst() string {
	if len(s.plan.SetUp) == 0 {
		return ""
	}
	return "; a run starts with your files as they are, so set them up first: " + strings.Join(s.plan.SetUp, " && ")
}

// baseGates runs gates, the ones after a red one too, and says what is red. The
// report is that of the last red one, or of one that cannot run here or could not be judged.
func (w *judge) baseGates(ctx context.Context, c loop.Command, specs []gate.Spec,
) (last gate.Report, red []string, err error) {
	var judged workspace.Seen
	if w.o.Tree != nil {
		if judged, err = w.o.Tree.See(ctx, w.id); err != nil {
			return last, nil, err
		}
	}
	for from := 0; from < len(specs); {
		rep, err := gate.Verify(ctx, specs[from:], func(ctx context.Context, n int, s gate.Spec) (gate.Exec, error) {
			e, err := w.runSupervisedGate(ctx, c, from+n, s, judged)
			e.Tampered = nil // nobody's work is judged
			return e, err
		}, time.Now)
		f := rep.Failure
		if f != nil || rep.Stopped {
			last = rep
		}
		if f == nil || w.noProgram(f) || rep.Stopped || err != nil {
			return last, red, err
		}
		if f.Kind != failure.Transient { // that passes by itself
			red = append(red, rep.Summary)
		}
		from += 1 + slices.IndexFunc(rep.Gates, func(g loop.Gate) bool {
			return g.Required && g.Status != loop.GatePassed
		})
	}
	return last, red, nil
}

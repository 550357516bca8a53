package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/do/engine/providerlimit"
	"github.com/pawl-dev/pawl/internal/do/engine/recorder"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/drive"
	"github.com/pawl-dev/pawl/internal/do/engine/attemptdir"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/do/trust"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/outputs"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Options is what a driver works with.
type Options struct {
	Plan runplan.Plan
	// Work performs the iterations by steps; nil is one agent an iteration.
	Work Work
	// StateDir is the repository's folder for the database, runs and
	// supervisors, outside of the work tree.
	StateDir string
	// Kernel decides where the run's state is kept elsewhere; nil is loop.Step.
	Kernel Kernel
	Store  *store.Store
	// Tree is the files that agents work on, in a clone; nil outside of git: no snapshots.
	Tree *workspace.Checkout
	// Private is the workspace of a run whose verified work is delivered to the person's
	// files; then its files are the tree. Nil is a run whose work goes elsewhere.
	Private *delivery.Workspace
	// Settles: the event that the run is resumed with ends it, and nothing is carried out.
	Settles bool
	// BaseTree is the tree that the work began at, for a run that was on another
	// machine; "" where there is no other.
	BaseTree string
	// Memory is what people said in earlier runs of the task.
	Memory []loop.Said
	// Accounts is where limits of providers are shared with other runs; nil
	// shares none.
	Accounts *ratelimit.Store
	// Notify is told what happens, one notice at a time; it must be quick. Nil
	// tells nobody.
	Notify func(Notice)
	// Log gets one record for each phase; nil logs nothing.
	Log *slog.Logger
	// Stops are causes from outside, e.g. signals. The first ends the agent
	// with grace; Kill, when closed, ends it at once.
	Stops <-chan loop.Cause
	Kill  <-chan struct{}
	// Pauses ask for a rest at the end of the iteration, like pawl pause.
	Pauses <-chan struct{}

	after func(context.Context) (context.Context, context.CancelFunc) // nil is aftermath
}

// session is what the owner of a run and its worker share. It is settled
// before the first command, but for what has a lock.
type session struct {
	o       Options
	plan    runplan.Plan
	id      string
	self    process.Identity
	owner   store.Owner
	runDir  string
	hasty   context.Context // done: what comes after agents has had its time
	watched string          // the folder in which the agent's changes are seen
	jobs    *lanes.Supervisors

	notifying sync.Mutex // over shown and the notifying itself
	shown     loop.State // the kernel's state, for whoever watches
}

// Driver drives one run: it owns the kernel's state and what is stored of it.
// Its goroutine is that of [Start] or [Resume]. While a command is under way
// it leaves the worker alone.
type Driver struct {
	*session
	worker   *worker
	recorder *recorder.Recorder
	cut      context.CancelFunc // cuts off what comes after an agent

	state   loop.State
	n       int64 // number of the last event
	setup   storedrun.Setup
	fresh   bool        // setup differs from the stored one
	foreign bool        // the run comes from a state file, and did nothing here
	from    string      // the status that the run was resumed from
	again   *loop.Event // see [Driver.restedBefore]

	elapsed []time.Duration   // of each iteration, for the state file
	seen    map[int64]bool    // control rows that were noticed
	taken   []int64           // of these, not yet marked
	credits []strategy.Credit // learned, and not yet part of a commit
	asked   bool              // a stop or a pause came in this session
	ended   bool              // the session's context is done, and the kernel knows
	lost    error             // another process drives the run now
	ticked  time.Time         // when the last [Tick] was sent
	stops   <-chan loop.Cause
	kill    <-chan struct{}
	pauses  <-chan struct{}
	stale   bool // warned that the state file cannot be written
}

// worker carries out commands, one at a time, on a goroutine of its own. Its parts are
// layers, each embedded in the next: a part calls only those that it embeds.
type worker struct {
	*judge
	hearing attemptdir.Hearing
	// outcomes are what became of the work, for the owner.
	outcomes struct {
		sync.Mutex
		list []delivery.Delivered
	}
	missing bool // the run's folder was gone when this process began
}

func newWorker(s *session) *worker {
	limits := &providerlimit.Limits{Plan: &s.plan, Accounts: s.o.Accounts, Run: s.id, Self: s.self, Log: s.o.Log}
	jobs := &limitedJobs{session: s, Limits: limits}
	return &worker{judge: &judge{treeWatch: &treeWatch{limitedJobs: jobs}}}
}

// limitedJobs starts agents within the limits of providers and of the day, and counts what
// they use.
type limitedJobs struct {
	*session
	*providerlimit.Limits
	near *nearTime
}

// treeWatch sees what agents and gates change, and keeps snapshots of it.
type treeWatch struct {
	*limitedJobs
	trees trees
}

// judge runs gates: before the first agent, on its work, and on that once more where a
// person commits meanwhile.
type judge struct {
	*treeWatch
	hard context.Context // done: what comes after an agent is cut off, too
	red  string          // what was red before the first agent, as its prompt says it
	// redAgain is what was red of the last iteration's work when it was judged again.
	redAgain  string
	rests     deliver.Decision  // why nothing of the person's came in before the last command; no kind: it did
	weakTests string            // for the next prompt: tests that show nothing of the work
	before    map[string]string // how checks ended before the work; nil is not read yet
}

// ErrTaken is that another process took the run over while it was driven here.
var ErrTaken = errors.New("another pawl process has taken over this run")

// State is the kernel's state; it may be read when no Start or Resume runs.
func (d *Driver) State() loop.State { return d.state }

// ID is the run's.
func (s *session) ID() string { return s.id }

func newDriver(o Options, id string) (*Driver, error) {
	self, err := process.Self()
	if err != nil {
		return nil, fmt.Errorf("cannot tell who owns the run: %v", err)
	}
	if o.Notify == nil {
		o.Notify = func(Notice) {}
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	runDir := filepath.Join(o.StateDir, "runs", id)
	s := &session{
		o: o, plan: o.Plan, id: id, self: self, owner: storedrun.OwnerOf(self), runDir: runDir,
		watched: o.Plan.Root, hasty: context.Background(),
	}
	if s.o.after == nil {
		s.o.after = s.aftermath
	}
	s.jobs = lanes.New(runDir, id, o.Work != nil, supervisor.Options{
		Exe: o.Plan.Exe, Args: o.Plan.Args, Lease: o.Plan.Lease, Run: id, Unboxed: o.Plan.Box == nil,
	})
	d := &Driver{
		session: s, worker: newWorker(s), seen: map[int64]bool{}, stops: o.Stops, kill: o.Kill, pauses: o.Pauses,
	}
	d.recorder = &recorder.Recorder{
		Store: o.Store, MayDrive: d.mayStillDrive, Warn: d.warn, Strict: d.waitsForStorage(),
	}
	return d, nil
}

func (s *session) attempt(iteration, attempt int) attemptdir.Folder {
	return attemptdir.In(s.runDir, iteration, attempt)
}

// makeRunDir makes the run's folder.
func (s *session) makeRunDir() error {
	if err := os.MkdirAll(s.runDir, 0o700); err != nil {
		return fmt.Errorf("cannot create a folder for the run: %v", err)
	}
	return nil
}

// setState takes the kernel's state over, for whoever watches too.
func (d *Driver) setState(s loop.State) {
	d.state = s
	d.notifying.Lock()
	defer d.notifying.Unlock()
	d.shown = s
}

// driveUntilRest performs commands until the run is not active any more.
func (d *Driver) driveUntilRest(ctx context.Context) error {
	defer d.shortenAfterKill()()
	hard, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	d.cut, d.worker.hard = cut, hard
	if err := d.keepSources(); err != nil {
		d.warn(err.Error())
	}
	defer outputs.Share(d.runDir, d.o.Store.OutputsFolder(), d.id, d.warn)()
	defer d.jobs.Close(d.warn)
	if err := drive.Run(ctx, home{d}, drive.Sources[input]{Every: lookEvery}); err != nil {
		return err
	}
	return d.finishRun(ctx)
}

// home is the driver as package drive sees it.
type home struct{ *Driver }

// Command is what the worker is to do now.
func (d home) Command() (drive.Command[input], bool) {
	s := d.state
	switch {
	case d.lost != nil:
	case d.o.Kernel != nil && s.Status.Active() && s.Command.Kind == loop.Wait: // it is waited for elsewhere
		return drive.Command[input]{Seq: s.Seq, Do: func(context.Context) input { return input{lost: ErrWaits} }}, true
	case s.Status.Active() && d.unsavedFirst():
		return drive.Command[input]{Seq: -1, Do: func(ctx context.Context) input {
			process.Sleep(ctx, roomEvery)
			return input{flush: true}
		}}, true
	case s.Status.Active():
		return drive.Command[input]{
			Seq: s.Seq, Stop: s.StopAsked != loop.NoCause,
			Do: func(ctx context.Context) input { return d.worker.runCommand(ctx, s) },
		}, true
	case d.restedBefore():
		e := *d.again
		e.At = time.Now()
		return drive.Command[input]{Alone: true, Do: func(context.Context) input { return input{event: e} }}, true
	}
	return drive.Command[input]{}, false
}

// restedBefore is true when the run came to rest by what was asked of the
// session before, whose pawl had died, and a person has asked since to go on.
func (d *Driver) restedBefore() bool {
	switch d.state.Status {
	case loop.Stopped, loop.Interrupted, loop.Paused:
		return d.again != nil && !d.asked && d.state.Question == nil && d.state.CanResume(d.again.Policy) == nil
	}
	return false
}

// input is what the kernel is to hear: how a command was carried out, or what
// somebody asked.
type input struct {
	event    loop.Event
	lost     error   // another pawl has the run
	messages []int64 // control rows that the agent was told
	control  int64   // the row that it came in
	raise    *storedrun.Raise
	ask      bool
	flush    bool // nothing happened, and what waits is to be stored
}

// withMessages adds the messages that were in the prompt of an attempt.
func (in input) withMessages(b attemptdir.Begun) input {
	in.messages, in.event.Messages = b.Messages, b.Said
	return in
}

// Take hands an input to the kernel.
func (d home) Take(ctx context.Context, in input) error {
	switch {
	case in.lost != nil:
		d.lost = in.lost
		return in.lost
	case in.flush:
		d.flushUnsaved(context.WithoutCancel(ctx))
		return d.lost
	case in.ask:
		d.noteRequest(&in)
		in.event.At = time.Now()
	default:
		d.keepTrees()
		d.keepDeliveries(ctx)
	}
	d.applyEvent(ctx, in)
	goesOn := !in.ask && d.state.Status.Active()
	if goesOn || in.event.Kind == loop.Resumed {
		d.again = nil
	}
	return d.lost
}

// noteRequest notes what somebody asked.
func (d *Driver) noteRequest(in *input) {
	if in.control != 0 {
		d.taken = append(d.taken, in.control)
	}
	if in.raise == nil {
		d.asked = true
	} else {
		d.completeRaise(in)
	}
}

// runCommand carries out the command of s. A done ctx ends it with grace.
func (w *worker) runCommand(ctx context.Context, s loop.State) input {
	switch s.Command.Kind {
	case loop.Wait:
		_ = w.deliverWork(ctx, s) // the next iteration says what is in its way
		return input{event: w.performWait(ctx, s.Command)}
	case loop.RunReview:
		return w.performReview(ctx, s)
	}
	var in input
	if w.o.Work != nil {
		in = w.performSteps(ctx, s)
	} else {
		in = w.runIteration(ctx, s)
	}
	if r := in.event.Record; r != nil && w.near != nil {
		r.WarnedTime, r.WarnedRunTime, r.WarnedCost = w.near.own, w.near.ofRun, w.near.cost
	}
	w.near = nil
	return in
}

// applyEvent takes one event through the kernel: it is stored with the state after
// it before anything else happens.
func (d *Driver) applyEvent(ctx context.Context, in input) {
	if d.lost != nil {
		return
	}
	after, c, err := d.stepKernel(ctx, d.state, in.event)
	if err != nil {
		d.lost = err
		return
	}
	d.storeDecision(ctx, in, after, c)
}

// storeDecision stores what was decided on an event.
func (d *Driver) storeDecision(ctx context.Context, in input, after loop.State, c loop.Command) {
	e, question := in.event, d.state.Question
	if c.Kind == loop.NoCommand {
		return
	}
	if c.Record != nil {
		d.worker.undoRefusedSteps(ctx, c.Record)
	}
	if e.Record != nil && c.Record.Outcome != loop.Waited {
		d.elapsed = append(d.elapsed, c.Record.Elapsed)
		d.taken = append(d.taken, in.messages...)
	}
	d.setState(after)
	d.worker.RecordEnd(ctx, e, c)
	d.credits = c.Learned
	d.storeEvent(ctx, d.journalled(in, c, question), c.Record, nil)
	if d.lost != nil {
		return // the state file and the screen are the other's
	}
	d.saveStateFile(false)
	d.notifyOf(in, c)
	if c.Record != nil {
		d.makeRoomAfterAttempt(d.attempt(c.Record.Number, c.Record.Attempt), c.Record.Outcome == loop.Waited)
	}
}

// makeRoomAfterAttempt makes room where an attempt has ended: for the next one of its iteration, or by
// less of what is stored now.
func (d *Driver) makeRoomAfterAttempt(p attemptdir.Folder, again bool) {
	if again {
		if err := p.KeepAside(); err != nil {
			d.warn(err.Error())
		}
	} else if d.state.PendingReview == nil && d.recorder.Unsaved() == 0 {
		if err := outputs.Compact(p.Dir); err != nil {
			d.o.Log.Warn("cannot compress the output of an iteration", "error", err)
		}
	}
}

// optionOf is the text of an option of a question.
func optionOf(q *loop.Question, n int) string {
	if q == nil || n < 1 || n > len(q.Options) {
		return ""
	}
	return q.Options[n-1]
}

// finishRun stores how the run came to rest and gives it up.
func (d *Driver) finishRun(ctx context.Context) error {
	d.deliverAtRest(ctx)
	d.worker.GiveUp(ctx)
	if err := trust.Release(d.o.StateDir, d.id, d.plan.ProjectRoot()); err != nil { // those that did not change
		d.warn(err.Error())
	}
	now := time.Now()
	kind, over := storedrun.RestOf(d.state.Status)
	end := d.currentRow(now)
	if over {
		end.EndedAt = now
		if err := files.RemoveAll(lanes.TempDir(d.runDir)); err != nil {
			d.warn(fmt.Sprintf("cannot remove the run's temporary files: %v", err))
		}
	}
	d.storeEvent(ctx, d.endEvent(kind, now), nil, &end)
	d.flushUntilStored(ctx)
	if d.lost != nil {
		return d.lost
	}
	d.saveStateFile(true)
	d.warnOfUnread(ctx)
	if n := d.recorder.Unsaved(); n > 0 {
		d.warn(fault.Numbered(n, "event") + " of the run could not be stored")
	}
	d.notify(Notice{Kind: RunEnded, Command: d.state.Command})
	return nil
}

// stampEvent gives e its time, its seed and what is known of providers' limits.
func (w *limitedJobs) stampEvent(e loop.Event) loop.Event {
	e.At, e.Seed = time.Now(), rand.Uint64()
	e.Limited = w.Known(e.At)
	if e.Record != nil {
		e.Record.Host = w.owner.Host
	}
	return e
}

func (s *session) takenInput() input { return input{lost: fmt.Errorf("%w: run %s", ErrTaken, s.id)} }

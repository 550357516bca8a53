package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/ratelimit"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/strategy"
	"github.com/pawl-dev/pawl/internal/supervisor"
	"github.com/pawl-dev/pawl/internal/workspace"
)

// Options is what a driver works with.
type Options struct {
	Plan Plan
	// Work performs the iterations by steps; nil is one agent an iteration.
	Work Work
	// StateDir is the repository's folder for the database, runs and
	// supervisors, outside of the work tree.
	StateDir string
	// Store is nil when the database cannot be opened: the run goes on in
	// memory, with its limits.
	Store *sqlite.Store
	// Tree is nil outside of git: no snapshots.
	Tree *workspace.Checkout
	// Accounts is where limits of providers are shared with other runs; nil
	// shares none.
	Accounts *ratelimit.Shelf
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

// Driver drives one run. One goroutine owns it, that of Start or Resume; while
// a command is carried out, a second one has the fields that say so.
type Driver struct {
	o      Options
	plan   Plan
	id     string
	self   process.Identity
	owner  sqlite.Owner
	runDir string

	state loop.State
	n     int64 // number of the last event
	setup setup
	fresh bool   // setup differs from the stored one
	from  string // the status that the run was resumed from

	telling sync.Mutex // over shown and the telling itself
	shown   loop.State

	clientMu sync.Mutex
	client   *supervisor.Client
	lanes    *lanes // of a run by steps

	copied   *workspace.Copy     // what the run works on, if it is a copy
	original *workspace.Checkout // then: the user's own

	known   map[string]ratelimit.Limit // by agent, as the kernel heard of them last; of who carries out the command
	probe   probe                      // likewise
	trees   trees                      // likewise
	missing bool                       // likewise: the run's folder was gone when the run was taken up
	longest time.Duration              // likewise: what the wait that the run was taken up in was to last, at most; 0 is any time
	elapsed []time.Duration            // of each iteration, for the state file

	unsaved []unsaved
	checks  chan chan struct{} // asks listenTo to read the control rows now
	seen    map[int64]bool     // control rows that were noticed; of listenTo
	taken   []int64            // of these, not yet marked
	heard   []int64            // messages that the attempt's prompt had
	credits []strategy.Credit  // learned, and not yet part of a commit
	broken  bool               // warned that the database cannot be written
	asked   bool               // a stop or a pause came in this session
	lost    error              // another process drives the run now
	option  string             // that the answer under way chose
	raised  journal.Limits     // by the event under way

	image image
}

// ErrTaken is that another process took the run over while it was driven here.
var ErrTaken = errors.New("another pawl process drives this run now")

// State is the kernel's state; it may be read when no Start or Resume runs.
func (d *Driver) State() loop.State { return d.state }

// ID is the run's.
func (d *Driver) ID() string { return d.id }

func newDriver(o Options, id string) (*Driver, error) {
	self, err := process.Self()
	if err != nil {
		return nil, fmt.Errorf("cannot tell who owns the run: %v", err)
	}
	d := &Driver{
		o: o, plan: o.Plan, id: id, self: self, owner: OwnerOf(self), seen: map[int64]bool{}, checks: make(chan chan struct{}),
		runDir: filepath.Join(o.StateDir, "runs", id),
	}
	if d.o.Notify == nil {
		d.o.Notify = func(Notice) {}
	}
	if d.o.after == nil {
		d.o.after = aftermath
	}
	if o.Work != nil {
		d.lanes = newLanes(d.runDir, id, supervisor.Options{Exe: o.Plan.Exe, Args: o.Plan.Args, Lease: o.Plan.Lease, Run: id})
	}
	if d.o.Log == nil {
		d.o.Log = slog.New(slog.DiscardHandler)
	}
	return d, nil
}

// makeRunDir makes the run's folder, elsewhere when it cannot be made in its
// place: the run goes on, but cannot be taken up after a crash.
func (d *Driver) makeRunDir() error {
	err := os.MkdirAll(d.runDir, 0o700)
	if err == nil {
		return nil
	}
	return d.moveRunDir(err)
}

// moveRunDir goes on in the temporary folder after an error in the run's own.
func (d *Driver) moveRunDir(why error) error {
	dir, err := os.MkdirTemp("", "pawl-"+d.id+"-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the run: %v", why)
	}
	d.warn(fmt.Sprintf("the run's files go to %s, where they are not found after a crash: %s cannot be written (%v)", dir, d.runDir, why))
	d.runDir = dir
	if d.lanes != nil {
		d.lanes.dir = filepath.Join(dir, "lanes")
	}
	return nil
}

// become takes the kernel's state over, for whoever watches too.
func (d *Driver) become(s loop.State) {
	d.state = s
	d.telling.Lock()
	defer d.telling.Unlock()
	d.shown = s
}

// drive performs commands until the run is not active any more. again is what
// was asked of a run whose pawl had died: it counts when the command that was
// under way turns out to be the end of the session before.
func (d *Driver) drive(ctx context.Context, again *loop.Event) error {
	asks, stopAsking := d.listen(ctx)
	defer stopAsking()
	defer d.dropSupervisor()
	if d.lanes != nil {
		defer d.lanes.close(d.warn)
	}
	for d.lost == nil {
		switch {
		case d.state.Status.Active():
			d.performOne(ctx, asks)
			if d.state.Status.Active() {
				again = nil
			}
		case again != nil && d.restedBefore(*again):
			e := *again
			again, e.At = nil, time.Now()
			d.apply(ctx, e)
		default:
			return d.finish(ctx)
		}
	}
	return d.lost
}

// restedBefore is true when the run came to rest by what was asked of the
// session before, and a person has asked since to go on.
func (d *Driver) restedBefore(e loop.Event) bool {
	switch d.state.Status {
	case loop.Stopped, loop.Interrupted, loop.Paused:
		return !d.asked && d.state.Question == nil && d.state.CanResume(e.Policy) == nil
	}
	return false
}

// tickEvery is the time between two ticks.
const tickEvery = time.Second

// done is how a command was carried out: its event, or the error that another
// pawl has the run.
type done struct {
	event    loop.Event
	lost     error
	messages []int64 // control rows that the agent was told
}

// having is the end of an attempt that was begun so.
func (r done) having(b begun) done {
	r.messages = b.Messages
	return r
}

// performOne carries out the current command and takes what is asked
// meanwhile. The command's own end is always waited for.
func (d *Driver) performOne(ctx context.Context, asks <-chan ask) {
	s := d.state
	work, stop := context.WithCancel(ctx)
	defer stop()
	hard, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	if s.StopAsked != loop.NoCause {
		stop() // asked of the session before, which did not live to see its end
	}
	result := make(chan done, 1)
	go func() { result <- d.perform(work, hard, s) }()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	ended := ctx.Done()
	for {
		select {
		case r := <-result:
			d.ended(ctx, r, asks)
			return
		case a := <-asks:
			d.hear(ctx, a)
			if a.kill {
				kill()
			}
		case <-ended:
			ended = nil
			d.hear(ctx, ask{event: loop.Event{Kind: loop.StopAsked, Cause: loop.CauseInterrupt}})
		case <-tick.C:
			if d.image.stale {
				d.saveStateFile(false)
			}
			d.notify(Notice{Kind: Tick})
		}
		if d.state.StopAsked != loop.NoCause || !d.state.Status.Active() || d.lost != nil {
			stop()
		}
	}
}

// ended takes the event of a command. What was asked before it came counts
// first.
func (d *Driver) ended(ctx context.Context, r done, asks <-chan ask) {
	checked := make(chan struct{})
	select {
	case d.checks <- checked:
	case <-ctx.Done():
		close(checked)
	}
	for waiting := true; waiting; {
		select {
		case a := <-asks:
			d.hear(ctx, a)
		case <-checked:
			waiting = len(asks) > 0
		}
	}
	if r.lost != nil {
		d.lost = r.lost
		return
	}
	d.keepTrees()
	d.heard = r.messages
	d.apply(ctx, r.event)
}

// hear takes one ask through the kernel.
func (d *Driver) hear(ctx context.Context, a ask) {
	if a.control != 0 {
		d.taken = append(d.taken, a.control)
	}
	if a.raise == nil {
		d.asked = true
	} else {
		d.allow(&a)
	}
	a.event.At = time.Now()
	d.apply(ctx, a.event)
}

// perform carries out the command of s. A done ctx ends it with grace, a done
// hard cuts off what comes after the agent, too.
func (d *Driver) perform(ctx, hard context.Context, s loop.State) done {
	switch s.Command.Kind {
	case loop.Wait:
		return done{event: d.wait(ctx, s.Command)}
	case loop.RunReview:
		return d.review(ctx, hard, s)
	}
	if d.o.Work != nil {
		return d.work(ctx, hard, s)
	}
	return d.iterate(ctx, hard, s)
}

// event gives e its time, its seed and what is known of providers' limits.
func (d *Driver) event(e loop.Event) loop.Event {
	e.At, e.Seed = time.Now(), rand.Uint64()
	e.Limited = d.limited(e.At)
	return e
}

// apply takes one event through the kernel: it is stored with the state after
// it before anything else happens.
func (d *Driver) apply(ctx context.Context, e loop.Event) {
	d.option = optionOf(d.state.Question, e.Choice)
	after, c := loop.Step(d.state, e)
	noted := after.StopAsked != d.state.StopAsked || after.PauseAsked != d.state.PauseAsked || e.Kind == loop.Raised && d.state.Status.Active()
	if c.Kind == loop.NoCommand && !noted || d.lost != nil {
		return
	}
	record := d.state.Recorded(e)
	if record != nil {
		d.refuse(ctx, record)
	}
	if e.Record != nil {
		usedUp := after.Iteration > d.state.Iteration
		if usedUp {
			d.elapsed = append(d.elapsed, record.Elapsed)
		}
		if usedUp && record.Outcome == loop.Waited { // a stop: no attempt follows
			record.Outcome = loop.Neutral
		}
		e.Record = record
		d.delivered(d.heard, record)
		d.heard = nil
	}
	d.become(after)
	d.report(ctx, e, c)
	d.credits = c.Learned
	d.store(ctx, d.journalled(e, c, record), record, nil)
	if d.lost != nil {
		return // the state file and the screen are the other's
	}
	d.saveStateFile(false)
	d.tell(e, c, record)
	if e.Record != nil && e.Record.Outcome == loop.Waited {
		if err := d.place(e.Record.Number, e.Record.Attempt).keepAside(); err != nil {
			d.warn(err.Error())
		}
	}
}

// optionOf is the text of an option; the question is gone once it is answered.
func optionOf(q *loop.Question, n int) string {
	if q == nil || n < 1 || n > len(q.Options) {
		return ""
	}
	return q.Options[n-1]
}

// rest is the journal's kind of event for a run that came to rest, and whether
// the run is over.
func rest(s loop.Status) (kind string, over bool) {
	switch s {
	case loop.Paused:
		return journal.Paused, false
	case loop.Pending, loop.Blocked:
		return journal.QuestionAsked, false
	case loop.Interrupted:
		return journal.Finished, false
	}
	return journal.Finished, true
}

// finish stores how the run came to rest and gives it up.
func (d *Driver) finish(ctx context.Context) error {
	d.harvest(ctx)
	d.giveUp(ctx)
	d.lookAtRest(ctx)
	now := time.Now()
	kind, over := rest(d.state.Status)
	end := d.row(now)
	if over {
		end.EndedAt = now
	}
	d.store(ctx, d.endEvent(kind, now), nil, &end)
	if d.lost != nil {
		return d.lost
	}
	d.saveStateFile(true)
	d.unread(ctx)
	if len(d.unsaved) > 0 {
		d.warn(fmt.Sprintf("%d event(s) of the run could not be stored", len(d.unsaved)))
	}
	d.notify(Notice{Kind: RunEnded, Command: d.state.Command})
	return nil
}

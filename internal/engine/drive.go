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

	"github.com/pawl-dev/pawl/internal/gate"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/supervisor"
	"github.com/pawl-dev/pawl/internal/workspace"
)

// Options is what a driver works with.
type Options struct {
	Plan Plan
	// StateDir is the repository's folder for the database, runs and
	// supervisors, outside of the work tree.
	StateDir string
	// Store is nil when the database cannot be opened: the run goes on in
	// memory, with its limits.
	Store *sqlite.Store
	// Tree is nil outside of git: no snapshots.
	Tree *workspace.Checkout
	// Notify is told what happens; it must be quick. Nil tells nobody.
	Notify func(Notice)
	// Log gets one record for each phase; nil logs nothing.
	Log *slog.Logger
	// Stops are causes from outside, e.g. signals. The first ends the agent
	// with grace; Kill, when closed, ends it at once.
	Stops <-chan loop.Cause
	Kill  <-chan struct{}
}

// Driver drives one run.
type Driver struct {
	o      Options
	plan   Plan
	id     string
	self   process.Identity
	owner  sqlite.Owner
	state  loop.State
	n      int64 // number of the last event
	runDir string

	clientMu sync.Mutex
	client   *supervisor.Client

	base    string   // tree that tampering is measured against
	lifted  []string // paths that the user changed between sessions
	head    workspace.Snapshot
	elapsed []time.Duration // of each iteration, for the state file

	unsaved []sqlite.Step
	seen    map[int64]bool // control rows that were noticed
	taken   []int64        // of these, not yet marked
	broken  bool           // warned that the database cannot be written
	lost    error          // another process drives the run now

	fileBroken  bool // warned that the state file cannot be written
	saidSkipped bool
}

// ErrTaken: another process took the run over while it was driven here.
var ErrTaken = errors.New("another pawl process drives this run now")

// State is the kernel's state; it may be read when no Start or Resume runs.
func (d *Driver) State() loop.State { return d.state }

// ID is the run's.
func (d *Driver) ID() string { return d.id }

// ask is something that came from outside.
type ask struct {
	event   loop.Event
	control int64
}

// drive performs commands until the run is not active any more.
func (d *Driver) drive(ctx context.Context) error {
	asks, stopAsking := d.listen(ctx)
	defer stopAsking()
	defer d.dropSupervisor()
	for d.state.Status.Active() && d.lost == nil {
		d.performOne(ctx, asks)
	}
	if d.lost != nil {
		return d.lost
	}
	return d.finish(ctx)
}

// performOne carries out the current command and takes what is asked
// meanwhile. The command's own end is always waited for.
func (d *Driver) performOne(ctx context.Context, asks <-chan ask) {
	command := d.state.Command
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan loop.Event, 1)
	go func() { done <- d.perform(work, command) }()
	for {
		select {
		case e := <-done:
			d.apply(ctx, e)
			return
		case a := <-asks:
			a.event.At = time.Now()
			if a.control != 0 {
				d.taken = append(d.taken, a.control)
			}
			d.apply(ctx, a.event)
			if d.state.StopAsked != loop.NoCause || !d.state.Status.Active() || d.lost != nil {
				cancel()
			}
		}
	}
}

func (d *Driver) perform(ctx context.Context, c loop.Command) loop.Event {
	if c.Kind == loop.Wait {
		return d.wait(ctx, c)
	}
	return d.iterate(ctx, c)
}

func (d *Driver) wait(ctx context.Context, c loop.Command) loop.Event {
	timer := time.NewTimer(time.Until(c.Until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return d.event(loop.Event{Kind: loop.WaitOver, For: c.Seq})
}

// event gives e its time and seed.
func (d *Driver) event(e loop.Event) loop.Event {
	e.At, e.Seed = time.Now(), rand.Uint64()
	return e
}

// apply takes one event through the kernel: it is stored with the state after
// it before anything else happens.
func (d *Driver) apply(ctx context.Context, e loop.Event) {
	after, c := loop.Step(d.state, e)
	noted := after.StopAsked != d.state.StopAsked || after.PauseAsked != d.state.PauseAsked
	if c.Kind == loop.NoCommand && !noted {
		return
	}
	if e.Record != nil {
		r := *e.Record
		r.Outcome = loop.Judge(r)
		e.Record = &r
		if r.Outcome != loop.Waited {
			d.elapsed = append(d.elapsed, r.Elapsed)
		}
	}
	d.state = after
	d.store(ctx, d.journalled(e, c), e.Record, nil)
	d.saveStateFile(false)
	d.tell(e, c)
	if e.Record != nil && e.Record.Outcome == loop.Waited {
		if err := d.place(e.Record.Number, e.Record.Attempt).keepAside(); err != nil {
			d.warn(err.Error())
		}
	}
}

// store commits one event with the state after it. When the database cannot
// be written the step waits in memory for the next chance.
func (d *Driver) store(ctx context.Context, e journal.Event, r *loop.Record, end *sqlite.Run) {
	d.n++
	e.N = d.n
	row := d.row(e.At)
	step := sqlite.Step{Run: row, Event: e, Record: r, Taken: d.taken}
	if end != nil {
		step.Run.EndedAt, step.Release = end.EndedAt, true
	}
	d.taken = nil
	if d.o.Store == nil {
		return
	}
	d.unsaved = append(d.unsaved, step)
	d.flush(context.WithoutCancel(ctx))
}

// maxUnsaved bounds what waits in memory for a database that cannot be
// written; after that the run goes on unrecorded.
const maxUnsaved = 10_000

func (d *Driver) flush(ctx context.Context) {
	for len(d.unsaved) > 0 {
		err := d.o.Store.Commit(ctx, d.unsaved[0])
		switch {
		case err == nil:
			d.unsaved = d.unsaved[1:]
			continue
		case errors.Is(err, sqlite.ErrNotOwner):
			d.lost = fmt.Errorf("%w: run %s", ErrTaken, d.id)
		case !d.broken:
			d.broken = true
			d.warn(fmt.Sprintf("the run is not recorded: %v. It goes on in memory, with its limits", err))
		}
		if len(d.unsaved) > maxUnsaved {
			d.unsaved, d.o.Store = nil, nil
		}
		return
	}
	d.unsaved = nil
	d.broken = false
}

// finish stores how the run came to rest and gives it up.
func (d *Driver) finish(ctx context.Context) error {
	c := d.state.Command
	now := time.Now()
	kind, over := journal.Finished, true
	switch d.state.Status {
	case loop.Paused:
		kind, over = journal.Paused, false
	case loop.Pending, loop.Blocked:
		kind, over = journal.QuestionAsked, false
	case loop.Interrupted:
		over = false
	}
	end := d.row(now)
	if over {
		end.EndedAt = now
	}
	d.store(ctx, d.endEvent(kind, now), nil, &end)
	d.saveStateFile(true)
	if len(d.unsaved) > 0 {
		d.warn(fmt.Sprintf("%d event(s) of the run could not be stored", len(d.unsaved)))
	}
	d.notify(Notice{Kind: RunEnded, Command: c})
	return nil
}

// listen turns signals and control rows into asks until stop is called.
func (d *Driver) listen(ctx context.Context) (<-chan ask, func()) {
	asks := make(chan ask, 16)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.listenTo(ctx, asks)
	}()
	return asks, func() { cancel(); <-done }
}

// pollEvery is how soon a running run notices pawl stop and pawl pause.
const pollEvery = 150 * time.Millisecond

func (d *Driver) listenTo(ctx context.Context, asks chan<- ask) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	kill := d.o.Kill
	for {
		select {
		case <-ctx.Done():
			return
		case <-kill:
			kill = nil
			d.killNow()
		case cause := <-d.o.Stops:
			send(ctx, asks, ask{event: loop.Event{Kind: loop.StopAsked, Cause: cause}})
		case <-tick.C:
			for _, a := range d.controls(ctx) {
				send(ctx, asks, a)
			}
		}
	}
}

func send(ctx context.Context, asks chan<- ask, a ask) {
	select {
	case asks <- a:
	case <-ctx.Done():
	}
}

// controls reads what other processes ask of this run.
func (d *Driver) controls(ctx context.Context) []ask {
	if d.o.Store == nil {
		return nil
	}
	rows, err := d.o.Store.Controls(ctx, d.id)
	if err != nil {
		return nil // the next tick tries again; a database that stays away was warned of
	}
	var asks []ask
	for _, row := range rows {
		if d.seen[row.ID] {
			continue
		}
		d.seen[row.ID] = true
		switch row.Kind {
		case sqlite.ControlStop:
			asks = append(asks, ask{loop.Event{Kind: loop.StopAsked, Cause: loop.CauseStop}, row.ID})
		case sqlite.ControlPause:
			asks = append(asks, ask{loop.Event{Kind: loop.PauseAsked}, row.ID})
		}
	}
	return asks
}

// row is the run's row for the current state.
func (d *Driver) row(at time.Time) sqlite.Run {
	s := d.state
	iteration := s.Iteration
	if s.Status.Active() {
		iteration++
	}
	return sqlite.Run{
		ID: d.id, Kind: d.plan.Kind, Name: d.plan.Name, Root: d.plan.Root, Status: string(s.Status), Why: s.Why,
		State: encode(s), Iteration: iteration, MaxIterations: s.Limit, Agent: s.Command.Agent,
		Cost: int64(s.Spent.Cost), CostKnown: s.Spent.CostKnown, TokensIn: s.Spent.TokensIn, TokensOut: s.Spent.TokensOut,
		Owner: d.owner, StartedAt: s.StartedAt, UpdatedAt: at, Elapsed: s.Spent.Wall,
	}
}

func newDriver(o Options, id string) (*Driver, error) {
	self, err := process.Self()
	if err != nil {
		return nil, fmt.Errorf("cannot tell who owns the run: %v", err)
	}
	d := &Driver{
		o: o, plan: o.Plan, id: id, self: self, owner: OwnerOf(self), seen: map[int64]bool{},
		runDir: filepath.Join(o.StateDir, "runs", id),
	}
	if d.o.Notify == nil {
		d.o.Notify = func(Notice) {}
	}
	if d.o.Log == nil {
		d.o.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(d.runDir, 0o700); err != nil {
		dir, tmpErr := os.MkdirTemp("", "pawl-"+id+"-")
		if tmpErr != nil {
			return nil, fmt.Errorf("cannot make a folder for the run: %v", err)
		}
		d.warn(fmt.Sprintf("cannot write %s (%v); the run's files go to %s", d.runDir, err, dir))
		d.runDir = dir
	}
	return d, nil
}

// report is what gates said, kept between verification and record.
type report = gate.Report

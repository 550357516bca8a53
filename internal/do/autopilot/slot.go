package autopilot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// slot works on one task. What the owner wants of it comes through channels;
// what it tells is guarded.
type slot struct {
	task   board.Case
	name   string  // of its run and its workspace: the task's, or that of a racer
	agent  string  // that works on it; "" is the configured one
	racers int     // that it is one of; below 2 it is no race
	also   []*slot // those that race with it
	lead   *slot   // whose run people see first, for one that races beside it
	adopt  bool    // its run goes on, or has ended, since before this autopilot
	gone   bool    // somebody else settled the task; the owner's
	since  time.Time

	stops  chan loop.Cause
	kill   chan struct{}
	killed sync.Once
	pauses chan struct{}
	cancel context.CancelFunc // ends what comes before the run; nil when it could not be begun

	// result is what is to land, once the run is complete. The owner reads it
	// after the slot has ended.
	result queue.Entry

	planned time.Time // when its limits were read
	allow   []string  // patterns of protected files that it may change
	hold    string    // why a person has to review its work; "" the settings say

	mu      sync.Mutex
	run     string
	count   int       // iterations that are used up
	doing   string    // its activity that is not stored yet
	savedAt time.Time // when its activity was stored last
}

func newSlot(c board.Case, adopt bool) *slot {
	return &slot{
		task: c, name: c.ID, adopt: adopt, since: time.Now(),
		stops: make(chan loop.Cause, 1), kill: make(chan struct{}), pauses: make(chan struct{}, 1),
	}
}

// pause asks the run to rest at the end of its iteration.
func (l *slot) pause() {
	for _, r := range l.others() {
		r.pause()
	}
	select {
	case l.pauses <- struct{}{}:
	default: // it is asked already
	}
}

// drain forgets what was asked of the run before.
func (l *slot) drain() {
	for {
		select {
		case <-l.pauses:
		case <-l.stops:
		default:
			return
		}
	}
}

// stop asks the run to end, at once with kill.
func (l *slot) stop(cause loop.Cause, kill bool) {
	for _, r := range l.others() {
		r.stop(cause, kill)
	}
	l.stopRun(cause)
	if l.cancel != nil {
		l.cancel()
	}
	if kill {
		l.killed.Do(func() { close(l.kill) })
	}
}

// stopRun asks the run alone to end.
func (l *slot) stopRun(cause loop.Cause) {
	select {
	case l.stops <- cause:
	default:
	}
}

func (l *slot) runID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.run
}

func (l *slot) iterations() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

func (l *slot) setRun(s loop.State, run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run, l.count = run, s.Iteration
}

// work drives the task's run until it rests, and keeps what it came to. A done
// ready ends what comes before the run.
func (p *pilot) work(ctx, ready context.Context, l *slot) schedule.Outcome {
	if why := p.claim(ready, l); why != "" {
		return schedule.Outcome{Status: loop.Blocked, Why: why}
	}
	if p.o.Elsewhere != nil {
		return p.workElsewhere(ctx, l)
	}
	racers, err := p.racers(ctx, l)
	if err != nil {
		return notBegun(err)
	}
	if len(racers) > 1 {
		return p.race(ctx, ready, l, racers)
	}
	w, state, err := p.attempt(ctx, ready, l)
	return p.ended(ctx, l, w, state, err)
}

// attempt takes the workspace of a slot, and drives its run until it rests.
func (p *pilot) attempt(ctx, ready context.Context, l *slot) (w pool.Workspace, state loop.State, err error) {
	if w, err = p.takeToWork(ready, l); err != nil {
		return w, state, err
	}
	if !w.Kept && p.decidedComplete() {
		return w, state, errAway
	}
	state, err = p.run(ctx, ready, l, w)
	for err == nil && state.Status == loop.TimedOut && p.raised(ctx, l) {
		state, err = p.run(ctx, ready, l, w)
	}
	return w, state, err
}

// ended keeps what an attempt came to, and gives its workspace back.
func (p *pilot) ended(ctx context.Context, l *slot, w pool.Workspace, state loop.State, err error) schedule.Outcome {
	switch {
	case err != nil && w.ID == "":
		return notBegun(err)
	case errors.Is(err, engine.ErrTaken):
		p.release(ctx, w, pool.Keep("another process works in it"))
		return schedule.Outcome{Taken: true, Why: err.Error()}
	case errors.Is(err, engine.ErrWaits):
		p.release(ctx, w, pool.Keep("its run waits"))
		return notBegun(err)
	case err != nil:
		p.release(ctx, w, pool.Keep("its run could not be started"))
		return notBegun(err)
	}
	l.adopt = false
	o := schedule.Outcome{
		Status: state.Status, Why: state.Why, Question: state.Question != nil, Guard: state.Command.Guard != "",
		Settled: state.Command.Settled,
	}
	if state.Status == loop.Paused && state.Command.Limited {
		o.Until = state.Command.Until
	}
	how := pool.Keep(fmt.Sprintf("its run is %s", state.Status))
	switch state.Status {
	case loop.Completed:
		p.collect(ctx, l, w, state, &o)
		how = pool.Keep("its work waits to land")
	case loop.FailedRun, loop.Blocked:
		p.blameDisk(ctx, l, &o)
	case loop.Interrupted, loop.Stopped:
		how = pool.Stopped(fmt.Sprintf("its run is %s", state.Status))
	}
	p.release(ctx, w, how)
	return o
}

func notBegun(err error) schedule.Outcome {
	return schedule.Outcome{
		NotStarted: true, Machine: faultOf(err) == schedule.OfMachine, Setup: errors.Is(err, errSetup),
		Why:   err.Error(),
		Lacks: errors.Is(err, engine.ErrNoProgram),
	}
}

// claim says why another board works on the issue of a task; "" it does not. Without an
// answer of the forge the work begins.
func (p *pilot) claim(ctx context.Context, l *slot) string {
	if p.o.Claim == nil || l.adopt || l.task.Issue() == 0 {
		return ""
	}
	bounded, cancel := context.WithTimeout(ctx, lastSync)
	defer cancel()
	why, err := p.o.Claim(bounded, l.task)
	if err != nil && ctx.Err() == nil {
		p.notify(Notice{Kind: Warning, Case: l.task.ID, Text: "its issue does not say that work begins: " + err.Error()})
	}
	return why
}

// raised is true when a person gave the task more room while it ran.
func (p *pilot) raised(ctx context.Context, l *slot) bool {
	limits, err := p.o.Store.CaseLimits(ctx, l.task.ID)
	return err == nil && limits.At.After(l.planned)
}

// take gives the workspace of a task.
func (p *pilot) take(ctx context.Context, id string) (pool.Workspace, error) {
	base, err := p.base(ctx)
	if err != nil {
		return pool.Workspace{}, err
	}
	return p.o.Pool.Take(ctx, id, base)
}

// base is the commit that work begins at.
func (p *pilot) base(ctx context.Context) (string, error) {
	base, err := p.o.Base(ctx)
	if err == nil && base == "" {
		err = fmt.Errorf("the branch that work lands on, %s, is not there", p.queue.Target())
	}
	return base, err
}

// releaseLimit is how long that may take.
const releaseLimit = time.Minute

// release gives a workspace back, also of a task that is another worker's now. One that
// cannot be is kept by the next process that looks.
func (p *pilot) release(ctx context.Context, w pool.Workspace, how pool.How) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	if err := p.o.Pool.Release(ctx, w, how); err != nil {
		p.notify(Notice{Kind: Warning, Text: err.Error()})
	}
}

// free gives back the workspace of a task that has landed.
func (p *pilot) free(ctx context.Context, id string) error {
	if _, ok, err := p.o.Pool.Find(ctx, id); err != nil || !ok {
		return err
	}
	base, err := p.base(ctx)
	if err != nil {
		return err
	}
	w, err := p.o.Pool.Reclaim(ctx, id, base)
	if err != nil {
		return err
	}
	if err := Forget(p.o.StateDir, w.ID); err != nil {
		p.o.Log.Warn(err.Error())
	}
	return p.o.Pool.Release(ctx, w, pool.Landed)
}

// run starts the task's run, or goes on with it, and returns its state when it
// rests.
func (p *pilot) run(ctx, ready context.Context, l *slot, w pool.Workspace) (loop.State, error) {
	l.planned = time.Now()
	task, past, last, err := p.prepare(ctx, l, w)
	if err != nil {
		return loop.State{}, err
	}
	past.Anew, past.Sent = !w.Kept, p.o.Remote != ""
	rests := past.Run != nil && !past.Run.Status.Active()
	if l.adopt && w.Kept && rests {
		l.setRun(*past.Run, last.ID)
		return *past.Run, nil
	}
	plan, tree, err := p.plan(ctx, ready, task)
	if err != nil {
		return loop.State{}, err
	}
	l.allow = plan.Protect.Allow
	if plan.Safety == sandbox.Paranoid {
		l.hold = "nothing lands unseen at the level paranoid"
	}
	err = p.setUp(ready, w, plan)
	switch {
	case ready.Err() != nil:
		stopped := loop.State{Status: loop.Interrupted, Why: "it was stopped before its run began"}
		return stopped, nil //nolint:nilerr // what was cut off by that is no error
	case err != nil:
		return loop.State{}, err
	}
	if err := p.others(ctx, l, &plan.Policy, last.ID); err != nil {
		return loop.State{}, err
	}
	plan.Policy.Share(l.racers)
	o := engine.Options{
		Plan: plan, StateDir: p.o.StateDir, Kernel: p.kernel, Store: p.o.Store, Tree: tree, Accounts: p.o.Accounts,
		Log:    p.o.Log,
		Notify: func(n engine.Notice) { p.notice(ctx, l, w, n) }, Stops: l.stops, Kill: l.kill, Pauses: l.pauses,
	}
	if past.Run != nil {
		o.Memory = past.Run.Memory
	}
	if p.o.Remote != "" {
		if o.BaseTree, err = p.o.Repo.TreeOf(ctx, w.Base); err != nil {
			return loop.State{}, err
		}
	}
	mode, why := schedule.Approach(past, &plan.Policy)
	hasWork := w.Kept || past.Sent
	if l.adopt && !rests && hasWork {
		mode = schedule.GoOn
	}
	if mode == schedule.Accept {
		l.setRun(*past.Run, last.ID)
		return *past.Run, nil
	}
	d, err := p.begin(ctx, l, o, mode, past, last)
	if err != nil {
		return loop.State{}, fmt.Errorf("%w (%s: %s)", err, mode, why)
	}
	l.setRun(d.State(), d.ID())
	return d.State(), nil
}

// others sets what the runs of the task have used but one, where all of them together are
// limited.
func (p *pilot) others(ctx context.Context, l *slot, pol *loop.Policy, run string) error {
	if pol.MaxTaskCost == nil && pol.Tokens.Task == nil && pol.Calls.Task == nil {
		return nil
	}
	used, err := p.o.Store.TaskUse(ctx, l.task.ID, run)
	pol.TaskCost, pol.Tokens.Others, pol.Calls.Others = used.Cost, used.Tokens, used.Calls
	return err
}

// prepare gathers what is known of the task.
func (p *pilot) prepare(ctx context.Context, l *slot, w pool.Workspace) (Task, schedule.Past, store.Run, error) {
	t, past := Task{Name: l.name, Agent: l.agent, Racers: l.racers, Workspace: w, Asked: p.o.Asked}, schedule.Past{}
	var last store.Run
	var err error
	if t.Case, err = p.o.Store.Case(ctx, l.task.ID); err != nil {
		return t, past, last, err
	}
	if t.Limits, err = p.o.Store.CaseLimits(ctx, l.task.ID); err != nil {
		return t, past, last, err
	}
	if past.History, err = p.o.Store.CaseHistory(ctx, l.task.ID); err != nil {
		return t, past, last, err
	}
	past.RaisedAt = t.Limits.At
	last, err = p.o.Store.Latest(ctx, p.o.Root, l.name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		err = nil
	case err == nil:
		err = p.pastRun(ctx, last, &past)
	}
	if err == nil {
		t.Earlier, err = p.earlierAttempts(ctx, t, past, last)
	}
	return t, past, last, err
}

// pastRun is what the task's last run came to, and whether a person answered.
func (p *pilot) pastRun(ctx context.Context, last store.Run, past *schedule.Past) error {
	s, err := engine.StateOf(last)
	if err != nil {
		return err
	}
	if p.wentDark(last, s) {
		return nil
	}
	past.Run = &s
	if !s.Status.Active() {
		past.RestedAt = last.UpdatedAt
	}
	rows, err := p.o.Store.Controls(ctx, last.ID)
	for _, r := range rows {
		past.Answered = past.Answered || r.Answers()
	}
	return err
}

// saveEvery is how often the activity of a slot is stored.
const saveEvery = time.Second

// notice passes on what the engine tells, and stores what the slot does.
func (p *pilot) notice(ctx context.Context, l *slot, w pool.Workspace, n engine.Notice) {
	l.setRun(n.State, n.Run)
	if text := l.does(n); text != "" {
		p.saveSlot(context.WithoutCancel(ctx), l, text)
	}
	if n.Kind == engine.Tick {
		return
	}
	if n.Kind == engine.IterationEnded && n.Record != nil {
		p.send(ctx, schedule.Event{Kind: schedule.Iterated, Case: l.task.ID, Iteration: iteration(n.Record)})
	}
	p.tellLimit(ctx, n)
	p.notify(Notice{
		Kind: RunNotice, Case: l.task.ID, Title: l.task.Title, Run: n.Run, Agent: l.label(), Engine: n, Workspace: w,
	})
}

// iteration is what the kernel wants to know of one.
func iteration(r *loop.Record) schedule.Iteration {
	i := schedule.Iteration{Number: r.Number}
	if f := r.Failure; r.Outcome == loop.Failed && f != nil && r.Exit.Ended == loop.NotEnded {
		i.Failure = &schedule.Failure{Fingerprint: f.Fingerprint, Class: f.Class, Step: f.Step, Summary: f.Summary}
	}
	return i
}

// tellLimit tells the owner that a provider limits the run, or answered it.
func (p *pilot) tellLimit(ctx context.Context, n engine.Notice) {
	e := schedule.Event{Kind: schedule.Limited, Named: n.Command.Agent, Why: n.Command.Why}
	switch {
	case n.Kind == engine.WaitStarted && n.Command.Limited:
	case n.Kind == engine.IterationEnded && n.Record.Outcome != loop.Waited:
		e.Named, e.Why = n.Record.Agent, ""
	default:
		return
	}
	p.send(context.WithoutCancel(ctx), e)
}

// does is the activity that is to be stored with a notice; "" nothing. What an
// agent does in quick succession is left to the next tick.
func (l *slot) does(n engine.Notice) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text := activity(n); text != "" {
		l.doing = text
	}
	soon := n.Kind == engine.AgentEvent && n.At.Sub(l.savedAt) < saveEvery
	if l.doing == "" || soon {
		return ""
	}
	text := l.doing
	l.doing, l.savedAt = "", n.At
	return text
}

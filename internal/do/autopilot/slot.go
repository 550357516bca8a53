package autopilot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// slot works on one task. Requests of the owner come through channels; what the
// owner reads is guarded.
type slot struct {
	task   board.Case
	name   string  // of its run and its workspace: the task's, or that of a racer
	agent  string  // that works on it; "" is the configured one
	racers int     // that it is one of; below 2 it is no race
	also   []*slot // those that race with it
	lead   *slot   // whose run people see first, for one that races beside it
	adopt  bool    // its run continues, or has ended, since before this autopilot
	gone   bool    // another process decided the task; the owner's
	since  time.Time

	stops  chan loop.Cause
	kill   chan struct{}
	killed sync.Once
	pauses chan struct{}
	cancel context.CancelFunc // ends what comes before the run; nil when it could not be begun

	// result is what is to land, once the run is complete. The owner reads it
	// after the slot has ended.
	result queue.Entry

	raisedAt time.Time // when the limits that its run was planned with were raised
	allow    []string  // patterns of protected files that it may change
	closed   bool      // its agents worked at the level paranoid
	hold     string    // why a person has to review its work; "" the settings say

	mu      sync.Mutex
	run     string
	count   int       // iterations that are used up
	doing   string    // its activity that is not stored yet
	savedAt time.Time // when its activity was stored last
}

func newSlotOfTask(c board.Case, adopt bool) *slot {
	return &slot{
		task: c, name: c.ID, adopt: adopt, since: time.Now(),
		stops: make(chan loop.Cause, 1), kill: make(chan struct{}), pauses: make(chan struct{}, 1),
	}
}

// askPause asks the run to rest at the end of its iteration.
func (l *slot) askPause() {
	for _, r := range l.otherRacers() {
		r.askPause()
	}
	select {
	case l.pauses <- struct{}{}:
	default: // it is asked already
	}
}

// forgetAsks forgets what was asked of the run before.
func (l *slot) forgetAsks() {
	for {
		select {
		case <-l.pauses:
		case <-l.stops:
		default:
			return
		}
	}
}

// askRunsToStop asks the run to end, at once with kill.
func (l *slot) askRunsToStop(cause loop.Cause, kill bool) {
	for _, r := range l.otherRacers() {
		r.askRunsToStop(cause, kill)
	}
	l.askRunToStop(cause)
	if l.cancel != nil {
		l.cancel()
	}
	if kill {
		l.killed.Do(func() { close(l.kill) })
	}
}

// askRunToStop asks the run alone to end.
func (l *slot) askRunToStop(cause loop.Cause) {
	select {
	case l.stops <- cause:
	default:
	}
}

func (l *slot) idOfRun() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.run
}

func (l *slot) iterationCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

func (l *slot) setRunAndCount(s loop.State, run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run, l.count = run, s.Iteration
}

// workSlot drives the task's run until it rests, and keeps its result. Cancelling ready
// ends what comes before the run.
func (p *attempts) workSlot(ctx, ready context.Context, l *slot) schedule.Outcome {
	if why := p.reasonClaimed(ready, l); why != "" {
		return schedule.Outcome{Status: loop.Blocked, Why: why}
	}
	if p.o.Elsewhere != nil {
		return p.workElsewhere(ctx, l)
	}
	racers, err := p.racersFor(ctx, l)
	if err != nil {
		return outcomeNotBegun(err)
	}
	if len(racers) > 1 {
		return p.runRaceOfAgents(ctx, ready, l, racers)
	}
	w, state, err := p.attemptRun(ctx, ready, l)
	return p.endAttempt(ctx, l, w, state, err)
}

// attemptRun takes the workspace of a slot, and drives its run until it rests.
func (p *attempts) attemptRun(ctx, ready context.Context, l *slot) (w pool.Workspace, state loop.State, err error) {
	if w, err = p.takeToWork(ready, l); err != nil {
		return w, state, err
	}
	if !w.Kept && p.decidedComplete() {
		return w, state, errAway
	}
	state, err = p.driveRun(ctx, ready, l, w)
	for err == nil && state.Status == loop.TimedOut && p.hasMoreRoom(ctx, l) {
		state, err = p.driveRun(ctx, ready, l, w)
	}
	return w, state, err
}

// endAttempt keeps the result of an attempt, and gives its workspace back.
func (p *attempts) endAttempt(ctx context.Context, l *slot, w pool.Workspace, s loop.State, err error,
) schedule.Outcome {
	switch {
	case err != nil && w.ID == "":
		return outcomeNotBegun(err)
	case errors.Is(err, engine.ErrTaken):
		p.releaseWorkspace(ctx, w, pool.Keep("another process uses it"))
		return schedule.Outcome{Taken: true, Why: err.Error()}
	case errors.Is(err, engine.ErrWaits):
		p.releaseWorkspace(ctx, w, pool.Keep("its run waits"))
		return outcomeNotBegun(err)
	case err != nil:
		p.releaseWorkspace(ctx, w, pool.Keep("its run could not be started"))
		return outcomeNotBegun(err)
	}
	l.adopt = false
	o := schedule.Outcome{
		Status: s.Status, Why: s.Why, Question: s.Question != nil, Guard: s.Command.Guard != "",
		Settled: s.Command.Settled,
	}
	if s.Status == loop.Paused && s.Command.Limited {
		o.Until = s.Command.Until
	}
	how := pool.Keep(fmt.Sprintf("its run is %s", s.Status))
	switch s.Status {
	case loop.Completed:
		p.collectWork(ctx, l, w, s, &o)
		how = pool.Keep("its work is complete")
	case loop.FailedRun, loop.Blocked:
		p.blameOthers(ctx, l, &o)
	case loop.Interrupted, loop.Stopped:
		how = pool.Stopped(fmt.Sprintf("its run is %s", s.Status))
	}
	p.releaseWorkspace(ctx, w, how)
	return o
}

func outcomeNotBegun(err error) schedule.Outcome {
	return schedule.Outcome{
		NotStarted: true, Machine: faultOf(err) == schedule.OfMachine, Setup: errors.Is(err, errSetup),
		Why:   err.Error(),
		Lacks: errors.Is(err, engine.ErrNoProgram),
	}
}

// reasonClaimed: another board works on the issue of a task; "" when none does. Without an
// answer of the forge the work begins.
func (p *attempts) reasonClaimed(ctx context.Context, l *slot) string {
	if p.o.Claim == nil || l.adopt || l.task.Issue() == 0 {
		return ""
	}
	bounded, cancel := context.WithTimeout(ctx, lastSync)
	defer cancel()
	why, err := p.o.Claim(bounded, l.task)
	if err != nil && ctx.Err() == nil {
		p.warnAbout(l.task.ID, "cannot report on its issue that work starts: "+err.Error())
	}
	return why
}

// readLimits reads the limits that the run of a slot is planned with.
func (p *attempts) readLimits(ctx context.Context, l *slot) (store.CaseLimits, error) {
	limits, err := p.o.Store.CaseLimits(ctx, l.task.ID)
	l.raisedAt = limits.At
	return limits, err
}

// hasMoreRoom reports whether a person raised the task's limits while it ran.
func (p *attempts) hasMoreRoom(ctx context.Context, l *slot) bool {
	limits, err := p.o.Store.CaseLimits(ctx, l.task.ID)
	return err == nil && !limits.At.Equal(l.raisedAt)
}

// takeWorkspace gives the workspace of a task.
func (p *workspaces) takeWorkspace(ctx context.Context, id string) (pool.Workspace, error) {
	if err := p.freeIfLanded(ctx, id); err != nil {
		return pool.Workspace{}, err
	}
	base, err := p.baseCommit(ctx)
	if err != nil {
		return pool.Workspace{}, err
	}
	return p.o.Pool.Take(ctx, id, base)
}

// baseCommit is the commit that work begins at.
func (p *workspaces) baseCommit(ctx context.Context) (string, error) {
	base, err := p.o.Base(ctx)
	if err == nil && base == "" {
		err = fmt.Errorf("the branch that work lands on, %s, does not exist", p.queue.Target())
	}
	return base, err
}

// releaseLimit is how long that may take.
const releaseLimit = time.Minute

// releaseWorkspace gives a workspace back, also of a task that is another worker's now. One that
// cannot be is kept by the next process that looks.
func (p *workspaces) releaseWorkspace(ctx context.Context, w pool.Workspace, how pool.How) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	if err := p.o.Pool.Release(ctx, w, how); err != nil {
		p.warnAbout("", err.Error())
	}
}

// freeIfLanded gives back a workspace whose work has landed since it was taken, without this autopilot: a task that was
// taken back begins at the target.
func (p *workspaces) freeIfLanded(ctx context.Context, id string) error {
	row, ok, err := p.o.Store.Workspace(ctx, id)
	if err != nil || !ok {
		return err
	}
	history, err := p.o.Store.CaseHistory(ctx, id)
	hasLanded := func(e board.Entry) bool { return e.Action == board.Land && e.At.After(row.TakenAt) }
	if err != nil || !slices.ContainsFunc(history, hasLanded) {
		return err
	}
	return p.freeWorkspace(ctx, id)
}

// freeWorkspace gives back the workspace of a task that has landed.
func (p *workspaces) freeWorkspace(ctx context.Context, id string) error {
	if _, ok, err := p.o.Pool.Find(ctx, id); err != nil || !ok {
		return err
	}
	base, err := p.baseCommit(ctx)
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

// driveRun starts the task's run, or resumes it, and returns its state when it rests.
func (p *attempts) driveRun(ctx, ready context.Context, l *slot, w pool.Workspace) (loop.State, error) {
	task, past, last, err := p.gatherTask(ctx, l, w)
	if err != nil {
		return loop.State{}, err
	}
	past.Anew, past.Sent = !w.Kept, p.o.Remote != ""
	if w.Kept || past.Sent { // it continues what was written at that level
		task.Level = last.Level()
	}
	rests := past.Run != nil && !past.Run.Status.Active()
	if l.adopt && w.Kept && rests {
		l.noteLevel(task.Level)
		l.setRunAndCount(*past.Run, last.ID)
		return *past.Run, nil
	}
	plan, tree, err := p.planTask(ctx, ready, task)
	if err != nil {
		return loop.State{}, err
	}
	if plan.BaseTree, err = p.o.Repo.TreeOf(ctx, w.Base); err != nil {
		return loop.State{}, err
	}
	plan.Worked = w.Kept && past.Run != nil && past.Run.Spent.Active > 0
	wasQueued := func(e board.Entry) bool { return e.Action == board.Enqueue }
	plan.Landing = slices.ContainsFunc(past.History, wasQueued) // it did not land, or was taken back
	l.allow = plan.Protect.Allow
	l.noteLevel(plan.Safety)
	err = p.setUpWorkspace(ready, w, plan)
	switch {
	case ready.Err() != nil:
		stopped := loop.State{Status: loop.Interrupted, Why: "it was stopped before its run started"}
		return stopped, nil //nolint:nilerr // what was cut off by that is no error
	case err != nil:
		return loop.State{}, err
	}
	if err := p.setOthersUse(ctx, l, &plan.Policy, last.ID); err != nil {
		return loop.State{}, err
	}
	plan.Policy.Share(l.racers)
	o := engine.Options{
		Plan: plan, StateDir: p.o.StateDir, Kernel: p.kernel, Store: p.o.Store, Tree: tree, Accounts: p.o.Accounts,
		Log:    p.o.Log,
		Notify: func(n engine.Notice) { p.onNotice(ctx, l, w, n) }, Stops: l.stops, Kill: l.kill, Pauses: l.pauses,
	}
	if past.Run != nil {
		o.Memory = past.Run.Memory
	}
	if p.o.Remote != "" {
		o.BaseTree = plan.BaseTree
	}
	mode, why := schedule.Approach(past, &plan.Policy)
	hasWork := w.Kept || past.Sent
	if l.adopt && !rests && hasWork {
		mode = schedule.GoOn
	}
	if mode == schedule.Accept {
		l.setRunAndCount(*past.Run, last.ID)
		return *past.Run, nil
	}
	d, err := p.beginRun(ctx, l, o, mode, past, last)
	if err != nil {
		return loop.State{}, fmt.Errorf("%w (%s: %s)", err, mode, why)
	}
	l.setRunAndCount(d.State(), d.ID())
	return d.State(), nil
}

// setOthersUse sets what the runs of the task have used but one, where all of them together are
// limited.
func (p *attempts) setOthersUse(ctx context.Context, l *slot, pol *loop.Policy, run string) error {
	if pol.MaxTaskCost == nil && pol.Tokens.Task == nil && pol.Calls.Task == nil {
		return nil
	}
	used, err := p.o.Store.TaskUse(ctx, l.task.ID, run)
	pol.TaskCost, pol.Tokens.Others, pol.Calls.Others = used.Cost, used.Tokens, used.Calls
	return err
}

// noteLevel notes the safety level of the slot's work.
func (l *slot) noteLevel(level string) {
	if l.closed = level == sandbox.Paranoid; l.closed {
		l.hold = "everything is reviewed at the level paranoid"
	}
}

// gatherTask gathers what is known of the task.
func (p *attempts) gatherTask(ctx context.Context, l *slot, w pool.Workspace) (Task, schedule.Past, store.Run, error) {
	t, past := Task{Name: l.name, Agent: l.agent, Racers: l.racers, Workspace: w, Asked: p.o.Asked}, schedule.Past{}
	var last store.Run
	var err error
	if t.Case, err = p.o.Store.Case(ctx, l.task.ID); err != nil {
		return t, past, last, err
	}
	if t.Limits, err = p.readLimits(ctx, l); err != nil {
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
		err = p.readPastRun(ctx, last, &past)
	}
	if err == nil {
		t.Earlier, err = p.earlierAttempts(ctx, t, past, last)
	}
	return t, past, last, err
}

// readPastRun reads the result of the task's last run, and whether a person answered.
func (p *reporter) readPastRun(ctx context.Context, last store.Run, past *schedule.Past) error {
	s, err := storedrun.StateOf(last)
	if err != nil {
		return err
	}
	if p.diedWithMachine(last, s) {
		return nil
	}
	past.Run = &s
	if !s.Status.Active() {
		past.RestedAt = last.UpdatedAt
	}
	rows, err := p.o.Store.Controls(ctx, last.ID)
	for _, r := range rows {
		past.Answered = past.Answered || r.IsAnswer()
	}
	return err
}

// saveEvery is how often the activity of a slot is stored.
const saveEvery = time.Second

// onNotice passes on a notice of the engine, and stores what the slot does.
func (p *reporter) onNotice(ctx context.Context, l *slot, w pool.Workspace, n engine.Notice) {
	l.setRunAndCount(n.State, n.Run)
	if text := l.activityToSave(n); text != "" {
		p.saveSlot(context.WithoutCancel(ctx), l, text)
	}
	if n.Kind == engine.Tick {
		return
	}
	if n.Kind == engine.IterationEnded && n.Record != nil {
		p.sendEvent(ctx, schedule.Event{Kind: schedule.Iterated, Case: l.task.ID, Iteration: iterationOf(n.Record)})
	}
	p.sendLimit(ctx, n)
	p.notify(Notice{
		Kind: RunNotice, Case: l.task.ID, Title: l.task.Title, Run: n.Run, Agent: l.racerLabel(), Engine: n,
		Workspace: w,
	})
}

// iterationOf takes from a record what the kernel needs.
func iterationOf(r *loop.Record) schedule.Iteration {
	i := schedule.Iteration{Number: r.Number}
	if f := r.Failure; r.Outcome == loop.Failed && f != nil && r.Exit.Ended == loop.NotEnded {
		i.Failure = &schedule.Failure{Fingerprint: f.Fingerprint, Class: f.Class, Step: f.Step, Summary: f.Summary}
	}
	return i
}

// sendLimit: a provider limits the run, or answers it again.
func (p *reporter) sendLimit(ctx context.Context, n engine.Notice) {
	e := schedule.Event{Kind: schedule.Limited, Named: n.Command.Agent, Why: n.Command.Why}
	switch {
	case n.Kind == engine.WaitStarted && n.Command.Limited:
	case n.Kind == engine.IterationEnded && n.Record.Outcome != loop.Waited:
		e.Named, e.Why = n.Record.Agent, ""
	default:
		return
	}
	p.sendEvent(context.WithoutCancel(ctx), e)
}

// activityToSave with a notice; "" nothing. What an
// agent does in quick succession is left to the next tick.
func (l *slot) activityToSave(n engine.Notice) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text := activityOf(n); text != "" {
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

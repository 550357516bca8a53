package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/prompt"
	"github.com/pawl-dev/pawl/internal/ratelimit"
	"github.com/pawl-dev/pawl/internal/safety"
	"github.com/pawl-dev/pawl/internal/signal"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/supervisor"
)

// Work performs the iterations of a run that is more than one agent: the steps
// of a workflow. It is asked by one goroutine at a time.
type Work interface {
	// Iterate carries out one iteration and makes its record: how it ended, what
	// it used, what failed. The engine adds tree, snapshot and time. It is asked
	// again for an iteration that a crash cut off, and goes on where that was.
	// A done ctx is a stop: what runs is ended, and waited for. An error is
	// pawl's own and ends the run; [supervisor.ErrTaken] says that another pawl has it.
	Iterate(ctx context.Context, h *Hand, c loop.Command) (*loop.Record, error)
	// Refuse takes back what was done, where all steps are done and a gate, a
	// review or a person refuses it. Repeating it changes nothing.
	Refuse(ctx context.Context, h *Hand, r *loop.Record) error
}

// Hand is what a [Work] works with: the engine's way to start, to tell and to
// record. Its methods may be called from several goroutines.
type Hand struct {
	d *Driver
	c loop.Command
	p place

	saying sync.Mutex
	said   map[int64]string // messages and the step whose agent was told, in this iteration
}

// Run is the run's id, Plan what it is made of, Dir the iteration's folder.
func (h *Hand) Run() string { return h.d.id }

// Plan is what the run is made of.
func (h *Hand) Plan() Plan { return h.d.plan }

// Dir is the folder of the iteration's files.
func (h *Hand) Dir() string { return h.p.dir }

// Inner is what a run inside of this one works with: its plan is given, and it
// works where this one does, which may be a copy.
func (h *Hand) Inner(plan Plan) Options {
	o := h.d.o
	o.Plan, o.Work, o.Stops, o.Kill = plan, nil, nil, nil
	if k := h.d.copied; k != nil {
		repo := h.d.original.Repo
		o.Plan.Box = boxThroughCopy(plan.Box, k, repo.Top, repo.Dir, repo.Common)
	}
	return o
}

// Store is the database; Owner is who this process is in it.
func (h *Hand) Store() *sqlite.Store { return h.d.o.Store }

// Owner is who this process is in the database.
func (h *Hand) Owner() sqlite.Owner { return h.d.owner }

// Pausing is true when a person wants the run to pause: nothing more is to
// start. It looks at what was asked up to now, and not at what the owner of the
// run has noticed.
func (h *Hand) Pausing(ctx context.Context) bool {
	h.d.telling.Lock()
	asked := h.d.shown.PauseAsked
	h.d.telling.Unlock()
	if asked || h.d.o.Store == nil {
		return asked
	}
	rows, err := h.d.o.Store.Controls(ctx, h.d.id)
	if err != nil {
		return false // the owner looks again
	}
	return slices.ContainsFunc(rows, func(r sqlite.Control) bool { return r.Kind == sqlite.ControlPause })
}

// Last is true in the last iteration that the run's limit allows.
func (h *Hand) Last() bool {
	h.d.telling.Lock()
	defer h.d.telling.Unlock()
	return h.d.shown.Limit > 0 && h.c.Iteration >= h.d.shown.Limit
}

// Tell shows a step's notice; Time, run and state are added.
func (h *Hand) Tell(kind NoticeKind, s StepNotice) { h.d.notify(Notice{Kind: kind, Step: &s}) }

// TellAgent shows an event of a step's agent.
func (h *Hand) TellAgent(step string, e agent.Event) {
	h.d.notify(Notice{Kind: AgentEvent, Event: e, Step: &StepNotice{Step: step}})
}

// Warn tells a person what went wrong and stops nothing.
func (h *Hand) Warn(text string) { h.d.warn(text) }

// Do runs a job beside others. With a done ctx nothing is started.
func (h *Hand) Do(ctx context.Context, job supervisor.Job, onEvent func(agent.Event)) (supervisor.Result, error) {
	if ctx.Err() != nil {
		return supervisor.Result{ID: job.ID, StartedAt: time.Now(), Exit: loop.Exit{Code: -1, Ended: loop.EndedStop}}, nil //nolint:nilerr // a stop is how the job ended, and no error
	}
	if err := os.MkdirAll(filepath.Dir(job.Files), 0o700); err != nil {
		return supervisor.Result{}, fmt.Errorf("cannot make the folder of the step: %v", err)
	}
	return h.d.lanes.do(ctx, job, onEvent)
}

// Abandon ends a job that an earlier pawl began and nobody wants any more.
func (h *Hand) Abandon(ctx context.Context, job supervisor.Job) { h.d.lanes.abandon(ctx, job) }

// Fate is what became of a job that an earlier pawl began.
type Fate int

// The fates.
const (
	NotBegun Fate = iota // it never started
	Ended                // it has a result, perhaps one that was waited for just now
	Lost                 // it started, and nobody knows how it ended
)

// Resume finds what became of a job that an earlier pawl began, and waits for
// its end if it still runs.
func (h *Hand) Resume(ctx context.Context, job supervisor.Job, onEvent func(agent.Event)) (supervisor.Result, Fate, error) {
	if res, ok, err := supervisor.LoadResult(job.Files); err == nil && ok && res.ID == job.ID {
		return res, fateOf(res), nil
	}
	res, ok, err := h.d.lanes.adopt(ctx, job, onEvent)
	switch {
	case errors.Is(err, supervisor.ErrTaken):
		return res, Lost, err
	case ok && err == nil:
		return res, fateOf(res), nil
	case !ok && !supervisor.Begun(job):
		return res, NotBegun, nil
	}
	res, err = supervisor.Lost(job)
	if err != nil {
		h.Warn(err.Error())
	}
	return res, fateOf(res), nil
}

func fateOf(res supervisor.Result) Fate {
	if gone(res) {
		return Lost
	}
	return Ended
}

// Shell is the job of a command line, held as gates are.
func (h *Hand) Shell(id, files, command, dir string, env []string, wall time.Duration) supervisor.Job {
	box := h.d.gateBox()
	if box != nil {
		box.Write = append(box.Write[:len(box.Write):len(box.Write)], filepath.Dir(files)+"/out")
	}
	return supervisor.Job{
		ID: id, Files: files, Args: []string{"sh", "-e", "-c", command}, Dir: dir, Box: box,
		Env:    h.d.environ(h.d.plan.Environ, h.c.Iteration, env, nil),
		Limits: supervisor.Limits{Wall: wall, Room: leastRoom},
	}
}

// Forbidden says whether the safety level forbids a command line.
func (h *Hand) Forbidden(command string) (safety.Finding, bool) { return h.d.rules().Command(command) }

// Barred is why an agent is not to be called now: a limit of its provider that is
// known, whoever met it; nil for none.
func (h *Hand) Barred(ctx context.Context, name string) *failure.Analysis {
	d, key := h.d, h.d.account(name)
	if _, barred := d.o.Accounts.Enter(ctx, key, d.id, d.self, h.c.Insist); !barred {
		return nil
	}
	now := time.Now()
	known, _ := d.o.Accounts.Look(key, now)
	until, probe := known.Bars(d.id, now)
	if until.IsZero() {
		return nil // it is over by now
	}
	l := loop.Limited{Agent: name, Class: known.Class, Until: until, Probe: probe}
	if known.Run != d.id {
		l.Run = known.Run
	}
	return &failure.Analysis{
		Class: known.Class, Kind: failure.Transient, Transient: true, Provider: true, Severity: failure.Medium, WaitUntil: until,
		Summary: l.Reason() + "; it is not called before " + until.Local().Format("15:04:05"), Fingerprint: knownLimit + string(known.Class),
	}
}

// AgentCall is what a step asks of an agent.
type AgentCall struct {
	ID, Files, Agent, Prompt string
	Step                     string // who asks, for what people said
	Dir                      string // where it works; "" is the root
	Env                      []string
	Limits                   loop.CommandLimits
}

// AgentJob writes the prompt and makes the job of an agent.
func (h *Hand) AgentJob(ctx context.Context, a AgentCall) (supervisor.Job, error) {
	a.Prompt += h.messages(ctx, a.Step)
	path := a.Files + ".prompt.md"
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return supervisor.Job{}, fmt.Errorf("cannot make the folder of the step: %v", err)
	}
	if err := os.WriteFile(path, []byte(a.Prompt), 0o600); err != nil {
		return supervisor.Job{}, fmt.Errorf("cannot write the prompt: %v", err)
	}
	c := h.c
	c.Agent, c.Limits = a.Agent, a.Limits
	job, warm, err := h.d.agentJob(c, h.p, agentCall{id: a.ID, files: a.Files, prompt: path, size: int64(len(a.Prompt))})
	if err != nil {
		return job, err
	}
	job.Env = append(job.Env, a.Env...)
	if a.Dir != "" {
		job.Dir = a.Dir
	}
	h.d.warm(ctx, c, job, warm)
	return job, nil
}

// messages are those that wait for an agent, as a part of the step's prompt: the
// next agent that starts is told, and so is a further try of the same step.
func (h *Hand) messages(ctx context.Context, step string) string {
	h.saying.Lock()
	defer h.saying.Unlock()
	texts, rows := h.d.messages(ctx)
	var mine []string
	for i, row := range rows {
		if to, told := h.said[row]; told && to != step {
			continue
		}
		h.said[row] = step
		mine = append(mine, texts[i])
	}
	if text := prompt.Messages(mine); text != "" {
		return "\n\n## MESSAGES\n\n" + text + "\n"
	}
	return ""
}

// AgentEnd is what an agent's job came to.
type AgentEnd struct {
	Record  *loop.Record // exit, signal, usage, failure; nothing of the tree
	Message string       // the agent's last words
}

// AgentEnded reads the result of an agent's job.
func (h *Hand) AgentEnded(ctx context.Context, name string, job supervisor.Job, res supervisor.Result) AgentEnd {
	c := h.c
	c.Agent = name
	res.Agent = h.d.complete(ctx, name, begun{Job: job}, res)
	r := h.d.told(c, res)
	message := res.Agent.Message
	if !h.d.structured(name) {
		message = agentOutput(res)
	}
	if r.Valid() {
		read := signal.Read(res.Agent.Message)
		r.Signal, r.Progress, r.Malformed = read.Signal, read.Progress, read.Malformed
	}
	r.Failure = h.d.agentFailure(r, res)
	nameRefusals(r.Failure, job.Box, agentOutput(res), res.Unreached)
	if f := r.Failure; f == nil || !f.Provider || !f.WaitUntil.IsZero() { // else the kernel says how long it is waited for
		h.d.meet(ctx, h.d.account(name), ratelimit.Meeting{Began: res.StartedAt}, r.Exit.Ended, f, time.Now())
	}
	return AgentEnd{r, message}
}

// ShellFailure analyses a command that did not end well; nil when it did, or
// when it was stopped.
func (h *Hand) ShellFailure(name string, job supervisor.Job, res supervisor.Result) *failure.Analysis {
	x := res.Exit
	if x.Code == 0 && x.Signal == "" && x.Ended == loop.NotEnded || x.Ended == loop.EndedStop || gone(res) {
		return nil
	}
	out := res.Error
	if out == "" {
		out = streamText(res.Stdout)
		if e := streamText(res.Stderr); e != "" {
			out += "\n" + e
		}
	}
	a := failure.Analyse(failure.Evidence{
		Source: "step", Name: name, ExitCode: x.Code, Signal: x.Signal, TimedOut: x.Ended == loop.EndedTimeout, Output: out, Now: endOf(res), Zone: zone,
	})
	nameRefusals(&a, job.Box, out, res.Unreached)
	return &a
}

// work carries out a run command by steps.
func (d *Driver) work(ctx, hard context.Context, s loop.State) done {
	c := s.Command
	p := d.place(c.Iteration, c.Attempt)
	b, begun := p.load()
	if begun {
		d.knowBase(b)
		b.Worked += max(0, p.newest().Sub(b.Since))
		b.Since = time.Now()
		if err := p.write(b); err != nil {
			d.warn(err.Error())
		}
	} else {
		var err error
		if b, err = d.beginWork(ctx, c, p); err != nil {
			return d.over(c, d.cannotStart(c, err))
		}
	}
	h := &Hand{d: d, c: c, p: p, said: map[int64]string{}}
	r, err := d.o.Work.Iterate(ctx, h, c)
	d.lanes.leave()
	switch {
	case errors.Is(err, supervisor.ErrTaken), errors.Is(err, sqlite.ErrNotOwner):
		return done{lost: fmt.Errorf("%w: run %s", ErrTaken, d.id)}
	case err != nil:
		return d.over(c, d.cannotStart(c, err))
	}
	r.Number, r.Attempt, r.StartedAt, r.Strategy = c.Iteration, c.Attempt, b.At, c.Strategy
	r.Elapsed = b.Worked + time.Since(b.Since)
	after, cancel := aftermath(hard)
	defer cancel()
	if n := d.plan.CheckpointInterval; n <= 1 || c.Iteration%n == 0 || r.Steps != nil && r.Steps.Complete {
		d.snapshot(after, s, r, b)
		d.findSecrets(after, r)
	}
	d.verifySteps(ctx, c, r)
	end := d.over(c, r)
	end.messages = slices.Sorted(maps.Keys(h.said))
	return end
}

// verifySteps runs the gates where all steps are done. The score stays that of
// the steps.
func (d *Driver) verifySteps(ctx context.Context, c loop.Command, r *loop.Record) {
	if t := r.Steps; t == nil || !t.Complete || r.Failure != nil || r.Exit.Ended != loop.NotEnded || len(d.plan.Gates) == 0 {
		return
	}
	score := r.Score
	r.Verified = d.runGates(ctx, c, r)
	r.Score = score
	if !r.Verified {
		r.Steps.Complete = false // nobody judged it
	}
}

// refuse takes back the work of steps that a record refuses.
func (d *Driver) refuse(ctx context.Context, r *loop.Record) {
	if d.o.Work == nil || !r.SentBack() {
		return
	}
	h := &Hand{d: d, c: loop.Command{Iteration: r.Number, Attempt: r.Attempt}, p: d.place(r.Number, r.Attempt)}
	if err := d.o.Work.Refuse(context.WithoutCancel(ctx), h, r); err != nil {
		d.warn(fmt.Sprintf("the refused work could not be taken back, so its steps count as done: %v", err))
	}
}

// beginWork prepares an iteration by steps: folder and tree.
func (d *Driver) beginWork(ctx context.Context, c loop.Command, p place) (begun, error) {
	b := begun{Attempt: c.Attempt, At: time.Now(), Since: time.Now()}
	if err := p.open(); err != nil {
		return b, err
	}
	d.baseSnapshot(ctx)
	d.look(ctx, c, &b)
	return b, p.write(b)
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine/attemptdir"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Work performs the iterations of a run that is more than one agent: the steps
// of a workflow. It is asked by one goroutine at a time.
type Work interface {
	// Iterate carries out one iteration and makes its record: how it ended, what
	// it used, what failed. The engine adds tree, snapshot and time. It is asked
	// again for an iteration that a crash cut off, and goes on where that was.
	// A done ctx is a stop: what runs is ended, and waited for. An error is
	// pawl's own and ends the run; [supervisor.ErrTaken] says that another pawl has it.
	Iterate(ctx context.Context, h *StepContext, c loop.Command) (*loop.Record, error)
	// Refuse takes back what was done, where all steps are done and a gate, a
	// review or a person refuses it. Repeating it changes nothing.
	Refuse(ctx context.Context, h *StepContext, r *loop.Record) error
}

// StepContext is what a [Work] works with: the engine's way to start, to tell and to
// record. Its methods may be called from several goroutines.
type StepContext struct {
	w *worker
	c loop.Command
	p attemptdir.Folder

	saying sync.Mutex
	said   map[int64]string // messages and the step whose agent was told, in this iteration
}

// Run is the run's id, Plan what it is made of, Dir the iteration's folder.
func (h *StepContext) Run() string { return h.w.id }

// Plan is what the run is made of.
func (h *StepContext) Plan() runplan.Plan { return h.w.plan }

// Dir is the folder of the iteration's files.
func (h *StepContext) Dir() string { return h.p.Dir }

// Inner is what a run inside of this one works with: its plan is given, and it
// works where this one does.
func (h *StepContext) Inner(plan runplan.Plan) Options {
	o := h.w.o
	o.Plan, o.Work, o.Stops, o.Kill, o.Private = plan, nil, nil, nil, nil
	if h.w.o.Private != nil {
		o.Plan = runplan.InWorkspace(plan, h.w.o.Private)
	}
	return o
}

// Store is the database; Owner is who this process is in it.
func (h *StepContext) Store() *store.Store { return h.w.o.Store }

// Owner is who this process is in the database.
func (h *StepContext) Owner() store.Owner { return h.w.owner }

// Pausing is true when a person wants the run to pause: nothing more is to
// start. It looks at what was asked up to now, and not at what the owner of the
// run has noticed.
func (h *StepContext) Pausing(ctx context.Context) bool {
	h.w.notifying.Lock()
	asked := h.w.shown.PauseAsked
	h.w.notifying.Unlock()
	if asked {
		return asked
	}
	rows, err := h.w.o.Store.Controls(ctx, h.w.id)
	if err != nil {
		return false // the owner looks again
	}
	return slices.ContainsFunc(rows, func(r store.Control) bool { return r.Kind == store.ControlPause })
}

// Last is true in the last iteration that the run's limit allows.
func (h *StepContext) Last() bool {
	h.w.notifying.Lock()
	defer h.w.notifying.Unlock()
	return h.w.shown.Limit > 0 && h.c.Iteration >= h.w.shown.Limit
}

// Tell shows a step's notice; Time, run and state are added.
func (h *StepContext) Tell(kind NoticeKind, s journal.Step) { h.w.notify(Notice{Kind: kind, Step: &s}) }

// TellAgent shows an event of a step's agent.
func (h *StepContext) TellAgent(step string, e agent.Event) {
	h.w.notify(Notice{Kind: AgentEvent, Event: e, Step: &journal.Step{Step: step}})
}

// Warn tells a person what went wrong and stops nothing.
func (h *StepContext) Warn(text string) { h.w.warn(text) }

// Do runs a job beside others. With a done ctx nothing is started.
func (h *StepContext) Do(ctx context.Context, job supervisor.Job, onEvent func(agent.Event),
) (supervisor.Result, error) {
	if err := os.MkdirAll(filepath.Dir(job.Files), 0o700); err != nil {
		return supervisor.Result{}, fmt.Errorf("cannot make the folder of the step: %v", err)
	}
	h.w.dropCaches(cachesFolder(job.Files))
	defer h.w.dropCaches(cachesFolder(job.Files))
	return h.w.runMeteredJob(ctx, job, onEvent)
}

// DoAgent is Do for an agent, whose program may be away for a while.
func (h *StepContext) DoAgent(ctx context.Context, job supervisor.Job, onEvent func(agent.Event),
) (supervisor.Result, error) {
	h.w.awaitProgram(ctx, job)
	return h.Do(ctx, job, onEvent)
}

// cachesFolder returns the folder for a command's changes to the tools' caches.
func cachesFolder(files string) string { return files + ".caches" }

// Abandon ends a job that an earlier pawl began and nobody wants any more.
func (h *StepContext) Abandon(ctx context.Context, job supervisor.Job) { h.w.jobs.Abandon(ctx, job) }

// Resume finds what became of a job that an earlier pawl began, and waits for
// its end if it still runs.
func (h *StepContext) Resume(ctx context.Context, job supervisor.Job, onEvent func(agent.Event),
) (supervisor.Result, lanes.Fate, error) {
	res, fate, err := h.w.resumeMeteredJob(ctx, job, onEvent)
	if err == nil {
		h.w.dropCaches(cachesFolder(job.Files))
	}
	return res, fate, err
}

// Shell is the job of a command line, held as gates are.
func (h *StepContext) Shell(id, files, command, dir string, env []string, wall time.Duration) supervisor.Job {
	box, caches := h.w.plan.Box.OfVerdict(cachesFolder(files))
	if box != nil {
		box.Write = append(box.Write[:len(box.Write):len(box.Write)], filepath.Dir(files)+"/out")
	}
	return supervisor.Job{
		ID: id, Files: files, Args: []string{"sh", "-e", "-c", command}, Dir: dir, Box: box,
		Env:    h.w.childEnvironment(h.w.plan.Environ, h.c.Iteration, caches, env, nil),
		Limits: supervisor.Limits{Wall: wall, Room: leastRoom},
	}
}

// Forbidden says whether the safety level forbids a command line.
func (h *StepContext) Forbidden(command string) (safety.Finding, bool) {
	return h.w.plan.SafetyRules().Command(command)
}

// Throttled is why an agent is not to be called now: a limit of its provider that is
// known, whoever met it; nil for none.
func (h *StepContext) Throttled(ctx context.Context, name string) *failure.Analysis {
	return h.w.Refusal(ctx, name, h.c.Insist)
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
func (h *StepContext) AgentJob(ctx context.Context, a AgentCall) (supervisor.Job, error) {
	a.Prompt += h.messagesForStep(ctx, a.Step)
	path := a.Files + ".prompt.md"
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return supervisor.Job{}, fmt.Errorf("cannot make the folder of the step: %v", err)
	}
	if err := os.WriteFile(path, []byte(a.Prompt), 0o600); err != nil {
		return supervisor.Job{}, fmt.Errorf("cannot write the prompt: %v", err)
	}
	c := h.c
	c.Agent, c.Limits = a.Agent, a.Limits
	job, warm, err := h.w.agentJob(c, h.p, agentCall{id: a.ID, files: a.Files, prompt: path, size: int64(len(a.Prompt))})
	if err != nil {
		return job, err
	}
	job.Env = append(job.Env, a.Env...)
	if a.Dir != "" {
		job.Dir = a.Dir
	}
	h.w.jobs.WarmUp(ctx, h.w.o.StateDir, c.Agent, &job, warm, h.w.warn)
	return job, nil
}

// messagesForStep returns the messages that wait for an agent, as a part of the step's
// prompt: the next agent that starts gets them, and so does a further try of the same
// step.
func (h *StepContext) messagesForStep(ctx context.Context, step string) string {
	h.saying.Lock()
	defer h.saying.Unlock()
	texts, rows := h.w.waitingMessages(ctx)
	var mine []string
	for i, row := range rows {
		if to, told := h.said[row]; told && to != step {
			continue
		}
		h.said[row] = step
		mine = append(mine, texts[i])
	}
	h.w.notifying.Lock()
	memory := h.w.shown.Memory
	h.w.notifying.Unlock()
	if _, answered := h.c.Feedback.AnswerTo(step); answered {
		memory = h.c.Feedback.Earlier(memory) // its own prompt has the answer
	}
	if parts := lists.NonEmpty(prompt.Messages(mine), prompt.Remembered(memory)); len(parts) > 0 {
		return "\n\n## MESSAGES\n\n" + strings.Join(parts, "\n\n") + "\n"
	}
	return ""
}

// AgentEnd is what an agent's job came to.
type AgentEnd struct {
	Record  *loop.Record // exit, signal, usage, failure; nothing of the tree
	Message string       // the agent's last words
}

// AgentEnded reads the result of an agent's job.
func (h *StepContext) AgentEnded(ctx context.Context, name string, job supervisor.Job, res supervisor.Result) AgentEnd {
	c := h.c
	c.Agent = name
	r := ending.NewRecord(&h.w.plan, c, res)
	message := res.Agent.Message
	if !ending.IsStructured(&h.w.plan, name) {
		message = ending.LastOutput(res)
	}
	h.w.readAgent(r, job, loop.CommandLimits{}, res)
	// else the kernel says how long it is waited for
	if f := r.Failure; f == nil || !f.Provider || !f.WaitUntil.IsZero() {
		h.w.Record(ctx, name, ratelimit.Meeting{Began: res.StartedAt}, r.Exit.Ended, f)
	}
	return AgentEnd{r, message}
}

// performSteps carries out a run command by steps.
func (w *worker) performSteps(ctx context.Context, s loop.State) input {
	c := s.Command
	p := w.attempt(c.Iteration, c.Attempt)
	b, begun := p.ReadBegun(p.BegunFile())
	if begun {
		w.adoptBase(b)
		b.Worked += max(0, p.LastChange().Sub(b.Since))
		b.Since = time.Now()
		if err := b.Write(p.BegunFile()); err != nil {
			w.warn(err.Error())
		}
	} else {
		if in := w.beforeIteration(ctx, s); in != nil {
			return *in
		}
		var err error
		if b, err = w.beginWork(ctx, c, p); err != nil {
			return w.iterationEnded(c, ending.NotStarted(c, err))
		}
	}
	h := &StepContext{w: w, c: c, p: p, said: map[int64]string{}}
	watched := w.watchTime(s, time.Now().Add(-b.Worked))
	r, err := w.o.Work.Iterate(ctx, h, c)
	watched()
	w.jobs.Leave()
	switch {
	case errors.Is(err, supervisor.ErrTaken), errors.Is(err, store.ErrNotOwner):
		return w.takenInput()
	case err != nil:
		return w.iterationEnded(c, ending.NotStarted(c, err))
	}
	r.Number, r.Attempt, r.StartedAt, r.Strategy = c.Iteration, c.Attempt, b.At, c.Strategy
	r.Elapsed = b.Worked + time.Since(b.Since)
	after, cancel := w.aftermath(w.hard)
	defer cancel()
	complete := r.Steps != nil && r.Steps.Complete
	if n := w.plan.CheckpointInterval; complete || n <= 1 || c.Iteration%n == 0 {
		w.snapshot(after, s, r, b)
		w.findSecrets(after, r)
	}
	w.verifySteps(ctx, c, r)
	end := w.iterationEnded(c, r)
	end.messages = slices.Sorted(maps.Keys(h.said))
	return end
}

// verifySteps runs the gates where all steps are done. The score stays that of
// the steps.
func (w *worker) verifySteps(ctx context.Context, c loop.Command, r *loop.Record) {
	if r.Steps == nil || !r.Steps.Complete || r.Failure != nil || r.Exit.Ended != loop.NotEnded {
		return
	}
	if len(w.plan.Gates) == 0 {
		return
	}
	score := r.Score
	r.Verified = w.runGates(ctx, c, r)
	r.Score = score
	if !r.Verified {
		r.Steps.Complete = false // nobody judged it
	}
}

// undoRefusedSteps takes back the work of steps that a record refuses.
func (w *worker) undoRefusedSteps(ctx context.Context, r *loop.Record) {
	if w.o.Work == nil || !r.SentBack() {
		return
	}
	h := &StepContext{w: w, c: loop.Command{Iteration: r.Number, Attempt: r.Attempt}, p: w.attempt(r.Number, r.Attempt)}
	if err := w.o.Work.Refuse(context.WithoutCancel(ctx), h, r); err != nil {
		w.warn(fmt.Sprintf("cannot undo the refused work, so its steps count as done: %v", err))
	}
}

// beginWork prepares an iteration by steps: folder and tree.
func (w *worker) beginWork(ctx context.Context, c loop.Command, p attemptdir.Folder) (attemptdir.Begun, error) {
	b := attemptdir.Begun{Attempt: c.Attempt, At: time.Now(), Since: time.Now()}
	if err := p.Open(); err != nil {
		return b, err
	}
	w.baseSnapshot(ctx)
	w.noteTreeBefore(ctx, c, &b)
	return b, b.Write(p.BegunFile())
}

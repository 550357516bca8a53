package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine/attemptdir"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// aftermath bounds a look at the tree or a snapshot after an agent's end: git
// alone, and never the gates, which have limits of their own. Little time is left when
// the run is to end at once: a git may come to no end.
func (s *session) aftermath(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	stop := context.AfterFunc(s.hasty, cancel)
	return ctx, func() { stop(); cancel() }
}

// hastily is how long after a kill all of it may take.
const hastily = 2 * time.Second

// shortenAfterKill makes what comes after agents hasty when the run is to end at once.
func (s *session) shortenAfterKill() (end func()) {
	s.hasty, end = context.WithCancel(context.Background())
	hasty := s.hasty
	go func() {
		select {
		case <-s.o.Kill:
			time.AfterFunc(hastily, end)
		case <-hasty.Done():
		}
	}()
	return end
}

// runIteration carries out a run command: it starts the agent, or goes on with the
// attempt that an earlier pawl began, and makes the record of it.
func (w *worker) runIteration(ctx context.Context, s loop.State) input {
	c := s.Command
	p := w.attempt(c.Iteration, c.Attempt)
	b, begun := p.ReadBegun(p.BegunFile())
	if begun || w.missing {
		return w.adopted(ctx, s, p, b, begun)
	}
	if why := w.reasonNoFolder(); why != "" {
		return w.iterationEnded(c, ending.NotStarted(c, errors.New(why)))
	}
	if in := w.beforeIteration(ctx, s); in != nil {
		return *in
	}
	if !w.awaitRoom(ctx) {
		return w.throttled(c)
	}
	if r := w.verifyBeforeAgents(ctx, s); r != nil {
		return w.iterationEnded(c, r)
	}
	if ctx.Err() != nil || !w.Acquire(ctx, c) { // an iteration that was not begun is not used up
		return w.throttled(c)
	}
	b, res, err := w.runAgent(ctx, s, w.beginAttempt)
	switch {
	case errors.Is(err, supervisor.ErrTaken):
		return w.takenInput()
	case errors.Is(err, errNoRoom):
		return w.iterationEnded(c, ending.NotBegun(c))
	case err != nil:
		return w.iterationEnded(c, ending.NotStarted(c, err))
	}
	return w.iterationEnded(c, w.makeRecord(ctx, s, b, res)).withMessages(b.Told(res))
}

// runAgent prepares an attempt, or a review, and runs its agent.
func (w *worker) runAgent(
	ctx context.Context, s loop.State, begin func(context.Context, loop.State, attemptdir.Folder) (attemptdir.Begun, error),
) (b attemptdir.Begun, res supervisor.Result, err error) {
	c := s.Command
	prepare := func() error {
		b, err = begin(ctx, s, w.attempt(c.Iteration, c.Attempt))
		return err
	}
	if err := w.retryWhenDiskFull(ctx, prepare); err != nil {
		return b, res, err
	}
	if c.Kind == loop.Run {
		b.Job.Limits.NearCost, b.Job.Limits.NearCalls = s.UseNear()
		w.notify(Notice{Kind: AgentStarts, Command: c})
	}
	kept := w.attempt(c.Iteration, c.Attempt).BegunFileOf(c)
	if c.Kind == loop.Run && b.Job.Talks {
		w.hearing.Open(b, kept)
	}
	defer w.watchTime(s, time.Now())()
	w.awaitProgram(ctx, b.Job)
	err = w.retryWhenDiskFull(ctx, func() error { // a job that did run is not run again
		res, err = w.runMeteredJob(ctx, b.Job, func(e agent.Event) { w.onAgentEvent(ctx, e) })
		return err
	})
	return w.hearing.Close(b), res, err
}

// adopted makes the record of an attempt that an earlier pawl began. One whose
// files are gone is taken for begun: it may have been paid for.
func (w *worker) adopted(ctx context.Context, s loop.State, p attemptdir.Folder, b attemptdir.Begun, known bool) input {
	c := s.Command
	w.missing = false
	res, fate := supervisor.Result{Exit: loop.Exit{Code: -1, Ended: loop.EndedLost}}, lanes.Lost
	if known {
		w.adoptBase(b)
		var err error
		watched := w.watchTime(s, b.At)
		res, fate, err = w.resumeMeteredJob(ctx, b.Job, func(e agent.Event) { w.onAgentEvent(ctx, e) })
		if watched(); err != nil {
			return w.takenInput()
		}
	} else {
		b.Attempt, b.At = c.Attempt, s.LastAt
	}
	if fate == lanes.Ended {
		return w.iterationEnded(c, w.makeRecord(ctx, s, b, res)).withMessages(b.Told(res))
	}
	if res.StartedAt.IsZero() {
		res.StartedAt = b.At
		res.Elapsed = max(0, p.LastChange().Sub(b.At))
	}
	r := w.makeRecord(ctx, s, b, res)
	if r.Exit.Ended == loop.EndedLost {
		r.Failure = ending.FailureOfLost()
	}
	return input{event: w.stampEvent(loop.Event{Kind: loop.Recovered, For: c.Seq, Record: r})}.withMessages(b.Told(res))
}

func (w *limitedJobs) iterationEnded(c loop.Command, r *loop.Record) input {
	return input{event: w.stampEvent(loop.Event{Kind: loop.IterationEnded, For: c.Seq, Record: r})}
}

// beginAttempt prepares an attempt: tree, prompt, command line. When it returns, the
// attempt can be found again after a crash.
func (w *worker) beginAttempt(ctx context.Context, s loop.State, p attemptdir.Folder) (attemptdir.Begun, error) {
	c := s.Command
	b := attemptdir.Begun{Attempt: c.Attempt, At: time.Now()}
	if err := p.Open(); err != nil {
		return b, err
	}
	w.baseSnapshot(ctx)
	w.noteTreeBefore(ctx, c, &b)
	said, rows := w.waitingMessages(ctx)
	b.Messages, b.Said = rows, said
	text, err := w.composePrompt(s, said)
	if err != nil {
		return b, err
	}
	if err := os.WriteFile(p.PromptFile(), []byte(text.Text), 0o600); err != nil {
		return b, fmt.Errorf("cannot write the prompt: %w", err)
	}
	call := agentCall{id: attemptdir.JobID(c), files: p.AgentFiles(), prompt: p.PromptFile(), size: int64(len(text.Text))}
	if w.plan.Agents[c.Agent].Tools {
		if call.tools, err = p.LayOutTools(&w.plan, c.Iteration); err != nil {
			return b, err
		}
	}
	var warm []string
	b.Job, warm, err = w.agentJob(c, p, call)
	if err != nil {
		return b, err
	}
	w.jobs.WarmUp(ctx, w.o.StateDir, c.Agent, &b.Job, warm, w.warn)
	return b, b.Write(p.BegunFile())
}

// composePrompt assembles the prompt of an iteration.
func (w *worker) composePrompt(s loop.State, messages []string) (prompt.Prompt, error) {
	in, c := w.plan.Prompt, s.Command
	in.Messages, in.Said = messages, s.Memory
	in.Iteration, in.MaxIterations, in.Run = c.Iteration, s.Limit, w.id
	in.Agent, in.Strategy, in.Feedback = c.Agent, c.Strategy, c.Feedback
	if s.Spent.Active == 0 && w.red != "" {
		in.Rules = append([]string{w.red}, in.Rules...)
	}
	in.Rules = slices.Concat(lists.NonEmpty(w.weakTests, w.redAgain, w.trees.putBack), in.Rules)
	text, err := prompt.Compose(in)
	if err != nil {
		return text, fmt.Errorf("cannot assemble the prompt: %v", err)
	}
	if text.Over {
		w.warn(fmt.Sprintf("Prompt exceeds token budget: %s > %s", prompt.Thousands(text.Tokens),
			prompt.Thousands(in.Budget)))
	}
	return text, nil
}

// agentCall is what differs between the calls of an agent.
type agentCall struct {
	id, files, prompt string
	size              int64 // of the prompt
	readOnly          bool
	tools             string // the folder of pawl's tools; "" are none
}

// agentJob is a process of the command's agent, and what must have run before.
func (w *worker) agentJob(c loop.Command, p attemptdir.Folder, call agentCall,
) (job supervisor.Job, warm []string, err error) {
	a, ok := w.plan.Agents[c.Agent]
	if !ok {
		return job, nil, fmt.Errorf("agent %q is not configured", c.Agent)
	}
	if t := c.Limits.Tokens; c.Limits.Cost == 0 || c.Limits.Calls == 0 || t != nil && *t == 0 {
		return job, nil, errors.New("the limits of an iteration allow no model call: raise max_cost_per_iteration, " +
			"max_api_calls_per_iteration or limits.tokens")
	}
	state := filepath.Join(w.o.StateDir, "agents", c.Agent)
	if err := os.MkdirAll(state, 0o700); err != nil {
		state = p.Dir
	}
	limits := supervisor.Limits{Cost: max(0, c.Limits.Cost), Calls: max(0, c.Limits.Calls)} // NoLimit is less
	if t := c.Limits.Tokens; t != nil {
		limits.Tokens = *t
	}
	w.LowerToDay(a, &limits)
	start, err := a.Adapter.Start(agent.Invocation{
		PromptFile: call.prompt, PromptSize: call.size, ReadOnly: call.readOnly,
		Dir: w.plan.Root, StateDir: state, Model: a.Model, Safety: w.plan.Safety, Pawl: w.plan.Exe, Tools: call.tools,
		Command: a.Command, Env: a.Env, Isolate: a.Isolate, Mode: a.Mode, MaxCost: limits.Cost, Routes: a.Routes,
		Now: time.Now(),
	})
	if err != nil {
		return job, nil, err
	}
	start.MoveProgram(w.plan.ProjectRoot(), w.plan.Root)
	settings, err := attemptdir.WriteSettings(w.o.StateDir, start.Files)
	if err != nil {
		return job, nil, err
	}
	box := w.agentBox(c.Agent, state, call)
	if !call.readOnly {
		shows, err := sandbox.OpenEvidence(box, p.LeftFolder())
		if err != nil {
			return job, nil, err
		}
		start.Env = append(start.Env, shows...)
	}
	limits.Wall, limits.Idle, limits.Grace, limits.Ask = c.Limits.Wall, a.IdleLimit(c.Limits.Idle), start.Grace,
		start.Ask
	limits.Turns, limits.Printed, limits.Room, limits.Tools = w.plan.MaxTurns, w.plan.MaxOutput, leastRoom,
		a.CountsTools()
	limits.Priced = w.plan.Priced && (len(a.Routes) > 0 || !agent.ReportsCost(a.Adapter))
	job = supervisor.Job{
		ID: call.id, Files: call.files, Args: start.Args, Dir: w.plan.Root,
		Env: append(w.childEnvironment(a.InheritedEnviron(w.plan), c.Iteration, w.toolCaches(), start.Env, start.Unset),
			box.ProxyEnviron()...),
		Stdin: start.Stdin, Talks: start.Talks, Parser: start.Parser, Prompt: call.prompt, Watch: w.watched,
		Prices: w.plan.Prices, Model: a.Model, Gateway: a.GatewayOf(&w.plan, w.o.Accounts.Dir()),
		Settings: settings, SettingsRoot: w.o.StateDir, Usage: start.Usage,
		Limits: limits, Guards: a.UsableGuards(w.plan.Guards), Box: box, Safety: w.plan.SafetyRules(),
	}
	return job, start.Warm, nil
}

// childEnvironment adds the caches and pawl's own variables to what a child inherits.
func (s *session) childEnvironment(inherited []string, iteration int, caches, add, unset []string) []string {
	env := slices.DeleteFunc(slices.Clone(inherited), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(unset, name) || git.NamesRepository(name)
	})
	own := []string{"PAWL_RUN=" + s.id, "PAWL_ITERATION=" + strconv.Itoa(iteration)}
	return slices.Concat(env, caches, add, s.plan.Marks, own)
}

// makeRecord makes the journal's record of an attempt that ended.
func (w *worker) makeRecord(ctx context.Context, s loop.State, b attemptdir.Begun, res supervisor.Result) *loop.Record {
	c := s.Command
	r := ending.NewRecord(&w.plan, c, res)
	if w.lostFolder(r) {
		return r
	}
	w.blameDisk(r, res)
	w.readAgent(r, b.Job, c.Limits, res)
	w.readTools(ctx, r, w.attempt(c.Iteration, c.Attempt))
	if up := w.plan.FailureOfTime(c.Limits.Wall); up != nil && r.Exit.Ended == loop.EndedTimeout {
		r.Failure = up
	}
	w.awaitRoom(ctx)
	after, cancel := w.o.after(w.hard)
	w.snapshot(after, s, r, b)
	w.findSecrets(after, r)
	cancel()
	w.keepEvidence(r, "", w.attempt(c.Iteration, c.Attempt).LeftFolder())
	if w.runsGates(r) {
		w.verifyAttempt(ctx, c, r)
	}
	return r
}

// readAgent adds to a record what the agent said, and how it failed.
func (w *worker) readAgent(r *loop.Record, job supervisor.Job, limits loop.CommandLimits, res supervisor.Result) {
	w.SavePlan(r.Agent, res)
	ending.ReadAgent(&w.plan, r, job, limits, res)
}

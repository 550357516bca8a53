package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/prompt"
	"github.com/pawl-dev/pawl/internal/signal"
	"github.com/pawl-dev/pawl/internal/supervisor"
)

// aftermath bounds a look at the tree or a snapshot after an agent's end: git
// alone, and never the gates, which have limits of their own.
func aftermath(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 2*time.Minute)
}

// iterate carries out a run command: it starts the agent, or goes on with the
// attempt that an earlier pawl began, and makes the record of it.
func (d *Driver) iterate(ctx, hard context.Context, s loop.State) done {
	c := s.Command
	p := d.place(c.Iteration, c.Attempt)
	b, begun := p.load()
	if begun || d.missing {
		return d.takenUp(ctx, hard, s, p, b, begun)
	}
	if d.homeless() {
		return d.over(c, d.cannotStart(c, errors.New(d.goneFailure().Summary)))
	}
	if !d.enter(ctx, c) {
		return d.barred(c)
	}
	b, err := d.begin(ctx, s, p)
	if unwritable(err) && d.moveRunDir(err) == nil {
		p = d.place(c.Iteration, c.Attempt)
		b, err = d.begin(ctx, s, p)
	}
	if err != nil {
		return d.over(c, d.cannotStart(c, err))
	}
	d.notify(Notice{Kind: AgentStarts, Command: c})
	res, err := d.runJob(ctx, b.Job, func(e agent.Event) { d.watchAlive(ctx, e); d.agentEvent(e) })
	switch {
	case errors.Is(err, supervisor.ErrTaken):
		return done{lost: fmt.Errorf("%w: run %s", ErrTaken, d.id)}
	case err != nil:
		return d.over(c, d.cannotStart(c, err))
	}
	return d.over(c, d.record(ctx, hard, s, b, res)).having(b)
}

// takenUp makes the record of an attempt that an earlier pawl began. One whose
// files are gone is taken for begun: it may have been paid for.
func (d *Driver) takenUp(ctx, hard context.Context, s loop.State, p place, b begun, known bool) done {
	c := s.Command
	d.missing = false
	res, found, err := supervisor.Result{Exit: loop.Exit{Code: -1, Ended: loop.EndedLost}}, false, error(nil)
	if known {
		d.knowBase(b)
		res, found, err = d.adopt(ctx, b)
	} else {
		b.Attempt, b.At = c.Attempt, s.LastAt
	}
	if err != nil {
		return done{lost: fmt.Errorf("%w: run %s", ErrTaken, d.id)}
	}
	if found {
		return d.over(c, d.record(ctx, hard, s, b, res)).having(b)
	}
	if res.StartedAt.IsZero() {
		res.StartedAt = b.At
		res.Elapsed = max(0, p.newest().Sub(b.At))
	}
	r := d.record(ctx, hard, s, b, res)
	if r.Exit.Ended == loop.EndedLost {
		r.Failure = lostFailure()
	}
	return done{event: d.event(loop.Event{Kind: loop.Recovered, For: c.Seq, Record: r})}.having(b)
}

func (d *Driver) agentEvent(e agent.Event) { d.notify(Notice{Kind: AgentEvent, Event: e}) }

func (d *Driver) over(c loop.Command, r *loop.Record) done {
	return done{event: d.event(loop.Event{Kind: loop.IterationEnded, For: c.Seq, Record: r})}
}

// begin prepares an attempt: tree, prompt, command line. When it returns, the
// attempt can be found again after a crash.
func (d *Driver) begin(ctx context.Context, s loop.State, p place) (begun, error) {
	c := s.Command
	b := begun{Attempt: c.Attempt, At: time.Now()}
	if err := p.open(); err != nil {
		return b, err
	}
	d.baseSnapshot(ctx)
	if c.Rewind != 0 {
		d.rewind(ctx, c)
	}
	d.look(ctx, c, &b)
	said, rows := d.messages(ctx)
	b.Messages = rows
	text, err := d.compose(c, s.Limit, said)
	if err != nil {
		return b, err
	}
	if err := os.WriteFile(p.prompt(), []byte(text.Text), 0o600); err != nil {
		return b, fmt.Errorf("cannot write the prompt: %w", err)
	}
	var warm []string
	if b.Job, warm, err = d.job(c, p, int64(len(text.Text))); err != nil {
		return b, err
	}
	d.warm(ctx, c, b.Job, warm)
	return b, p.write(b)
}

// compose assembles the prompt of an iteration.
func (d *Driver) compose(c loop.Command, limit int, messages []string) (prompt.Prompt, error) {
	in := d.plan.Prompt
	in.Messages = messages
	in.Iteration, in.MaxIterations, in.Run, in.Agent, in.Strategy, in.Feedback = c.Iteration, limit, d.id, c.Agent, c.Strategy, c.Feedback
	text, err := prompt.Compose(in)
	if err != nil {
		return text, fmt.Errorf("cannot assemble the prompt: %v", err)
	}
	if text.Over {
		d.warn(fmt.Sprintf("Prompt exceeds token budget: %s > %s", prompt.Thousands(text.Tokens), prompt.Thousands(in.Budget)))
	}
	return text, nil
}

// job is the agent's process for this attempt, and what must have run before.
func (d *Driver) job(c loop.Command, p place, size int64) (job supervisor.Job, warm []string, err error) {
	return d.agentJob(c, p, agentCall{id: jobID(c), files: p.agent(), prompt: p.prompt(), size: size})
}

// agentCall is what differs between the calls of an agent.
type agentCall struct {
	id, files, prompt string
	size              int64 // of the prompt
	readOnly          bool
}

// agentJob is a process of the command's agent, and what must have run before.
func (d *Driver) agentJob(c loop.Command, p place, call agentCall) (job supervisor.Job, warm []string, err error) {
	a, ok := d.plan.Agents[c.Agent]
	if !ok {
		return job, nil, fmt.Errorf("agent %q is not configured", c.Agent)
	}
	if c.Limits.Cost == 0 || c.Limits.Calls == 0 {
		return job, nil, errors.New("the limits of an iteration allow no model call: raise max_cost_per_iteration or max_api_calls_per_iteration")
	}
	state := filepath.Join(d.o.StateDir, "agents", c.Agent)
	if err := os.MkdirAll(state, 0o700); err != nil {
		state = p.dir
	}
	cost := max(0, c.Limits.Cost) // NoLimit is less
	start, err := a.Adapter.Start(agent.Invocation{
		PromptFile: call.prompt, PromptSize: call.size, ReadOnly: call.readOnly, Dir: d.plan.Root, StateDir: state, Model: a.Model, Safety: d.plan.Safety,
		Command: a.Command, Env: a.Env, Isolate: a.Isolate, MaxCost: cost, Now: time.Now(),
	})
	if err != nil {
		return job, nil, err
	}
	if err := writeSettings(start.Files); err != nil {
		return job, nil, err
	}
	box := d.agentBox(c.Agent, state, call)
	job = supervisor.Job{
		ID: call.id, Files: call.files, Args: start.Args, Dir: d.plan.Root,
		Env: append(d.environ(a.inherits(d.plan), c.Iteration, start.Env, start.Unset), throughProxy(box)...), Stdin: start.Stdin, Parser: start.Parser, Prompt: call.prompt, Watch: d.watched(), Prices: d.plan.Prices, Model: a.Model,
		Limits: supervisor.Limits{Wall: c.Limits.Wall, Idle: a.idle(c.Limits.Idle), Grace: start.Grace, Ask: start.Ask, Cost: cost, Calls: max(0, c.Limits.Calls), Turns: d.plan.MaxTurns, Printed: d.plan.MaxOutput, Room: leastRoom, Tools: a.toolsCount()},
		Guards: a.guards(d.plan.Guards), Box: box, Safety: d.rules(),
	}
	return job, start.Warm, nil
}

// jobOf names the agent's job of a command.
func jobOf(c loop.Command) string {
	switch c.Kind {
	case loop.Run:
		return jobID(c)
	case loop.RunReview:
		return reviewID(c)
	}
	return ""
}

// reviewID names the reviewer's job: each try has its own.
func reviewID(c loop.Command) string {
	id := jobID(c) + "/review"
	if c.Review > 1 {
		id += fmt.Sprintf("/%d", c.Review)
	}
	return id
}

// jobID names the author's job of an attempt in its run.
func jobID(c loop.Command) string { return fmt.Sprintf("%d.%d", c.Iteration, c.Attempt) }

// environ is what a child inherits, with pawl's marks.
func (d *Driver) environ(inherited []string, iteration int, add, unset []string) []string {
	env := make([]string, 0, len(inherited)+len(add)+len(d.caches())+len(d.plan.Marks)+2)
	for _, kv := range inherited {
		if !named(kv, unset) {
			env = append(env, kv)
		}
	}
	env = append(env, d.caches()...)
	env = append(env, add...)
	env = append(env, d.plan.Marks...)
	return append(env, "PAWL_RUN="+d.id, "PAWL_ITERATION="+strconv.Itoa(iteration))
}

func named(kv string, names []string) bool {
	for _, n := range names {
		if len(kv) > len(n) && kv[len(n)] == '=' && kv[:len(n)] == n {
			return true
		}
	}
	return false
}

// CannotStart is the fingerprint of a failure to begin: pawl's own, no agent's.
const CannotStart = "cannot-start"

// cannotStart is the record of an iteration that pawl itself could not begin.
// A person must act, so nothing is tried again.
func (d *Driver) cannotStart(c loop.Command, err error) *loop.Record {
	return &loop.Record{
		Number: c.Iteration, Attempt: c.Attempt, StartedAt: time.Now(), Agent: c.Agent, Strategy: c.Strategy,
		Exit: loop.Exit{Code: -1}, Progress: -1, Score: -1, CostSource: "none",
		Failure: &failure.Analysis{
			Class: failure.Unknown, Kind: failure.Permanent, Severity: failure.Critical, Summary: err.Error(), Fingerprint: CannotStart,
		},
	}
}

// record makes the journal's record of an attempt that ended.
func (d *Driver) record(ctx, hard context.Context, s loop.State, b begun, res supervisor.Result) *loop.Record {
	c := s.Command
	res.Agent = d.complete(ctx, c.Agent, b, res)
	r := d.told(c, res)
	if d.lostFolder(r) {
		return r
	}
	if r.Valid() {
		read := signal.Read(res.Agent.Message)
		r.Signal, r.Progress, r.Malformed = read.Signal, read.Progress, read.Malformed
	}
	r.Failure = d.agentFailure(r, res)
	nameRefusals(r.Failure, b.Job.Box, agentOutput(res), res.Unreached)
	after, cancel := d.o.after(hard)
	d.snapshot(after, s, r, b)
	d.findSecrets(after, r)
	cancel()
	if d.verifies(r) {
		d.verify(ctx, hard, c, r)
	}
	return r
}

// told is what a job's result tells of its agent: how it ended and what it used.
func (d *Driver) told(c loop.Command, res supervisor.Result) *loop.Record {
	out := res.Agent
	r := &loop.Record{
		Number: c.Iteration, Attempt: c.Attempt, StartedAt: res.StartedAt, Elapsed: max(0, res.Elapsed), Agent: c.Agent, Strategy: c.Strategy,
		Exit: res.Exit, Progress: -1, Score: -1, Commits: 0, CostSource: out.CostSource, Cost: out.Cost, Calls: out.Calls,
		TokensIn: out.Usage.Input + out.Usage.CacheRead + out.Usage.CacheWrite, TokensOut: out.Usage.Output,
		Output: res.Stdout.Bytes + res.Stderr.Bytes, Refused: res.Refused, Withheld: d.withheld(c.Agent),
	}
	if r.CostSource == "" {
		r.CostSource = "none"
	}
	if d.structured(c.Agent) {
		r.Exit.Terminal = out.Terminal
		if out.Terminal == loop.TerminalNone {
			r.Exit.Terminal = loop.TerminalMissing
		}
	}
	return r
}

func (d *Driver) structured(name string) bool {
	a, ok := d.plan.Agents[name]
	return ok && a.Adapter.Structured()
}

// stopped is true for an agent that pawl, or what ended pawl, cut off.
func stopped(x loop.Exit) bool {
	return x.Ended == loop.EndedStop || x.Ended == loop.EndedLease || x.Ended == loop.EndedLost
}

// agentFailure analyses an agent that did not end well; nil when it did.
func (d *Driver) agentFailure(r *loop.Record, res supervisor.Result) *failure.Analysis {
	x := r.Exit
	well := x.Code == 0 && x.Signal == "" && x.Ended == loop.NotEnded && x.Terminal != loop.TerminalMissing && x.Terminal != loop.TerminalFailed
	if stopped(x) || (well && r.Signal.Kind != signal.Failure) {
		return nil
	}
	if well {
		return &failure.Analysis{
			Class: failure.Unknown, Kind: failure.Work, Severity: failure.Medium, Fingerprint: "failure-signal",
			Summary: "the agent reported FAILURE" + colon(r.Signal.Text),
		}
	}
	if limit := limitReached(x.Ended); limit != "" {
		return &failure.Analysis{
			Class: failure.LimitExceeded, Kind: failure.Work, Severity: failure.Medium, Fingerprint: "limit-" + string(x.Ended), Summary: limit,
		}
	}
	if x.Ended == loop.EndedDestructive {
		return refused(x, res.Refused)
	}
	if a := guarded(x, d.errorsOf(r.Agent, res), r.Agent, endOf(res)); a != nil {
		return a
	}
	if a := misread(res.Agent.Errors); a != nil {
		return a
	}
	a := failure.Analyse(failure.Evidence{
		Source: "agent", Name: r.Agent, ExitCode: x.Code, Signal: x.Signal, TimedOut: x.Ended == loop.EndedTimeout || x.Ended == loop.EndedIdle,
		CutOff: x.Terminal == loop.TerminalMissing, Output: agentOutput(res), Errors: d.errorsOf(r.Agent, res), Now: endOf(res), Zone: zone,
	})
	return &a
}

// errorsOf are the provider's errors, with what the exit status says of them.
func (d *Driver) errorsOf(name string, res supervisor.Result) []failure.APIError {
	a, ok := d.plan.Agents[name]
	if !ok {
		return res.Agent.Errors
	}
	return agent.WithExit(a.Adapter, res.Exit.Code, res.Agent.Errors)
}

// endOf is when an agent ended: "in 5 minutes" counts from there, also when its
// result is read much later.
func endOf(res supervisor.Result) time.Time {
	if res.StartedAt.IsZero() {
		return time.Now()
	}
	return res.StartedAt.Add(res.Elapsed)
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func limitReached(e loop.Ended) string {
	switch e {
	case loop.EndedCost:
		return "the iteration reached its cost limit and was ended"
	case loop.EndedTokens:
		return "the iteration reached its token limit and was ended"
	case loop.EndedCalls:
		return "the iteration reached its limit of model calls and was ended"
	case loop.EndedTurns:
		return "the iteration reached its limit of turns and was ended"
	}
	return ""
}

// agentOutput is what is known of what an agent printed: its last words where
// the stream was parsed, else the ends of both streams.
func agentOutput(res supervisor.Result) string {
	if res.Error != "" {
		return res.Error
	}
	text := streamText(res.Stdout)
	if res.Agent.Terminal != loop.TerminalNone {
		text = res.Agent.Message
	}
	if e := streamText(res.Stderr); e != "" {
		text += "\n" + e
	}
	return text
}

func streamText(s supervisor.Stream) string {
	if s.Tail == "" || s.Bytes <= int64(len(s.Head)) {
		return s.Head
	}
	if s.Bytes <= int64(len(s.Tail)) {
		return s.Tail
	}
	return s.Head + "\n…\n" + s.Tail
}

package engine

import (
	"context"
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

// aftermath bounds what is done after an agent's end: snapshot and analysis.
const aftermath = 2 * time.Minute

// iterate carries out a run command: it starts the agent, or goes on with the
// attempt that an earlier pawl began, and makes the record of it.
func (d *Driver) iterate(ctx context.Context, c loop.Command) loop.Event {
	p := d.place(c.Iteration, c.Attempt)
	b, begun := p.load()
	if !begun {
		var err error
		if b, err = d.begin(ctx, c, p); err != nil {
			return d.ended(c, d.cannotStart(c, err))
		}
	}
	res, found := supervisor.Result{}, false
	if begun {
		res, found = d.adopt(ctx, b)
		if !found {
			return d.lostAttempt(c, b, p)
		}
	} else {
		var err error
		if res, err = d.runJob(ctx, b.Job, d.agentEvent); err != nil {
			return d.ended(c, d.cannotStart(c, err))
		}
	}
	return d.ended(c, d.record(ctx, c, b, res))
}

func (d *Driver) agentEvent(e agent.Event) { d.notify(Notice{Kind: AgentEvent, Event: e}) }

func (d *Driver) ended(c loop.Command, r *loop.Record) loop.Event {
	return d.event(loop.Event{Kind: loop.IterationEnded, For: c.Seq, Record: r})
}

// begin prepares an attempt: tree, prompt, command line. When it returns, the
// attempt can be found again after a crash.
func (d *Driver) begin(ctx context.Context, c loop.Command, p place) (begun, error) {
	b := begun{Attempt: c.Attempt, At: time.Now()}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return b, fmt.Errorf("cannot make the folder of the iteration: %v", err)
	}
	if c.Rewind != 0 {
		d.rewind(ctx, c)
	}
	d.look(ctx, &b)
	text, err := d.compose(c)
	if err != nil {
		return b, err
	}
	if err := os.WriteFile(p.prompt(), []byte(text.Text), 0o600); err != nil {
		return b, fmt.Errorf("cannot write the prompt: %v", err)
	}
	if b.Job, err = d.job(c, p, int64(len(text.Text))); err != nil {
		return b, err
	}
	return b, p.write(b)
}

// compose assembles the prompt of an iteration.
func (d *Driver) compose(c loop.Command) (prompt.Prompt, error) {
	in := d.plan.Prompt
	in.Iteration, in.MaxIterations, in.Run, in.Agent, in.Strategy, in.Feedback = c.Iteration, d.state.Limit, d.id, c.Agent, c.Strategy, c.Feedback
	text, err := prompt.Compose(in)
	if err != nil {
		return text, fmt.Errorf("cannot assemble the prompt: %v", err)
	}
	if text.Over {
		d.warn(fmt.Sprintf("Prompt exceeds token budget: %s > %s", prompt.Thousands(text.Tokens), prompt.Thousands(in.Budget)))
	}
	return text, nil
}

// job is the agent's process for this attempt.
func (d *Driver) job(c loop.Command, p place, size int64) (supervisor.Job, error) {
	a, ok := d.plan.Agents[c.Agent]
	if !ok {
		return supervisor.Job{}, fmt.Errorf("agent %q is not configured", c.Agent)
	}
	state := filepath.Join(d.o.StateDir, "agents", c.Agent)
	if err := os.MkdirAll(state, 0o700); err != nil {
		state = p.dir
	}
	cost := c.Limits.Cost
	if cost < 0 {
		cost = 0
	}
	start, err := a.Adapter.Start(agent.Invocation{
		PromptFile: p.prompt(), PromptSize: size, Dir: d.plan.Root, StateDir: state, Model: a.Model, Safety: d.plan.Safety,
		Command: a.Command, Env: a.Env, Isolate: a.Isolate, MaxCost: cost, Now: time.Now(),
	})
	if err != nil {
		return supervisor.Job{}, err
	}
	idle := c.Limits.Idle
	if a.Idle > 0 {
		idle = a.Idle
	}
	return supervisor.Job{
		ID: fmt.Sprintf("%d.%d", c.Iteration, c.Attempt), Files: p.agent(), Args: start.Args, Dir: d.plan.Root,
		Env: d.environ(c.Iteration, start.Env, start.Unset), Stdin: start.Stdin, Parser: start.Parser, Prompt: p.prompt(), Watch: d.plan.Root, Prices: d.plan.Prices,
		Limits: supervisor.Limits{Wall: c.Limits.Wall, Idle: idle, Grace: start.Grace, Cost: cost, Calls: max(0, c.Limits.Calls)},
	}, nil
}

// environ is what a child inherits, with pawl's marks.
func (d *Driver) environ(iteration int, add, unset []string) []string {
	env := make([]string, 0, len(d.plan.Environ)+len(add)+2)
	for _, kv := range d.plan.Environ {
		if !named(kv, unset) {
			env = append(env, kv)
		}
	}
	env = append(env, add...)
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

// cannotStart is the record of an iteration that pawl itself could not begin.
// A person must act, so nothing is tried again.
func (d *Driver) cannotStart(c loop.Command, err error) *loop.Record {
	return &loop.Record{
		Number: c.Iteration, Attempt: c.Attempt, StartedAt: time.Now(), Agent: c.Agent, Strategy: c.Strategy,
		Exit: loop.Exit{Code: -1}, Progress: -1, Score: -1, CostSource: "none",
		Failure: &failure.Analysis{
			Class: failure.Unknown, Kind: failure.Permanent, Severity: failure.Critical, Summary: err.Error(), Fingerprint: "cannot-start",
		},
	}
}

// record makes the journal's record of an attempt that ended.
func (d *Driver) record(ctx context.Context, c loop.Command, b begun, res supervisor.Result) *loop.Record {
	out := res.Agent
	r := &loop.Record{
		Number: c.Iteration, Attempt: c.Attempt, StartedAt: res.StartedAt, Elapsed: res.Elapsed, Agent: c.Agent, Strategy: c.Strategy,
		Exit: res.Exit, Progress: -1, Score: -1, Commits: 0, CostSource: out.CostSource, Cost: out.Cost, Calls: out.Calls,
		TokensIn: out.Usage.Input + out.Usage.CacheRead + out.Usage.CacheWrite, TokensOut: out.Usage.Output,
		Output: res.Stdout.Bytes + res.Stderr.Bytes,
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
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), aftermath)
	defer cancel()
	d.snapshot(after, r, b)
	if r.Valid() {
		read := signal.Read(out.Message)
		r.Signal, r.Progress, r.Malformed = read.Signal, read.Progress, read.Malformed
	}
	r.Failure = d.agentFailure(r, res)
	if d.verifies(r) {
		d.verify(ctx, after, c, b, r)
	}
	r.Elapsed = max(r.Elapsed, 0)
	return r
}

func (d *Driver) structured(name string) bool {
	a, ok := d.plan.Agents[name]
	return ok && a.Adapter.Structured()
}

// agentFailure analyses an agent that did not end well; nil when it did.
func (d *Driver) agentFailure(r *loop.Record, res supervisor.Result) *failure.Analysis {
	x := r.Exit
	stopped := x.Ended == loop.EndedStop || x.Ended == loop.EndedLease || x.Ended == loop.EndedLost
	well := x.Code == 0 && x.Signal == "" && x.Ended == loop.NotEnded && x.Terminal != loop.TerminalMissing && x.Terminal != loop.TerminalFailed
	if stopped || (well && r.Signal.Kind != signal.Failure) {
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
	a := failure.Analyse(failure.Evidence{
		Source: "agent", Name: r.Agent, ExitCode: x.Code, Signal: x.Signal, TimedOut: x.Ended == loop.EndedTimeout || x.Ended == loop.EndedIdle,
		CutOff: x.Terminal == loop.TerminalMissing, Output: agentOutput(res), Errors: res.Agent.Errors, Now: time.Now(),
	})
	return &a
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

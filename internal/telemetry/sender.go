package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/loop"
)

// Sender turns the notices of one run into spans and sums.
type Sender struct {
	settings settings
	post     poster
	sending  sync.WaitGroup
	began    time.Time

	trace                       string // the id of the run's trace
	run, iteration, agent, gate *span  // that are open
	tools                       []*span
	model                       string
	ended                       []object // spans that are to be sent
	sums                        sums
}

// Open returns a sender as the environment asks for, which getenv looks up;
// nil when it asks for none. A wrong setting is an error that says how it is
// written.
func Open(getenv func(string) string, version string) (*Sender, error) {
	s, err := settingsFrom(getenv, version)
	off := s.traces == "" && s.metrics == ""
	if err != nil || off {
		return nil, err
	}
	x := &Sender{settings: s, began: time.Now()}
	x.post.headers, x.post.client.Timeout = s.headers, min(s.timeout, closeWithin)
	return x, nil
}

// closeWithin bounds what a collector that does not answer costs at the end.
const closeWithin = 5 * time.Second

// Close sends what is left, within five seconds, and says what could not be
// sent.
func (x *Sender) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	x.endAll(time.Now())
	x.send(ctx)
	x.sending.Wait() // a message is given up after as long
	return x.post.trouble()
}

// send sends what has ended, beside the run.
func (x *Sender) send(ctx context.Context) {
	if to := x.settings.traces; to != "" && len(x.ended) > 0 {
		spans := x.message("resourceSpans", "scopeSpans", "spans", x.ended)
		x.sending.Go(func() { x.post.post(ctx, to, spans) })
	}
	x.ended = nil
	if to := x.settings.metrics; to != "" && len(x.sums) > 0 {
		metrics := x.message("resourceMetrics", "scopeMetrics", "metrics", x.sums.metrics(x.began, time.Now()))
		x.sending.Go(func() { x.post.post(ctx, to, metrics) })
	}
}

// message is the body of an export: all is of one resource and one scope, as
// pawl has only one.
func (x *Sender) message(resources, scopes, name string, all []object) object {
	return object{resources: []object{{
		"resource": object{"attributes": attributes(x.settings.resource)},
		scopes:     []object{{"scope": object{"name": "github.com/pawl-dev/pawl"}, name: all}},
	}}}
}

// Notice takes one notice of the engine.
func (x *Sender) Notice(n engine.Notice) {
	switch n.Kind {
	case engine.RunStarted, engine.RunResumed:
		x.endAll(n.At)
		x.trace = traceOf(n.Run)
		x.run = x.begin(nil, "run", n.At, attrs{"pawl.run": n.Run})
	case engine.IterationStarted:
		x.iterationStarted(n)
	case engine.AgentEvent:
		x.agentEvent(n)
	case engine.GateStarted:
		x.gate.end(n.At, "")
		x.gate = x.begin(x.iteration, "gate "+n.Gate.Name, n.At,
			attrs{"pawl.gate": n.Gate.Name, "pawl.gate.required": n.Gate.Required})
	case engine.GateEnded:
		x.gateEnded(n)
	case engine.IterationEnded:
		x.iterationEnded(n)
	case engine.WaitStarted:
		x.run.event("wait", n.At, attrs{"pawl.why": n.Command.Why})
		x.sums.add("pawl.waits", "{wait}", 1, attrs{"gen_ai.agent.name": n.Command.Agent})
	case engine.RunEnded:
		x.runEnded(n)
	}
}

func (x *Sender) iterationStarted(n engine.Notice) {
	c := n.Command
	x.endIteration(n.At, "")
	x.iteration = x.begin(x.run, "iteration", n.At, attrs{
		"pawl.run": n.Run, "pawl.iteration": c.Iteration, "pawl.attempt": c.Attempt, "pawl.strategy": c.Strategy,
	})
	x.agent = x.begin(x.iteration, "invoke_agent "+c.Agent, n.At,
		attrs{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": c.Agent})
}

// maxTools bounds the tools that run at once; the oldest is taken for ended.
const maxTools = 64

func (x *Sender) agentEvent(n engine.Notice) {
	e := n.Event
	switch e.Kind {
	case agent.Session:
		if e.Model != "" {
			x.model = e.Model
			x.agent.set(attrs{"gen_ai.request.model": e.Model})
		}
		if e.Session != "" {
			x.agent.set(attrs{"gen_ai.conversation.id": e.Session})
		}
	case agent.ToolStart:
		if len(x.tools) == maxTools {
			x.endTool(0, n.At, "")
		}
		x.tools = append(x.tools, x.begin(x.agent, "execute_tool "+e.Tool, n.At,
			attrs{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": e.Tool}))
	case agent.ToolEnd:
		x.toolEnded(n)
	case agent.Retry, agent.RateLimit, agent.Error:
		if e.Error != nil {
			x.agent.event(string(e.Kind), n.At, attrs{"http.response.status_code": e.Error.Status, "error.type": e.Error.Type})
		}
	}
}

// toolEnded ends the newest tool of that name, for a program that names it,
// else the oldest one.
func (x *Sender) toolEnded(n engine.Notice) {
	if len(x.tools) == 0 {
		return
	}
	problem, at := "", 0
	if n.Event.Failed {
		problem = "tool_failed"
	}
	for i, s := range x.tools {
		if s.attrs["gen_ai.tool.name"] == n.Event.Tool {
			at = i
		}
	}
	x.endTool(at, n.At, problem)
}

func (x *Sender) endTool(i int, at time.Time, problem string) {
	x.tools[i].end(at, problem)
	x.tools = append(x.tools[:i], x.tools[i+1:]...)
}

func (x *Sender) gateEnded(n engine.Notice) {
	g, problem := n.Gate, ""
	if g.Status != loop.GatePassed {
		problem = string(g.Status)
	}
	status := attrs{"pawl.gate": g.Name, "pawl.gate.status": string(g.Status)}
	x.gate.set(status)
	x.gate.end(n.At, problem)
	x.sums.add("pawl.gates", "{gate}", 1, status)
	x.sums.add("pawl.gate.time", "s", g.Elapsed.Seconds(), status)
}

func (x *Sender) iterationEnded(n engine.Notice) {
	r := n.Record
	problem := ""
	if r.Failure != nil {
		problem = string(r.Failure.Class)
	}
	x.agent.set(attrs{
		"gen_ai.usage.input_tokens": r.TokensIn, "gen_ai.usage.output_tokens": r.TokensOut, "pawl.model_calls": r.Calls,
		"pawl.cost_usd": dollars(r.Cost), "pawl.cost_source": r.CostSource,
	})
	x.iteration.set(attrs{"pawl.outcome": string(r.Outcome), "pawl.score_per_mille": r.Score})
	// The record's time is the agent's own; gates and snapshots came after it.
	ended := n.At
	if at := r.StartedAt.Add(r.Elapsed); !r.StartedAt.IsZero() && at.Before(ended) {
		ended = at
	}
	x.endAgent(ended, problem)
	x.endIteration(n.At, problem)
	x.sumUp(r, problem)
	x.send(context.Background()) // a run that is stopped sends this, too
}

// sumUp adds what an iteration used.
func (x *Sender) sumUp(r *loop.Record, problem string) {
	who := attrs{"gen_ai.agent.name": r.Agent, "gen_ai.response.model": x.model, "pawl.cost_source": r.CostSource}
	x.model = ""
	x.sums.add("pawl.tokens.input", "{token}", float64(r.TokensIn), who)
	x.sums.add("pawl.tokens.output", "{token}", float64(r.TokensOut), who)
	x.sums.add("pawl.agent.time", "s", r.Elapsed.Seconds(), who)
	x.sums.add("pawl.cost", "USD", dollars(r.Cost), who)
	x.sums.add("pawl.iterations", "{iteration}", 1, attrs{
		"pawl.outcome": string(r.Outcome), "gen_ai.agent.name": r.Agent, "pawl.strategy": r.Strategy, "error.type": problem,
	})
}

func (x *Sender) runEnded(n engine.Notice) {
	x.endIteration(n.At, "")
	problem := ""
	switch n.State.Status {
	case loop.Completed, loop.Paused, loop.Stopped, loop.Interrupted:
	default:
		problem = string(n.State.Status)
	}
	x.run.set(attrs{
		"pawl.status": string(n.State.Status), "pawl.why": n.State.Why, "pawl.cost_usd": dollars(n.State.Spent.Cost),
	})
	x.run.end(n.At, problem)
}

// endAgent ends the agent's span with the tools that are still open.
func (x *Sender) endAgent(at time.Time, problem string) {
	for len(x.tools) > 0 {
		x.endTool(0, at, "")
	}
	x.agent.end(at, problem)
}

func (x *Sender) endIteration(at time.Time, problem string) {
	x.endAgent(at, "")
	x.gate.end(at, "")
	x.iteration.end(at, problem)
}

func (x *Sender) endAll(at time.Time) {
	x.endIteration(at, "")
	x.run.end(at, "")
}

func dollars(m loop.MicroUSD) float64 { return float64(m) / 1e6 }

package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/loop"
)

// span is one that has begun; the zero value is none.
type span struct {
	trace.Span

	ctx context.Context //nolint:containedctx // it is the way in which the API knows a parent
}

// open are the spans that have begun and not ended.
type open struct {
	run, iteration, agent, gate span
	tools                       []toolSpan // oldest first
	model                       string
}

type toolSpan struct {
	span

	name string
}

// maxTools bounds the tools that run at once; the oldest is taken for ended.
const maxTools = 64

func (x *Sender) begin(parent span, name string, at time.Time, attrs ...attribute.KeyValue) span {
	ctx := parent.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, s := x.tell.Start(ctx, name, trace.WithTimestamp(at), trace.WithAttributes(attrs...))
	return span{s, ctx}
}

// set adds attributes to a span that is open.
func (s *span) set(attrs ...attribute.KeyValue) {
	if s.Span != nil {
		s.SetAttributes(attrs...)
	}
}

// event adds an event to a span that is open.
func (s *span) event(name string, at time.Time, attrs ...attribute.KeyValue) {
	if s.Span != nil {
		s.AddEvent(name, trace.WithTimestamp(at), trace.WithAttributes(attrs...))
	}
}

// end ends a span, if it has begun, and forgets it.
func (s *span) end(at time.Time, problem string) {
	if s.Span == nil {
		return
	}
	if problem != "" {
		s.SetStatus(codes.Error, problem)
		s.SetAttributes(attribute.String(attrError, problem))
	}
	s.End(trace.WithTimestamp(at))
	*s = span{}
}

func (x *Sender) run(n engine.Notice) {
	x.endAll(n.At)
	root := span{ctx: context.WithValue(context.Background(), runKey{}, n.Run)}
	x.open.run = x.begin(root, "run", n.At, attribute.String(attrRun, n.Run))
}

func (x *Sender) iteration(n engine.Notice) {
	c := n.Command
	x.endIteration(n.At, "")
	x.open.iteration = x.begin(x.open.run, "iteration", n.At, attribute.String(attrRun, n.Run),
		attribute.Int(attrIteration, c.Iteration),
		attribute.Int(attrAttempt, c.Attempt), attribute.String(attrStrategy, c.Strategy))
	x.open.agent = x.begin(x.open.iteration, opInvokeAgent+" "+c.Agent, n.At,
		attribute.String(attrOperation, opInvokeAgent), attribute.String(attrAgentName, c.Agent))
}

func (x *Sender) agentEvent(n engine.Notice) {
	e := n.Event
	switch e.Kind {
	case agent.Session:
		if x.open.agent.Span != nil && e.Model != "" {
			x.open.model = e.Model
			x.open.agent.set(attribute.String(attrModel, e.Model))
		}
		if e.Session != "" {
			x.open.agent.set(attribute.String(attrConversation, e.Session))
		}
	case agent.ToolStart:
		if len(x.open.tools) == maxTools {
			x.endTool(0, n.At, "")
		}
		s := x.begin(x.open.agent, opExecuteTool+" "+e.Tool, n.At, attribute.String(attrOperation, opExecuteTool),
			attribute.String(attrTool, e.Tool))
		x.open.tools = append(x.open.tools, toolSpan{s, e.Tool})
	case agent.ToolEnd:
		x.toolEnded(n)
	case agent.Retry, agent.RateLimit, agent.Error:
		if e.Error != nil {
			x.open.agent.event(string(e.Kind), n.At,
				attribute.Int("http.response.status_code", e.Error.Status), attribute.String(attrError, e.Error.Type))
		}
	}
}

// toolEnded ends the newest tool of that name, for a program that names it,
// else the oldest one.
func (x *Sender) toolEnded(n engine.Notice) {
	problem := ""
	if n.Event.Failed {
		problem = "tool_failed"
	}
	for i := len(x.open.tools) - 1; i >= 0; i-- {
		if x.open.tools[i].name == n.Event.Tool {
			x.endTool(i, n.At, problem)
			return
		}
	}
	if len(x.open.tools) > 0 {
		x.endTool(0, n.At, problem)
	}
}

func (x *Sender) endTool(i int, at time.Time, problem string) {
	x.open.tools[i].end(at, problem)
	x.open.tools = append(x.open.tools[:i], x.open.tools[i+1:]...)
}

// endAgent ends the agent's span with the tools that are still open.
func (x *Sender) endAgent(at time.Time, problem string) {
	for len(x.open.tools) > 0 {
		x.endTool(0, at, "")
	}
	x.open.agent.end(at, problem)
}

func (x *Sender) gateStarted(n engine.Notice) {
	x.open.gate.end(n.At, "")
	x.open.gate = x.begin(x.open.iteration, "gate "+n.Gate.Name, n.At,
		attribute.String(attrGate, n.Gate.Name), attribute.Bool(attrRequired, n.Gate.Required))
}

func (x *Sender) gateEnded(n engine.Notice) {
	g, problem := n.Gate, ""
	if g.Status != loop.GatePassed {
		problem = string(g.Status)
	}
	x.open.gate.set(attribute.String(attrGateStatus, string(g.Status)))
	x.open.gate.end(n.At, problem)
	x.meters.gate(g)
}

func (x *Sender) iterationEnded(n engine.Notice) {
	r := n.Record
	problem := ""
	if r.Failure != nil {
		problem = string(r.Failure.Class)
	}
	x.open.agent.set(attribute.Int64(attrTokensIn, r.TokensIn), attribute.Int64(attrTokensOut, r.TokensOut),
		attribute.Int(attrCalls, r.Calls),
		attribute.Float64(attrCost, dollars(r.Cost)), attribute.String(attrCostSource, r.CostSource))
	x.open.iteration.set(attribute.String(attrOutcome, string(r.Outcome)), attribute.Int(attrScore, r.Score))
	// The record's time is the agent's own; gates and snapshots came after it.
	ended := n.At
	if at := r.StartedAt.Add(r.Elapsed); !r.StartedAt.IsZero() && at.Before(ended) {
		ended = at
	}
	x.endAgent(ended, problem)
	x.endIteration(n.At, problem)
	x.meters.iteration(r, x.open.model)
	x.open.model = ""
}

func (x *Sender) endIteration(at time.Time, problem string) {
	x.endAgent(at, "")
	x.open.gate.end(at, "")
	x.open.iteration.end(at, problem)
}

func (x *Sender) waits(n engine.Notice) {
	x.open.run.event("wait", n.At, attribute.String(attrWhy, n.Command.Why))
	x.meters.wait(n.Command)
}

func (x *Sender) runEnded(n engine.Notice) {
	x.endIteration(n.At, "")
	problem := ""
	switch n.State.Status {
	case loop.Completed, loop.Paused, loop.Stopped, loop.Interrupted:
	default:
		problem = string(n.State.Status)
	}
	x.open.run.set(attribute.String(attrStatus, string(n.State.Status)), attribute.String(attrWhy, n.State.Why),
		attribute.Float64(attrCost, dollars(n.State.Spent.Cost)))
	x.open.run.end(n.At, problem)
}

func (x *Sender) endAll(at time.Time) {
	x.endIteration(at, "")
	x.open.run.end(at, "")
}

func dollars(m loop.MicroUSD) float64 { return float64(m) / 1e6 }

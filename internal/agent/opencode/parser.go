package opencode

import (
	"encoding/json"
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

// maxUSD is beyond what one run can cost.
const maxUSD = 1_000_000

// Parser is the [agent.Parser] of the programs' stream.
type Parser struct {
	jsonline.Stream

	session string
	cost    float64 // of all steps, in dollars
	steps   jsonline.IDs
	last    state
}

// state is how the run stands after the last event.
type state int

const (
	begun    state = iota // nothing yet, or a step has begun
	talking               // the step has said something after its tools
	going                 // a step ended, and another must follow
	finished              // the model had said all that it wanted
	broken                // an error was the last word
)

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{} }

// line is one line of any type. Fields without a tag have the name of the key.
type line struct {
	Type, SessionID string
	Part            part
	Error           problem
}

// part is a text, a thought, a tool call or the end of a step.
type part struct {
	ID, Text, Tool, Reason string

	State struct {
		Status        string
		Input         json.RawMessage
		Output, Error json.RawMessage
		Metadata      struct{ Exit int }
	}
	Tokens struct {
		Input, Output, Reasoning int64
		Cache                    struct{ Read, Write int64 }
	}
	Cost float64
}

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	var l line
	if !p.Decode(b, cut, &l, emit) {
		return
	}
	sub := p.enter(l.SessionID)
	switch l.Type {
	case "step_start":
		p.stand(begun, sub)
	case "text":
		if l.Part.Text != "" {
			p.stand(talking, sub)
		}
		p.Emit(agent.Event{Kind: agent.Text, Sub: sub, Text: l.Part.Text})
	case "reasoning":
		p.Emit(agent.Event{Kind: agent.Thinking, Sub: sub, Text: l.Part.Text})
	case "tool_use":
		p.tool(&l.Part, sub)
	case "step_finish":
		p.step(&l.Part, sub)
	case "error":
		p.trouble(l.Error.understand(), sub)
	default:
		p.Unknown(l.Type)
	}
}

// Close tells how the run ended, by its last event.
func (p *Parser) Close(emit func(agent.Event)) {
	p.Emit = emit
	terminal := loop.TerminalMissing
	switch p.last {
	case finished:
		terminal = loop.TerminalOK
	case broken:
		terminal = loop.TerminalFailed
	case begun, talking, going:
	}
	p.End(agent.Event{Terminal: terminal})
}

// enter notes the session of the first event; another is a sub-agent's.
func (p *Parser) enter(session string) (sub bool) {
	if p.session == "" && session != "" {
		p.session = strings.Clone(agent.Clip(session, 200))
		p.Emit(agent.Event{Kind: agent.Session, Session: session})
	}
	return session != p.session && session != ""
}

func (p *Parser) stand(s state, sub bool) {
	if !sub {
		p.last = s
	}
}

// trouble takes an error. One with a status was a model call, the last of
// those that were tried; the others are not told.
func (p *Parser) trouble(err *failure.APIError, sub bool) {
	e := agent.Event{Kind: agent.Error, Sub: sub, Error: err}
	if err.Status != 0 {
		e.Calls = 1
	}
	p.Emit(e)
	p.stand(broken, sub)
}

// tool takes a tool call, which is told once it is done.
func (p *Parser) tool(part *part, sub bool) {
	s := &part.State
	p.stand(begun, sub)
	p.Emit(jsonline.ToolStart(part.Tool, "", sub, s.Input))
	output := s.Output
	if output == nil {
		output = s.Error
	}
	p.Emit(jsonline.ToolEnd(part.Tool, "", sub, s.Status == "error" || s.Metadata.Exit != 0, output))
}

// step takes the end of a step, which is one model call.
func (p *Parser) step(part *part, sub bool) {
	if !p.steps.Add(part.ID, "") {
		return // told twice
	}
	t := part.Tokens
	e := agent.Event{Kind: agent.UsageSeen, Sub: sub, Calls: 1, Usage: agent.Usage{
		Input: t.Input, Output: t.Output + t.Reasoning, CacheRead: t.Cache.Read, CacheWrite: t.Cache.Write,
	}}
	if !sub {
		e.Turns = 1
	}
	p.Emit(e)
	p.spend(part.Cost)
	p.stand(p.after(part.Reason, sub), sub)
}

// after is how the run stands when a step ended for that reason. An answer
// that was cut off or held back is not what the agent wanted to say.
func (p *Parser) after(reason string, sub bool) state {
	switch reason {
	case "stop":
		return finished
	case "tool-calls":
		return going
	case "length":
		p.fail(sub, "max_output_tokens", "The model's answer was cut off at the limit of its output tokens.")
		return broken
	case "content-filter":
		p.fail(sub, "content_filter", "The model's answer was held back by the provider's content filter.")
		return broken
	}
	if p.last == talking {
		return finished // the provider gives no reason, but there is an answer
	}
	return going
}

func (p *Parser) fail(sub bool, kind, message string) {
	p.Emit(agent.Event{Kind: agent.Error, Sub: sub, Error: &failure.APIError{Type: kind, Message: message}})
}

// spend adds up the cost of steps. A sum of nothing is no report: the program
// has no price for the model, or the user pays for it otherwise.
func (p *Parser) spend(usd float64) {
	if usd <= 0 || usd > maxUSD || p.cost+usd > maxUSD {
		return
	}
	p.cost += usd
	p.Emit(agent.Event{Kind: agent.CostSeen, Cost: agent.Dollars(p.cost)})
}

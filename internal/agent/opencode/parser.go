package opencode

import (
	"bytes"
	"math"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

const (
	maxText = 2000 // of an error, in bytes
	maxName = 200
	maxUSD  = 1_000_000
)

// Parser is the [agent.Parser] of the programs' stream.
type Parser struct {
	emit    func(agent.Event)
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

// line is the top level of one line.
type line struct{ kind, session, part, err []byte }

func (l *line) field(key, value []byte) bool {
	switch string(key) {
	case "type":
		l.kind = value
	case "sessionID":
		l.session = value
	case "part":
		l.part = value
	case "error":
		l.err = value
	}
	return true
}

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	p.emit = emit
	if len(b) == 0 {
		return
	}
	var l line
	whole := jsonline.Object(b, l.field)
	kind := jsonline.Short(l.kind, maxName)
	if !whole || cut {
		p.emit(agent.Event{Kind: agent.Unknown, Text: kind + " (cut or not JSON)"})
		return
	}
	sub := p.enter(jsonline.Short(l.session, maxName))
	switch kind {
	case "step_start":
		p.stand(begun, sub)
	case "text":
		p.said(agent.Text, l.part, sub)
	case "reasoning":
		p.said(agent.Thinking, l.part, sub)
	case "tool_use":
		p.tool(l.part, sub)
	case "step_finish":
		p.step(l.part, sub)
	case "error":
		p.trouble(understand(l.err), sub)
	default:
		p.emit(agent.Event{Kind: agent.Unknown, Text: kind})
	}
}

// Close tells how the run ended, by its last event.
func (p *Parser) Close(emit func(agent.Event)) {
	e := agent.Event{Kind: agent.End, Terminal: loop.TerminalMissing}
	switch p.last {
	case finished:
		e.Terminal = loop.TerminalOK
	case broken:
		e.Terminal = loop.TerminalFailed
	case begun, talking, going:
	}
	emit(e)
}

// enter notes the session of the first event; another is a sub-agent's.
func (p *Parser) enter(session string) (sub bool) {
	if p.session == "" && session != "" {
		p.session = session
		p.emit(agent.Event{Kind: agent.Session, Session: session})
	}
	return session != p.session && session != ""
}

func (p *Parser) stand(s state, sub bool) {
	if !sub {
		p.last = s
	}
}

func (p *Parser) said(kind agent.EventKind, part []byte, sub bool) {
	text := jsonline.String(jsonline.Get(part, "text"))
	if kind == agent.Text && text != "" {
		p.stand(talking, sub)
	}
	p.emit(agent.Event{Kind: kind, Sub: sub, Text: text})
}

// trouble takes an error. One with a status was a model call, the last of
// those that were tried; the others are not told.
func (p *Parser) trouble(err *failure.APIError, sub bool) {
	e := agent.Event{Kind: agent.Error, Sub: sub, Error: err}
	if err.Status != 0 {
		e.Calls = 1
	}
	p.emit(e)
	p.stand(broken, sub)
}

// tool takes a tool call, which is told once it is done.
func (p *Parser) tool(part []byte, sub bool) {
	var name, state []byte
	jsonline.Object(part, func(key, v []byte) bool {
		switch string(key) {
		case "tool":
			name = v
		case "state":
			state = v
		}
		return true
	})
	var status string
	var input, metadata, output []byte
	jsonline.Object(state, func(key, v []byte) bool {
		switch string(key) {
		case "status":
			status = jsonline.Short(v, maxName)
		case "input":
			input = v
		case "metadata":
			metadata = v
		case "output", "error":
			output = v
		}
		return true
	})
	e := agent.Event{Kind: agent.ToolStart, Sub: sub, Tool: jsonline.Short(name, maxName), Digest: agent.Digest(input)}
	jsonline.Object(input, func(key, v []byte) bool {
		switch string(key) {
		case "command":
			e.Command = jsonline.Short(v, agent.CommandCap)
		case "filePath":
			if path := jsonline.String(v); path != "" && len(path) <= 4096 {
				e.Files = append(e.Files, path)
			}
		}
		return true
	})
	p.stand(begun, sub)
	p.emit(e)
	failed := status == "error" || exitOf(metadata) != 0
	p.emit(agent.Event{Kind: agent.ToolEnd, Sub: sub, Tool: e.Tool, Failed: failed, Digest: agent.Digest(output), Result: jsonline.Result(output, agent.ResultCap)})
}

// exitOf is a shell tool's exit status. Within a text of metadata, which may
// be long, the quotes of these words would be escaped.
func exitOf(metadata []byte) int64 {
	_, rest, found := bytes.Cut(metadata, []byte(`"exit":`))
	if !found {
		return 0
	}
	rest = bytes.TrimLeft(rest[:min(len(rest), 32)], " ")
	if end := bytes.IndexAny(rest, ",} "); end >= 0 {
		rest = rest[:end]
	}
	return jsonline.Int(rest)
}

// step takes the end of a step, which is one model call.
func (p *Parser) step(part []byte, sub bool) {
	var reason, id string
	var tokens, cost []byte
	jsonline.Object(part, func(key, v []byte) bool {
		switch string(key) {
		case "id":
			id = jsonline.Short(v, maxName)
		case "reason":
			reason = jsonline.Short(v, maxName)
		case "tokens":
			tokens = v
		case "cost":
			cost = v
		}
		return true
	})
	if !p.steps.Add(id, "") {
		return // told twice
	}
	e := agent.Event{Kind: agent.UsageSeen, Sub: sub, Usage: usage(tokens), Calls: 1}
	if !sub {
		e.Turns = 1
	}
	p.emit(e)
	p.spend(jsonline.Float(cost))
	p.stand(p.after(reason, sub), sub)
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
	p.emit(agent.Event{Kind: agent.Error, Sub: sub, Error: &failure.APIError{Type: kind, Message: message}})
}

// spend adds up the cost of steps. A sum of nothing is no report: the program
// has no price for the model, or the user pays for it otherwise.
func (p *Parser) spend(usd float64) {
	if usd <= 0 || usd > maxUSD || p.cost+usd > maxUSD {
		return
	}
	p.cost += usd
	p.emit(agent.Event{Kind: agent.CostSeen, Cost: loop.MicroUSD(math.Round(p.cost * 1e6))})
}

// usage reads the tokens of a step.
func usage(b []byte) agent.Usage {
	var u agent.Usage
	jsonline.Object(b, func(key, v []byte) bool {
		switch string(key) {
		case "input":
			u.Input = jsonline.Count(v)
		case "output", "reasoning":
			u.Output += jsonline.Count(v)
		case "cache":
			u.CacheRead = jsonline.Count(jsonline.Get(v, "read"))
			u.CacheWrite = jsonline.Count(jsonline.Get(v, "write"))
		}
		return true
	})
	return u
}

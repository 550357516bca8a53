package droid

import (
	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

const (
	maxText    = 2000 // of an error's text, in bytes
	maxName    = 200
	fromLoop   = "agent_loop"
	noMoreThan = 1 << 20 // turns of one run that can be true
)

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	emit   func(agent.Event)
	answer string // id of the model's last answer, whose parts come in lines
	turns  int
	failed bool // an error of the agent loop, and nothing after it
	ended  bool
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{} }

// line is the top level of one line: the fields that any type needs.
type line struct {
	kind, subtype, session, role, id, message, messageID []byte
	text, tool, params, isError, source, usage, turns    []byte
	final, model, value                                  []byte
}

func (l *line) field(key, v []byte) bool {
	switch string(key) {
	case "type":
		l.kind = v
	case "subtype":
		l.subtype = v
	case "session_id":
		l.session = v
	case "role":
		l.role = v
	case "id":
		l.id = v
	case "messageId":
		l.messageID = v
	case "message":
		l.message = v
	case "text":
		l.text = v
	case "toolName", "toolId":
		l.tool = v
	case "parameters":
		l.params = v
	case "isError":
		l.isError = v
	case "source":
		l.source = v
	case "usage":
		l.usage = v
	case "numTurns":
		l.turns = v
	case "finalText":
		l.final = v
	case "model":
		l.model = v
	case "value":
		l.value = v
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
		emit(agent.Event{Kind: agent.Unknown, Text: kind + " (cut or not JSON)"})
		return
	}
	switch kind {
	case "system":
		emit(agent.Event{Kind: agent.Session, Session: jsonline.Short(l.session, maxName), Model: jsonline.Short(l.model, maxName)})
	case "message":
		p.message(l)
	case "reasoning":
		p.part(l.id)
		emit(agent.Event{Kind: agent.Thinking, Text: jsonline.String(l.text)})
	case "tool_call":
		p.part(l.messageID)
		p.call(l)
	case "tool_result":
		emit(agent.Event{Kind: agent.ToolEnd, Tool: jsonline.Short(l.tool, maxName), Failed: jsonline.True(l.isError), Digest: agent.Digest(l.value), Result: jsonline.Result(l.value, agent.ResultCap)})
	case "error":
		p.error(l)
	case "completion":
		p.completion(l)
	default:
		emit(agent.Event{Kind: agent.Unknown, Text: kind})
	}
}

// Close reports a stream that ended without its terminal event. The error of
// the agent loop is one when the command line's did not follow.
func (p *Parser) Close(emit func(agent.Event)) {
	switch {
	case p.ended:
	case p.failed:
		emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalFailed})
	default:
		emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalMissing})
	}
}

// message takes a whole message. The user's is the prompt, told again.
func (p *Parser) message(l line) {
	if jsonline.String(l.role) != "assistant" {
		return
	}
	p.part(l.id)
	p.emit(agent.Event{Kind: agent.Text, Text: jsonline.String(l.text)})
}

// part counts a model call with the first part of its answer.
func (p *Parser) part(id []byte) {
	p.failed, p.ended = false, false
	if name := jsonline.Short(id, maxName); name != p.answer || name == "" {
		p.answer = name
		p.turns++
		p.emit(agent.Event{Kind: agent.UsageSeen, Calls: 1, Turns: 1})
	}
}

func (p *Parser) call(l line) {
	e := agent.Event{Kind: agent.ToolStart, Tool: jsonline.Short(l.tool, maxName), Digest: agent.Digest(l.params)}
	jsonline.Input(&e, l.params)
	p.emit(e)
}

// error takes the agent loop's reason, and the command line's "Exec failed"
// after it, which is the end and a reason only when it is the only one.
func (p *Parser) error(l line) {
	text := jsonline.Short(l.message, maxText)
	if jsonline.String(l.source) == fromLoop {
		p.failed, p.ended = true, false
		p.tell(text)
		return
	}
	if !p.failed {
		p.tell(text)
	}
	p.ended = true
	p.emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalFailed})
}

func (p *Parser) tell(text string) {
	err := &failure.APIError{Status: agent.StatusIn(text), Type: agent.TypeIn(text), Message: text}
	if err.Message == "" {
		err.Message = "droid failed without saying why"
	}
	calls := 0
	if err.Status != 0 {
		calls = 1 // the call that was given up
	}
	p.emit(agent.Event{Kind: agent.Error, Error: err, Calls: calls})
}

func (p *Parser) completion(l line) {
	p.ended = true
	u := agent.Usage{
		Input: jsonline.Count(jsonline.Get(l.usage, "input_tokens")), Output: jsonline.Count(jsonline.Get(l.usage, "output_tokens")),
		CacheRead:  jsonline.Count(jsonline.Get(l.usage, "cache_read_input_tokens")),
		CacheWrite: jsonline.Count(jsonline.Get(l.usage, "cache_creation_input_tokens")),
	}
	p.emit(agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: u})
	if told := int(min(jsonline.Count(l.turns), noMoreThan)); told > p.turns {
		p.emit(agent.Event{Kind: agent.UsageSeen, Calls: told - p.turns, Turns: told - p.turns})
		p.turns = told
	}
	p.emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalOK, Text: jsonline.String(l.final), Final: true})
}

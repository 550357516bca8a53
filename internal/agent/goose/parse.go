package goose

import (
	"bytes"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

const (
	maxText = 2000 // of an error's text, in bytes
	maxName = 200
)

// A tool's result says so when it failed. Within a text these words would have
// their quotes escaped, so that the result needs no second look.
var (
	failedStatus = []byte(`"status":"error"`)
	failedCall   = []byte(`"isError":true`)
)

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	emit   func(agent.Event)
	tools  jsonline.IDs // tool request id to name
	draft  *agent.Tail  // the message that is being said
	open   bool         // draft has something
	id     string       // of the model's last message
	failed bool         // an error, and no message after it
	ended  bool
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{draft: agent.NewTail(agent.MessageCap)} }

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	p.emit = emit
	if len(b) == 0 {
		return
	}
	var kind, message, told []byte
	whole := jsonline.Object(b, func(key, v []byte) bool {
		switch string(key) {
		case "type":
			kind = v
		case "message":
			message = v
		case "error":
			told = v
		}
		return true
	})
	name := jsonline.Short(kind, maxName)
	if !whole || cut {
		emit(agent.Event{Kind: agent.Unknown, Text: name + " (cut or not JSON)"})
		return
	}
	switch name {
	case "message":
		p.message(message)
	case "notification":
	case "error":
		p.say()
		p.failed = true
		text := jsonline.Short(told, maxText)
		emit(agent.Event{Kind: agent.Error, Error: &failure.APIError{Status: agent.StatusIn(text), Type: agent.TypeIn(text), Message: text}})
	case "complete":
		p.complete(b)
	default:
		emit(agent.Event{Kind: agent.Unknown, Text: name})
	}
}

// Close reports a stream that ended without its terminal event.
func (p *Parser) Close(emit func(agent.Event)) {
	p.emit = emit
	p.say()
	if !p.ended {
		emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalMissing})
	}
}

// say ends the message that came in pieces.
func (p *Parser) say() {
	if p.open {
		p.emit(agent.Event{Kind: agent.Text, Text: p.draft.Text()})
	}
	p.draft.Reset()
	p.open = false
}

// message takes a message or a piece of one. A piece without an id is a
// message of its own.
func (p *Parser) message(b []byte) {
	var role, id, content []byte
	jsonline.Object(b, func(key, v []byte) bool {
		switch string(key) {
		case "role":
			role = v
		case "id":
			id = v
		case "content":
			content = v
		}
		return true
	})
	model := jsonline.String(role) == "assistant"
	if model {
		p.failed, p.ended = false, false
		if id := jsonline.Short(id, maxName); id == "" || id != p.id {
			p.say()
			p.id = id
			p.emit(agent.Event{Kind: agent.UsageSeen, Calls: 1, Turns: 1})
		}
	}
	jsonline.Array(content, func(one []byte) bool {
		p.content(one, model)
		return true
	})
}

// content takes one part of a message. Texts of the user are the prompt.
func (p *Parser) content(b []byte, model bool) {
	var kind, text, thinking, id, result []byte
	jsonline.Object(b, func(key, v []byte) bool {
		switch string(key) {
		case "type":
			kind = v
		case "text":
			text = v
		case "thinking":
			thinking = v
		case "id":
			id = v
		case "toolResult":
			result = v
		}
		return true
	})
	switch kind := jsonline.Short(kind, maxName); kind {
	case "text":
		if model {
			p.open = true
			p.draft.Join(jsonline.String(text))
		}
	case "thinking":
		p.emit(agent.Event{Kind: agent.Thinking, Text: jsonline.String(thinking)})
	case "toolRequest", "frontendToolRequest":
		p.say()
		p.request(b)
	case "toolResponse":
		id := jsonline.Short(id, maxName)
		p.emit(agent.Event{
			Kind: agent.ToolEnd, Digest: agent.Digest(result), Tool: p.tools.Value(id), Call: id, Result: jsonline.Result(result, agent.ResultCap),
			Failed: bytes.Contains(b, failedStatus) || bytes.Contains(b, failedCall),
		})
	case "image", "redactedThinking", "toolConfirmationRequest", "actionRequired", "systemNotification":
	default:
		p.emit(agent.Event{Kind: agent.Unknown, Text: "message/" + kind})
	}
}

func (p *Parser) request(b []byte) {
	call := jsonline.Get(b, "toolCall", "value")
	e := agent.Event{Kind: agent.ToolStart, Tool: jsonline.Short(jsonline.Get(call, "name"), maxName)}
	e.Call = jsonline.Short(jsonline.Get(b, "id"), maxName)
	p.tools.Add(e.Call, e.Tool)
	args := jsonline.Get(call, "arguments")
	e.Digest = agent.Digest(args)
	jsonline.Input(&e, args)
	p.emit(e)
}

// complete is the terminal event. It comes after an error too.
func (p *Parser) complete(b []byte) {
	p.say()
	p.ended = true
	u := agent.Usage{
		Output:    jsonline.Count(jsonline.Get(b, "output_tokens")),
		CacheRead: jsonline.Count(jsonline.Get(b, "cache_read_input_tokens")), CacheWrite: jsonline.Count(jsonline.Get(b, "cache_write_input_tokens")),
	}
	u.Input = max(0, jsonline.Count(jsonline.Get(b, "input_tokens"))-u.CacheRead-u.CacheWrite)
	p.emit(agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: u})
	if cost, ok := jsonline.Cost(jsonline.Get(b, "cost_usd")); ok {
		p.emit(agent.Event{Kind: agent.CostSeen, Cost: cost})
	}
	end := loop.TerminalOK
	if p.failed {
		end = loop.TerminalFailed
	}
	p.emit(agent.Event{Kind: agent.End, Terminal: end})
}

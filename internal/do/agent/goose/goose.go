// Package goose runs goose headless (`goose run -i - --output-format
// stream-json`) and reads its stream. It starts nothing itself; it is made
// from the program's source, no run of it was recorded.
//
//   - The prompt comes on stdin, which -i - asks for.
//   - A message of the model comes in pieces, lines with the same id; the
//     results of tools are messages of the user.
//   - `complete` ends the stream, with the run's tokens, whose input counts
//     the cached ones too, and its cost. It comes after an `error` as well.
//   - Keys may be in the system's keyring, so that stays on.
package goose

import (
	_ "embed" // of the program's file
	"encoding/json"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

//go:embed program.json
var file string

// Program is goose. A user's own addresses are in another form than the gateway's.
func Program() program.Program { return program.Read(file, program.Lines(NewParser)) }

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	jsonline.Stream

	tools  jsonline.IDs // tool request id to name
	id     string       // of the model's last message
	failed bool         // an error, and no message after it
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{} }

// line is one line of any type. Fields without a tag have the name of the key.
type line struct {
	Type, Error string

	Message struct {
		Role, ID string
		Content  []content
	}

	// Of the end.
	Input      int64    `json:"input_tokens"`
	Output     int64    `json:"output_tokens"`
	CacheRead  int64    `json:"cache_read_input_tokens"`
	CacheWrite int64    `json:"cache_write_input_tokens"`
	Cost       *float64 `json:"cost_usd"`
}

// content is a part of a message.
type content struct {
	Type, Text, Thinking, ID string

	ToolCall struct {
		Value struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	ToolResult json.RawMessage
}

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	var l line
	if !p.Decode(b, cut, &l, emit) {
		return
	}
	switch l.Type {
	case "message":
		p.readMessage(&l)
	case "notification":
	case "error":
		p.EndMessage()
		p.failed = true
		emit(agent.Event{Kind: agent.Error, Error: &failure.APIError{
			Status: agent.StatusIn(l.Error), Type: agent.TypeIn(l.Error), Message: l.Error,
		}})
	case "complete":
		p.readComplete(&l)
	default:
		p.Unknown(l.Type)
	}
}

// readMessage takes a message or a piece of one. A piece without an id is a message of its own.
func (p *Parser) readMessage(l *line) {
	model, id := l.Message.Role == "assistant", l.Message.ID
	if model {
		p.failed, p.Ended = false, false
		if id == "" || id != p.id {
			p.EndMessage()
			p.id = id
			p.Emit(agent.Event{Kind: agent.UsageSeen, Calls: 1, Turns: 1})
		}
	}
	for _, c := range l.Message.Content {
		p.readContent(&c, model)
	}
}

// readContent takes one part of a message. Texts of the user are the prompt.
func (p *Parser) readContent(c *content, model bool) {
	switch c.Type {
	case "text":
		if model {
			p.Draft.Join(c.Text)
		}
	case "thinking":
		p.Emit(agent.Event{Kind: agent.Thinking, Text: c.Thinking})
	case "toolRequest", "frontendToolRequest":
		p.EndMessage()
		call := c.ToolCall.Value
		p.tools.Add(c.ID, call.Name)
		p.Emit(jsonline.ToolStart(call.Name, c.ID, false, call.Arguments))
	case "toolResponse":
		p.Emit(jsonline.ToolEnd(p.tools.Value(c.ID), c.ID, false, hasFailed(c.ToolResult), c.ToolResult))
	case "image", "redactedThinking", "toolConfirmationRequest", "actionRequired", "systemNotification":
	default:
		p.Unknown("message/" + c.Type)
	}
}

// hasFailed reads a tool's result.
func hasFailed(result json.RawMessage) bool {
	var r struct {
		Status string
		Value  struct{ IsError bool }
	}
	jsonline.Read(result, &r)
	return r.Status == "error" || r.Value.IsError
}

// readComplete takes the terminal event. It comes after an error too.
func (p *Parser) readComplete(l *line) {
	p.EndMessage()
	p.Emit(agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: agent.Usage{
		Input: max(0, l.Input-l.CacheRead-l.CacheWrite), Output: l.Output, CacheRead: l.CacheRead,
		CacheWrite: l.CacheWrite,
	}})
	if l.Cost != nil {
		p.Emit(agent.Event{Kind: agent.CostSeen, Cost: agent.Dollars(*l.Cost)})
	}
	end := loop.TerminalOK
	if p.failed {
		end = loop.TerminalFailed
	}
	p.End(agent.Event{Terminal: end})
}

package claude

import (
	"encoding/json"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
)

// message is the model's, or what the program tells the model.
type message struct {
	ID, Model string
	Usage     usage
	Content   []block
}

// block is a part of a message.
type block struct {
	Type, Text, Thinking, Name, ID string
	Input                          json.RawMessage

	CallID  string `json:"tool_use_id"` // of a result
	IsError bool   `json:"is_error"`
	Content json.RawMessage
}

// apiEvent is an event of the API itself.
type apiEvent struct {
	Type    string
	Message message
	Usage   usage
}

// assistant takes one block of a message of the model. A message comes as one
// line per block, each with the same id and the usage of its start.
func (p *Parser) assistant(l *line) {
	m := &l.Message
	if word := jsonline.Message(l.Error); word != "" {
		p.Pending = p.apology(l, word)
		return
	}
	if p.dialect.Apology != nil && len(m.Content) == 1 && m.Content[0].Text != "" {
		if p.Pending = p.dialect.Apology(m.Content[0].Text); p.Pending != nil {
			return
		}
	}
	p.Ended = false
	if m.Model != "<synthetic>" {
		p.started(m, l.sub())
	}
	said := 0
	for _, b := range m.Content {
		said += p.block(b, l.sub())
	}
	if guess := int64(said+bytesPerToken-1) / bytesPerToken; guess > 0 && !p.live && !p.dialect.PerCall {
		p.Emit(agent.Event{Kind: agent.UsageSeen, Estimate: true, Sub: l.sub(), Usage: agent.Usage{Output: guess}})
	}
}

// apology is a message that the program wrote itself, because a model call failed.
func (p *Parser) apology(l *line, word string) *failure.APIError {
	err := &failure.APIError{Type: word, Status: l.Status}
	for _, b := range l.Message.Content {
		if err.Message == "" {
			err.Message = b.Text
		}
	}
	if err.Status == 429 || err.Type == "rate_limit" {
		err.ResetAt = p.resetAt
	}
	return err
}

// started counts a model call once per message, with what is known of its
// usage at its start. The output count there is no count yet.
func (p *Parser) started(m *message, sub bool) {
	u := p.usage(m.Usage)
	if p.dialect.PerCall && u == (agent.Usage{}) {
		return
	}
	if !p.messages.Add(m.ID, "") {
		return
	}
	if !p.dialect.PerCall {
		u.Output = 0
	}
	e := agent.Event{Kind: agent.UsageSeen, Usage: u, Calls: 1, Sub: sub}
	if !sub {
		e.Turns = 1
		p.turns++
	}
	p.Emit(e)
}

// block emits one block and returns how many bytes the model wrote for it.
func (p *Parser) block(b block, sub bool) int {
	switch b.Type {
	case "text":
		p.Emit(agent.Event{Kind: agent.Text, Sub: sub, Text: b.Text})
	case "thinking":
		p.Emit(agent.Event{Kind: agent.Thinking, Sub: sub, Text: b.Thinking})
	case "tool_use", "server_tool_use":
		p.tools.Add(b.ID, b.Name)
		p.Emit(jsonline.ToolStart(b.Name, b.ID, sub, b.Input))
	case "redacted_thinking", "web_search_tool_result":
		return 0
	default:
		p.Unknown("assistant/" + b.Type)
	}
	return len(b.Text) + len(b.Thinking) + len(b.Input)
}

// user lines are the results of tools, and what the program tells the model.
// Nothing in them is the agent's own word.
func (p *Parser) user(l *line) {
	for _, b := range l.Message.Content {
		if b.Type == "tool_result" {
			p.Emit(jsonline.ToolEnd(p.tools.Value(b.CallID), b.CallID, l.sub(), b.IsError, b.Content))
		}
	}
}

// stream takes events of the API itself (--include-partial-messages). Text in
// them comes again in whole messages; usage is exact here.
func (p *Parser) stream(l *line) {
	switch l.Event.Type {
	case "message_start":
		p.live, p.Ended = true, false
		p.started(&l.Event.Message, l.sub())
	case "message_delta":
		if n := l.Event.Usage.Output; n > 0 {
			p.Emit(agent.Event{Kind: agent.UsageSeen, Sub: l.sub(), Usage: agent.Usage{Output: n}})
		}
	}
}

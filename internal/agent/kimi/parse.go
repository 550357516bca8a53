package kimi

import (
	"encoding/json"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

// Parser is the [agent.Parser] of the program's stream.
type Parser struct{ jsonline.Stream }

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{} }

// line is one line of any role. Fields without a tag have the name of the key.
type line struct {
	Role, Type string
	Content    json.RawMessage // a text, or parts of one
	Session    string          `json:"session_id"`

	Calls []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
	Call string `json:"tool_call_id"`

	// Of a call that is tried again.
	Attempt int     `json:"failed_attempt"`
	Delay   float64 `json:"delay_ms"`
	Name    string  `json:"error_name"`
	Message string  `json:"error_message"`
	Status  int     `json:"status_code"`
}

// text is what a message says.
func (l *line) text() string {
	var text string
	var parts []struct{ Type, Text string }
	jsonline.Read(l.Content, &text)
	jsonline.Read(l.Content, &parts)
	for _, p := range parts {
		if p.Type == "text" {
			text += p.Text
		}
	}
	return text
}

// Line takes one line. What is no JSON object, is cut or has an unknown role is
// kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	var l line
	if !p.Decode(b, cut, &l, emit) {
		return
	}
	switch l.Role {
	case "assistant":
		p.answer(&l)
	case "tool":
		emit(jsonline.ToolEnd("", l.Call, false, false, l.Content))
	case "meta":
		p.meta(&l)
	default:
		p.Unknown(l.Role)
	}
}

// answer is one answer of the model.
func (p *Parser) answer(l *line) {
	p.Emit(agent.Event{Kind: agent.UsageSeen, Calls: 1, Turns: 1})
	if text := l.text(); text != "" {
		p.Emit(agent.Event{Kind: agent.Text, Text: text})
	}
	for _, c := range l.Calls {
		p.Emit(jsonline.ToolStart(c.Function.Name, c.ID, false, json.RawMessage(c.Function.Arguments)))
	}
}

func (p *Parser) meta(l *line) {
	switch l.Type {
	case "system.version":
		p.Emit(agent.Event{Kind: agent.Session})
	case "turn.step.retrying":
		wait := min(max(l.Delay, 0), 1e9)
		p.Emit(agent.Event{Kind: agent.Retry, Calls: 1, Attempt: l.Attempt, Error: &failure.APIError{
			Status: l.Status, Type: kindOf(l), Message: l.Message, RetryAfter: time.Duration(wait) * time.Millisecond,
		}})
	case "session.resume_hint":
		p.Emit(agent.Event{Kind: agent.Session, Session: l.Session})
		p.End(agent.Event{Terminal: loop.TerminalOK})
	default:
		p.Unknown(l.Type)
	}
}

// kindOf is the kind of an error in the words of others.
func kindOf(l *line) string {
	if l.Name == "APIEmptyResponseError" {
		return "empty_answer"
	}
	return agent.TypeIn(l.Message)
}

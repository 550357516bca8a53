// Package kimi runs Kimi Code headless (`kimi --output-format stream-json -p`)
// and reads its stream of JSON lines.
//
// What the program does, as pawl relies on it:
//   - Each message is a line with its role: "assistant" with its tool calls,
//     "tool" with a result, "meta" for what the program says itself.
//   - A run that went well ends with the meta line session.resume_hint; one that
//     did not has its reason on stderr only. The stream has no tokens and no cost.
//   - It tries a failed call again nine times, and says so each time.
//   - With -p nothing is asked: there is no flag for permissions.
//   - KIMI_MODEL_NAME, KIMI_MODEL_API_KEY and KIMI_MODEL_BASE_URL take the place of
//     all that its configuration says of models.
//
// The package starts nothing itself.
package kimi

import (
	_ "embed" // of the program's file
	"encoding/json"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

//go:embed program.json
var file string

// Program is Kimi Code. Its door is the provider of the program's own variables, of OpenAI's protocol
// unless another type is set.
func Program() program.Program { return program.Read(file, program.Lines(NewParser)) }

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

// joinedText joins the texts of a message.
func (l *line) joinedText() string {
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
		p.readAnswer(&l)
	case "tool":
		emit(jsonline.ToolEnd("", l.Call, false, false, l.Content))
	case "meta":
		p.readMeta(&l)
	default:
		p.Unknown(l.Role)
	}
}

// readAnswer takes one answer of the model.
func (p *Parser) readAnswer(l *line) {
	p.Emit(agent.Event{Kind: agent.UsageSeen, Calls: 1, Turns: 1})
	if text := l.joinedText(); text != "" {
		p.Emit(agent.Event{Kind: agent.Text, Text: text})
	}
	for _, c := range l.Calls {
		p.Emit(jsonline.ToolStart(c.Function.Name, c.ID, false, json.RawMessage(c.Function.Arguments)))
	}
}

func (p *Parser) readMeta(l *line) {
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

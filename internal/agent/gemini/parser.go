package gemini

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	jsonline.Stream // what ended the run is pending, as its result may say success

	tools jsonline.IDs // tool call id to name
	model string
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{Stream: jsonline.Stream{Due: true}} }

// line is one line of any type. Fields without a tag have the name of the key.
type line struct {
	Type, Role, Content, Model, Status, Severity, Message string

	Delta      bool
	Session    string `json:"session_id"`
	Tool       string `json:"tool_name"`
	ID         string `json:"tool_id"`
	Parameters json.RawMessage
	Output     json.RawMessage
	Error      *struct{ Type, Message string }
	Stats      stats
}

// stats are the run's totals.
type stats struct {
	Total  int64 `json:"total_tokens"`
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	Cached int64
	Models map[string]struct {
		Total int64 `json:"total_tokens"`
	}
}

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	var l line
	if !p.Decode(b, cut, &l, emit) {
		return
	}
	switch l.Type {
	case "init", "tool_use", "tool_result", "error", "result":
		p.EndMessage() // anything else does not end a message: it may be noise between its pieces
	}
	switch l.Type {
	case "message":
		p.say(&l)
	case "init":
		p.model = l.Model
		p.Emit(agent.Event{Kind: agent.Session, Session: l.Session, Model: p.model})
	case "tool_use":
		p.begin(&l)
	case "tool_result":
		p.Due = true
		p.Emit(jsonline.ToolEnd(p.tools.Value(l.ID), l.ID, false, l.Status == "error", l.Output))
	case "error":
		p.notice(&l)
	case "result":
		p.result(&l)
	default:
		p.Unknown(l.Type)
	}
}

// say takes a message or a piece of one. The user's is the prompt's echo.
func (p *Parser) say(l *line) {
	if l.Role != "assistant" || !l.Delta {
		p.EndMessage()
	}
	if l.Role == "assistant" {
		p.Ended = false
		p.Draft.Join(l.Content)
	}
}

func (p *Parser) begin(l *line) {
	p.Ended = false
	p.tools.Add(l.ID, l.Tool)
	p.Answer(jsonline.ToolStart(l.Tool, l.ID, false, l.Parameters))
}

// notice takes an error event. One of severity "error", and the loop
// detector's warning, stop the run, whatever its result says then.
func (p *Parser) notice(l *line) {
	low := strings.ToLower(l.Message)
	switch {
	case strings.Contains(low, "loop detected"):
		p.Pending = &failure.APIError{Type: "loop_detected", Message: l.Message}
	case l.Severity == "error":
		p.Pending = understand("", l.Message)
		if strings.Contains(low, "maximum session turns") {
			p.Pending.Type = "max_turns"
		}
	default:
		p.Unknown("warning: " + l.Message)
	}
}

// result is the terminal event.
func (p *Parser) result(l *line) {
	p.usage(l.Stats)
	if l.Status == "success" && p.Pending == nil {
		p.End(agent.Event{Terminal: loop.TerminalOK})
		return
	}
	err := p.Pending
	if l.Error != nil {
		err = understand(l.Error.Type, l.Error.Message)
	}
	p.Pending = nil
	if err == nil {
		err = &failure.APIError{Message: "the program reports the status " + l.Status + " and no reason"}
	}
	e := agent.Event{Kind: agent.Error, Error: err}
	called := err.Status != 0 || err.Type == disconnected
	if called && p.Due {
		e.Calls = 1 // the call that was given up
	}
	p.Emit(e)
	p.End(agent.Event{Terminal: loop.TerminalFailed})
}

// usage takes the run's totals, and the model that really answered most.
func (p *Parser) usage(s stats) {
	// Thoughts are in the total only, and cost what output does.
	p.Emit(agent.Event{Kind: agent.UsageSeen, Cumulative: true,
		Usage: agent.Usage{Input: max(s.Input-s.Cached, 0), Output: max(s.Output, s.Total-s.Input), CacheRead: s.Cached}})
	most, name := int64(0), ""
	for _, model := range slices.Sorted(maps.Keys(s.Models)) {
		if n := s.Models[model].Total; n > most {
			most, name = n, model
		}
	}
	if name != "" && name != p.model {
		p.model = name
		p.Emit(agent.Event{Kind: agent.Session, Model: name})
	}
}

// Package cursor runs Cursor's agent headless (`cursor-agent -p
// --output-format stream-json`) and reads its stream: Claude Code's lines with
// tool calls and thoughts in lines of their own. It starts nothing itself; it
// is made from documentation, no run of the program was recorded.
//
//   - The prompt is an argument, so it is at most 128 KiB.
//   - `result` is the terminal event of a success; a failure may end the
//     stream without one, with the reason on stderr.
//   - `result.result` is everything that was said in one piece, without
//     anything between the messages: a signal in it may not be alone on its
//     line. The message is what was said after the last tool call.
//   - Tokens come with the result, if at all. There is no cost.
package cursor

import (
	_ "embed" // of the program's file
	"encoding/json"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/claude"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

//go:embed program.json
var file string

// Program is Cursor's agent.
func Program() program.Program { return program.Read(file, program.Lines(NewParser)) }

// Parser is the [agent.Parser] of the program's stream: Claude Code's, with
// the lines that are not its own taken out.
type Parser struct {
	inner *claude.Parser
	emit  func(agent.Event)
	said  bool // something, after the last tool call
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{inner: claude.NewDialect(claude.Dialect{PerCall: true})} }

// line is what differs from Claude Code's. Fields without a tag have the name
// of the key.
type line struct {
	Type, Subtype, Text string

	CallID   string                     `json:"call_id"`
	ToolCall map[string]json.RawMessage `json:"tool_call"`
	Usage    struct{ InputTokens, OutputTokens, CacheReadTokens, CacheWriteTokens int64 }
}

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	p.emit = emit
	var l line
	if !cut {
		jsonline.Read(b, &l)
	}
	switch l.Type {
	case "tool_call":
		p.readTool(&l)
	case "thinking":
		if l.Text != "" {
			emit(agent.Event{Kind: agent.Thinking, Text: l.Text})
		}
	case "interaction_query":
	case "assistant":
		emit(agent.Event{Kind: agent.UsageSeen, Calls: 1, Turns: 1})
		p.inner.Line(b, cut, p.passEvent)
	case "result": // the run's tokens, where it has them
		u := l.Usage
		sum := agent.Usage{Input: u.InputTokens, Output: u.OutputTokens,
			CacheRead: u.CacheReadTokens, CacheWrite: u.CacheWriteTokens}
		if sum != (agent.Usage{}) {
			emit(agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: sum})
		}
		p.inner.Line(b, cut, p.passEvent)
	default:
		p.inner.Line(b, cut, p.passEvent)
	}
}

// Close reports a stream that ended without its terminal event.
func (p *Parser) Close(emit func(agent.Event)) {
	p.emit = emit
	p.inner.Close(p.passEvent)
}

// passEvent hands on what is read as Claude Code's. The whole run's text is no final message where
// a better one is known, and num_turns are counted here.
func (p *Parser) passEvent(e agent.Event) {
	switch {
	case e.Kind == agent.Text:
		p.said = p.said || e.Text != ""
	case e.Kind == agent.ToolStart:
		p.said = false
	case e.Kind == agent.End && p.said:
		e.Text = ""
	case e.Kind == agent.UsageSeen && e.Usage == (agent.Usage{}):
		return
	}
	p.emit(e)
}

// call is a tool call and, at its end, its result.
type call struct {
	Name         string
	Args, Result json.RawMessage
}

// readTool takes the start or end of a tool call: an object with one key, the tool's name with
// "ToolCall" behind it, or "function" for one with its name inside.
func (p *Parser) readTool(l *line) {
	name, c := "", call{}
	for key, value := range l.ToolCall {
		if len(value) > 0 && value[0] == '{' {
			jsonline.Read(value, &c)
			name = strings.TrimSuffix(key, "ToolCall")
		}
	}
	if name == "function" {
		name = c.Name
	}
	switch l.Subtype {
	case "started":
		p.said = false
		p.emit(jsonline.ToolStart(name, l.CallID, false, c.Args))
	case "completed":
		// A result that names its outcome names success or what went wrong.
		var outcome map[string]json.RawMessage
		jsonline.Read(c.Result, &outcome)
		failed := len(outcome) > 0 && outcome["success"] == nil
		p.emit(jsonline.ToolEnd(name, l.CallID, false, failed, c.Result))
	default:
		p.emit(agent.Event{Kind: agent.Unknown, Text: "tool_call/" + l.Subtype})
	}
}

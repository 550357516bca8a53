package cursor

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/claude"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
)

// Parser is the [agent.Parser] of the program's stream: Claude Code's, with
// the lines that are not its own taken out.
type Parser struct {
	inner *claude.Parser
	emit  func(agent.Event)
	said  bool // something, after the last tool call
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{inner: claude.NewDialect(claude.Dialect{PerCall: true})} }

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	p.emit = emit
	switch kind := jsonline.Short(jsonline.Get(b, "type"), 50); {
	case cut:
	case kind == "tool_call":
		p.tool(b)
		return
	case kind == "thinking":
		if text := jsonline.String(jsonline.Get(b, "text")); text != "" {
			emit(agent.Event{Kind: agent.Thinking, Text: text})
		}
		return
	case kind == "interaction_query":
		return
	case kind == "assistant":
		emit(agent.Event{Kind: agent.UsageSeen, Calls: 1, Turns: 1})
	case kind == "result":
		p.usage(jsonline.Get(b, "usage"))
	}
	p.inner.Line(b, cut, p.pass)
}

// Close reports a stream that ended without its terminal event.
func (p *Parser) Close(emit func(agent.Event)) {
	p.emit = emit
	p.inner.Close(p.pass)
}

// pass hands on what is read as Claude Code's. The whole run's text is no
// final message where a better one is known, and num_turns are counted here.
func (p *Parser) pass(e agent.Event) {
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

// tool takes the start or end of a tool call: an object with one key, the
// tool's name with "ToolCall" behind it, or "function" for one with its name inside.
func (p *Parser) tool(b []byte) {
	name, call := "", []byte(nil)
	jsonline.Object(jsonline.Get(b, "tool_call"), func(key, v []byte) bool {
		if len(v) == 0 || v[0] != '{' {
			return true
		}
		name, call = strings.TrimSuffix(string(key[:min(len(key), 200)]), "ToolCall"), v
		return false
	})
	if name == "function" {
		name = jsonline.Short(jsonline.Get(call, "name"), 200)
	}
	id := jsonline.Short(jsonline.Get(b, "call_id"), agent.CallCap)
	switch subtype := jsonline.Short(jsonline.Get(b, "subtype"), 50); subtype {
	case "started":
		e := agent.Event{Kind: agent.ToolStart, Tool: name, Call: id}
		args := jsonline.Get(call, "args")
		e.Digest = agent.Digest(args)
		jsonline.Input(&e, args)
		p.said = false
		p.emit(e)
	case "completed":
		result := jsonline.Get(call, "result")
		p.emit(agent.Event{Kind: agent.ToolEnd, Tool: name, Failed: failedResult(result), Digest: agent.Digest(result), Call: id, Result: jsonline.Result(result, agent.ResultCap)})
	default:
		p.emit(agent.Event{Kind: agent.Unknown, Text: "tool_call/" + subtype})
	}
}

// failedResult is true for a result that names its outcome, and no success.
func failedResult(result []byte) bool {
	good, seen := false, false
	jsonline.Object(result, func(key, _ []byte) bool {
		seen, good = true, string(key) == "success"
		return !good
	})
	return seen && !good
}

// usage takes the run's tokens, where the result has them.
func (p *Parser) usage(b []byte) {
	u := agent.Usage{
		Input: jsonline.Count(jsonline.Get(b, "inputTokens")), Output: jsonline.Count(jsonline.Get(b, "outputTokens")),
		CacheRead: jsonline.Count(jsonline.Get(b, "cacheReadTokens")), CacheWrite: jsonline.Count(jsonline.Get(b, "cacheWriteTokens")),
	}
	if u != (agent.Usage{}) {
		p.emit(agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: u})
	}
}

package codex

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

const (
	maxError = 2000 // of an error, in bytes
	maxName  = 200
	maxFiles = 100
	maxOpen  = 64 // tool calls that are remembered as running
)

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	emit func(agent.Event)
	// pending is a top-level error. The end of the turn repeats it, so it
	// waits for the next line.
	pending *failure.APIError
	open    []string // ids of the tool calls that run
	// due is true when what comes next is an answer to a new model call: at the
	// start of a turn, and after a tool. Tools of one answer run one after the
	// other, so that calls are counted too high rather than too low.
	due   bool
	ended bool // the turn ended, and no other began
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{due: true} }

// line is the top level of one line.
type line struct{ kind, thread, item, message, err, usage []byte }

func (l *line) field(key, value []byte) bool {
	switch string(key) {
	case "type":
		l.kind = value
	case "thread_id":
		l.thread = value
	case "item":
		l.item = value
	case "message":
		l.message = value
	case "error":
		l.err = value
	case "usage":
		l.usage = value
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
	if kind != "turn.failed" {
		p.flush()
	}
	if !whole || cut {
		p.unknown(kind + " (cut or not JSON)")
		return
	}
	switch kind {
	case "thread.started":
		p.emit(agent.Event{Kind: agent.Session, Session: jsonline.Short(l.thread, maxName)})
	case "turn.started":
		p.due, p.ended = true, false
	case "item.started":
		p.started(readItem(l.item))
	case "item.completed":
		p.completed(readItem(l.item))
	case "turn.completed":
		p.done(l.usage)
	case "turn.failed":
		p.failed(jsonline.String(jsonline.Get(l.err, "message")))
	case "error":
		p.error(jsonline.String(l.message))
	case "item.updated", "item.plan.delta", "request_user_input":
	default:
		p.unknown(kind)
	}
}

// Close reports a stream that ended without the end of a turn.
func (p *Parser) Close(emit func(agent.Event)) {
	p.emit = emit
	p.flush()
	if !p.ended {
		emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalMissing})
	}
}

func (p *Parser) unknown(kind string) {
	p.emit(agent.Event{Kind: agent.Unknown, Text: kind})
}

// flush emits an error that no end of the turn followed.
func (p *Parser) flush() {
	if p.pending != nil {
		p.emit(agent.Event{Kind: agent.Error, Error: p.pending})
		p.pending = nil
	}
}

// said counts a model call when an answer begins with e.
func (p *Parser) said(e agent.Event) {
	if p.due {
		p.due = false
		e.Calls, e.Turns = 1, 1
	}
	p.ended = false
	p.emit(e)
}

// item is a message, a thought or a tool call.
type item struct {
	id, kind, status                     string
	text, command, changes, server, tool []byte
	args, result                         []byte
}

func readItem(b []byte) item {
	var it item
	jsonline.Object(b, func(key, v []byte) bool {
		switch string(key) {
		case "id":
			it.id = jsonline.Short(v, maxName)
		case "type":
			it.kind = jsonline.Short(v, maxName)
		case "status":
			it.status = jsonline.Short(v, maxName)
		case "text":
			it.text = v
		case "command":
			it.command = v
		case "changes":
			it.changes = v
		case "server":
			it.server = v
		case "tool":
			it.tool = v
		case "arguments", "query":
			it.args = v
		case "aggregated_output", "result":
			it.result = v
		}
		return true
	})
	return it
}

// name is the tool's name, "" for an item that is no tool call.
func (it item) name() string {
	switch it.kind {
	case "command_execution":
		return "shell"
	case "file_change", "web_search":
		return it.kind
	case "mcp_tool_call":
		return jsonline.Short(it.server, maxName) + "." + jsonline.Short(it.tool, maxName)
	case "collab_tool_call":
		return jsonline.Short(it.tool, maxName)
	}
	return ""
}

// digest is of what the tool was asked. A change of files is told without its
// content, so that it is like no other.
func (it item) digest() uint64 {
	if it.args != nil {
		return agent.Digest(it.args)
	}
	return agent.Digest(it.command)
}

func (p *Parser) started(it item) {
	name := it.name()
	if name == "" {
		return
	}
	if len(p.open) == maxOpen {
		p.open = slices.Delete(p.open, 0, 1)
	}
	p.open = append(p.open, it.id)
	p.begin(it, name)
}

func (p *Parser) begin(it item, name string) {
	e := agent.Event{Kind: agent.ToolStart, Tool: name, Command: jsonline.Short(it.command, agent.CommandCap), Digest: it.digest(), Call: it.id}
	jsonline.Array(it.changes, func(change []byte) bool {
		if path := jsonline.String(jsonline.Get(change, "path")); path != "" && len(path) <= 4096 {
			e.Files = append(e.Files, path)
		}
		return len(e.Files) < maxFiles
	})
	p.said(e)
}

func (p *Parser) completed(it item) {
	if name := it.name(); name != "" {
		// A change of files may be told only once it is done.
		if i := slices.Index(p.open, it.id); i >= 0 {
			p.open = slices.Delete(p.open, i, i+1)
		} else {
			p.begin(it, name)
		}
		p.due = true
		p.emit(agent.Event{
			Kind: agent.ToolEnd, Tool: name, Digest: agent.Digest(it.result), Failed: it.status == "failed" || it.status == "declined",
			Call: it.id, Result: jsonline.Result(it.result, agent.ResultCap),
		})
		return
	}
	switch it.kind {
	case "agent_message":
		p.said(agent.Event{Kind: agent.Text, Text: jsonline.String(it.text)})
	case "reasoning", "plan":
		p.said(agent.Event{Kind: agent.Thinking, Text: jsonline.String(it.text)})
	case "todo_list", "error": // an error item is a notice
	default:
		p.unknown("item/" + it.kind)
	}
}

// done takes the end of a turn that worked. Its usage is the thread's, and a
// thread is a run.
func (p *Parser) done(b []byte) {
	var u agent.Usage
	jsonline.Object(b, func(key, v []byte) bool {
		switch string(key) {
		case "input_tokens":
			u.Input = jsonline.Count(v)
		case "cached_input_tokens":
			u.CacheRead = jsonline.Count(v)
		case "cache_write_input_tokens":
			u.CacheWrite = jsonline.Count(v)
		case "output_tokens": // with the tokens of reasoning
			u.Output = jsonline.Count(v)
		}
		return true
	})
	u.Input = max(u.Input-u.CacheRead-u.CacheWrite, 0)
	p.ended = true
	p.emit(agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: u})
	p.emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalOK})
}

func (p *Parser) failed(message string) {
	err := understand(message)
	if message == "" && p.pending != nil {
		err = p.pending
	}
	p.pending, p.ended = nil, true
	calls := 0
	if err.Type != missingKey {
		calls = 1 // the call that was given up
	}
	p.emit(agent.Event{Kind: agent.Error, Error: err, Calls: calls})
	p.emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalFailed})
}

// error takes a top-level error: the program's own retry, or what ends the turn.
func (p *Parser) error(message string) {
	rest, again := strings.CutPrefix(message, "Reconnecting... ")
	if !again {
		p.pending = understand(message)
		return
	}
	head, why, _ := strings.Cut(rest, " (")
	attempt, _, _ := strings.Cut(head, "/")
	n, err := strconv.Atoi(attempt)
	if err != nil {
		n = 0 // "waiting for network"
	}
	p.ended = false
	p.emit(agent.Event{Kind: agent.Retry, Calls: 1, Attempt: max(n, 0), Error: understand(strings.TrimSuffix(why, ")"))})
}

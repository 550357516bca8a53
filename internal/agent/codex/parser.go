package codex

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/loop"
)

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	// A call of the model is due at the start of a turn, and after a tool. Tools of
	// one answer run one after the other, so that calls are counted too high rather
	// than too low. A top-level error is pending, since the end of the turn repeats it.
	jsonline.Stream

	begun jsonline.IDs // of the tool calls that were told at their start
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{Stream: jsonline.Stream{Due: true}} }

// line is one line of any type. Fields without a tag have the name of the key.
type line struct {
	Type, Message string

	Thread string `json:"thread_id"`
	Item   item
	Error  struct{ Message string }
	Usage  usage
}

// usage is what the whole thread used, as the stream and the session's file tell it.
type usage struct {
	Input      int64 `json:"input_tokens"` // with what is cached
	CacheRead  int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_input_tokens"`
	Output     int64 `json:"output_tokens"` // with the tokens of reasoning
}

func (u usage) event() agent.Event {
	return agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: agent.Usage{
		Input: max(u.Input-u.CacheRead-u.CacheWrite, 0), Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite,
	}}
}

// Record takes one line of the session's file.
func (p *Parser) Record(line []byte, emit func(agent.Event)) {
	var l struct {
		Type    string
		Payload struct {
			Type string
			Info struct {
				Total usage `json:"total_token_usage"`
			}
		}
	}
	if json.Unmarshal(line, &l) == nil && l.Type == "event_msg" && l.Payload.Type == "token_count" {
		emit(l.Payload.Info.Total.event())
	}
}

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	var l line
	if !p.Decode(b, cut, &l, emit) {
		return
	}
	if l.Type != "turn.failed" {
		p.Flush()
	}
	switch l.Type {
	case "thread.started":
		p.Emit(agent.Event{Kind: agent.Session, Session: l.Thread})
	case "turn.started":
		p.Due, p.Ended = true, false
	case "item.started":
		p.started(&l.Item)
	case "item.completed":
		p.completed(&l.Item)
	case "turn.completed":
		p.done(&l)
	case "turn.failed":
		p.failed(l.Error.Message)
	case "error":
		p.error(l.Message)
	case "item.updated", "item.plan.delta", "request_user_input":
	default:
		p.Unknown(l.Type)
	}
}

// said takes what the model says.
func (p *Parser) said(e agent.Event) {
	p.Ended = false
	p.Answer(e)
}

// item is a message, a thought or a tool call.
type item struct {
	ID, Type, Status, Text string
	Command, Server, Tool  string
	Arguments, Query       json.RawMessage
	Changes                []struct{ Path string }
	Output                 json.RawMessage `json:"aggregated_output"`
	Result                 json.RawMessage
}

// name is the tool's name, "" for an item that is no tool call.
func (it *item) name() string {
	switch it.Type {
	case "command_execution":
		return "shell"
	case "file_change", "web_search":
		return it.Type
	case "mcp_tool_call":
		return it.Server + "." + it.Tool
	case "collab_tool_call":
		return it.Tool
	}
	return ""
}

// digest is of what the tool was asked. A change of files is told without its
// content, so that it is like no other.
func (it *item) digest() uint64 {
	return agent.Digest(slices.Concat(it.Arguments, it.Query, []byte(it.Command)))
}

func (p *Parser) started(it *item) {
	name := it.name()
	if name == "" {
		return
	}
	p.begun.Add(it.ID, "")
	p.begin(it, name)
}

func (p *Parser) begin(it *item, name string) {
	e := agent.Event{Kind: agent.ToolStart, Tool: name, Command: it.Command, Digest: it.digest(), Call: it.ID}
	for _, change := range it.Changes {
		if change.Path != "" {
			e.Files = append(e.Files, change.Path)
		}
	}
	p.said(e)
}

func (p *Parser) completed(it *item) {
	if name := it.name(); name != "" {
		if p.begun.Add(it.ID, "") { // a change of files may be told only once it is done
			p.begin(it, name)
		}
		p.Due = true
		result := it.Output
		if result == nil {
			result = it.Result
		}
		p.Emit(jsonline.ToolEnd(name, it.ID, false, it.Status == "failed" || it.Status == "declined", result))
		return
	}
	switch it.Type {
	case "agent_message":
		p.said(agent.Event{Kind: agent.Text, Text: it.Text})
	case "reasoning", "plan":
		p.said(agent.Event{Kind: agent.Thinking, Text: it.Text})
	case "todo_list", "error": // an error item is a notice
	default:
		p.Unknown("item/" + it.Type)
	}
}

// done takes the end of a turn that worked. Its usage is the thread's, and a
// thread is a run.
func (p *Parser) done(l *line) {
	p.Emit(l.Usage.event())
	p.End(agent.Event{Terminal: loop.TerminalOK})
}

func (p *Parser) failed(message string) {
	err := understand(message)
	if message == "" && p.Pending != nil {
		err = p.Pending
	}
	p.Pending = nil
	calls := 0
	if err.Type != missingKey {
		calls = 1 // the call that was given up
	}
	p.Emit(agent.Event{Kind: agent.Error, Error: err, Calls: calls})
	p.End(agent.Event{Terminal: loop.TerminalFailed})
}

// error takes a top-level error: the program's own retry, or what ends the turn.
func (p *Parser) error(message string) {
	rest, again := strings.CutPrefix(message, "Reconnecting... ")
	if !again {
		p.Pending = understand(message)
		return
	}
	head, why, _ := strings.Cut(rest, " (")
	attempt, _, _ := strings.Cut(head, "/")
	n, err := strconv.Atoi(attempt)
	if err != nil {
		n = 0 // "waiting for network"
	}
	p.Ended = false
	p.Emit(agent.Event{Kind: agent.Retry, Calls: 1, Attempt: max(n, 0), Error: understand(strings.TrimSuffix(why, ")"))})
}

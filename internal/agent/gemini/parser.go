package gemini

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

const (
	maxText  = 2000 // of an error, in bytes
	maxName  = 200
	maxCalls = 64 // tool calls whose names are remembered
)

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	emit    func(agent.Event)
	message *agent.Tail // what the model says; it comes in pieces
	talking bool        // message is not told yet
	// due is true when what comes next is an answer to a new model call.
	due     bool
	calls   [maxCalls]call // the last tool calls
	next    int
	stopped *failure.APIError // what ended the run, if its result says success
	model   string
	ended   bool // a result came, and nothing of the model after it
}

// call is a running tool.
type call struct{ id, tool string }

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{message: agent.NewTail(agent.MessageCap), due: true} }

// line is the top level of one line.
type line struct {
	kind, role, content, delta, session, model []byte
	tool, id, parameters, status, output       []byte
	severity, message, err, stats              []byte
}

func (l *line) field(key, value []byte) bool {
	switch string(key) {
	case "type":
		l.kind = value
	case "role":
		l.role = value
	case "content":
		l.content = value
	case "delta":
		l.delta = value
	case "session_id":
		l.session = value
	case "model":
		l.model = value
	case "tool_name":
		l.tool = value
	case "tool_id":
		l.id = value
	case "parameters":
		l.parameters = value
	case "status":
		l.status = value
	case "output":
		l.output = value
	case "severity":
		l.severity = value
	case "message":
		l.message = value
	case "error":
		l.err = value
	case "stats":
		l.stats = value
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
	if whole && !cut && string(l.kind) == `"message"` { // most lines
		p.say(&l)
		return
	}
	kind := jsonline.Short(l.kind, maxName)
	if !whole || cut {
		p.unknown(kind + " (cut or not JSON)")
		return
	}
	switch kind {
	case "init", "tool_use", "tool_result", "error", "result":
		p.tell() // anything else does not end a message: it may be noise between its pieces
	}
	switch kind {
	case "init":
		p.model = jsonline.Short(l.model, maxName)
		p.emit(agent.Event{Kind: agent.Session, Session: jsonline.Short(l.session, maxName), Model: p.model})
	case "tool_use":
		p.begin(l)
	case "tool_result":
		p.due = true
		p.emit(agent.Event{Kind: agent.ToolEnd, Tool: p.tool(jsonline.Short(l.id, maxName)),
			Failed: jsonline.Short(l.status, maxName) == "error", Digest: agent.Digest(l.output),
			Call: jsonline.Short(l.id, agent.CallCap), Result: jsonline.Result(l.output, agent.ResultCap)})
	case "error":
		p.notice(l)
	case "result":
		p.result(l)
	default:
		p.unknown(kind)
	}
}

// Close reports a stream that ended without its terminal event.
func (p *Parser) Close(emit func(agent.Event)) {
	p.emit = emit
	p.tell()
	if p.ended {
		return
	}
	if p.stopped != nil {
		p.emit(agent.Event{Kind: agent.Error, Error: p.stopped})
	}
	emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalMissing})
}

func (p *Parser) unknown(kind string) {
	p.emit(agent.Event{Kind: agent.Unknown, Text: kind})
}

// say takes a message or a piece of one. The user's is the prompt's echo.
func (p *Parser) say(l *line) {
	if string(l.role) != `"assistant"` {
		p.tell()
		return
	}
	if !jsonline.True(l.delta) {
		p.tell()
	}
	p.ended, p.talking = false, true
	p.message.Join(jsonline.String(l.content))
}

// tell emits the message that has come so far.
func (p *Parser) tell() {
	if !p.talking {
		return
	}
	p.talking = false
	p.answer(agent.Event{Kind: agent.Text, Text: p.message.Text()})
	p.message.Reset()
}

// answer counts a model call when an answer begins with e.
func (p *Parser) answer(e agent.Event) {
	if p.due {
		p.due = false
		e.Calls, e.Turns = 1, 1
	}
	p.emit(e)
}

func (p *Parser) begin(l line) {
	p.ended = false
	e := agent.Event{Kind: agent.ToolStart, Tool: jsonline.Short(l.tool, maxName), Digest: agent.Digest(l.parameters), Call: jsonline.Short(l.id, agent.CallCap)}
	p.calls[p.next] = call{jsonline.Short(l.id, maxName), e.Tool}
	p.next = (p.next + 1) % maxCalls
	jsonline.Object(l.parameters, func(key, v []byte) bool {
		switch string(key) {
		case "command":
			e.Command = jsonline.Short(v, agent.CommandCap)
		case "file_path", "absolute_path":
			if path := jsonline.String(v); path != "" && len(path) <= 4096 {
				e.Files = append(e.Files, path)
			}
		}
		return true
	})
	p.answer(e)
}

func (p *Parser) tool(id string) string {
	for i := range p.calls {
		if p.calls[i].id == id && id != "" {
			return p.calls[i].tool
		}
	}
	return ""
}

// notice takes an error event. One of severity "error", and the loop
// detector's warning, stop the run, whatever its result says then.
func (p *Parser) notice(l line) {
	text := jsonline.Short(l.message, maxText)
	low := strings.ToLower(text)
	switch {
	case strings.Contains(low, "loop detected"):
		p.stopped = &failure.APIError{Type: "loop_detected", Message: text}
	case jsonline.Short(l.severity, maxName) == "error":
		p.stopped = understand("", text)
		if strings.Contains(low, "maximum session turns") {
			p.stopped.Type = "max_turns"
		}
	default:
		p.unknown("warning: " + text)
	}
}

// result is the terminal event.
func (p *Parser) result(l line) {
	p.usage(l.stats)
	p.ended = true
	status := jsonline.Short(l.status, maxName)
	if status == "success" && p.stopped == nil {
		p.emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalOK})
		return
	}
	err := p.stopped
	if !jsonline.Null(l.err) {
		err = understand(jsonline.Short(jsonline.Get(l.err, "type"), maxName), jsonline.String(jsonline.Get(l.err, "message")))
	}
	p.stopped = nil
	if err == nil {
		err = &failure.APIError{Message: "the program reports the status " + status + " and no reason"}
	}
	e := agent.Event{Kind: agent.Error, Error: err}
	if p.due && (err.Status != 0 || err.Type == disconnected) {
		e.Calls = 1 // the call that was given up
	}
	p.emit(e)
	p.emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalFailed})
}

// usage takes the run's totals, and the model that really answered most.
func (p *Parser) usage(b []byte) {
	var total, input, output, cached int64
	var models []byte
	jsonline.Object(b, func(key, v []byte) bool {
		switch string(key) {
		case "total_tokens":
			total = jsonline.Count(v)
		case "input_tokens":
			input = jsonline.Count(v)
		case "output_tokens":
			output = jsonline.Count(v)
		case "cached":
			cached = jsonline.Count(v)
		case "models":
			models = v
		}
		return true
	})
	// Thoughts are in the total only, and cost what output does.
	p.emit(agent.Event{Kind: agent.UsageSeen, Cumulative: true,
		Usage: agent.Usage{Input: max(input-cached, 0), Output: max(output, total-input), CacheRead: cached}})
	most, name := int64(0), ""
	jsonline.Object(models, func(key, v []byte) bool {
		if n := jsonline.Count(jsonline.Get(v, "total_tokens")); n > most && len(key) <= maxName {
			most, name = n, string(key)
		}
		return true
	})
	if name != "" && name != p.model {
		p.model = name
		p.emit(agent.Event{Kind: agent.Session, Model: name})
	}
}

package cline

import (
	"bytes"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

const (
	maxText = 2000 // of an error's text, in bytes
	maxName = 200
)

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	emit func(agent.Event)
	// draft is the message that is being said; its whole comes after its pieces.
	draft *agent.Tail
	open  bool
	err   *failure.APIError // that the run may end with
	ended bool
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{draft: agent.NewTail(agent.MessageCap)} }

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	p.emit = emit
	if len(b) == 0 {
		return
	}
	var kind, event, hook []byte
	whole := jsonline.Object(b, func(key, v []byte) bool {
		switch string(key) {
		case "type":
			kind = v
		case "event":
			event = v
		case "hookEventName":
			hook = v
		}
		return true
	})
	name := jsonline.Short(kind, maxName)
	if !whole || cut {
		emit(agent.Event{Kind: agent.Unknown, Text: name + " (cut or not JSON)"})
		return
	}
	switch name {
	case "hook_event":
		if jsonline.String(hook) == "agent_start" && jsonline.Null(jsonline.Get(b, "parentAgentId")) {
			emit(agent.Event{Kind: agent.Session, Session: jsonline.Short(jsonline.Get(b, "taskId"), maxName)})
		}
	case "agent_event":
		p.event(event)
	case "run_result":
		p.result(b)
	case "run_aborted":
		p.aborted(jsonline.Short(jsonline.Get(b, "reason"), maxName))
	default:
		emit(agent.Event{Kind: agent.Unknown, Text: name})
	}
}

// Close reports a stream that ended without its terminal event.
func (p *Parser) Close(emit func(agent.Event)) {
	p.emit = emit
	if p.ended {
		return
	}
	if p.open {
		emit(agent.Event{Kind: agent.Text, Text: p.draft.Text()})
	}
	if p.err != nil {
		emit(agent.Event{Kind: agent.Error, Error: p.err})
	}
	emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalMissing})
}

// fields are what any event of the agent needs, found in one pass: most bytes
// are outputs of tools.
type fields struct {
	kind, content, text, reasoning, tool, call, input, output []byte
	err, class, recoverable, cost                             []byte
}

func (f *fields) take(key, v []byte) bool {
	switch string(key) {
	case "type":
		f.kind = v
	case "contentType":
		f.content = v
	case "text":
		f.text = v
	case "reasoning":
		f.reasoning = v
	case "toolName":
		f.tool = v
	case "toolCallId":
		f.call = v
	case "input":
		f.input = v
	case "output":
		f.output = v
	case "error":
		f.err = v
	case "errorClass":
		f.class = v
	case "recoverable":
		f.recoverable = v
	case "totalCost":
		f.cost = v
	}
	return true
}

func (p *Parser) event(b []byte) {
	var f fields
	jsonline.Object(b, f.take)
	switch kind := jsonline.Short(f.kind, maxName); kind {
	case "iteration_start":
		p.ended, p.err = false, nil
		p.emit(agent.Event{Kind: agent.UsageSeen, Calls: 1, Turns: 1})
	case "content_start", "content_end":
		p.content(kind == "content_end", &f)
	case "usage":
		p.emit(agent.Event{Kind: agent.UsageSeen, Usage: usage(b)})
		p.cost(f.cost)
	case "error":
		p.err = problem(&f)
	case "content_update", "iteration_end", "notice", "done":
	default:
		p.emit(agent.Event{Kind: agent.Unknown, Text: "agent_event/" + kind})
	}
}

// content takes the start or end of a text, a thought or a tool. Text comes
// in pieces, each as the start of a content, and whole at its end.
func (p *Parser) content(end bool, f *fields) {
	switch kind := jsonline.Short(f.content, maxName); kind {
	case "text":
		if !end {
			p.open = true
			p.draft.Join(jsonline.String(f.text))
			return
		}
		p.draft.Reset()
		p.open = false
		if text := jsonline.String(f.text); text != "" {
			p.emit(agent.Event{Kind: agent.Text, Text: text})
		}
	case "reasoning":
		if end {
			p.emit(agent.Event{Kind: agent.Thinking, Text: jsonline.String(f.reasoning)})
		}
	case "tool":
		if end {
			p.emit(agent.Event{Kind: agent.ToolEnd, Tool: jsonline.Short(f.tool, maxName), Failed: f.broken(), Digest: agent.Digest(f.output),
				Call: jsonline.Short(f.call, agent.CallCap), Result: jsonline.Result(f.output, agent.ResultCap)})
			return
		}
		e := agent.Event{Kind: agent.ToolStart, Tool: jsonline.Short(f.tool, maxName), Digest: agent.Digest(f.input), Call: jsonline.Short(f.call, agent.CallCap)}
		jsonline.Input(&e, f.input)
		p.emit(e)
	default:
		p.emit(agent.Event{Kind: agent.Unknown, Text: "content/" + kind})
	}
}

// broken is whether a tool failed: as a whole, or one of its commands.
func (f *fields) broken() bool {
	return !jsonline.Null(f.err) || bytes.Contains(f.output, failedCommand)
}

// failedCommand is how one command of a tool says so. Within a text these
// words would have their quotes escaped, so that the output needs no second look.
var failedCommand = []byte(`"success":false`)

// problem reads an error of a model call, which has a class. One without is a
// tool's, and the agent's own business.
func problem(f *fields) *failure.APIError {
	class := jsonline.Short(f.class, maxName)
	if class == "" || jsonline.True(f.recoverable) {
		return nil
	}
	message := jsonline.Short(jsonline.Get(f.err, "message"), maxText)
	if class == "unknown" {
		class = agent.TypeIn(message)
	}
	return &failure.APIError{Type: class, Message: message, Status: agent.StatusIn(message)}
}

// result is the terminal event, unless the run is told to be aborted after it.
func (p *Parser) result(b []byte) {
	p.ended, p.open = true, false
	p.emit(agent.Event{Kind: agent.Session, Model: jsonline.Short(jsonline.Get(b, "model", "id"), maxName)})
	total := jsonline.Get(b, "aggregateUsage") // with those of sub-agents
	if total == nil {
		total = jsonline.Get(b, "usage")
	}
	p.emit(agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: usage(total)})
	p.cost(jsonline.Get(total, "totalCost"))
	text := jsonline.String(jsonline.Get(b, "text"))
	switch reason := jsonline.Short(jsonline.Get(b, "finishReason"), maxName); reason {
	case "completed":
		p.emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalOK, Text: text, Final: true})
	case "aborted":
		p.aborted(reason)
	default:
		err := p.err
		if err == nil {
			err = &failure.APIError{Type: reason, Message: text, Status: agent.StatusIn(text)}
		}
		p.err = nil
		p.emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalFailed, Text: text, Error: err})
	}
}

func (p *Parser) aborted(reason string) {
	p.ended = true
	p.emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalFailed,
		Error: &failure.APIError{Type: "aborted", Message: "the run was aborted: " + reason}})
}

// usage reads a usage object, whose input counts cached tokens too.
func usage(b []byte) agent.Usage {
	u := agent.Usage{
		Output:    jsonline.Count(jsonline.Get(b, "outputTokens")),
		CacheRead: jsonline.Count(jsonline.Get(b, "cacheReadTokens")), CacheWrite: jsonline.Count(jsonline.Get(b, "cacheWriteTokens")),
	}
	u.Input = max(0, jsonline.Count(jsonline.Get(b, "inputTokens"))-u.CacheRead-u.CacheWrite)
	return u
}

// cost takes the run's cost so far. Nothing is what a model without a price
// costs, so it is not known then.
func (p *Parser) cost(b []byte) {
	if cost, ok := jsonline.Cost(b); ok && cost > 0 {
		p.emit(agent.Event{Kind: agent.CostSeen, Cost: cost})
	}
}

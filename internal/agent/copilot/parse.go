package copilot

import (
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

const (
	maxText = 2000 // of an error's text, in bytes
	maxName = 200
	// maxEpoch is the year 3000: a reset beyond it is misread.
	maxEpoch = 32_503_680_000
)

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	emit  func(agent.Event)
	tools jsonline.IDs // tool call id to name
	// draft is the message that is being said; its whole comes after its pieces.
	draft *agent.Tail
	open  bool
	call  *failure.APIError // of the last failed model call
	abort string            // why the run was interrupted
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
	var kind, data []byte
	whole := jsonline.Object(b, func(key, v []byte) bool {
		switch string(key) {
		case "type":
			kind = v
		case "data":
			data = v
		}
		return true
	})
	name := jsonline.Short(kind, maxName)
	if !whole || cut {
		emit(agent.Event{Kind: agent.Unknown, Text: name + " (cut or not JSON)"})
		return
	}
	if name == "result" {
		p.result(b)
		return
	}
	p.event(name, data)
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
	emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalMissing})
}

func (p *Parser) event(name string, data []byte) {
	switch name {
	case "session.tools_updated":
		p.emit(agent.Event{Kind: agent.Session, Model: jsonline.Short(jsonline.Get(data, "model"), maxName)})
	case "assistant.turn_start":
		p.ended = false
		p.emit(agent.Event{Kind: agent.UsageSeen, Turns: 1})
	case "model.call_start":
		p.emit(agent.Event{Kind: agent.UsageSeen, Calls: 1})
	case "assistant.message_start":
		p.forget()
	case "assistant.message_delta":
		p.open = true
		p.draft.Join(jsonline.String(jsonline.Get(data, "deltaContent")))
	case "assistant.message":
		p.message(data)
	case "assistant.reasoning":
		p.emit(agent.Event{Kind: agent.Thinking, Text: jsonline.String(jsonline.Get(data, "content"))})
	case "tool.execution_start":
		p.tool(data)
	case "tool.execution_complete":
		id, result := jsonline.Short(jsonline.Get(data, "toolCallId"), maxName), jsonline.Get(data, "result")
		p.emit(agent.Event{
			Kind: agent.ToolEnd, Sub: sub(data), Failed: !jsonline.True(jsonline.Get(data, "success")), Digest: agent.Digest(result),
			Tool: p.tools.Value(id), Call: id, Result: jsonline.Result(result, agent.ResultCap),
		})
	case "model.call_failure", "assistant.turn_retry", "session.error", "abort":
		p.trouble(name, data)
	default:
		if !quiet[name] {
			p.emit(agent.Event{Kind: agent.Unknown, Text: name})
		}
	}
}

// quiet are the events that tell nothing that pawl needs. The user's messages
// are the prompt, told again.
var quiet = map[string]bool{
	"user.message": true, "assistant.idle": true, "assistant.turn_end": true, "assistant.reasoning_delta": true,
	"assistant.tool_call_delta": true, "agent.interrupted": true, "model.call_finished": true, "model.call_final_result": true,
	"session.background_tasks_changed": true, "session.info": true, "session.mcp_servers_loaded": true, "session.skills_loaded": true,
	"session.start": true, "session.idle": true, "session.shutdown": true, "session.usage_info": true,
	"tool.execution_partial_result": true, "tool.shell_output": true,
}

// sub is whether an event is a sub-agent's.
func sub(data []byte) bool { return !jsonline.Null(jsonline.Get(data, "parentToolCallId")) }

func (p *Parser) forget() {
	p.draft.Reset()
	p.open = false
}

// message takes a whole message; the tool calls in it come as events too.
func (p *Parser) message(data []byte) {
	p.forget()
	if text := jsonline.String(jsonline.Get(data, "content")); text != "" {
		p.emit(agent.Event{Kind: agent.Text, Text: text, Sub: sub(data)})
	}
}

func (p *Parser) tool(data []byte) {
	e := agent.Event{Kind: agent.ToolStart, Sub: sub(data), Tool: jsonline.Short(jsonline.Get(data, "toolName"), maxName)}
	args := jsonline.Get(data, "arguments")
	e.Digest = agent.Digest(args)
	e.Call = jsonline.Short(jsonline.Get(data, "toolCallId"), maxName)
	p.tools.Add(e.Call, e.Tool)
	jsonline.Input(&e, args)
	p.emit(e)
}

// trouble takes what went wrong.
func (p *Parser) trouble(name string, data []byte) {
	p.forget()
	switch name {
	case "model.call_failure":
		p.call = refusal(data)
	case "assistant.turn_retry":
		err := failure.APIError{Type: jsonline.Short(jsonline.Get(data, "reason"), maxName)}
		if p.call != nil {
			err = *p.call
		}
		p.emit(agent.Event{Kind: agent.Retry, Error: &err})
	case "session.error":
		p.emit(agent.Event{Kind: agent.Error, Error: p.given(data)})
		p.call = nil
	case "abort":
		p.abort = jsonline.Short(jsonline.Get(data, "reason"), maxName)
		if p.abort == "" {
			p.abort = "no reason given"
		}
	}
}

// refusal is a failed model call in the provider's words: an object or a text,
// in JSON in a string.
func refusal(data []byte) *failure.APIError {
	err := &failure.APIError{Status: jsonline.Status(jsonline.Get(data, "statusCode"))}
	text := jsonline.Short(jsonline.Get(data, "errorMessage"), 8*maxText)
	body := []byte(text)
	if plain := jsonline.String(body); plain != "" {
		text = plain
	}
	err.Message = jsonline.Short(jsonline.Get(body, "message"), maxText)
	if err.Message == "" {
		err.Message = text[:min(len(text), maxText)]
	}
	if err.Type = jsonline.Short(jsonline.Get(body, "code"), maxName); err.Type == "" {
		err.Type = jsonline.Short(jsonline.Get(body, "type"), maxName)
	}
	if at := jsonline.Int(jsonline.Get(body, "resets_at")); at > 0 && at < maxEpoch {
		err.ResetAt = time.Unix(at, 0).UTC()
	}
	if wait := jsonline.Count(jsonline.Get(body, "resets_in_seconds")); wait > 0 && wait < maxEpoch/1000 {
		err.RetryAfter = time.Duration(wait) * time.Second
	}
	return err
}

// given is the error that the run fails with, completed by what the model
// call that failed last had to say.
func (p *Parser) given(data []byte) *failure.APIError {
	err := &failure.APIError{
		Status:  jsonline.Status(jsonline.Get(data, "statusCode")),
		Type:    jsonline.Short(jsonline.Get(data, "errorType"), maxName),
		Message: jsonline.Short(jsonline.Get(data, "message"), maxText),
	}
	said := agent.TypeIn(err.Message)
	if p.call != nil && (err.Status == 0 || err.Status == p.call.Status) {
		err.Status, err.ResetAt, err.RetryAfter = p.call.Status, p.call.ResetAt, p.call.RetryAfter
		if p.call.Type != "" {
			said = p.call.Type
		}
	}
	if said != "" {
		err.Type = said
	}
	return err
}

// result is the terminal event. The exit code of an interrupted run is 0.
func (p *Parser) result(b []byte) {
	p.ended = true
	p.emit(agent.Event{Kind: agent.Session, Session: jsonline.Short(jsonline.Get(b, "sessionId"), maxName)})
	code := jsonline.Get(b, "exitCode")
	switch {
	case p.abort != "":
		p.emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalFailed,
			Error: &failure.APIError{Type: "aborted", Message: "the run was interrupted: " + p.abort}})
	case string(code) == "0":
		p.emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalOK})
	default:
		p.emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalFailed})
	}
}

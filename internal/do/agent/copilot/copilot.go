// Package copilot runs GitHub's Copilot CLI headless (`copilot --output-format
// json`) and reads its stream. It starts nothing itself.
//
// What the program does, as pawl relies on it:
//   - The prompt comes on stdin, and again twice in `user.message`.
//   - `result` ends the stream; its exitCode is 0 after a TERM too, but an
//     `abort` came before it then.
//   - Every failed model call is reported with its status and the provider's own
//     words, among them when a limit ends; `session.error` is the one that
//     the run fails with.
//   - No tokens and no money are in the stream. The tokens are in a file that it
//     writes at its end, if an option asks for it; there, the input has the cached part.
//   - The npm package's `copilot` is a wrapper that leaves the program running
//     when it is signalled; the binary beside it is started instead.
package copilot

import (
	"cmp"
	_ "embed" // of the program's file
	"encoding/json"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

//go:embed program.json
var file string

// Program is the Copilot CLI. The real binary is inside of the npm package's wrapper, or beside it.
// Its door is for a provider of the user's own, of OpenAI's protocol; GitHub's serves its logins only.
func Program() program.Program { return program.Read(file, program.Lines(NewParser)) }

// maxEpoch is the year 3000: a reset beyond it is misread.
const maxEpoch = 32_503_680_000

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	jsonline.Stream // the whole of a message comes after its pieces

	tools jsonline.IDs      // tool call id to name
	call  *failure.APIError // of the last failed model call
	abort string            // why the run was interrupted
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{} }

// line is one line of any type. Fields without a tag have the name of the key.
type line struct {
	Type string
	Data data

	// Of the result.
	SessionID string
	ExitCode  *int
}

// data is the content of an event.
type data struct {
	Model, Content, DeltaContent, Reason, Message string
	ToolName, ToolCallID, ErrorType, ErrorMessage string

	ParentToolCallID  *string // of a sub-agent
	Arguments, Result json.RawMessage
	Success           bool
	StatusCode        int
}

// Record takes the file that --usage-output-file names: the sums of all models.
func (p *Parser) Record(file []byte, emit func(agent.Event)) {
	var f struct {
		ModelMetrics map[string]struct {
			Usage struct{ InputTokens, OutputTokens, CacheReadTokens, CacheWriteTokens int64 }
		}
	}
	if json.Unmarshal(file, &f) != nil || len(f.ModelMetrics) == 0 {
		return
	}
	var sum agent.Usage
	for _, m := range f.ModelMetrics {
		u := m.Usage
		sum.Input += max(0, u.InputTokens-u.CacheReadTokens-u.CacheWriteTokens) // it has all of them
		sum.Output += u.OutputTokens
		sum.CacheRead += u.CacheReadTokens
		sum.CacheWrite += u.CacheWriteTokens
	}
	emit(agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: sum})
}

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	var l line
	if !p.Decode(b, cut, &l, emit) {
		return
	}
	if l.Type == "result" {
		p.readResult(&l)
		return
	}
	p.readEvent(l.Type, &l.Data)
}

func (p *Parser) readEvent(name string, d *data) {
	sub := d.ParentToolCallID != nil
	switch name {
	case "session.tools_updated":
		p.Emit(agent.Event{Kind: agent.Session, Model: d.Model})
	case "assistant.turn_start":
		p.Ended = false
		p.Emit(agent.Event{Kind: agent.UsageSeen, Turns: 1})
	case "model.call_start":
		p.Emit(agent.Event{Kind: agent.UsageSeen, Calls: 1})
	case "assistant.message_start":
		p.Draft.Drop()
	case "assistant.message_delta":
		p.Draft.Join(d.DeltaContent)
	case "assistant.message": // the tool calls in it come as events too
		p.Draft.Drop()
		if d.Content != "" {
			p.Emit(agent.Event{Kind: agent.Text, Text: d.Content, Sub: sub})
		}
	case "assistant.reasoning":
		p.Emit(agent.Event{Kind: agent.Thinking, Text: d.Content})
	case "tool.execution_start":
		p.tools.Add(d.ToolCallID, d.ToolName)
		p.Emit(jsonline.ToolStart(d.ToolName, d.ToolCallID, sub, d.Arguments))
	case "tool.execution_complete":
		p.Emit(jsonline.ToolEnd(p.tools.Value(d.ToolCallID), d.ToolCallID, sub, !d.Success, d.Result))
	case "model.call_failure", "assistant.turn_retry", "session.error", "abort":
		p.readTrouble(name, d)
	default:
		if !quiet[name] {
			p.Unknown(name)
		}
	}
}

// quiet are the events without anything that pawl needs. The user's messages are the prompt again.
var quiet = map[string]bool{
	"user.message": true, "assistant.idle": true, "assistant.turn_end": true, "assistant.reasoning_delta": true,
	"assistant.tool_call_delta": true, "agent.interrupted": true, "model.call_finished": true,
	"model.call_final_result":          true,
	"session.background_tasks_changed": true, "session.info": true, "session.mcp_servers_loaded": true,
	"session.skills_loaded": true,
	"session.start":         true, "session.idle": true, "session.shutdown": true, "session.usage_info": true,
	"tool.execution_partial_result": true, "tool.shell_output": true,
}

// readTrouble takes an event about an error.
func (p *Parser) readTrouble(name string, d *data) {
	p.Draft.Drop()
	switch name {
	case "model.call_failure":
		p.call = d.readRefusal()
	case "assistant.turn_retry":
		err := failure.APIError{Type: d.Reason}
		if p.call != nil {
			err = *p.call
		}
		p.Emit(agent.Event{Kind: agent.Retry, Error: &err})
	case "session.error":
		p.Emit(agent.Event{Kind: agent.Error, Error: p.readError(d)})
		p.call = nil
	case "abort":
		p.abort = cmp.Or(d.Reason, "no reason given")
	}
}

// readRefusal reads a failed model call in the provider's words: an object or a text, in JSON in a
// string.
func (d *data) readRefusal() *failure.APIError {
	var body struct {
		Code, Type, Message string
		ResetsAt            float64 `json:"resets_at"`
		ResetsIn            float64 `json:"resets_in_seconds"`
	}
	said := []byte(d.ErrorMessage)
	jsonline.Read(said, &body)
	err := &failure.APIError{
		Status: d.StatusCode, Type: cmp.Or(body.Code, body.Type),
		Message: cmp.Or(jsonline.Message(said), d.ErrorMessage),
	}
	if body.ResetsAt > 0 && body.ResetsAt < maxEpoch {
		err.ResetAt = time.Unix(int64(body.ResetsAt), 0).UTC()
	}
	if body.ResetsIn > 0 && body.ResetsIn < maxEpoch/1000 {
		err.RetryAfter = time.Duration(body.ResetsIn) * time.Second
	}
	return err
}

// readError reads the error that the run fails with, completed by what the model call that failed
// last had to say.
func (p *Parser) readError(d *data) *failure.APIError {
	err := &failure.APIError{Status: d.StatusCode, Message: d.Message}
	said := ""
	if p.call != nil && slices.Contains([]int{0, p.call.Status}, err.Status) {
		err.Status, err.ResetAt, err.RetryAfter = p.call.Status, p.call.ResetAt, p.call.RetryAfter
		said = p.call.Type
	}
	err.Type = cmp.Or(said, agent.TypeIn(err.Message), d.ErrorType)
	return err
}

// readResult takes the terminal event. The exit code of an interrupted run is 0.
func (p *Parser) readResult(l *line) {
	p.Emit(agent.Event{Kind: agent.Session, Session: l.SessionID})
	end := agent.Event{Terminal: loop.TerminalFailed}
	switch {
	case p.abort != "":
		end.Error = &failure.APIError{Type: "aborted", Message: "the run was interrupted: " + p.abort}
	case l.ExitCode != nil && *l.ExitCode == 0:
		end.Terminal = loop.TerminalOK
	}
	p.End(end)
}

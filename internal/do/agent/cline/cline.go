// Package cline runs Cline headless (`cline --json PROMPT`) and reads its
// stream. It starts nothing itself.
//
// What the program does, as pawl relies on it:
//   - The prompt must be an argument, so it is at most 128 KiB; an open stdin
//     hangs it, so that is the null device.
//   - `run_result` ends the stream, with the final text and the run's tokens,
//     whose input counts the cached ones too; `run_aborted` may follow it.
//   - A failure has no HTTP status: only a class, mostly "unknown", and the
//     provider's words. Its retries do not show, and take about a minute.
//   - Waiting for a model it ignores TERM; with a tool running it ends after
//     the tool's 30 s, with exit 0 and a completed result.
//   - A login made by `cline auth` is in the data folder: another folder needs
//     another login, so pawl gives it one only on request.
package cline

import (
	"bytes"
	"cmp"
	_ "embed" // of the program's file
	"encoding/json"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

//go:embed program.json
var file string

// Program is Cline.
func Program() program.Program { return program.Read(file, program.Lines(NewParser)) }

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	// The whole of a message comes after its pieces. An error that the run may end
	// with is pending.
	jsonline.Stream
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{} }

// line is one line of any type. Fields without a tag have the name of the key.
type line struct {
	Type, HookEventName, TaskID string

	ParentAgentID *string
	Event         agentEvent

	// Of the end.
	Text, FinishReason, Reason string
	Model                      struct{ ID string }
	Usage                      usage
	AggregateUsage             *usage // with those of sub-agents
}

// usage counts cached tokens in its input too.
type usage struct {
	InputTokens, OutputTokens, CacheReadTokens, CacheWriteTokens int64
	TotalCost                                                    float64
}

// agentEvent is an action of the agent.
type agentEvent struct {
	usage

	Type, ContentType, Text, Reasoning string
	ToolName, ToolCallID, ErrorClass   string
	Input, Output, Error               json.RawMessage
	Recoverable                        bool
}

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	var l line
	if !p.Decode(b, cut, &l, emit) {
		return
	}
	switch l.Type {
	case "hook_event":
		if l.HookEventName == "agent_start" && l.ParentAgentID == nil {
			emit(agent.Event{Kind: agent.Session, Session: l.TaskID})
		}
	case "agent_event":
		p.readEvent(&l.Event)
	case "run_result":
		p.readResult(&l)
	case "run_aborted":
		p.endAborted(l.Reason)
	default:
		p.Unknown(l.Type)
	}
}

func (p *Parser) readEvent(e *agentEvent) {
	switch e.Type {
	case "iteration_start":
		p.Ended, p.Pending = false, nil
		p.Emit(agent.Event{Kind: agent.UsageSeen, Calls: 1, Turns: 1})
	case "content_start", "content_end":
		p.readContent(e, e.Type == "content_end")
	case "usage":
		p.emitUsage(&e.usage, false)
	case "error":
		p.Pending = e.readProblem()
	case "content_update", "iteration_end", "notice", "done":
	default:
		p.Unknown("agent_event/" + e.Type)
	}
}

// readContent takes the start or end of a text, a thought or a tool. Text comes in pieces, each as
// the start of a content, and whole at its end.
func (p *Parser) readContent(e *agentEvent, end bool) {
	switch {
	case e.ContentType == "text" && !end:
		p.Draft.Join(e.Text)
	case e.ContentType == "text":
		p.Draft.Drop()
		if e.Text != "" {
			p.Emit(agent.Event{Kind: agent.Text, Text: e.Text})
		}
	case e.ContentType == "reasoning":
		if end {
			p.Emit(agent.Event{Kind: agent.Thinking, Text: e.Reasoning})
		}
	case e.ContentType == "tool" && end:
		p.Emit(jsonline.ToolEnd(e.ToolName, e.ToolCallID, false, e.hasFailed(), e.Output))
	case e.ContentType == "tool":
		p.Emit(jsonline.ToolStart(e.ToolName, e.ToolCallID, false, e.Input))
	default:
		p.Unknown("content/" + e.ContentType)
	}
}

// hasFailed reports whether a tool failed: as a whole, or one of its commands. Within a text the
// quotes of these words would be escaped.
func (e *agentEvent) hasFailed() bool {
	whole := len(e.Error) > 0 && string(e.Error) != "null"
	return whole || bytes.Contains(e.Output, []byte(`"success":false`))
}

// readProblem reads an error of a model call, which has a class. One without is a tool's, and the
// agent's own business.
func (e *agentEvent) readProblem() *failure.APIError {
	if e.ErrorClass == "" || e.Recoverable {
		return nil
	}
	message := jsonline.Message(e.Error)
	err := &failure.APIError{Type: e.ErrorClass, Message: message, Status: agent.StatusIn(message)}
	if err.Type == "unknown" {
		err.Type = agent.TypeIn(message)
	}
	return err
}

// readResult takes the terminal event. An abort may still follow it.
func (p *Parser) readResult(l *line) {
	p.Draft.Drop()
	p.Emit(agent.Event{Kind: agent.Session, Model: l.Model.ID})
	total := l.AggregateUsage
	total = cmp.Or(total, &l.Usage)
	p.emitUsage(total, true)
	switch l.FinishReason {
	case "completed":
		p.End(agent.Event{Terminal: loop.TerminalOK, Text: l.Text, Final: true})
	case "aborted":
		p.endAborted(l.FinishReason)
	default:
		err := p.Pending
		err = cmp.Or(err, &failure.APIError{Type: l.FinishReason, Message: l.Text, Status: agent.StatusIn(l.Text)})
		p.Pending = nil
		p.End(agent.Event{Terminal: loop.TerminalFailed, Text: l.Text, Error: err})
	}
}

func (p *Parser) endAborted(reason string) {
	p.End(agent.Event{Terminal: loop.TerminalFailed,
		Error: &failure.APIError{Type: "aborted", Message: "the run was aborted: " + reason}})
}

// emitUsage takes tokens, and the run's cost so far. A cost of nothing is what a model without a
// price costs, so it is not known then.
func (p *Parser) emitUsage(u *usage, total bool) {
	p.Emit(agent.Event{Kind: agent.UsageSeen, Cumulative: total, Usage: agent.Usage{
		Input:  max(0, u.InputTokens-u.CacheReadTokens-u.CacheWriteTokens),
		Output: u.OutputTokens, CacheRead: u.CacheReadTokens, CacheWrite: u.CacheWriteTokens,
	}})
	if u.TotalCost > 0 {
		p.Emit(agent.Event{Kind: agent.CostSeen, Cost: agent.Dollars(u.TotalCost)})
	}
}

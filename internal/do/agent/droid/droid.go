// Package droid runs Factory's droid headless (`droid exec --output-format
// stream-json`) and reads its stream. It starts nothing itself.
//
// What the program does, as pawl relies on it:
//   - The prompt comes on stdin, and again as a message of the user.
//   - `completion` ends a success, with the final text and the run's tokens,
//     whose input excludes the cached ones. Its credits are no money.
//   - An API failure is an `error` of the agent loop whose text starts with the
//     HTTP status, then one of the command line; exit 1. Its own retries, up to
//     90 s and for an overloaded server much longer, do not show.
//   - After a signal it takes 6.5 s to end, with exit 0: the tool that was
//     killed is reported to the model, which may continue and "complete".
//   - Its state is in HOME, which is everyone's: only a user who asks for
//     isolation gets another one.
package droid

import (
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

// Program is droid. Without a flag for permissions it only reads. The gateway's models are the
// user's own with a provider, whom the program calls itself; with a key of Factory's they are
// Factory's.
func Program() program.Program { return program.Read(file, program.Lines(NewParser)) }

const (
	fromLoop   = "agent_loop"
	noMoreThan = 1 << 20 // turns of one run that can be true
)

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	jsonline.Stream

	answer string // id of the model's last answer, whose parts come in lines
	turns  int
	failed bool // an error of the agent loop, and nothing after it
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{} }

// line is one line of any type. Fields without a tag have the name of the key.
type line struct {
	Type, Role, ID, MessageID, Message, Text, Source, Model string

	Session          string `json:"session_id"`
	ToolName, ToolID string
	Parameters       json.RawMessage
	Value            json.RawMessage // of a result
	IsError          bool

	// Of the end.
	FinalText string
	NumTurns  int
	Usage     struct {
		Input      int64 `json:"input_tokens"`
		Output     int64 `json:"output_tokens"`
		CacheRead  int64 `json:"cache_read_input_tokens"`
		CacheWrite int64 `json:"cache_creation_input_tokens"`
	}
}

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	var l line
	if !p.Decode(b, cut, &l, emit) {
		return
	}
	tool := cmp.Or(l.ToolName, l.ToolID)
	switch l.Type {
	case "system":
		emit(agent.Event{Kind: agent.Session, Session: l.Session, Model: l.Model})
	case "message": // the user's is the prompt again
		if l.Role == "assistant" {
			p.countPart(l.ID)
			emit(agent.Event{Kind: agent.Text, Text: l.Text})
		}
	case "reasoning":
		p.countPart(l.ID)
		emit(agent.Event{Kind: agent.Thinking, Text: l.Text})
	case "tool_call":
		p.countPart(l.MessageID)
		emit(jsonline.ToolStart(tool, "", false, l.Parameters))
	case "tool_result":
		emit(jsonline.ToolEnd(tool, "", false, l.IsError, l.Value))
	case "error":
		p.readError(&l)
	case "completion":
		p.readCompletion(&l)
	default:
		p.Unknown(l.Type)
	}
}

// Close reports a stream that ended without its terminal event. The error of
// the agent loop is one when the command line's did not follow.
func (p *Parser) Close(emit func(agent.Event)) {
	p.Emit = emit
	if p.failed && !p.Ended {
		p.End(agent.Event{Terminal: loop.TerminalFailed})
	}
	p.Stream.Close(emit)
}

// countPart counts a model call with the first part of its answer.
func (p *Parser) countPart(id string) {
	p.failed, p.Ended = false, false
	if id != p.answer || id == "" {
		p.answer = id
		p.turns++
		p.Emit(agent.Event{Kind: agent.UsageSeen, Calls: 1, Turns: 1})
	}
}

// readError takes the agent loop's reason, and the command line's "Exec failed" after it, which is
// the end and a reason only when it is the only one.
func (p *Parser) readError(l *line) {
	if l.Source == fromLoop || !p.failed {
		p.emitError(l.Message)
	}
	if l.Source == fromLoop {
		p.failed, p.Ended = true, false
		return
	}
	p.End(agent.Event{Terminal: loop.TerminalFailed})
}

func (p *Parser) emitError(text string) {
	err := &failure.APIError{Status: agent.StatusIn(text), Type: agent.TypeIn(text), Message: text}
	err.Message = cmp.Or(err.Message, "droid failed without saying why")
	calls := 0
	if err.Status != 0 {
		calls = 1 // the call that was given up
	}
	p.Emit(agent.Event{Kind: agent.Error, Error: err, Calls: calls})
}

func (p *Parser) readCompletion(l *line) {
	used := l.Usage
	u := agent.Usage{Input: used.Input, Output: used.Output, CacheRead: used.CacheRead, CacheWrite: used.CacheWrite}
	p.Emit(agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: u})
	if told := min(l.NumTurns, noMoreThan); told > p.turns {
		p.Emit(agent.Event{Kind: agent.UsageSeen, Calls: told - p.turns, Turns: told - p.turns})
		p.turns = told
	}
	p.End(agent.Event{Terminal: loop.TerminalOK, Text: l.FinalText, Final: true})
}

package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
)

// maxCalls is more than one line can stand for.
const maxCalls = 1_000_000

// Parser is the [agent.Parser] of the format in the package comment.
type Parser struct {
	jsonline.Stream // its draft is the message that deltas make up
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{} }

// outputLine is one line of any type. Fields without a tag have the name of the key.
type outputLine struct {
	Type, Session, Model, Text, Name, Command, Message, Error string

	Files      []string
	Failed     bool
	Output     json.RawMessage
	Total, OK  bool
	Calls      *int
	USD        float64
	Attempt    int
	Status     int
	RetryAfter string `json:"retry_after"`
	ResetAt    string `json:"reset_at"`
}

// Line takes one line. What is not JSON, cut or of another type is unknown.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	var l outputLine
	if !p.Decode(b, cut, &l, emit) {
		return
	}
	if l.Type == "delta" {
		p.Draft.Join(l.Text)
		return
	}
	p.EndMessage()
	e := p.readEvent(&l, b)
	if e.Kind == agent.ToolStart || e.Kind == agent.ToolEnd {
		e.Digest = agent.Digest(b)
	}
	emit(e)
}

// readEvent reads one line of a known type.
func (p *Parser) readEvent(l *outputLine, b []byte) agent.Event {
	switch l.Type {
	case "start":
		return agent.Event{Kind: agent.Session, Session: l.Session, Model: l.Model}
	case "text":
		return agent.Event{Kind: agent.Text, Text: l.Text}
	case "thinking":
		return agent.Event{Kind: agent.Thinking, Text: l.Text}
	case "tool":
		return agent.Event{Kind: agent.ToolStart, Tool: l.Name, Command: l.Command, Files: l.Files}
	case "tool_end":
		result := jsonline.Result(l.Output, agent.ResultCap)
		return agent.Event{Kind: agent.ToolEnd, Tool: l.Name, Failed: l.Failed, Result: result}
	case "usage":
		return l.readUsage(b)
	case "cost":
		return agent.Event{Kind: agent.CostSeen, Cost: agent.Dollars(l.USD)}
	case "retry":
		return agent.Event{Kind: agent.Retry, Calls: 1, Attempt: l.Attempt, Error: l.toAPIError()}
	case "rate_limit":
		return agent.Event{Kind: agent.RateLimit, Calls: 1, Error: l.toAPIError()}
	case "error":
		return agent.Event{Kind: agent.Error, Error: l.toAPIError()}
	case "end":
		p.Ended = true
		end := agent.Event{Kind: agent.End, Terminal: loop.TerminalFailed, Text: l.Message}
		if l.OK {
			end.Terminal = loop.TerminalOK
		}
		return end
	}
	return agent.Event{Kind: agent.Unknown, Text: l.Type}
}

func (l *outputLine) readUsage(b []byte) agent.Event {
	e := agent.Event{Kind: agent.UsageSeen, Calls: 1, Turns: 1, Cumulative: l.Total}
	jsonline.Read(b, &e.Usage)
	if l.Calls != nil {
		e.Calls = min(max(*l.Calls, 0), maxCalls)
	}
	return e
}

func (l *outputLine) toAPIError() *failure.APIError {
	err := &failure.APIError{Status: l.Status, Type: l.Error, Message: l.Message}
	if wait, parseErr := time.ParseDuration(l.RetryAfter); parseErr == nil {
		err.RetryAfter = wait
	}
	if at, parseErr := time.Parse(time.RFC3339, l.ResetAt); parseErr == nil {
		err.ResetAt = at
	}
	return err
}

// Command is the hidden command of pawl that [Main] stands behind.
const Command = "__script-agent"

// Adapter starts the scripted agent. Its command is the scenario's file.
type Adapter struct {
	// Executable finds the program that has [Command]: pawl itself.
	Executable func() (string, error)
}

// About names the setting for the scenario; the program itself is built in.
func (Adapter) About() agent.About {
	return agent.About{Name: "script", Install: "built in; give it a scenario: agents.script.command: [FILE.yaml]",
		Traits: agent.Traits{LiveUsage: true, Structured: true}}
}

// Start makes the command line. The scenario is in.Command; a relative path
// is one in the working folder.
func (a Adapter) Start(in agent.Invocation) (agent.Start, error) {
	if len(in.Command) != 1 {
		return agent.Start{}, errors.New("cannot start the scripted agent: it needs one scenario;" +
			" set agents.script.command: [FILE.yaml]")
	}
	self, err := a.Executable()
	if err != nil {
		return agent.Start{}, fmt.Errorf("cannot find pawl's own program for the scripted agent: %v", err)
	}
	file := in.Command[0]
	if !filepath.IsAbs(file) {
		file = filepath.Join(in.Dir, file)
	}
	var env []string
	if in.StateDir != "" {
		env = append(env, stateVar+"="+filepath.Join(in.StateDir, "script"))
	}
	return agent.Start{
		Args:   []string{self, Command, file},
		Env:    append(env, slices.Clone(in.Env)...),
		Stdin:  in.PromptFile,
		Parser: "script",
		Grace:  5 * time.Second,
	}, nil
}

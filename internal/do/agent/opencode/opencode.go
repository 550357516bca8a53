// Package opencode runs OpenCode and its fork Kilo Code headless and reads
// their stream of JSON lines (`opencode run --format json`).
//
// What the programs do, as pawl relies on it:
//   - The prompt comes on stdin.
//   - There is no terminal event: the stream just ends. It ended well when the
//     last step finished by itself, failed when an error was the last word.
//   - A step's events come together when it ends, a tool call once it is done:
//     a test run of 20 minutes is 20 minutes of silence.
//   - Usage and cost are reported per step; the input excludes cached tokens, the
//     output those of reasoning. The cost is 0 for a model without a price.
//   - Failed calls are tried again without a word, and a retry-after is obeyed
//     for hours. Only the last failure is reported, with status and headers.
//   - TERM ends the program, but not the shells of its tools, which are
//     sessions of their own: the supervisor's sweep ends those.
//   - Two first starts at once in one data folder break one of them, so it is
//     warmed once.
//
// With --auto the programs do what is not denied, at every safety level: what
// they may touch is enforced by pawl's sandbox. The package starts nothing itself.
package opencode

import (
	"cmp"
	_ "embed" // of the program's file
	"encoding/json"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

var (
	//go:embed opencode.json
	file string
	//go:embed kilo.json
	kiloFile string
)

// Program is OpenCode. Its state stays in the user's folders unless isolation is asked for, with a
// key too: which provider a key is for is in the user's configuration. Isolation sets the XDG
// folders for the agent's tools too. Listing the sessions makes its database.
func Program() program.Program { return program.Read(file, program.Lines(NewParser)) }

// Kilo is Kilo Code, its fork. Without its folder of policies no session begins.
func Kilo() program.Program { return program.Read(kiloFile, nil) }

// maxUSD is beyond what one run can cost.
const maxUSD = 1_000_000

// Parser is the [agent.Parser] of the programs' stream.
type Parser struct {
	jsonline.Stream

	session string
	cost    float64 // of all steps, in dollars
	steps   jsonline.IDs
	last    state
}

// state is how the run stands after the last event.
type state int

const (
	begun    state = iota // nothing yet, or a step has begun
	talking               // the step has said something after its tools
	going                 // a step ended, and another must follow
	finished              // the model had said all that it wanted
	broken                // an error was the last word
)

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{} }

// line is one line of any type. Fields without a tag have the name of the key.
type line struct {
	Type, SessionID string
	Part            part
	Error           problem
}

// part is a text, a thought, a tool call or the end of a step.
type part struct {
	ID, Text, Tool, Reason string

	State struct {
		Status        string
		Input         json.RawMessage
		Output, Error json.RawMessage
		Metadata      struct{ Exit int }
	}
	Tokens struct {
		Input, Output, Reasoning int64
		Cache                    struct{ Read, Write int64 }
	}
	Cost float64
}

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	var l line
	if !p.Decode(b, cut, &l, emit) {
		return
	}
	sub := p.noteSession(l.SessionID)
	switch l.Type {
	case "step_start":
		p.setState(begun, sub)
	case "text":
		if l.Part.Text != "" {
			p.setState(talking, sub)
		}
		p.Emit(agent.Event{Kind: agent.Text, Sub: sub, Text: l.Part.Text})
	case "reasoning":
		p.Emit(agent.Event{Kind: agent.Thinking, Sub: sub, Text: l.Part.Text})
	case "tool_use":
		p.emitTool(&l.Part, sub)
	case "step_finish":
		p.emitStep(&l.Part, sub)
	case "error":
		p.emitTrouble(l.Error.toAPIError(), sub)
	default:
		p.Unknown(l.Type)
	}
}

// Close ends the run with the state that its last event left.
func (p *Parser) Close(emit func(agent.Event)) {
	p.Emit = emit
	terminal := loop.TerminalMissing
	switch p.last {
	case finished:
		terminal = loop.TerminalOK
	case broken:
		terminal = loop.TerminalFailed
	case begun, talking, going:
	}
	p.End(agent.Event{Terminal: terminal})
}

// noteSession takes the session of the first event; another is a sub-agent's.
func (p *Parser) noteSession(session string) (sub bool) {
	if p.session == "" && session != "" {
		p.session = strings.Clone(agent.Clip(session, 200))
		p.Emit(agent.Event{Kind: agent.Session, Session: session})
	}
	return session != p.session && session != ""
}

func (p *Parser) setState(s state, sub bool) {
	if !sub {
		p.last = s
	}
}

// emitTrouble takes an error. One with a status was a model call, the last of those that were
// tried; the others are not reported.
func (p *Parser) emitTrouble(err *failure.APIError, sub bool) {
	e := agent.Event{Kind: agent.Error, Sub: sub, Error: err}
	if err.Status != 0 {
		e.Calls = 1
	}
	p.Emit(e)
	p.setState(broken, sub)
}

// emitTool takes a tool call, which is reported once it is done.
func (p *Parser) emitTool(part *part, sub bool) {
	s := &part.State
	p.setState(begun, sub)
	p.Emit(jsonline.ToolStart(part.Tool, "", sub, s.Input))
	output := s.Output
	if output == nil {
		output = s.Error
	}
	p.Emit(jsonline.ToolEnd(part.Tool, "", sub, s.Status == "error" || s.Metadata.Exit != 0, output))
}

// emitStep takes the end of a step, which is one model call.
func (p *Parser) emitStep(part *part, sub bool) {
	if !p.steps.Add(part.ID, "") {
		return // reported twice
	}
	t := part.Tokens
	e := agent.Event{Kind: agent.UsageSeen, Sub: sub, Calls: 1, Usage: agent.Usage{
		Input: t.Input, Output: t.Output + t.Reasoning, CacheRead: t.Cache.Read, CacheWrite: t.Cache.Write,
	}}
	if !sub {
		e.Turns = 1
	}
	p.Emit(e)
	p.addStepCost(part.Cost)
	p.setState(p.stateAfter(part.Reason, sub), sub)
}

// stateAfter returns how the run stands when a step ended for that reason. An answer that was cut
// off or held back is not what the agent wanted to say.
func (p *Parser) stateAfter(reason string, sub bool) state {
	switch reason {
	case "stop":
		return finished
	case "tool-calls":
		return going
	case "length":
		p.emitError(sub, "max_output_tokens", "The model's answer was cut off at the limit of its output tokens.")
		return broken
	case "content-filter":
		p.emitError(sub, "content_filter", "The model's answer was held back by the provider's content filter.")
		return broken
	}
	if p.last == talking {
		return finished // the provider gives no reason, but there is an answer
	}
	return going
}

func (p *Parser) emitError(sub bool, kind, message string) {
	p.Emit(agent.Event{Kind: agent.Error, Sub: sub, Error: &failure.APIError{Type: kind, Message: message}})
}

// addStepCost adds up the cost of steps. A sum of nothing is no report: the program has no price for
// the model, or the user pays for it otherwise.
func (p *Parser) addStepCost(usd float64) {
	if usd <= 0 || usd > maxUSD || p.cost+usd > maxUSD {
		return
	}
	p.cost += usd
	p.Emit(agent.Event{Kind: agent.CostSeen, Cost: agent.Dollars(p.cost)})
}

// ownTypes are the types of errors that have no body of the provider's.
var ownTypes = map[string]string{
	"ContextOverflowError":     "context_length_exceeded",
	"ContentFilterError":       "content_filter",
	"ProviderAuthError":        "authentication_failed",
	"MessageOutputLengthError": "max_output_tokens",
	"MessageAbortedError":      "aborted",
	"UnknownError":             "unknown",
}

// problem is an error event: the program's word for it, and what the
// provider's answer said.
type problem struct {
	Name string
	Data struct {
		Message         string
		StatusCode      int
		IsRetryable     bool
		ResponseHeaders map[string]string
		ResponseBody    string
	}
}

func (p *problem) toAPIError() *failure.APIError {
	d := &p.Data
	e := &failure.APIError{Message: d.Message, Status: d.StatusCode}
	if e.Type = ownTypes[p.Name]; e.Type == "" {
		e.Type = bodyType(d.ResponseBody)
	}
	if e.Type == "" && e.Status == 0 && d.IsRetryable {
		e.Type = "connection_failed"
	}
	e.Type = cmp.Or(e.Type, p.Name)
	e.RetryAfter, e.ResetAt = readWait(d.ResponseHeaders)
	return e
}

// bodyType is the provider's word for an error: its type, unless that says no
// more than the status does.
func bodyType(body string) string {
	var said struct{ Error struct{ Type, Code string } }
	jsonline.Read([]byte(body), &said)
	switch kind := said.Error.Type; kind {
	case "", "error", "invalid_request_error":
		return cmp.Or(said.Error.Code, kind)
	default:
		return kind
	}
}

// readWait reads how long a provider asks to wait, and until when.
func readWait(headers map[string]string) (after time.Duration, until time.Time) {
	header := textproto.MIMEHeader{}
	for name, value := range headers {
		header.Set(name, strings.TrimSpace(value))
	}
	if d, ok := readSeconds(header.Get("Retry-After-Ms"), time.Millisecond); ok {
		after = d
	}
	given := header.Get("Retry-After")
	if d, ok := readSeconds(given, time.Second); ok {
		after = d
	} else if at, err := time.Parse(time.RFC1123, given); err == nil {
		until = at.UTC()
	}
	n, err := strconv.ParseInt(header.Get("Anthropic-Ratelimit-Unified-Reset"), 10, 64)
	if err == nil && n > 1_000_000_000 && n < 1<<35 {
		until = time.Unix(n, 0).UTC()
	}
	return after, until
}

func readSeconds(value string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || n < 0 || n > 1e10 {
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(366*24*time.Hour))), true
}

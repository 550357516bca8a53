// Package gemini runs Gemini CLI headless and reads its stream of JSON lines
// (`gemini --output-format stream-json`).
//
// What the program does, as pawl relies on it:
//   - The prompt comes on stdin; what is over 8 MiB is cut off without an
//     error, and then nothing is asked. The stream begins with an echo of it.
//   - Messages come in pieces, which may split a word.
//   - `result` ends the stream, with the usage of the whole run: cached tokens
//     are within the input, those of thoughts are outside of the output.
//   - A run that its loop detector or a turn limit stopped is "success" with an
//     `error` event before it. An answer that was cut off at the limit of its
//     tokens is success too, without a sign of it.
//   - The exit status of a failed call is the HTTP status modulo 256.
//   - Failed calls are tried ten times, up to four minutes; only stderr shows it.
//   - It starts itself a second time unless a variable forbids it, and the first
//     process ignores TERM then. Without that it ends at TERM, but the shells of
//     its tools do not: the supervisor's sweep ends those.
//   - As a pipe its stdout loses what is over 64 KiB when it ends.
//
// Approvals are off at every safety level, since a headless program cannot
// ask: what it may touch is enforced by pawl's sandbox. The package starts
// nothing itself.
package gemini

import (
	"bytes"
	"cmp"
	_ "embed" // of the program's file
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

// defaults are settings below the user's own: pawl waits itself, so that a failed call is tried
// three times, and nothing is reported about how the program is used.
const defaults = `{` + quiet + `}
`

// routed are the user's settings in pawl's folder, with the gateway: for a server that
// is not Google's it has to be said how to log in. The program reads the defaults of a
// system where they, and all folders that lead to them, are root's.
const routed = `{"security": {"auth": {"selectedType": "gemini-api-key"}},` + quiet + `}
`

const quiet = `
  "general": {"maxAttempts": 3, "enableAutoUpdate": false, "enableAutoUpdateNotification": false},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false}
`

//go:embed program.json
var file string

// Program is Gemini CLI. With a key nothing of the user's own folder is needed,
// unless the key is for a server of the user's own: then the program starts
// only if the user's settings say how it logs in.
func Program() program.Program {
	p := program.Read(file, program.Lines(NewParser))
	p.State.Settings.Content, p.State.Routed.Content = defaults, routed
	addHTTPExits(p.Exits)
	return p
}

// addHTTPExits adds the exit statuses from 128 on: an HTTP status modulo 256, of those that the
// API answers with.
func addHTTPExits(to map[int]failure.APIError) {
	for status, kind := range map[int]string{
		400: "invalid_request", 401: "authentication_failed", 402: "payment_required", 403: "permission_denied",
		404: "not_found", 408: "timeout", 413: "request_too_large", 429: "rate_limit", 499: "cancelled",
		500: "server_error", 502: "server_error", 503: "server_error", 504: "timeout", 529: "overloaded",
	} {
		said := fmt.Sprintf("the program's exit status stands for HTTP %d", status)
		to[status%256] = failure.APIError{Status: status, Type: kind, Message: said}
	}
}

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	jsonline.Stream // what ended the run is pending, as its result may say success

	tools jsonline.IDs // tool call id to name
	model string
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{Stream: jsonline.Stream{Due: true}} }

// line is one line of any type. Fields without a tag have the name of the key.
type line struct {
	Type, Role, Content, Model, Status, Severity, Message string

	Delta      bool
	Session    string `json:"session_id"`
	Tool       string `json:"tool_name"`
	ID         string `json:"tool_id"`
	Parameters json.RawMessage
	Output     json.RawMessage
	Error      *struct{ Type, Message string }
	Stats      stats
}

// stats are the run's totals.
type stats struct {
	Total  int64 `json:"total_tokens"`
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	Cached int64
	Models map[string]struct {
		Total int64 `json:"total_tokens"`
	}
}

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	var l line
	if !p.Decode(b, cut, &l, emit) {
		return
	}
	switch l.Type {
	case "init", "tool_use", "tool_result", "error", "result":
		p.EndMessage() // anything else does not end a message: it may be noise between its pieces
	}
	switch l.Type {
	case "message":
		p.readMessage(&l)
	case "init":
		p.model = l.Model
		p.Emit(agent.Event{Kind: agent.Session, Session: l.Session, Model: p.model})
	case "tool_use":
		p.readToolUse(&l)
	case "tool_result":
		p.Due = true
		p.Emit(jsonline.ToolEnd(p.tools.Value(l.ID), l.ID, false, l.Status == "error", l.Output))
	case "error":
		p.readNotice(&l)
	case "result":
		p.readResult(&l)
	default:
		p.Unknown(l.Type)
	}
}

// readMessage takes a message or a piece of one. The user's is the prompt's echo.
func (p *Parser) readMessage(l *line) {
	if l.Role != "assistant" || !l.Delta {
		p.EndMessage()
	}
	if l.Role == "assistant" {
		p.Ended = false
		p.Draft.Join(l.Content)
	}
}

func (p *Parser) readToolUse(l *line) {
	p.Ended = false
	p.tools.Add(l.ID, l.Tool)
	p.Answer(jsonline.ToolStart(l.Tool, l.ID, false, l.Parameters))
}

// readNotice takes an error event. One of severity "error", and the loop detector's warning, stop
// the run, whatever its result says then.
func (p *Parser) readNotice(l *line) {
	low := strings.ToLower(l.Message)
	switch {
	case strings.Contains(low, "loop detected"):
		p.Pending = &failure.APIError{Type: "loop_detected", Message: l.Message}
	case l.Severity == "error":
		p.Pending = readError("", l.Message)
		if strings.Contains(low, "maximum session turns") {
			p.Pending.Type = "max_turns"
		}
	default:
		p.Unknown("warning: " + l.Message)
	}
}

// readResult takes the terminal event.
func (p *Parser) readResult(l *line) {
	p.emitUsage(l.Stats)
	if l.Status == "success" && p.Pending == nil {
		p.End(agent.Event{Terminal: loop.TerminalOK})
		return
	}
	err := p.Pending
	if l.Error != nil {
		err = readError(l.Error.Type, l.Error.Message)
	}
	p.Pending = nil
	err = cmp.Or(err, &failure.APIError{Message: "the program reports the status " + l.Status + " and no reason"})
	e := agent.Event{Kind: agent.Error, Error: err}
	called := err.Status != 0 || err.Type == disconnected
	if called && p.Due {
		e.Calls = 1 // the call that was given up
	}
	p.Emit(e)
	p.End(agent.Event{Terminal: loop.TerminalFailed})
}

// emitUsage takes the run's totals, and the model that really answered most.
func (p *Parser) emitUsage(s stats) {
	// Thoughts are in the total only, and cost what output does.
	p.Emit(agent.Event{Kind: agent.UsageSeen, Cumulative: true,
		Usage: agent.Usage{Input: max(s.Input-s.Cached, 0), Output: max(s.Output, s.Total-s.Input),
			CacheRead: s.Cached}})
	most, name := int64(0), ""
	for _, model := range slices.Sorted(maps.Keys(s.Models)) {
		if n := s.Models[model].Total; n > most {
			most, name = n, model
		}
	}
	if name != "" && name != p.model {
		p.model = name
		p.Emit(agent.Event{Kind: agent.Session, Model: name})
	}
}

// disconnected is the type of a call that broke on the way.
const disconnected = "connection_failed"

// readError reads an error: the program's word for it, and its text, which may hold the API's
// answer as JSON ("[API Error: {…}]").
func readError(kind, text string) *failure.APIError {
	switch kind {
	case "unknown":
		kind = ""
	case "FatalTurnLimitedError":
		kind = "max_turns"
	}
	e := &failure.APIError{Type: kind, Message: text}
	inner, isAPI := strings.CutPrefix(text, "[API Error: ")
	if !isAPI {
		return e
	}
	if strings.HasPrefix(inner, "{") {
		readAnswer(e, []byte(inner))
		return e
	}
	low := strings.ToLower(inner)
	switch {
	case strings.Contains(low, "daily quota"):
		e.Status, e.Type = 429, "quota_exhausted"
	case strings.Contains(low, "quota"):
		e.Status, e.Type = 429, "rate_limit"
	case strings.Contains(low, "terminated"), strings.Contains(low, "fetch failed"),
		strings.Contains(low, "incomplete json"):
		e.Type = disconnected
	}
	return e
}

// readAnswer reads the API's own error. Of its details a reason says more than a status, and a
// delay is the time to wait.
func readAnswer(e *failure.APIError, b []byte) {
	var said struct {
		Error struct {
			Code            int
			Message, Status string
			Details         []struct{ Reason, RetryDelay string }
		}
	}
	// What stands behind the object is the program's closing bracket.
	if json.NewDecoder(bytes.NewReader(b)).Decode(&said) != nil {
		return
	}
	e.Status, e.Message = said.Error.Code, said.Error.Message
	e.Type = cmp.Or(e.Type, strings.ToLower(said.Error.Status))
	for _, d := range said.Error.Details {
		if d.Reason != "" {
			e.Type = strings.ToLower(d.Reason)
		}
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			e.RetryAfter = wait
		}
	}
}

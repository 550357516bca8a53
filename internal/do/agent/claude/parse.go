package claude

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/subscription"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
)

const (
	maxWait  = 366 * 24 * 3_600_000 // before a retry, in milliseconds
	maxEpoch = 1 << 35              // of a reset, in seconds
	// bytesPerToken is the estimate while the program reports no output tokens.
	bytesPerToken = 4
)

// Dialect is how the stream of another program that took over this format
// differs from it.
type Dialect struct {
	// PerCall: a line with usage has all of one model call, output included. A
	// line without belongs to the call of a later one. Nothing is estimated.
	PerCall bool
	// CachedInInput: input_tokens count the cached ones too.
	CachedInInput bool
	// Apology returns the error in a text of the program itself, where only the text shows that it
	// is not the model's; nil for other texts.
	Apology func(text string) *failure.APIError
}

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	// An error that the program reports as a message of its own is pending: the status may follow
	// with the result.
	jsonline.Stream

	dialect  Dialect
	messages jsonline.IDs // ids of messages whose usage was taken
	tools    jsonline.IDs // tool call id to name
	// live is true once the stream has usage events of the API itself
	// (--include-partial-messages); then nothing is estimated.
	live    bool
	resetAt time.Time // from the last rejected rate_limit_event
	turns   int
	// announced is true between a retry that is announced and made.
	announced bool
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{} }

// NewDialect returns a parser for one run of a program with a stream of its own kind.
func NewDialect(d Dialect) *Parser { return &Parser{dialect: d} }

// line is one line of any type. Fields without a tag have the name of the key.
type line struct {
	Type, Subtype, Model string

	Session string          `json:"session_id"`
	Parent  *string         `json:"parent_tool_use_id"` // of what a sub-agent does
	Message message         // of an assistant or user line
	Error   json.RawMessage // a word, a text or an object with a message
	Status  int             `json:"api_error_status"`
	Event   apiEvent        // of a stream_event
	Limit   limit           `json:"rate_limit_info"`

	// Of a system line.
	Attempt     int
	ErrorStatus int    `json:"error_status"`
	Fallback    string `json:"fallback_model"`
	Data        struct {
		Attempt int
		DelayMs float64
	}

	// Of a result.
	Result     string
	IsError    bool `json:"is_error"`
	Turns      int  `json:"num_turns"`
	Usage      usage
	ModelUsage map[string]modelUsage
	Cost       *float64 `json:"total_cost_usd"`
	Errors     []string
	Reason     string `json:"terminal_reason"`
}

type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

type modelUsage struct {
	InputTokens, OutputTokens, CacheReadInputTokens, CacheCreationInputTokens int64
}

type limit struct {
	Status, RateLimitType string
	IsUsingOverage        bool
	ResetsAt              float64
	UnifiedWindows        map[string]struct{ Utilization, ResetsAt float64 }
}

func (l *line) isNested() bool { return l.Parent != nil }

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	var l line
	if !p.Decode(b, cut, &l, emit) {
		return
	}
	if l.Type != "result" {
		p.Flush()
	}
	switch l.Type {
	case "assistant":
		p.readAssistant(&l)
	case "user":
		p.readUser(&l)
	case "result":
		p.readResult(&l)
	case "system":
		p.readSystem(&l)
	case "stream_event":
		p.readStream(&l)
	case "rate_limit_event":
		p.readLimit(l.Limit)
	default:
		p.Unknown(l.Type)
	}
}

// readSystem takes the program's own notices.
func (p *Parser) readSystem(l *line) {
	switch l.Subtype {
	case "init":
		p.Emit(agent.Event{Kind: agent.Session, Session: l.Session, Model: l.Model})
	case "api_retry":
		p.Emit(agent.Event{Kind: agent.Retry, Calls: 1, Attempt: l.Attempt,
			Error: &failure.APIError{Status: l.ErrorStatus, Type: jsonline.Message(l.Error)}})
	case "model_fallback":
		p.Emit(agent.Event{Kind: agent.Session, Model: l.Fallback})
	case "retry":
		p.readRetry(l.Data.Attempt, l.Data.DelayMs)
	case "permission_denied", "thinking_tokens", "status", "informational", "ui_invalidate",
		"hook_started", "hook_response", "compact_boundary", "model_refusal_no_fallback":
	default:
		p.Unknown("system/" + l.Subtype)
	}
}

// readRetry takes another program's line for a retry, which has no reason. One with a delay only
// announces it, which the program does for rate limits alone.
func (p *Parser) readRetry(attempt int, milliseconds float64) {
	wait := time.Duration(min(milliseconds, maxWait)) * time.Millisecond
	switch {
	case wait > 0:
		p.announced = true
		p.Emit(agent.Event{Kind: agent.Retry, Attempt: attempt, Error: &failure.APIError{
			Type: "rate_limit", RetryAfter: wait, Message: "the program waits " + wait.String() + " before its next try",
		}})
	case p.announced:
		p.announced = false
		p.Emit(agent.Event{Kind: agent.UsageSeen, Calls: 1})
	default:
		p.Emit(agent.Event{Kind: agent.Retry, Attempt: attempt, Calls: 1})
	}
}

// readLimit takes the state of a subscription's usage window. Only a refused request is an event;
// one that continues as paid overage is not refused.
func (p *Parser) readLimit(l limit) {
	var plan []subscription.Window
	for _, name := range slices.Sorted(maps.Keys(l.UnifiedWindows)) {
		w := l.UnifiedWindows[name]
		resets := time.Unix(int64(min(w.ResetsAt, maxEpoch)), 0).UTC()
		plan = append(plan, subscription.Window{Name: name, Used: int(min(w.Utilization, 9)*100 + 0.5), Resets: resets})
	}
	if len(plan) > 0 {
		p.Emit(agent.Event{Kind: agent.PlanSeen, Plan: plan})
	}
	if l.Status != "rejected" || l.IsUsingOverage {
		return
	}
	if l.ResetsAt > 0 && l.ResetsAt < maxEpoch {
		p.resetAt = time.Unix(int64(l.ResetsAt), 0).UTC()
	}
	p.Emit(agent.Event{Kind: agent.RateLimit, Error: &failure.APIError{
		Status: 429, Type: "rate_limit", ResetAt: p.resetAt, Message: "usage limit reached: " + l.RateLimitType,
	}})
}

// readResult takes the terminal event.
func (p *Parser) readResult(l *line) {
	p.readTotals(l)
	text := cmp.Or(l.Result, jsonline.Message(l.Error))
	if p.turns == 0 {
		p.turns = max(l.Turns, 0)
		p.Emit(agent.Event{Kind: agent.UsageSeen, Turns: p.turns})
	}
	if !l.IsError && l.Subtype == "success" {
		p.Pending = nil
		p.End(agent.Event{Terminal: loop.TerminalOK, Text: text})
		return
	}
	err := p.combineError(l, text)
	calls := 0
	if err.Status != 0 {
		calls = 1 // the call that was given up
	}
	p.Emit(agent.Event{Kind: agent.Error, Error: err, Calls: calls})
	p.End(agent.Event{Terminal: loop.TerminalFailed, Text: text})
}

// combineError puts together what the result and the message before it say.
func (p *Parser) combineError(l *line, text string) *failure.APIError {
	err := p.Pending
	p.Pending = nil
	err = cmp.Or(err, &failure.APIError{})
	if l.Status != 0 {
		err.Status = l.Status
	}
	err.Message = cmp.Or(err.Message, text)
	if p.dialect.Apology != nil {
		err = p.completeError(err)
	}
	if l.Subtype != "success" {
		unknown := err.Type == "" && err.Status == 0
		if unknown || p.dialect.Apology == nil {
			err.Type = l.Subtype
		}
		if len(l.Errors) > 0 {
			err.Message = l.Errors[0]
		}
	}
	if l.Reason == "prompt_too_long" {
		err.Type = l.Reason
	}
	if err.Status == 429 {
		err.ResetAt = p.resetAt
		err.Type = cmp.Or(err.Type, "rate_limit")
	}
	return err
}

// completeError adds what a dialect finds in the text of an error.
func (p *Parser) completeError(err *failure.APIError) *failure.APIError {
	if err.Status == 0 {
		if known := p.dialect.Apology(err.Message); known != nil {
			err = known
		}
	}
	err.Type = cmp.Or(err.Type, agent.TypeIn(err.Message))
	return err
}

// readTotals takes usage and cost of the whole run. modelUsage counts every model and sub-agent,
// usage the main one; a run that was ended may have left its last call out of one of them.
func (p *Parser) readTotals(l *line) {
	var models agent.Usage
	for _, m := range l.ModelUsage {
		models.Input += m.InputTokens
		models.Output += m.OutputTokens
		models.CacheRead += m.CacheReadInputTokens
		models.CacheWrite += m.CacheCreationInputTokens
	}
	sum := p.toUsage(l.Usage)
	p.Emit(agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: agent.Usage{
		Input: max(sum.Input, models.Input), Output: max(sum.Output, models.Output),
		CacheRead: max(sum.CacheRead, models.CacheRead), CacheWrite: max(sum.CacheWrite, models.CacheWrite),
	}})
	if l.Cost != nil {
		p.Emit(agent.Event{Kind: agent.CostSeen, Cost: agent.Dollars(*l.Cost)})
	}
}

// toUsage returns the API's usage with input tokens that exclude cached ones.
func (p *Parser) toUsage(u usage) agent.Usage {
	if p.dialect.CachedInInput {
		u.Input = max(0, u.Input-u.CacheRead-u.CacheWrite)
	}
	return agent.Usage(u)
}

// message is the model's, or one of the program to the model.
type message struct {
	ID, Model string
	Usage     usage
	Content   []block
}

// block is a part of a message.
type block struct {
	Type, Text, Thinking, Name, ID string
	Input                          json.RawMessage

	CallID  string `json:"tool_use_id"` // of a result
	IsError bool   `json:"is_error"`
	Content json.RawMessage
}

// apiEvent is an event of the API itself.
type apiEvent struct {
	Type    string
	Message message
	Usage   usage
}

// readAssistant takes one block of a message of the model. A message comes as one line per block,
// each with the same id and the usage of its start.
func (p *Parser) readAssistant(l *line) {
	m := &l.Message
	if word := jsonline.Message(l.Error); word != "" {
		p.Pending = p.readApology(l, word)
		return
	}
	if p.dialect.Apology != nil && len(m.Content) == 1 && m.Content[0].Text != "" {
		if p.Pending = p.dialect.Apology(m.Content[0].Text); p.Pending != nil {
			return
		}
	}
	p.Ended = false
	if m.Model != "<synthetic>" {
		p.countCall(m, l.isNested())
	}
	said := 0
	for _, b := range m.Content {
		said += p.emitBlock(b, l.isNested())
	}
	if guess := int64(said+bytesPerToken-1) / bytesPerToken; guess > 0 && !p.live && !p.dialect.PerCall {
		p.Emit(agent.Event{Kind: agent.UsageSeen, Estimate: true, Sub: l.isNested(), Usage: agent.Usage{Output: guess}})
	}
}

// readApology reads a message that the program wrote itself, because a model call failed.
func (p *Parser) readApology(l *line, word string) *failure.APIError {
	err := &failure.APIError{Type: word, Status: l.Status}
	for _, b := range l.Message.Content {
		err.Message = cmp.Or(err.Message, b.Text)
	}
	if err.Status == 429 || err.Type == "rate_limit" {
		err.ResetAt = p.resetAt
	}
	return err
}

// countCall counts a model call once per message, with what is known of its usage at its start. The
// output count there is no count yet.
func (p *Parser) countCall(m *message, sub bool) {
	u := p.toUsage(m.Usage)
	if p.dialect.PerCall && u == (agent.Usage{}) {
		return
	}
	if !p.messages.Add(m.ID, "") {
		return
	}
	if !p.dialect.PerCall {
		u.Output = 0
	}
	e := agent.Event{Kind: agent.UsageSeen, Usage: u, Calls: 1, Sub: sub}
	if !sub {
		e.Turns = 1
		p.turns++
	}
	p.Emit(e)
}

// emitBlock emits one block and returns how many bytes the model wrote for it.
func (p *Parser) emitBlock(b block, sub bool) int {
	switch b.Type {
	case "text":
		p.Emit(agent.Event{Kind: agent.Text, Sub: sub, Text: b.Text})
	case "thinking":
		p.Emit(agent.Event{Kind: agent.Thinking, Sub: sub, Text: b.Thinking})
	case "tool_use", "server_tool_use":
		p.tools.Add(b.ID, b.Name)
		p.Emit(jsonline.ToolStart(b.Name, b.ID, sub, b.Input))
	case "redacted_thinking", "web_search_tool_result":
		return 0
	default:
		p.Unknown("assistant/" + b.Type)
	}
	return len(b.Text) + len(b.Thinking) + len(b.Input)
}

// readUser takes the results of tools, and messages of the program to the model. No text in them is
// the agent's own.
func (p *Parser) readUser(l *line) {
	for _, b := range l.Message.Content {
		if b.Type == "tool_result" {
			p.Emit(jsonline.ToolEnd(p.tools.Value(b.CallID), b.CallID, l.isNested(), b.IsError, b.Content))
		}
	}
}

// readStream takes events of the API itself (--include-partial-messages). Text in them comes again
// in whole messages; usage is exact here.
func (p *Parser) readStream(l *line) {
	switch l.Event.Type {
	case "message_start":
		p.live, p.Ended = true, false
		p.countCall(&l.Event.Message, l.isNested())
	case "message_delta":
		if n := l.Event.Usage.Output; n > 0 {
			p.Emit(agent.Event{Kind: agent.UsageSeen, Sub: l.isNested(), Usage: agent.Usage{Output: n}})
		}
	}
}

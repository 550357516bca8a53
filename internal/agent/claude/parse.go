package claude

import (
	"math"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

const (
	maxError = 2000                 // of an error's text, in bytes
	maxWait  = 366 * 24 * 3_600_000 // before a retry, in milliseconds
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
	// Apology returns the error that a text of the program itself tells, where
	// nothing but the text says that it is not the model's; nil for other texts.
	Apology func(text string) *failure.APIError
}

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	dialect  Dialect
	emit     func(agent.Event)
	messages jsonline.IDs // ids of messages whose usage was taken
	tools    jsonline.IDs // tool call id to name
	// live is true once the stream has usage events of the API itself
	// (--include-partial-messages); then nothing is estimated.
	live bool
	// pending is the error that the program told as a message of its own. The
	// status may follow with the result, so it waits for the next line.
	pending *failure.APIError
	resetAt time.Time // from the last rejected rate_limit_event
	ended   bool      // a result came, and no message after it
	turns   int
	// announced is true between a retry that is announced and made.
	announced bool
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{} }

// NewDialect returns a parser for one run of a program with a stream of its own kind.
func NewDialect(d Dialect) *Parser { return &Parser{dialect: d} }

// line is the top level of one line: the fields that any type needs.
type line struct {
	kind, subtype, session, message, errWord, status, event []byte
	parent, limit                                           []byte
	all                                                     []byte
}

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	p.emit = emit
	if len(b) == 0 {
		return
	}
	l := line{all: b}
	whole := jsonline.Object(b, l.field)
	kind := jsonline.String(l.kind)
	if kind != "result" {
		p.flush()
	}
	if !whole || cut {
		p.unknown(kind, "cut or not JSON")
		return
	}
	switch kind {
	case "assistant":
		p.assistant(l)
	case "user":
		p.user(l)
	case "result":
		p.result(l)
	case "system":
		p.system(l)
	case "stream_event":
		p.stream(l)
	case "rate_limit_event":
		p.limit(l)
	default:
		p.unknown(kind, "")
	}
}

// Close reports a stream that ended without its terminal event.
func (p *Parser) Close(emit func(agent.Event)) {
	p.emit = emit
	p.flush()
	if !p.ended {
		emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalMissing})
	}
}

func (l *line) field(key, value []byte) bool {
	switch string(key) {
	case "type":
		l.kind = value
	case "subtype":
		l.subtype = value
	case "session_id":
		l.session = value
	case "message":
		l.message = value
	case "error":
		l.errWord = value
	case "api_error_status":
		l.status = value
	case "event":
		l.event = value
	case "parent_tool_use_id":
		l.parent = value
	case "rate_limit_info":
		l.limit = value
	}
	return true
}

func (p *Parser) unknown(kind, why string) {
	if kind == "" || why != "" {
		kind += " (" + why + ")"
	}
	p.emit(agent.Event{Kind: agent.Unknown, Text: clip(kind, 200)})
}

// flush emits an error that no result followed.
func (p *Parser) flush() {
	if p.pending != nil {
		p.emit(agent.Event{Kind: agent.Error, Error: p.pending})
		p.pending = nil
	}
}

// system takes the program's own notices.
func (p *Parser) system(l line) {
	switch sub := jsonline.String(l.subtype); sub {
	case "init":
		p.emit(agent.Event{Kind: agent.Session, Session: jsonline.String(l.session),
			Model: jsonline.String(jsonline.Get(l.all, "model"))})
	case "api_retry":
		p.emit(agent.Event{Kind: agent.Retry, Calls: 1,
			Attempt: int(jsonline.Int(jsonline.Get(l.all, "attempt"))),
			Error: &failure.APIError{
				Status: status(jsonline.Get(l.all, "error_status")),
				Type:   clip(jsonline.String(l.errWord), 200),
			}})
	case "model_fallback":
		p.emit(agent.Event{Kind: agent.Session, Model: jsonline.String(jsonline.Get(l.all, "fallback_model"))})
	case "retry":
		p.again(jsonline.Get(l.all, "data"))
	case "permission_denied", "thinking_tokens", "status", "informational", "ui_invalidate",
		"hook_started", "hook_response", "compact_boundary", "model_refusal_no_fallback":
	default:
		p.unknown("system/"+sub, "")
	}
}

// again takes another program's line for a retry, which has no reason. One
// with a delay only announces it, which the program does for rate limits alone.
func (p *Parser) again(data []byte) {
	attempt := int(min(jsonline.Count(jsonline.Get(data, "attempt")), math.MaxInt32))
	wait := time.Duration(min(jsonline.Count(jsonline.Get(data, "delayMs")), maxWait)) * time.Millisecond
	switch {
	case wait > 0:
		p.announced = true
		p.emit(agent.Event{Kind: agent.Retry, Attempt: attempt, Error: &failure.APIError{
			Type: "rate_limit", RetryAfter: wait, Message: "the program waits " + wait.String() + " before its next try",
		}})
	case p.announced:
		p.announced = false
		p.emit(agent.Event{Kind: agent.UsageSeen, Calls: 1})
	default:
		p.emit(agent.Event{Kind: agent.Retry, Attempt: attempt, Calls: 1})
	}
}

// limit takes the state of a subscription's usage window. Only a refused
// request is an event; one that goes on as paid overage is not refused.
func (p *Parser) limit(l line) {
	info := l.limit
	if jsonline.String(jsonline.Get(info, "status")) != "rejected" || jsonline.True(jsonline.Get(info, "isUsingOverage")) {
		return
	}
	if at := jsonline.Int(jsonline.Get(info, "resetsAt")); at > 0 && at < math.MaxInt32*16 {
		p.resetAt = time.Unix(at, 0).UTC()
	}
	p.emit(agent.Event{Kind: agent.RateLimit, Error: &failure.APIError{
		Status: 429, Type: "rate_limit", ResetAt: p.resetAt,
		Message: "usage limit reached: " + clip(jsonline.String(jsonline.Get(info, "rateLimitType")), 100),
	}})
}

// result is the terminal event.
func (p *Parser) result(l line) {
	p.totals(l.all)
	text := jsonline.String(jsonline.Get(l.all, "result"))
	if text == "" {
		text = clip(told(l.errWord), maxError)
	}
	subtype := jsonline.String(l.subtype)
	failed := jsonline.True(jsonline.Get(l.all, "is_error")) || subtype != "success"
	p.ended = true
	if p.turns == 0 {
		p.turns = int(min(max(jsonline.Int(jsonline.Get(l.all, "num_turns")), 0), math.MaxInt32))
		p.emit(agent.Event{Kind: agent.UsageSeen, Turns: p.turns})
	}
	if !failed {
		p.pending = nil
		p.emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalOK, Text: text})
		return
	}
	err := p.failed(l, subtype, text)
	calls := 0
	if err.Status != 0 {
		calls = 1 // the call that was given up
	}
	p.emit(agent.Event{Kind: agent.Error, Error: err, Calls: calls})
	p.emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalFailed, Text: text})
}

// failed puts together what the result and the message before it say.
func (p *Parser) failed(l line, subtype, text string) *failure.APIError {
	err := p.pending
	p.pending = nil
	if err == nil {
		err = &failure.APIError{}
	}
	if s := status(l.status); s != 0 {
		err.Status = s
	}
	if err.Message == "" {
		err.Message = text
	}
	if err.Status == 0 && p.dialect.Apology != nil {
		if known := p.dialect.Apology(err.Message); known != nil {
			err = known
		}
	}
	if p.dialect.Apology != nil && err.Type == "" {
		err.Type = agent.TypeIn(err.Message)
	}
	if subtype != "success" {
		if p.dialect.Apology == nil || (err.Type == "" && err.Status == 0) {
			err.Type = subtype
		}
		jsonline.Array(jsonline.Get(l.all, "errors"), func(v []byte) bool {
			err.Message = jsonline.String(v)
			return false
		})
	}
	if jsonline.String(jsonline.Get(l.all, "terminal_reason")) == "prompt_too_long" {
		err.Type = "prompt_too_long"
	}
	if err.Type == "" && err.Status == 429 {
		err.Type = "rate_limit"
	}
	if err.Status == 429 {
		err.ResetAt = p.resetAt
	}
	err.Message = clip(err.Message, maxError)
	return err
}

// told is what a result's error says: a text, or an object with one.
func told(b []byte) string {
	if s := jsonline.String(b); s != "" {
		return s
	}
	return jsonline.String(jsonline.Get(b, "message"))
}

// totals takes usage and cost of the whole run. modelUsage counts every model
// and sub-agent, usage the main one; a run that was ended may have left its
// last call out of one of them.
func (p *Parser) totals(b []byte) {
	sum := p.usage(jsonline.Get(b, "usage"))
	var models agent.Usage
	jsonline.Object(jsonline.Get(b, "modelUsage"), func(_, v []byte) bool {
		models.Input += count(jsonline.Get(v, "inputTokens"))
		models.Output += count(jsonline.Get(v, "outputTokens"))
		models.CacheRead += count(jsonline.Get(v, "cacheReadInputTokens"))
		models.CacheWrite += count(jsonline.Get(v, "cacheCreationInputTokens"))
		return true
	})
	total := agent.Usage{
		Input: max(sum.Input, models.Input), Output: max(sum.Output, models.Output),
		CacheRead: max(sum.CacheRead, models.CacheRead), CacheWrite: max(sum.CacheWrite, models.CacheWrite),
	}
	p.emit(agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: total})
	if cost, ok := jsonline.Cost(jsonline.Get(b, "total_cost_usd")); ok {
		p.emit(agent.Event{Kind: agent.CostSeen, Cost: cost})
	}
}

// usage reads the API's usage object. Its input tokens exclude cached ones,
// and are made to where a program counts otherwise.
func (p *Parser) usage(b []byte) agent.Usage {
	var u agent.Usage
	jsonline.Object(b, func(key, v []byte) bool {
		switch string(key) {
		case "input_tokens":
			u.Input = count(v)
		case "output_tokens":
			u.Output = count(v)
		case "cache_read_input_tokens":
			u.CacheRead = count(v)
		case "cache_creation_input_tokens":
			u.CacheWrite = count(v)
		}
		return true
	})
	if p.dialect.CachedInInput {
		u.Input = max(0, u.Input-u.CacheRead-u.CacheWrite)
	}
	return u
}

// count is a number of tokens that can be true.
func count(b []byte) int64 {
	n := jsonline.Int(b)
	if n < 0 || n > 1_000_000_000_000 {
		return 0
	}
	return n
}

// status is an HTTP status, 0 when there is none.
func status(b []byte) int {
	if n := jsonline.Int(b); n >= 100 && n <= 999 {
		return int(n)
	}
	return 0
}

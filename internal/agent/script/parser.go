package script

import (
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

// maxCalls is more than one line can stand for.
const maxCalls = 1_000_000

// Parser is the [agent.Parser] of the format in the package comment.
type Parser struct {
	pieces []string // of the message that deltas make up
	size   int
	ended  bool
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{} }

// Line takes one line. What is not JSON, cut or of another type is unknown.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	if len(b) == 0 {
		return
	}
	f := fields{}
	whole := !cut && jsonline.Object(b, func(key, value []byte) bool {
		f[string(key)] = value
		return len(f) < 64
	})
	kind := f.text("type")
	if kind == "delta" && whole {
		p.piece(f.text("text"), emit)
		return
	}
	p.finish(emit)
	if !whole {
		emit(agent.Event{Kind: agent.Unknown, Text: "not a line of JSON"})
		return
	}
	e := p.event(kind, f)
	if e.Kind == agent.ToolStart || e.Kind == agent.ToolEnd {
		e.Digest = agent.Digest(b)
	}
	emit(e)
}

// Close reports a stream that ended without its terminal event.
func (p *Parser) Close(emit func(agent.Event)) {
	p.finish(emit)
	if !p.ended {
		emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalMissing})
	}
}

// piece holds a part of a message; one that grows over the cap is split.
func (p *Parser) piece(s string, emit func(agent.Event)) {
	if p.size += len(s); p.size > agent.MessageCap {
		p.finish(emit)
		p.size = len(s)
	}
	p.pieces = append(p.pieces, s)
}

func (p *Parser) finish(emit func(agent.Event)) {
	if len(p.pieces) > 0 {
		emit(agent.Event{Kind: agent.Text, Text: strings.Join(p.pieces, "")})
	}
	p.pieces, p.size = nil, 0
}

// event reads one line of a known type.
func (p *Parser) event(kind string, f fields) agent.Event {
	switch kind {
	case "start":
		return agent.Event{Kind: agent.Session, Session: f.text("session"), Model: f.text("model")}
	case "text":
		return agent.Event{Kind: agent.Text, Text: f.text("text")}
	case "thinking":
		return agent.Event{Kind: agent.Thinking, Text: f.text("text")}
	case "tool":
		return agent.Event{Kind: agent.ToolStart, Tool: f.text("name"), Command: f.text("command"), Files: f.list("files")}
	case "tool_end":
		return agent.Event{Kind: agent.ToolEnd, Tool: f.text("name"), Failed: f.yes("failed"), Result: jsonline.Result(f["output"], agent.ResultCap)}
	case "usage":
		return f.usage()
	case "cost":
		return agent.Event{Kind: agent.CostSeen, Cost: f.money("usd")}
	case "retry":
		return agent.Event{Kind: agent.Retry, Calls: 1, Attempt: int(f.number("attempt")), Error: f.failure()}
	case "rate_limit":
		return agent.Event{Kind: agent.RateLimit, Calls: 1, Error: f.failure()}
	case "error":
		return agent.Event{Kind: agent.Error, Error: f.failure()}
	case "end":
		p.ended = true
		end := agent.Event{Kind: agent.End, Terminal: loop.TerminalFailed, Text: f.text("message")}
		if f.yes("ok") {
			end.Terminal = loop.TerminalOK
		}
		return end
	}
	return agent.Event{Kind: agent.Unknown, Text: kind[:min(len(kind), 200)]}
}

// fields are one line's values, not decoded.
type fields map[string][]byte

func (f fields) text(name string) string { return jsonline.String(f[name]) }
func (f fields) yes(name string) bool    { return jsonline.True(f[name]) }

// number is a whole number from 0 up.
func (f fields) number(name string) int64 { return max(jsonline.Int(f[name]), 0) }

// money is an amount in USD; -1, which no collector takes, when it is absurd.
func (f fields) money(name string) loop.MicroUSD {
	cost, ok := jsonline.Cost(f[name])
	if !ok {
		return -1
	}
	return cost
}

func (f fields) list(name string) []string {
	var all []string
	jsonline.Array(f[name], func(v []byte) bool {
		all = append(all, jsonline.String(v))
		return len(all) < 1000
	})
	return all
}

func (f fields) usage() agent.Event {
	e := agent.Event{Kind: agent.UsageSeen, Calls: 1, Turns: 1, Cumulative: f.yes("total"), Usage: agent.Usage{
		Input: f.number("input"), Output: f.number("output"),
		CacheRead: f.number("cache_read"), CacheWrite: f.number("cache_write"),
	}}
	if f["calls"] != nil {
		e.Calls = int(min(f.number("calls"), maxCalls))
	}
	return e
}

func (f fields) failure() *failure.APIError {
	err := &failure.APIError{Type: f.text("error"), Message: f.text("message")}
	if s := f.number("status"); s >= 100 && s <= 999 {
		err.Status = int(s)
	}
	if d, e := time.ParseDuration(f.text("retry_after")); e == nil && d > 0 {
		err.RetryAfter = d
	}
	if t, e := time.Parse(time.RFC3339, f.text("reset_at")); e == nil {
		err.ResetAt = t
	}
	return err
}

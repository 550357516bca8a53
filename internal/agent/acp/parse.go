package acp

import (
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

// Parser reads what the bridge tells.
type Parser struct {
	emit  func(agent.Event)
	draft *agent.Tail // the message that is being said
	open  bool        // draft has something
	id    string      // of that message
	last  string      // the start of the last message, for errors that are told as one
	told  bool        // an error
	done  bool        // a tool was called since the last message
	idle  bool        // the model is to be called next
	ended bool
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{draft: agent.NewTail(agent.MessageCap), idle: true} }

// Line takes one line. What is no JSON object, is cut or is of an unknown type
// is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	p.emit = emit
	if len(b) == 0 {
		return
	}
	f := map[string][]byte{}
	whole := jsonline.Object(b, func(key, v []byte) bool {
		if len(f) < 30 {
			f[string(key)] = v
		}
		return true
	})
	kind := jsonline.Short(f["type"], maxName)
	if !whole || cut {
		emit(agent.Event{Kind: agent.Unknown, Text: kind + " (cut or not JSON)"})
		return
	}
	p.line(kind, f)
}

func (p *Parser) line(kind string, f map[string][]byte) {
	switch kind {
	case lineText:
		p.text(f)
	case lineThought:
		p.call()
		p.say()
		p.emit(agent.Event{Kind: agent.Thinking, Text: jsonline.String(f["text"])})
	case lineTool:
		p.call()
		p.say()
		p.done = true
		p.emit(p.tool(agent.ToolStart, f))
	case lineToolEnd:
		p.say()
		p.idle = true
		p.emit(agent.Event{Kind: agent.ToolEnd, Tool: jsonline.Short(f["tool"], maxName), Failed: jsonline.True(f["failed"]),
			Call: jsonline.Short(f["id"], agent.CallCap), Result: jsonline.Short(f["result"], agent.ResultCap+len("…"))})
	case lineSession:
		p.emit(agent.Event{Kind: agent.Session, Session: jsonline.Short(f["session"], maxName), Model: jsonline.Short(f["model"], maxName)})
	case lineUsage:
		p.emit(agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: agent.Usage{
			Input: jsonline.Count(f["input"]), Output: jsonline.Count(f["output"]),
			CacheRead: jsonline.Count(f["cache_read"]), CacheWrite: jsonline.Count(f["cache_write"]),
		}})
	case lineCost:
		if cost, ok := jsonline.Cost(f["usd"]); ok {
			p.emit(agent.Event{Kind: agent.CostSeen, Cost: cost})
		}
	case lineError:
		p.say()
		p.told = true
		p.problem(jsonline.Short(f["kind"], maxName), jsonline.Short(f["text"], maxText), jsonline.Status(f["status"]))
	case lineAsked:
	case lineEnd:
		p.end(jsonline.Short(f["stop"], maxName))
	default:
		p.emit(agent.Event{Kind: agent.Unknown, Text: kind})
	}
}

func (p *Parser) tool(kind agent.EventKind, f map[string][]byte) agent.Event {
	e := agent.Event{Kind: kind, Tool: jsonline.Short(f["tool"], maxName), Command: jsonline.Short(f["command"], maxText),
		Call: jsonline.Short(f["id"], agent.CallCap)}
	jsonline.Array(f["files"], func(one []byte) bool {
		e.Files = append(e.Files, jsonline.Short(one, maxPath))
		return len(e.Files) < maxFiles
	})
	return e
}

// call counts a call of the model: what it says after the results of tools is
// another one. The protocol does not tell them.
func (p *Parser) call() {
	if p.idle {
		p.idle = false
		p.emit(agent.Event{Kind: agent.UsageSeen, Calls: 1, Turns: 1})
	}
}

// text takes a piece of a message. Another id begins another one.
func (p *Parser) text(f map[string][]byte) {
	p.call()
	if id := jsonline.Short(f["id"], maxName); id != p.id {
		p.say()
		p.id = id
	}
	p.open = true
	p.draft.Join(jsonline.String(f["text"]))
}

// say ends the message that came in pieces.
func (p *Parser) say() {
	if p.open {
		text := p.draft.Text()
		p.last, p.done = strings.TrimSpace(text[:min(len(text), maxText)]), false
		p.emit(agent.Event{Kind: agent.Text, Text: text})
	}
	p.draft.Reset()
	p.open = false
}

func (p *Parser) problem(kind, text string, status int) {
	p.emit(agent.Event{Kind: agent.Error, Error: &failure.APIError{Status: status, Type: kind, Message: text}})
}

// end takes the reason to stop.
func (p *Parser) end(stop string) {
	p.say()
	p.ended = true
	terminal := loop.TerminalFailed
	switch {
	case stop == stopDone && p.disguised():
	case stop == stopDone && !p.told:
		terminal = loop.TerminalOK
	case stop == stopDone, stop == stopError, stop == stopCancelled:
	case stop == "max_tokens":
		p.problem("max_output_tokens", "the answer was cut off at the limit of its tokens", 0)
	case stop == "max_turn_requests":
		p.problem("max_turns", "the program reached its own limit of model calls", 0)
	case stop == "refusal":
		p.problem("refusal", "the model refused to go on", 0)
	default:
		p.problem("", fmt.Sprintf("the program stopped: %s", stop), 0)
	}
	p.emit(agent.Event{Kind: agent.End, Terminal: terminal})
}

// disguised is whether the last message is an error that the program passes
// off as an answer: it begins as one and says a known kind or a status.
func (p *Parser) disguised() bool {
	text, ok := strings.CutPrefix(p.last, "Error: ")
	if !ok || p.done {
		return false
	}
	status, kind := agent.StatusIn(text), agent.TypeIn(text)
	if status == 0 && kind == "" {
		return false
	}
	p.problem(kind, text, status)
	return true
}

// Close reports a stream that ended without its terminal line.
func (p *Parser) Close(emit func(agent.Event)) {
	p.emit = emit
	p.say()
	if !p.ended {
		emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalMissing})
	}
}

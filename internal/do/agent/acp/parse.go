package acp

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
)

// Parser reads what the bridge prints.
type Parser struct {
	jsonline.Stream

	id     string // of that message
	last   string // the start of the last message, for errors that look like one
	failed bool   // an error came
	done   bool   // a tool was called since the last message
	idle   bool   // the model is to be called next
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{idle: true} }

// Line takes one line. What is no JSON object, is cut or is of an unknown type
// is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	var e agent.Event
	if !p.Decode(b, cut, &e, emit) {
		return
	}
	switch e.Kind {
	case agent.Text:
		p.addMessageText(e)
	case agent.Thinking, agent.ToolStart:
		p.countCall()
		p.endMessage()
		p.done = p.done || e.Kind == agent.ToolStart
		p.Emit(e)
	case agent.ToolEnd:
		p.endMessage()
		p.idle = true
		p.Emit(e)
	case agent.Error:
		p.endMessage()
		p.failed = true
		p.Emit(e)
	case agent.Session, agent.UsageSeen, agent.CostSeen, agent.Unknown:
		p.Emit(e)
	case asked:
	case agent.End:
		p.emitStopReason(e.Text)
	default:
		p.Unknown(string(e.Kind))
	}
}

// countCall counts a call of the model, which the protocol does not report: text after the results
// of tools is another call.
func (p *Parser) countCall() {
	if p.idle {
		p.idle = false
		p.Emit(agent.Event{Kind: agent.UsageSeen, Calls: 1, Turns: 1})
	}
}

// addMessageText takes a piece of a message. Another id begins another one.
func (p *Parser) addMessageText(e agent.Event) {
	p.countCall()
	if e.Call != p.id {
		p.endMessage()
		p.id = e.Call
	}
	p.Draft.Join(e.Text)
}

// endMessage emits the message that came in pieces.
func (p *Parser) endMessage() {
	if text, open := p.Draft.Take(); open {
		p.last, p.done = strings.TrimSpace(agent.Clip(text, maxText)), false
		p.Emit(agent.Event{Kind: agent.Text, Text: text})
	}
}

func (p *Parser) emitProblem(kind, text string, status int) {
	p.Emit(agent.Event{Kind: agent.Error, Error: &failure.APIError{Status: status, Type: kind, Message: text}})
}

// emitStopReason takes the reason to stop.
func (p *Parser) emitStopReason(stop string) {
	p.endMessage()
	terminal := loop.TerminalFailed
	switch {
	case stop == stopDone && p.endsInError():
	case stop == stopDone && !p.failed:
		terminal = loop.TerminalOK
	case stop == stopDone, stop == stopError, stop == stopCancelled:
	case stop == "max_tokens":
		p.emitProblem("max_output_tokens", "the answer was cut off at its token limit", 0)
	case stop == "max_turn_requests":
		p.emitProblem("max_turns", "the program reached its own limit of model calls", 0)
	case stop == "refusal":
		p.emitProblem("refusal", "the model refused to continue", 0)
	default:
		p.emitProblem("", fmt.Sprintf("the program stopped: %s", stop), 0)
	}
	p.End(agent.Event{Terminal: terminal})
}

// endsInError reports whether the last message is an error that the program passes off as an
// answer: it begins as one and says a known kind or a status.
func (p *Parser) endsInError() bool {
	text, ok := strings.CutPrefix(p.last, "Error: ")
	if !ok || p.done {
		return false
	}
	status, kind := agent.StatusIn(text), agent.TypeIn(text)
	if status == 0 && kind == "" {
		return false
	}
	p.emitProblem(kind, text, status)
	return true
}

// Close reports a stream that ended without its terminal line.
func (p *Parser) Close(emit func(agent.Event)) {
	p.Emit = emit
	p.endMessage()
	p.Stream.Close(emit)
}

const (
	maxText  = 2000 // of an error's text, in bytes
	maxName  = 200
	maxPath  = 4096
	maxFiles = 50
	// maxPiece is how much text one line carries, so that no line is cut.
	maxPiece = 256 << 10
)

// asked is the kind of a line for people: the program asked for permission.
const asked agent.EventKind = "permission"

// printer writes events, one a line, for [Parser]. Texts are pieces of
// messages, whose id is in Call; the text of an End is the reason to stop. It is
// safe for concurrent use.
type printer struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *printer) putEvent(e agent.Event) {
	b, err := json.Marshal(e.Bounded())
	if err != nil {
		return // a number that is none: there is nothing to print
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.w.Write(append(b, '\n')) // a reader that is gone is the supervisor's business
}

// printTextInPieces prints a text in pieces that fit.
func (p *printer) printTextInPieces(kind agent.EventKind, id, text string) {
	for text != "" {
		piece := agent.Clip(text, maxPiece)
		p.putEvent(agent.Event{Kind: kind, Call: id, Text: piece})
		text = text[len(piece):]
	}
}

// printStopReason prints the reason to stop, and a problem before it.
func (p *printer) printStopReason(err *failure.APIError, stop string) {
	if err != nil {
		p.putEvent(agent.Event{Kind: agent.Error, Error: err})
	}
	p.putEvent(agent.Event{Kind: agent.End, Text: stop})
}

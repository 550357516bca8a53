package acp

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/failure"
)

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

func (p *printer) put(e agent.Event) {
	b, err := json.Marshal(e.Bounded())
	if err != nil {
		return // a number that is none: there is nothing to print
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.w.Write(append(b, '\n')) // a reader that is gone is the supervisor's business
}

// say prints a text in pieces that fit.
func (p *printer) say(kind agent.EventKind, id, text string) {
	for text != "" {
		piece := agent.Clip(text, maxPiece)
		p.put(agent.Event{Kind: kind, Call: id, Text: piece})
		text = text[len(piece):]
	}
}

// end prints the reason to stop, and a problem before it.
func (p *printer) end(err *failure.APIError, stop string) {
	if err != nil {
		p.put(agent.Event{Kind: agent.Error, Error: err})
	}
	p.put(agent.Event{Kind: agent.End, Text: stop})
}

// Package text reads agents that print plain text: all that such a program
// prints is its message, without the codes of a terminal and without an echo
// of the prompt. It has no terminal event, no usage and no errors.
//
// The package never decides what a message means.
package text

import (
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/signal"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// Parser is the [agent.Parser] of plain text. It keeps the end of the output,
// at most a few MiB.
type Parser struct {
	prompt string
	said   *agent.Tail
}

// New returns a parser that cuts echoes of prompt off the message; nil cuts
// nothing.
func New(prompt []byte) *Parser {
	return &Parser{prompt: string(prompt), said: agent.NewTail(agent.MessageCap)}
}

// maxLine is how much of one line is kept, in bytes. No signal is that long.
const maxLine = 64 << 10

// Line takes one line of output and shows it as it is. What is cut off a long
// one is marked, so that its start is no line of its own.
func (p *Parser) Line(line []byte, cut bool, emit func(agent.Event)) {
	if len(line) > maxLine {
		line, cut = line[:maxLine], true
	}
	s := string(line)
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if cut {
		s += "…"
	}
	p.said.Add(s)
	emit(agent.Event{Kind: agent.Text, Text: s})
}

// Close separates the agent's own message from an echo of the prompt, which is possible only at the
// end.
func (p *Parser) Close(emit func(agent.Event)) {
	own := signal.StripEcho(signal.FinalOfText(p.said.Text()), p.prompt)
	emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalNone, Text: own, Final: true})
}

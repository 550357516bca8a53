package jsonline

import (
	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/loop"
)

// Stream is what parsers have in common: where events go, the message that
// arrives in pieces, and whether the stream has ended as it should.
type Stream struct {
	Emit  func(agent.Event)
	Draft Draft
	// Ended: the terminal event came, and nothing of the model after it.
	Ended bool
}

// Decode reads one line into v, see [Decode], and lets events go to emit.
func (s *Stream) Decode(line []byte, cut bool, v any, emit func(agent.Event)) bool {
	s.Emit = emit
	return Decode(line, cut, v, emit)
}

// Unknown emits what a parser does not know.
func (s *Stream) Unknown(kind string) {
	s.Emit(agent.Event{Kind: agent.Unknown, Text: kind})
}

// EndMessage emits the message that came in pieces.
func (s *Stream) EndMessage() {
	if text, open := s.Draft.Take(); open {
		s.Emit(agent.Event{Kind: agent.Text, Text: text})
	}
}

// End emits the terminal event.
func (s *Stream) End(e agent.Event) {
	s.Ended = true
	e.Kind = agent.End
	s.Emit(e)
}

// Close emits the rest of a stream that ended without its terminal event. The
// parser of a format that has none needs a Close of its own.
func (s *Stream) Close(emit func(agent.Event)) {
	s.Emit = emit
	if !s.Ended {
		s.EndMessage()
		s.Emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalMissing})
	}
}

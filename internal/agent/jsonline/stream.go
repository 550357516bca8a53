package jsonline

import (
	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

// Stream is what parsers have in common: where events go, the message that
// arrives in pieces, model calls that are not told, and how the stream has ended.
type Stream struct {
	Emit  func(agent.Event)
	Draft Draft
	// Ended: the terminal event came, and nothing of the model after it.
	Ended bool
	// Pending is an error that waits for what comes next, which may say more of it.
	Pending *failure.APIError
	// Due: what the model says next answers a new call.
	Due bool
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
		s.Answer(agent.Event{Kind: agent.Text, Text: text})
	}
}

// Answer emits what the model says, and counts the call that is due.
func (s *Stream) Answer(e agent.Event) {
	if s.Due {
		s.Due = false
		e.Calls, e.Turns = 1, 1
	}
	s.Emit(e)
}

// Flush emits the error that waits.
func (s *Stream) Flush() {
	if s.Pending != nil {
		s.Emit(agent.Event{Kind: agent.Error, Error: s.Pending})
		s.Pending = nil
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
	}
	s.Flush()
	if !s.Ended {
		s.Emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalMissing})
	}
}

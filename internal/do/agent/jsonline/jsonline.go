// Package jsonline has what the parsers of JSON lines share: the decoding of
// one line, the text of a tool's result, what a tool's input says, and memory
// for ids and for messages that arrive in pieces.
//
// It trusts nothing and never panics. A field of another type than the
// parser's struct has stays empty, so that one odd field costs no more than itself.
package jsonline

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// Decode reads one line of a stream into v, a pointer to a struct. For a line
// that was cut or is no JSON object it emits an unknown event and returns
// false. An empty line is nothing: no event, and false.
func Decode(line []byte, cut bool, v any, emit func(agent.Event)) bool {
	if len(line) == 0 {
		return false
	}
	if cut || !bytes.HasPrefix(bytes.TrimLeft(line, " \t\r"), []byte{'{'}) || !Read(line, v) {
		emit(agent.Event{Kind: agent.Unknown, Text: "cut or not JSON"})
		return false
	}
	return true
}

// Read decodes JSON into v and returns false if it is none. Values of other
// types than v has are left out.
func Read(b []byte, v any) bool {
	err := json.Unmarshal(b, v)
	var mismatch *json.UnmarshalTypeError
	return err == nil || errors.As(err, &mismatch)
}

// Message is the text of an error: a string, or an object with a message.
func Message(b json.RawMessage) string {
	var text string
	var object struct{ Message string }
	if Read(b, &text); text == "" {
		Read(b, &object)
	}
	return text + object.Message
}

// ToolStart is the call of a tool with its input as the program reports it.
func ToolStart(tool, call string, sub bool, input json.RawMessage) agent.Event {
	e := agent.Event{Kind: agent.ToolStart, Tool: tool, Call: call, Sub: sub, Digest: agent.Digest(input)}
	Input(&e, input)
	return e
}

// ToolEnd is the end of such a call with its result.
func ToolEnd(tool, call string, sub, failed bool, result json.RawMessage) agent.Event {
	return agent.Event{Kind: agent.ToolEnd, Tool: tool, Call: call, Sub: sub, Failed: failed,
		Digest: agent.Digest(result), Result: Result(result, agent.ResultCap)}
}

// Input adds what the input of a tool's call says by the usual names: the
// command that it runs (of several, a line each), and the files that it
// touches.
func Input(e *agent.Event, input json.RawMessage) {
	var in struct {
		Command      string
		Commands     []string
		Path         string
		FilePath     string
		SnakePath    string `json:"file_path"`
		NotebookPath string `json:"notebook_path"`
		AbsolutePath string `json:"absolute_path"`
	}
	if len(input) == 0 || !Read(input, &in) {
		return
	}
	e.Command = in.Command
	if len(in.Commands) > 0 {
		e.Command = strings.Join(in.Commands, "\n")
	}
	paths := lists.NonEmpty(in.Path, in.SnakePath, in.FilePath, in.NotebookPath, in.AbsolutePath)
	e.Files = append(e.Files, paths...)
}

// Draft is a message that arrives in pieces. The zero value is none.
type Draft struct {
	tail *agent.Tail
	open bool
}

// Join adds a piece.
func (d *Draft) Join(piece string) {
	if d.tail == nil {
		d.tail = agent.NewTail(agent.MessageCap)
	}
	d.open = true
	d.tail.Join(piece)
}

// Drop forgets the message.
func (d *Draft) Drop() {
	if d.open {
		d.open = false
		d.tail.Reset()
	}
}

// Take returns the message and forgets it; false if there is none.
func (d *Draft) Take() (string, bool) {
	if !d.open {
		return "", false
	}
	text := d.tail.Text()
	d.Drop()
	return text, true
}

// maxIDs is how many ids are remembered; a call is answered long before.
const maxIDs = 128

// maxID is the longest id or value that is remembered, in bytes.
const maxID = 200

// IDs remembers the last few ids of a stream, each with a value. The zero
// value remembers none.
type IDs struct {
	values map[string]string
	order  []string
}

// Add remembers id; it returns false when id is remembered already. An empty
// id, and one that is too long to be one, is not remembered.
func (s *IDs) Add(id, value string) bool {
	if id == "" || len(id) > maxID {
		return true
	}
	if _, known := s.values[id]; known {
		return false
	}
	if s.values == nil {
		s.values = make(map[string]string, maxIDs)
	}
	if len(s.order) == maxIDs {
		delete(s.values, s.order[0])
		s.order = append(s.order[:0], s.order[1:]...)
	}
	s.values[id] = strings.Clone(agent.Clip(value, maxID))
	s.order = append(s.order, id)
	return true
}

// Value returns the text that was remembered with id, "" when it is not known.
func (s *IDs) Value(id string) string { return s.values[id] }

// maxNested bounds how deep the text of a result is looked for.
const maxNested = 6

// texts are the fields in which programs put the text of a tool's result, or a
// value that holds it.
var texts = map[string]bool{
	"text": true, "content": true, "output": true, "result": true, "stdout": true, "stderr": true,
	"interleavedOutput": true,
	"success":           true, "failure": true, "error": true, "rejected": true, "value": true, "message": true,
}

// Result returns the text of a tool's result: a string, or what texts a list
// or object of the usual forms holds, else the JSON itself. It has at most
// limit bytes, and "…" at its end when there was more.
func Result(b json.RawMessage, limit int) string {
	g := gatherer{decoder: json.NewDecoder(bytes.NewReader(b)), limit: limit}
	g.addValue(true, 0)
	text := g.text.String()
	if b = bytes.TrimSpace(b); !g.found && len(b) > len("{}") && bytes.IndexByte([]byte("{["), b[0]) >= 0 {
		text = string(b)
	}
	text = strings.ToValidUTF8(text, "")
	if short := agent.Clip(text, limit); len(short) < len(text) {
		return short + "…"
	}
	return text
}

// gatherer adds up texts, a line each, until there are enough.
type gatherer struct {
	decoder *json.Decoder
	limit   int
	text    strings.Builder
	found   bool // a text, which may be empty
}

// addValue adds the texts of the next value, if they are wanted. It returns false at the end.
func (g *gatherer) addValue(wanted bool, depth int) bool {
	token, err := g.decoder.Token()
	if err != nil || g.text.Len() > g.limit {
		return false
	}
	switch token := token.(type) {
	case string:
		if wanted && depth <= maxNested {
			g.appendText(token)
		}
	case json.Delim:
		return g.addElements(token, wanted, depth)
	}
	return true
}

// addElements adds the texts of the elements of an array, or of the fields of an object that have them.
func (g *gatherer) addElements(opening json.Delim, wanted bool, depth int) bool {
	for g.decoder.More() {
		inside := wanted
		if opening == '{' {
			key, _ := g.decoder.Token()
			name, _ := key.(string)
			inside = wanted && texts[name]
		}
		if !g.addValue(inside, depth+1) {
			return false
		}
	}
	_, err := g.decoder.Token()
	return err == nil
}

func (g *gatherer) appendText(text string) {
	if g.found = true; text == "" {
		return
	}
	if g.text.Len() > 0 {
		g.text.WriteByte('\n')
	}
	g.text.WriteString(text)
}

// Stream is what parsers have in common: where events go, the message that arrives in pieces, model
// calls that are not reported, and how the stream has ended.
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

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

	"github.com/pawl-dev/pawl/internal/agent"
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

// ToolStart is the call of a tool with its input as the program tells it.
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
	for _, path := range []string{in.Path, in.SnakePath, in.FilePath, in.NotebookPath, in.AbsolutePath} {
		if path != "" {
			e.Files = append(e.Files, path)
		}
	}
}

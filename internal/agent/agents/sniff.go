package agents

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

// sniffed is how many of the first lines tell the format.
const sniffed = 40

// sniffer is a parser that also looks whether the stream is another program's,
// so that a wrong `output` is named as such. It looks at the first lines only,
// and stops at the first that is as it should be. It bounds what the parser emits.
type sniffer struct {
	agent.Parser
	format string
	looked int
	found  string // the format that lines look like
	hits   int    // lines that look like it
	odd    bool   // a line that looks like nothing known
	own    bool   // a line is as it should be
	good   bool   // the stream ended well, whatever it looks like
}

// Line takes one line.
func (s *sniffer) Line(line []byte, cut bool, emit func(agent.Event)) {
	if !s.own && s.looked < sniffed {
		s.look(line)
	}
	s.Parser.Line(line, cut, s.passing(emit))
}

// passing bounds what is emitted, and notes whether the stream ended well.
func (s *sniffer) passing(emit func(agent.Event)) func(agent.Event) {
	return func(e agent.Event) {
		if e.Kind == agent.End && e.Terminal == loop.TerminalOK {
			s.good = true
		}
		emit(e.Bounded())
	}
}

func (s *sniffer) look(line []byte) {
	name := recognise(line)
	switch {
	case len(line) == 0:
		return
	case name == "":
		s.odd = s.odd || line[0] != '{'
	case name == s.format || related(name, s.format):
		s.own = true
	case s.found == "" || s.found == name:
		s.found = name
		s.hits++
	}
	s.looked++
}

// Close tells what the stream looks like when it did not end as it should. A
// program that prints text may print JSON too, so that all of it must look
// like one format.
func (s *sniffer) Close(emit func(agent.Event)) {
	s.Parser.Close(s.passing(emit))
	if s.own || s.good || s.found == "" {
		return
	}
	unsure := s.odd || s.hits < 2
	if plain := formats[s.format].prompt; plain && unsure {
		return
	}
	emit(agent.Event{Kind: agent.Error, Error: &failure.APIError{
		Type: agent.WrongFormat, Message: fmt.Sprintf("the output looks like %s's and is read as %s: set `output: %s` for "+
			"this agent", s.found, s.format, s.found),
	}})
	emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalMissing})
}

// related formats share their lines.
func related(a, b string) bool { return claudeLike(a) && claudeLike(b) }

func claudeLike(name string) bool {
	return name == "claude" || name == "qwen" || name == "amp" || name == "cursor"
}

// recognise names the format that a line can only be of; "" when many have
// such lines, or none.
func recognise(line []byte) string {
	fields := map[string]json.RawMessage{}
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &fields) != nil {
		return ""
	}
	without := func(name string) bool { return fields[name] == nil }
	for _, m := range marks {
		if m.kind().Match(fields["type"]) && !slices.ContainsFunc(m.keys, without) {
			return m.format
		}
	}
	return ""
}

// marks are lines that one format has and no other: their type, as JSON, and
// keys that they have too.
var marks = []struct {
	format string
	kind   func() *regexp.Regexp
	keys   []string
}{
	{"codex", kind(`(thread|turn|item)\.`), nil},
	{"opencode", kind(`(step_|text"|tool_use")`), []string{"sessionID", "part"}},
	{"opencode", kind(`error"`), []string{"sessionID", "error"}},
	{"copilot", kind(`(session|assistant|user|model|tool)\.`), []string{"data"}},
	{"cline", kind(`hook_event"`), []string{"hookEventName"}},
	{"cline", kind(`agent_event"`), []string{"event"}},
	{"cline", kind(`run_result"`), []string{"finishReason"}},
	{"gemini", kind(`init"`), []string{"session_id"}},
	{"gemini", kind(`message"`), []string{"role", "content"}},
	{"gemini", kind(`tool_use"`), []string{"tool_name"}},
	{"gemini", kind(`tool_result"`), []string{"tool_id", "status"}},
	{"gemini", kind(`result"`), []string{"status", "stats"}},
	{"droid", kind(`message"`), []string{"role", "text"}},
	{"droid", kind(`tool_call"`), []string{"toolName"}},
	{"droid", kind(`tool_result"`), []string{"isError", "value"}},
	{"droid", kind(`completion"`), []string{"finalText"}},
	{"goose", kind(`message"`), []string{"message"}},
	{"goose", kind(`complete"`), nil},
	{"cursor", kind(`tool_call"`), []string{"tool_call"}},
	{"claude", kind(`(assistant|user)"`), []string{"message"}},
	{"claude", kind(`system"`), []string{"claude_code_version"}},
}

func kind(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^"` + pattern) })
}

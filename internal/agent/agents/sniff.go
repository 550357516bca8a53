package agents

import (
	"cmp"
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

// Record takes one line of the file in which the program notes what it uses.
func (s *sniffer) Record(line []byte, emit func(agent.Event)) {
	if r, ok := s.Parser.(agent.Recorder); ok {
		r.Record(line, s.passing(emit))
	}
}

func (s *sniffer) look(line []byte) {
	name := recognise(line)
	switch {
	case len(line) == 0:
		return
	case name == "":
		s.odd = s.odd || line[0] != '{'
	case related(name, s.format):
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
	if plain := formats()[s.format].EchoCut; plain && unsure {
		return
	}
	emit(agent.Event{Kind: agent.Error, Error: &failure.APIError{
		Type: agent.WrongFormat, Message: fmt.Sprintf("the output looks like %s's and is read as %s: set `output: %s` for "+
			"this agent", s.found, s.format, s.found),
	}})
	emit(agent.Event{Kind: agent.End, Terminal: loop.TerminalMissing})
}

// related formats share their lines.
func related(a, b string) bool { return family(a) == family(b) }

func family(name string) string { return cmp.Or(formats()[name].Like, name) }

// recognise names the format that a line can only be of; "" when many have
// such lines, or none.
func recognise(line []byte) string {
	fields := map[string]json.RawMessage{}
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &fields) != nil {
		return ""
	}
	without := func(name string) bool { return fields[name] == nil }
	for _, m := range marks() {
		if m.kind.Match(fields["type"]) && !slices.ContainsFunc(m.keys, without) {
			return m.format
		}
	}
	return ""
}

// mark is a line that one format has and no other: its type, as JSON, and keys
// that it has too.
type mark struct {
	format string
	kind   *regexp.Regexp
	keys   []string
}

var marks = sync.OnceValue(func() []mark {
	var all []mark
	for _, p := range Programs() {
		for _, m := range formats()[p.Name].Marks {
			all = append(all, mark{p.Name, regexp.MustCompile(`^"` + m.Type), m.Keys})
		}
	}
	return all
})

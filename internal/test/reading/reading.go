// Package reading plays streams to parsers in tests: lines in, outcome and
// events out, and events in short. It is in no program and reads no file.
package reading

import (
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

// Run feeds whole lines to a parser and ends the stream.
func Run(p agent.Parser, lines ...string) (agent.Outcome, []agent.Event) {
	c, events := agent.NewCollector(), []agent.Event(nil)
	take := func(e agent.Event) {
		e.Digest = 0 // another one in each process
		events = append(events, e)
		c.Add(e)
	}
	for _, l := range lines {
		p.Line([]byte(l), false, take)
	}
	p.Close(take)
	return c.Outcome(), events
}

// Kinds writes events in short, one word each: "session text end=ok".
func Kinds(events []agent.Event) string {
	var words []string
	for _, e := range events {
		w := string(e.Kind)
		if e.Terminal != "" {
			w += "=" + string(e.Terminal)
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// Tools writes the calls of tools in short: "> bash ls a.go; < bash false", where
// the last word is whether it failed.
func Tools(events []agent.Event) string {
	var log []string
	for _, e := range events {
		switch e.Kind {
		case agent.ToolStart:
			log = append(log, "> "+e.Tool+" "+e.Command+" "+strings.Join(e.Files, ","))
		case agent.ToolEnd:
			log = append(log, fmt.Sprintf("< %s %v", e.Tool, e.Failed))
		}
	}
	return strings.Join(log, "; ")
}

package agents

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/reading"
)

// What a tool came to is told in part, as text, and is never the agent's word.
func TestResultsOfTools(t *testing.T) {
	t.Parallel()
	for name := range reading.Samples {
		if name == "text" || name == "acp" {
			continue // nothing of tools is told, and the bridge has tests of its own
		}
		p, err := Parser(name, ParserOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var last agent.Event
		c := agent.NewCollector()
		for _, line := range reading.Stream(name) {
			p.Line(line, false, func(e agent.Event) {
				c.Add(e)
				if e.Kind == agent.ToolEnd {
					last = e
				}
			})
		}
		if !strings.HasPrefix(last.Result, "\tfmt.Println(\"a line of code\")\n\tfmt") || !strings.HasSuffix(last.Result, "…") ||
			len(last.Result) < agent.ResultCap/2 || len(last.Result) > agent.ResultCap+len("…") || !utf8.ValidString(last.Result) {
			t.Errorf("%s: %d bytes: %.60q", name, len(last.Result), last.Result)
		}
		if strings.Contains(c.Outcome().Message, "Println") {
			t.Errorf("%s: the result is the final message", name)
		}
	}
}

// A call's start and end have the same id, so that two at a time are told apart.
func TestCallsOfTools(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"claude": {
			`{"type":"assistant","message":{"id":"1","content":[{"type":"tool_use","id":"a","name":"Read","input":{}},{"type":"tool_use","id":"b","name":"Read","input":{}}]}}`,
			`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"of b"}]}]}}`,
			`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"of a"}]}}`,
		},
		"codex": {
			`{"type":"item.started","item":{"id":"a","type":"command_execution","command":"x"}}`, `{"type":"item.started","item":{"id":"b","type":"command_execution","command":"x"}}`,
			`{"type":"item.completed","item":{"id":"b","type":"command_execution","command":"x","aggregated_output":"of b","status":"completed"}}`,
			`{"type":"item.completed","item":{"id":"a","type":"command_execution","command":"x","aggregated_output":"of a","status":"completed"}}`,
		},
		"gemini": {
			`{"type":"tool_use","tool_name":"read","tool_id":"a","parameters":{}}`, `{"type":"tool_use","tool_name":"read","tool_id":"b","parameters":{}}`,
			`{"type":"tool_result","tool_id":"b","status":"success","output":"of b"}`, `{"type":"tool_result","tool_id":"a","status":"success","output":"of a"}`,
		},
	} {
		p, err := Parser(name, ParserOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, events := reading.Run(p, lines...)
		var told []string
		for _, e := range events {
			if e.Kind == agent.ToolStart || e.Kind == agent.ToolEnd {
				told = append(told, string(e.Kind)+" "+e.Call+" "+e.Result)
			}
		}
		if got := strings.Join(told, "|"); got != "tool a |tool b |tool_end b of b|tool_end a of a" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

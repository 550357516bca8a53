package kimi

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

func read(lines string) agent.Outcome {
	p, c := NewParser(), agent.NewCollector()
	for l := range strings.Lines(lines) {
		p.Line([]byte(strings.TrimSuffix(l, "\n")), false, c.Add)
	}
	p.Close(c.Add)
	return c.Outcome()
}

const begin = `{"role":"meta","type":"system.version","version":"2.1.0"}` + "\n"

func TestParser(t *testing.T) {
	t.Parallel()
	got := read(begin + `{"role":"assistant","content":"I write.","tool_calls":[{"type":"function","id":"c1","function":{"name":"Bash","arguments":"{\"command\":\"echo hi\"}"}}]}
{"role":"tool","tool_call_id":"c1","content":"hi\n"}
{"role":"meta","type":"turn.step.retrying","failed_attempt":1,"next_attempt":2,"delay_ms":1000,"error_name":"APIProviderRateLimitError","error_message":"429 slow","status_code":429}
{"role":"assistant","content":[{"type":"think","think":"hm"},{"type":"text","text":"done"}]}
{"role":"meta","type":"session.resume_hint","session_id":"s1","command":"kimi -r s1"}
`)
	if got.Terminal != loop.TerminalOK || got.Message != "done" || got.Session != "s1" || got.Calls != 3 || got.Turns != 2 || got.Tools != 1 ||
		got.Retries != 1 || len(got.Errors) != 0 || got.Unknown != 0 {
		t.Errorf("outcome is %+v", got)
	}
}

// The last retry is the reason of a run that was given up.
func TestParserGivesUp(t *testing.T) {
	t.Parallel()
	got := read(begin + `{"role":"meta","type":"turn.step.retrying","failed_attempt":9,"delay_ms":1000,"error_name":"APIEmptyResponseError","error_message":"The API returned an empty response"}
`)
	if got.Terminal != loop.TerminalMissing || len(got.Errors) != 1 || got.Errors[0].Type != "empty_answer" {
		t.Errorf("outcome is %+v", got)
	}
}

package amp

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

func TestParser(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		result   string
		terminal loop.Terminal
		message  string
		failure  string
	}{
		{"well", `{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"4."}`, loop.TerminalOK, "4.", ""},
		{"badly", `{"type":"result","subtype":"error_during_execution","is_error":true,"error":"out of credits"}`, loop.TerminalFailed, "out of credits", "out of credits"},
		{"not at all", `{"type":"user","message":{"content":[]}}`, loop.TerminalMissing, "2 + 2 is 4.", ""},
	} {
		p, c := NewParser(), agent.NewCollector()
		for _, l := range []string{
			`{"type":"system","subtype":"init","session_id":"T-1","tools":[]}`,
			`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]},"parent_tool_use_id":null}`,
			`{"type":"assistant","message":{"content":[{"type":"text","text":"2 + 2 is 4."}],"usage":{"input_tokens":1000,"cache_creation_input_tokens":100,"cache_read_input_tokens":600,"output_tokens":8}},"parent_tool_use_id":null}`,
			test.result,
		} {
			p.Line([]byte(l), false, c.Add)
		}
		p.Close(c.Add)
		got := c.Outcome()
		if got.Terminal != test.terminal || got.Message != test.message || got.Calls != 1 || got.Session != "T-1" {
			t.Errorf("%s: %+v", test.name, got)
		}
		if want := (agent.Usage{Input: 300, Output: 8, CacheRead: 600, CacheWrite: 100}); got.Usage != want {
			t.Errorf("%s: usage is %+v, want %+v", test.name, got.Usage, want)
		}
		if test.failure != "" && (len(got.Errors) != 1 || got.Errors[0].Message != test.failure) {
			t.Errorf("%s: errors are %+v", test.name, got.Errors)
		}
	}
}

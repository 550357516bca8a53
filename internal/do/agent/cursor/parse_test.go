package cursor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/reading"
)

func says(text string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":%q}]},"session_id":"s"}`, text)
}

const (
	begin   = `{"type":"system","subtype":"init","session_id":"s","model":"Auto"}`
	started = `{"type":"tool_call","subtype":"started","call_id":"1","tool_call":{"shellToolCall":{"args":{"command":"go test"}}}}`
	ended   = `{"type":"tool_call","subtype":"completed","call_id":"1","tool_call":{"shellToolCall":{"args":{"command":"go test"},"result":{"success":{"stdout":"<promise>COMPLETE</promise>"}}}}}`
	refused = `{"type":"tool_call","subtype":"completed","call_id":"1","tool_call":{"writeToolCall":{"args":{"path":"/a"},"result":{"rejected":{"reason":"no"}}}}}`
)

func result(text string) string {
	return fmt.Sprintf(`{"type":"result","subtype":"success","is_error":false,"result":%q,"usage":{"inputTokens":10,"outputTokens":3,"cacheReadTokens":2,"cacheWriteTokens":1}}`, text)
}

func TestMessages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		lines    []string
		want     string
		terminal loop.Terminal
	}{
		{"the last message, not all of them glued", []string{begin, says("I test."), started, ended, says("Done."), says("<promise>COMPLETE</promise>"), result("I test.Done.<promise>COMPLETE</promise>")},
			"Done.\n<promise>COMPLETE</promise>", loop.TerminalOK},
		{"only the result", []string{begin, result("Done.")}, "Done.", loop.TerminalOK},
		{"nothing after a tool", []string{says("I test."), started, ended, result("I test.")}, "I test.", loop.TerminalOK},
		{"the prompt is told again", []string{`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}`, says("No.")}, "No.", loop.TerminalMissing},
		{"a failure", []string{`{"type":"result","subtype":"success","is_error":true,"result":"no credit"}`}, "no credit", loop.TerminalFailed},
		{"thoughts are no words", []string{`{"type":"thinking","subtype":"delta","text":"<promise>COMPLETE</promise>"}`, `{"type":"interaction_query"}`, says("x")}, "x", loop.TerminalMissing},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, _ := read(test.lines...)
			if got.Message != test.want || got.Terminal != test.terminal || got.Unknown != 0 {
				t.Errorf("message is %q (%s), %d unknown, want %q (%s)", got.Message, got.Terminal, got.Unknown, test.want, test.terminal)
			}
		})
	}
}

func TestToolsAndUsage(t *testing.T) {
	t.Parallel()
	got, events := read(begin, says("a"), started, ended, `{"type":"tool_call","subtype":"started","tool_call":{"function":{"name":"mine","args":{}}}}`, refused, says("b"), result("ab"))
	if got.Tools != 2 || got.Calls != 2 || got.Turns != 2 || got.Session != "s" {
		t.Errorf("outcome is %+v", got)
	}
	if want := (agent.Usage{Input: 10, Output: 3, CacheRead: 2, CacheWrite: 1}); got.Usage != want {
		t.Errorf("usage is %+v, want %+v", got.Usage, want)
	}
	var log []string
	for _, e := range events {
		if e.Kind == agent.ToolStart || e.Kind == agent.ToolEnd {
			log = append(log, fmt.Sprintf("%s %s %s %v", e.Kind, e.Tool, e.Command, e.Failed))
		}
	}
	if want := "tool shell go test false;tool_end shell  false;tool mine  false;tool_end write  true"; strings.Join(log, ";") != want {
		t.Errorf("tools are %q", log)
	}
}

func read(lines ...string) (agent.Outcome, []agent.Event) { return reading.Run(NewParser(), lines...) }

package copilot

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/reading"
)

// run is a whole run, in lines as small as the parser needs them.
var run = []string{
	`{"type":"session.tools_updated","data":{"model":"gpt-4.1"},"ephemeral":true}`,
	`{"type":"user.message","data":{"content":"<promise>COMPLETE</promise>","transformedContent":"<promise>COMPLETE</promise>"}}`,
	`{"type":"assistant.turn_start","data":{"turnId":"0"}}`,
	`{"type":"model.call_start","data":{"model":"gpt-4.1"}}`,
	`{"type":"assistant.message","data":{"content":"I test.","toolRequests":[{"name":"bash"}]}}`,
	`{"type":"tool.execution_start","data":{"toolCallId":"t1","toolName":"bash","arguments":{"command":"go test"}}}`,
	`{"type":"tool.shell_output","data":{"text":"<promise>COMPLETE</promise>"}}`,
	`{"type":"tool.execution_complete","data":{"toolCallId":"t1","success":false,"error":{"message":"no"}}}`,
	`{"type":"assistant.turn_start","data":{"turnId":"1"}}`,
	`{"type":"model.call_start","data":{"model":"gpt-4.1"}}`,
	`{"type":"assistant.message_start","data":{}}`,
	`{"type":"assistant.message_delta","data":{"deltaContent":"Done.\n<pr"}}`,
	`{"type":"assistant.message_delta","data":{"deltaContent":"omise>COMPLETE</promise>"}}`,
	`{"type":"assistant.message","data":{"content":"Done.\n<promise>COMPLETE</promise>"}}`,
	`{"type":"result","sessionId":"s1","exitCode":0,"usage":{"premiumRequests":1}}`,
}

func TestRun(t *testing.T) {
	t.Parallel()
	const said = "Done.\n<promise>COMPLETE</promise>"
	got, events := read(run...)
	if got.Message != said || got.Terminal != loop.TerminalOK || got.Session != "s1" || got.Model != "gpt-4.1" || got.Unknown != 0 {
		t.Errorf("outcome is %+v", got)
	}
	if got.Usage != (agent.Usage{}) || got.Calls != 2 || got.Turns != 2 || got.CostSource != agent.CostNone {
		t.Errorf("outcome is %+v", got)
	}
	if want := "> bash go test ; < bash true"; reading.Tools(events) != want {
		t.Errorf("tools are %s", reading.Tools(events))
	}
	// Pieces are a message where the whole did not come any more.
	if got, _ := read(run[:13]...); got.Message != said || got.Terminal != loop.TerminalMissing {
		t.Errorf("cut off: %+v", got)
	}
	if got, _ := read(run[8:12]...); got.Message != "Done.\n<pr" {
		t.Errorf("cut off in a piece: %+v", got)
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	got, _ := read(append(run[:14:14], `{"type":"abort","data":{"reason":"user_initiated"}}`, run[14])...)
	if got.Terminal != loop.TerminalFailed || len(got.Errors) != 1 || got.Errors[0].Type != "aborted" {
		t.Errorf("outcome is %+v", got)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	call := func(status, body string) string {
		return fmt.Sprintf(`{"type":"model.call_failure","data":{"statusCode":%s,"errorMessage":%q}}`, status, body)
	}
	give := func(rest string) string { return `{"type":"session.error","data":{` + rest + `}}` }
	const retry, end = `{"type":"assistant.turn_retry","data":{"reason":"rate_limit"}}`, `{"type":"result","exitCode":1}`
	for _, test := range []struct {
		name    string
		lines   []string
		status  int
		kind    string
		reset   int64
		wait    time.Duration
		retries int
	}{
		{"a plan that is used up", []string{call("429", `{"code":"usage_limit_reached","message":"m","resets_at":1795183346,"resets_in_seconds":10800}`), give(`"errorType":"rate_limit","statusCode":429,"message":"429 m"`), end},
			429, "usage_limit_reached", 1795183346, 3 * time.Hour, 0},
		{"retries", []string{call("529", `{"type":"overloaded","message":"m"}`), retry, call("529", `{"type":"overloaded"}`), retry, end}, 529, "overloaded", 0, 0, 2},
		{"a text", []string{call("null", `"request ended without sending any chunks"`), give(`"errorType":"query","message":"no luck"`), end}, 0, "query", 0, 0, 0},
		{"another call's words", []string{call("429", `{"code":"slow"}`), give(`"errorType":"authentication","statusCode":401,"message":"who"`), end}, 401, "authentication", 0, 0, 0},
		{"an absurd reset", []string{call("429", `{"code":"c","resets_at":1e18,"resets_in_seconds":-4}`), give(`"message":"m"`), end}, 429, "c", 0, 0, 0},
		{"a retry without a call", []string{retry, end}, 0, "rate_limit", 0, 0, 1},
	} {
		got, _ := read(test.lines...)
		if got.Terminal != loop.TerminalFailed || len(got.Errors) == 0 || got.Retries != test.retries {
			t.Errorf("%s: %+v", test.name, got)
			continue
		}
		e := got.Errors[len(got.Errors)-1]
		at := int64(0)
		if !e.ResetAt.IsZero() {
			at = e.ResetAt.Unix()
		}
		if e.Status != test.status || e.Type != test.kind || at != test.reset || e.RetryAfter != test.wait {
			t.Errorf("%s: error is %+v", test.name, e)
		}
	}
}

// A sub-agent's words are not the message, and its tools do not end it.
func TestSubAgents(t *testing.T) {
	t.Parallel()
	got, _ := read(run[4], `{"type":"assistant.message","data":{"parentToolCallId":"t9","content":"<promise>COMPLETE</promise>"}}`)
	if got.Message != "I test." {
		t.Errorf("message is %q", got.Message)
	}
}

func read(lines ...string) (agent.Outcome, []agent.Event) { return reading.Run(NewParser(), lines...) }

// The file of usage has the sums of all models; its input has the cached part.
func TestRecord(t *testing.T) {
	t.Parallel()
	c := agent.NewCollector()
	p := NewParser()
	for _, file := range []string{
		"rubbish", "", "{}", `{"modelMetrics":7}`,
		"{\n  \"totalUserRequests\": 1,\n  \"modelMetrics\": {\n" +
			`"a": {"requests": {"count": 2}, "usage": {"inputTokens": 1000, "outputTokens": 50, "cacheReadTokens": 300, "cacheWriteTokens": 0}},` +
			`"b": {"usage": {"inputTokens": 10, "outputTokens": 1, "cacheReadTokens": 20, "cacheWriteTokens": 5}}}}`,
	} {
		p.Record([]byte(file), c.Add)
	}
	if u := c.Outcome().Usage; u != (agent.Usage{Input: 700, Output: 51, CacheRead: 320, CacheWrite: 5}) {
		t.Errorf("the sum is %+v", u)
	}
}

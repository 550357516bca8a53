package opencode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/reading"
)

// The lines of a stream, made as small as the parser needs them.
const (
	startLine = `{"type":"step_start","sessionID":"s1","part":{"type":"step-start"}}`
	stopLine  = `{"type":"step_finish","sessionID":"s1","part":{"reason":"stop","tokens":{"total":171,"input":100,"output":40,"reasoning":4,"cache":{"write":7,"read":20}},"cost":0.25}}`
	bashLine  = `{"type":"tool_use","sessionID":"s1","part":{"type":"tool","tool":"bash","state":{"status":"completed","input":{"command":"go test"},"output":"<promise>COMPLETE</promise>","metadata":{"exit":3}}}}`
	writeLine = `{"type":"tool_use","sessionID":"s1","part":{"type":"tool","tool":"write","state":{"status":"completed","input":{"content":"x","filePath":"/r/a.go"},"output":"ok","metadata":{}}}}`
)

func says(text string) string {
	return fmt.Sprintf(`{"type":"text","sessionID":"s1","part":{"type":"text","text":%q}}`, text)
}

func ends(reason string) string {
	return fmt.Sprintf(`{"type":"step_finish","sessionID":"s1","part":{"reason":%q,"tokens":{"input":1,"output":1,"reasoning":0,"cache":{"read":0,"write":0}},"cost":0}}`, reason)
}

func trouble(name, data string) string {
	return fmt.Sprintf(`{"type":"error","sessionID":"s1","error":{"name":%q,"data":{%s}}}`, name, data)
}

func TestLineTypes(t *testing.T) {
	t.Parallel()
	const sub = `{"type":"text","sessionID":"s2","part":{"text":"<promise>COMPLETE</promise>"}}`
	for _, test := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"a run", []string{startLine, says("Hello."), stopLine}, "session text usage cost end=ok"},
		{"nothing at all", nil, "end=missing"},
		{"cut off in a step", []string{startLine, says(""), startLine}, "session text end=missing"},
		{"cut off between steps", []string{startLine, says("a"), bashLine, ends("tool-calls")}, "session text tool tool_end usage end=missing"},
		{"cut off after a tool", []string{startLine, says("a"), bashLine}, "session text tool tool_end end=missing"},
		{"an answer that was cut off", []string{startLine, says("a"), ends("length")}, "session text usage error end=failed"},
		{"an answer that was held back", []string{startLine, ends("content-filter")}, "session usage error end=failed"},
		{"a provider that gives no reason", []string{startLine, says("a"), ends("unknown")}, "session text usage end=ok"},
		{"no reason and no word", []string{startLine, ends("unknown")}, "session usage end=missing"},
		{"an error at the end", []string{startLine, trouble("APIError", `"message":"m"`)}, "session error end=failed"},
		{"an error that it got over", []string{trouble("APIError", `"message":"m"`), startLine, stopLine}, "session error usage cost end=ok"},
		{"what it thinks", []string{`{"type":"reasoning","sessionID":"s1","part":{"text":"hm"}}`, stopLine}, "session thinking usage cost end=ok"},
		{"a sub-agent's words", []string{startLine, says("a"), stopLine, sub}, "session text usage cost text end=ok"},
		{"what is new", []string{`{"type":"novelty","sessionID":"s1"}`, `{}`, stopLine}, "session unknown unknown usage cost end=ok"},
		{"what is no JSON", []string{"Warning: x", "", "[1]", `{"type":"step_finish"`, stopLine}, "unknown unknown unknown session usage cost end=ok"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			out, events := read(test.lines...)
			if got := reading.Kinds(events); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if strings.Contains(out.Message, "COMPLETE") {
				t.Errorf("message is %q", out.Message)
			}
		})
	}
}

// A step that died in words is not one that ended: what stands last is text.
func TestCutOffInWords(t *testing.T) {
	t.Parallel()
	if got, _ := read(startLine, says("I will")); got.Terminal != loop.TerminalMissing {
		t.Errorf("terminal is %q", got.Terminal)
	}
}

func TestUsageAndCost(t *testing.T) {
	t.Parallel()
	got, _ := read(startLine, bashLine, stopLine, startLine, says("x"), stopLine)
	want := agent.Usage{Input: 200, Output: 88, CacheRead: 40, CacheWrite: 14}
	if got.Usage != want || got.Cost != 500_000 || got.CostSource != agent.CostReported || got.Calls != 2 || got.Turns != 2 {
		t.Errorf("outcome is %+v", got)
	}
	// No price is no report.
	if got, _ := read(startLine, says("x"), ends("stop")); got.CostSource != agent.CostNone {
		t.Errorf("the cost of a model without a price is %q", got.CostSource)
	}
	for _, cost := range []string{"-1", "1e300", `"5"`, "null"} {
		if got, _ := read(strings.Replace(stopLine, "0.25", cost, 1)); got.Cost != 0 || got.CostSource != agent.CostNone {
			t.Errorf("a cost of %s is %d", cost, got.Cost)
		}
	}
}

func TestTools(t *testing.T) {
	t.Parallel()
	refused := strings.Replace(writeLine, `"completed"`, `"error"`, 1)
	got, events := read(startLine, says("First."), bashLine, writeLine, refused, ends("tool-calls"), startLine, says("Last."), stopLine)
	if got.Message != "Last." || got.Tools != 3 {
		t.Errorf("outcome is %+v", got)
	}
	var starts, ends []agent.Event
	for _, e := range events {
		switch e.Kind {
		case agent.ToolStart:
			starts = append(starts, e)
		case agent.ToolEnd:
			ends = append(ends, e)
		}
	}
	if starts[0].Tool != "bash" || starts[0].Command != "go test" || !ends[0].Failed {
		t.Errorf("the shell is %+v, %+v", starts[0], ends[0])
	}
	if starts[1].Tool != "write" || strings.Join(starts[1].Files, " ") != "/r/a.go" || ends[1].Failed || !ends[2].Failed {
		t.Errorf("the file is %+v, %+v, %+v", starts[1], ends[1], ends[2])
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	body := func(kind, code string) string {
		return fmt.Sprintf(`"responseBody":%q`, fmt.Sprintf(`{"error":{"type":%q,"code":%q,"message":"m"}}`, kind, code))
	}
	for _, test := range []struct {
		name, data string
		status     int
		kind       string
		class      failure.Class
		wait       time.Duration
	}{
		{"APIError", `"message":"bad key","statusCode":401,"isRetryable":false,` + body("authentication_error", "invalid_api_key"), 401, "authentication_error", failure.Auth, 0},
		{"APIError", `"message":"Slow down","statusCode":429,"responseHeaders":{"retry-after":"37"},` + body("rate_limit_error", "x"), 429, "rate_limit_error", failure.RateLimit, 37 * time.Second},
		{"APIError", `"message":"Slow down","statusCode":429,"responseHeaders":{"Retry-After-Ms":"1500"}`, 429, "APIError", failure.RateLimit, 1500 * time.Millisecond},
		{"APIError", `"message":"Slow down","statusCode":429,"responseHeaders":{"retry-after":"Mon, 02 Mar 2026 13:00:00 GMT"}`, 429, "APIError", failure.RateLimit, 3 * time.Hour},
		{"APIError", `"message":"Limit","statusCode":429,"responseHeaders":{"anthropic-ratelimit-unified-reset":"1772456400"}`, 429, "APIError", failure.RateLimit, 3 * time.Hour},
		{"APIError", `"message":"Please try again in 2s.","statusCode":429`, 429, "APIError", failure.RateLimit, 2 * time.Second},
		{"APIError", `"message":"out","statusCode":429,` + body("insufficient_quota", "insufficient_quota"), 429, "insufficient_quota", failure.QuotaExhausted, 0},
		{"APIError", `"message":"Overloaded","statusCode":529,` + body("overloaded_error", "overloaded"), 529, "overloaded_error", failure.ServiceUnavailable, 0},
		{"APIError", `"message":"no","statusCode":404,` + body("invalid_request_error", "model_not_found"), 404, "model_not_found", failure.Validation, 0},
		{"APIError", `"message":"Cannot connect","isRetryable":true`, 0, "connection_failed", failure.Network, 0},
		{"ContextOverflowError", `"message":"Your input exceeds the context window of this model."`, 0, "context_length_exceeded", failure.ContextLength, 0},
		{"ProviderAuthError", `"message":"log in"`, 0, "authentication_failed", failure.Auth, 0},
		{"NewError", `"message":"x","responseHeaders":{"retry-after":"-4"},"responseBody":"<html>"`, 0, "NewError", failure.Unknown, 0},
	} {
		t.Run(test.name+" "+test.kind, func(t *testing.T) {
			t.Parallel()
			got, _ := read(trouble(test.name, test.data))
			if got.Terminal != loop.TerminalFailed || len(got.Errors) != 1 {
				t.Fatalf("outcome is %+v", got)
			}
			if e := got.Errors[0]; e.Status != test.status || e.Type != test.kind || e.Message == "" {
				t.Errorf("error is %+v", e)
			}
			a := failure.Analyse(failure.Evidence{Source: "agent", Name: "opencode", ExitCode: 1, Errors: got.Errors, Now: now})
			if a.Class != test.class {
				t.Errorf("class is %s, want %s", a.Class, test.class)
			}
			if wait := a.WaitUntil.Sub(now); (test.wait == 0) != a.WaitUntil.IsZero() || (test.wait != 0 && wait != test.wait) {
				t.Errorf("wait until %v, want %v", a.WaitUntil, test.wait)
			}
		})
	}
}

func TestCutLine(t *testing.T) {
	t.Parallel()
	p, c := NewParser(), agent.NewCollector()
	p.Line([]byte(`{"type":"tool_use","part":{"state":{"output":"aaaa`), true, c.Add)
	p.Line([]byte(stopLine), false, c.Add)
	p.Close(c.Add)
	if got := c.Outcome(); got.Unknown != 1 || got.Terminal != loop.TerminalOK {
		t.Errorf("outcome is %+v", got)
	}
}

func read(lines ...string) (agent.Outcome, []agent.Event) { return reading.Run(NewParser(), lines...) }

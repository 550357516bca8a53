package codex

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/subscription"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/reading"
)

// The lines of a stream, made as small as the parser needs them.
const (
	threadLine = `{"type":"thread.started","thread_id":"t1"}`
	turnLine   = `{"type":"turn.started"}`
	okLine     = `{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":30,"cache_write_input_tokens":20,"output_tokens":40,"reasoning_output_tokens":4}}`
	shellLine  = `{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"go test ./...","aggregated_output":"","exit_code":null,"status":"in_progress"}}`
	shellEnd   = `{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"go test ./...","aggregated_output":"<promise>COMPLETE</promise>","exit_code":1,"status":"failed"}}`
	changeLine = `{"type":"item.completed","item":{"id":"i2","type":"file_change","changes":[{"path":"a.go","kind":"add"},{"path":"b.go","kind":"update"}],"status":"completed"}}`
)

func says(text string) string {
	return fmt.Sprintf(`{"type":"item.completed","item":{"id":"m","type":"agent_message","text":%q}}`, text)
}

func trouble(text string) string { return fmt.Sprintf(`{"type":"error","message":%q}`, text) }

func turnFailed(text string) string {
	return fmt.Sprintf(`{"type":"turn.failed","error":{"message":%q}}`, text)
}

func TestLineTypes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"a run", []string{threadLine, turnLine, says("Hello."), okLine}, "session text usage end=ok"},
		{"nothing at all", nil, "end=missing"},
		{"no end", []string{threadLine, turnLine, says("Hello.")}, "session text end=missing"},
		{"a second turn without an end", []string{turnLine, okLine, turnLine}, "usage end=ok end=missing"},
		{"a message after the end", []string{okLine, says("More.")}, "usage end=ok text end=missing"},
		{"a tool", []string{shellLine, shellEnd, okLine}, "tool tool_end usage end=ok"},
		{"a tool that is told when it is done", []string{changeLine, okLine}, "tool tool_end usage end=ok"},
		{"what it thinks", []string{`{"type":"item.completed","item":{"type":"reasoning","text":"hm"}}`, okLine}, "thinking usage end=ok"},
		{"its notices", []string{`{"type":"item.completed","item":{"type":"error","message":"Model metadata not found"}}`, `{"type":"item.updated","item":{"type":"todo_list"}}`, okLine}, "usage end=ok"},
		{"other tools", []string{`{"type":"item.started","item":{"id":"a","type":"mcp_tool_call","server":"s","tool":"t"}}`, `{"type":"item.started","item":{"id":"b","type":"web_search","query":"q"}}`, `{"type":"item.started","item":{"id":"c","type":"collab_tool_call","tool":"spawn_agent"}}`, okLine}, "tool tool tool usage end=ok"},
		{"what is new", []string{`{"type":"novelty"}`, `{"type":"item.completed","item":{"type":"novelty"}}`, `{}`, okLine}, "unknown unknown unknown usage end=ok"},
		{"what is no JSON", []string{"Warning: x", "", "[1]", `{"type":"turn.completed"`, okLine}, "unknown unknown unknown usage end=ok"},
		{"an error that ended nothing", []string{trouble("odd"), says("Hi."), okLine}, "error text usage end=ok"},
		{"an error and no more", []string{trouble("odd")}, "error end=missing"},
		{"an error that ends the turn", []string{trouble("odd"), turnFailed("odd")}, "error end=failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, events := read(test.lines...)
			if got := reading.Kinds(events); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	got, _ := read(threadLine, turnLine, says("Hello."), okLine)
	want := agent.Usage{Input: 50, Output: 40, CacheRead: 30, CacheWrite: 20}
	if got.Usage != want || got.CostSource != agent.CostNone || got.Session != "t1" {
		t.Errorf("outcome is %+v, want usage %+v", got, want)
	}
	// A thread's usage grows; the last one is the run's.
	got, _ = read(okLine, turnLine, strings.Replace(okLine, `"output_tokens":40`, `"output_tokens":50`, 1))
	if got.Usage.Output != 50 || got.Usage.Input != 50 {
		t.Errorf("usage after two turns is %+v", got.Usage)
	}
	got, _ = read(`{"type":"turn.completed","usage":{"input_tokens":5,"cached_input_tokens":9,"output_tokens":-3}}`)
	if got.Usage != (agent.Usage{CacheRead: 9}) {
		t.Errorf("usage is %+v", got.Usage)
	}
}

func TestTools(t *testing.T) {
	t.Parallel()
	got, events := read(turnLine, says("First."), shellLine, shellEnd, changeLine, says("Last."), okLine)
	if got.Message != "Last." || got.Tools != 2 || got.Calls != 3 || got.Turns != 3 {
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
	if starts[0].Tool != "shell" || starts[0].Command != "go test ./..." || !ends[0].Failed || ends[0].Tool != "shell" {
		t.Errorf("the shell is %+v, %+v", starts[0], ends[0])
	}
	if starts[1].Tool != "file_change" || strings.Join(starts[1].Files, " ") != "a.go b.go" || ends[1].Failed {
		t.Errorf("the change is %+v, %+v", starts[1], ends[1])
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.FixedZone("there", 2*3600))
	for _, test := range []struct {
		message string
		status  int
		kind    string
		class   failure.Class
		wait    time.Duration
		calls   int
	}{
		{"unexpected status 401 Unauthorized: bad key, url: http://h/v1", 401, "authentication_error", failure.Auth, 0, 1},
		{"unexpected status 529 <unknown status code>: Overloaded, url: http://h/v1", 529, "overloaded", failure.ServiceUnavailable, 0, 1},
		{"unexpected status 504 Gateway Timeout: x", 504, "", failure.ServiceUnavailable, 0, 1},
		{"unexpected status 400 Bad Request: x", 400, "", failure.Validation, 0, 1},
		{"exceeded retry limit, last status: 429 Too Many Requests", 429, "rate_limit", failure.RateLimit, 0, 1},
		{"You’ve hit your usage limit. Visit the settings or try again at 1:27 PM.", 0, "usage_limit_reached", failure.QuotaExhausted, 3*time.Hour + 28*time.Minute, 1},
		{"You've hit your usage limit. Try again in 2 hours 13 minutes.", 0, "usage_limit_reached", failure.QuotaExhausted, 2*time.Hour + 13*time.Minute, 1},
		{"You've hit your usage limit. Try again at Mar 4th, 2026 9:05 AM.", 0, "usage_limit_reached", failure.QuotaExhausted, 47*time.Hour + 6*time.Minute, 1},
		{"stream disconnected before completion: Rate limit reached for m. Please try again in 1.5s.", 0, "rate_limit", failure.RateLimit, 1500 * time.Millisecond, 1},
		{"stream disconnected before completion: stream closed", 0, "connection_error", failure.Network, 0, 1},
		{"Codex ran out of room in the model's context window.", 0, "context_length_exceeded", failure.ContextLength, 0, 1},
		{"stream disconnected before completion: Incomplete response returned, reason: max_output_tokens", 0, "max_output_tokens", failure.OutputLimit, 0, 1},
		{"Missing environment variable: `KEY`.", 0, missingKey, failure.Auth, 0, 0},
		{"model: m not found", 0, "model_not_found", failure.Validation, 0, 1},
		{"request timed out", 0, "timeout", failure.Timeout, 0, 1},
	} {
		t.Run(test.message, func(t *testing.T) {
			t.Parallel()
			got, _ := read(threadLine, turnLine, trouble(test.message), turnFailed(test.message))
			if got.Terminal != loop.TerminalFailed || len(got.Errors) != 1 || got.Calls != test.calls {
				t.Fatalf("outcome is %+v", got)
			}
			e := got.Errors[0]
			if e.Status != test.status || e.Type != test.kind || e.Message != test.message {
				t.Errorf("error is %+v", e)
			}
			a := failure.Analyse(failure.Evidence{Source: "agent", Name: "codex", ExitCode: 1, Errors: got.Errors, Now: now})
			if a.Class != test.class {
				t.Errorf("class is %s, want %s", a.Class, test.class)
			}
			if wait := a.WaitUntil.Sub(now); (test.wait == 0) != a.WaitUntil.IsZero() || (test.wait != 0 && wait != test.wait) {
				t.Errorf("wait until %v, want %v", a.WaitUntil, test.wait)
			}
		})
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	lines := []string{threadLine, turnLine,
		trouble("Reconnecting... 1/5 (unexpected status 529 <unknown>: Overloaded, url: u)"),
		trouble("Reconnecting... 2/5 (unexpected status 529 <unknown>: Overloaded, url: u)"),
		trouble("Reconnecting... waiting for network (Connection failed: error sending request)")}
	got, events := read(lines...)
	if got.Retries != 3 || got.Calls != 3 || len(got.Errors) != 1 || got.Errors[0].Type != "connection_error" {
		t.Errorf("outcome is %+v", got)
	}
	if events[2].Attempt != 2 || events[2].Error.Status != 529 || events[3].Attempt != 0 {
		t.Errorf("retries are %+v, %+v", events[2], events[3])
	}
	// What worked after a retry is no evidence.
	got, _ = read(append(lines, says("Hello."), okLine)...)
	if len(got.Errors) != 0 || got.Terminal != loop.TerminalOK || got.Calls != 4 {
		t.Errorf("outcome is %+v", got)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{
		"last status: 429 Too Many": 429, "status 503": 503, "status": 0, "status 12": 0, "status 4290": 0, "status 4x9 status 404": 404,
		"exit status 1": 0, "status 200": 0, "": 0,
	} {
		if got := agent.StatusIn(in); got != want {
			t.Errorf("%q is %d, want %d", in, got, want)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	p, c := NewParser(), agent.NewCollector()
	for i := range 1000 {
		long := 30
		if i == 0 {
			long = agent.CommandCap
		}
		p.Line(fmt.Appendf(nil, `{"type":"item.started","item":{"id":"%d%s","type":"command_execution","command":%q}}`, i, strings.Repeat("i", 300), strings.Repeat("ä", long)), false, func(e agent.Event) {
			if e = e.Bounded(); len(e.Command) > agent.CommandCap {
				t.Fatalf("a command has %d bytes", len(e.Command))
			}
			c.Add(e)
		})
	}
	p.Line([]byte(`{"type":"item.completed","item":{"id":"x","aggregated_output":"aaaa`), true, c.Add)
	p.Line([]byte(okLine), false, c.Add)
	p.Close(c.Add)
	if got := c.Outcome(); got.Tools != 1000 || got.Unknown != 1 || got.Terminal != loop.TerminalOK {
		t.Errorf("outcome is %+v", got)
	}
}

func read(lines ...string) (agent.Outcome, []agent.Event) { return reading.Run(NewParser(), lines...) }

// The session's file tells what was used so far, before the stream does.
func TestRecord(t *testing.T) {
	t.Parallel()
	var got []agent.Event
	p := NewParser()
	for _, line := range []string{
		`{"timestamp":"2026-11-23T10:00:00Z","type":"session_meta","payload":{"id":"t1"}}`,
		`{"type":"event_msg","payload":{"type":"agent_message","message":"hello"}}`,
		`{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":100,"cached_input_tokens":30,"output_tokens":40,` +
			`"reasoning_output_tokens":4,"total_tokens":140},"last_token_usage":{"input_tokens":7}},"rate_limits":{"primary":{"used_percent":82.5,"window_minutes":300,` +
			`"resets_at":1795182691},"secondary":{"used_percent":9,"window_minutes":10080,"resets_at":1795582691}}}}`,
		`{"type":"event_msg","payload":{"type":"token_count","info":null}}`,
		`rubbish`, `{"type":`, ``, `{"type":"event_msg","payload":7}`,
	} {
		p.Record([]byte(line), func(e agent.Event) { got = append(got, e) })
	}
	c := agent.NewCollector()
	for _, e := range got {
		c.Add(e)
	}
	plan := []subscription.Window{
		{Name: "5_hours", Used: 82, Resets: time.Unix(1795182691, 0).UTC()}, {Name: "168_hours", Used: 9, Resets: time.Unix(1795582691, 0).UTC()},
	}
	if got := c.Outcome().Plan; !slices.Equal(got, plan) {
		t.Errorf("the plan is %+v", got)
	}
	if u := c.Outcome().Usage; u != (agent.Usage{Input: 70, Output: 40, CacheRead: 30}) {
		t.Errorf("events are %+v, the sum is %+v", got, u)
	}
}

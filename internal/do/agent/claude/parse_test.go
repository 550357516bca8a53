package claude

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/reading"
)

// The lines of a stream, made as small as the parser needs them.
const (
	initLine = `{"type":"system","subtype":"init","session_id":"s1","model":"claude-sonnet-4-5","tools":["Bash"]}`
	okLine   = `{"is_error":false,"subtype":"success","num_turns":1,"total_cost_usd":0.5,"usage":{"input_tokens":10,"output_tokens":20},"result":"The end.","type":"result"}`
)

func says(id, block string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"model":"claude-sonnet-4-5","content":[%s],`+
		`"usage":{"input_tokens":10,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":1}},"parent_tool_use_id":null}`, id, block)
}

func text(s string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, s) }

func TestLineTypes(t *testing.T) {
	t.Parallel()
	const bash = `{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"go test","description":"d"}}`
	for _, test := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"a run", []string{initLine, says("m1", text("Hello.")), okLine}, "session usage text usage usage cost end=ok"},
		{"no result", []string{initLine, says("m1", text("Hello."))}, "session usage text usage end=missing"},
		{"nothing at all", nil, "end=missing"},
		{"a message after the result", []string{okLine, says("m1", text("More."))}, "usage cost usage end=ok usage text usage end=missing"},
		{"a tool", []string{says("m1", bash), `{"type":"user","message":{"content":[{"tool_use_id":"t1","type":"tool_result","content":"<promise>COMPLETE</promise>","is_error":true}]}}`, okLine},
			"usage tool usage tool_end usage cost end=ok"},
		{"what the program tells the model", []string{`{"type":"user","message":{"content":"<promise>COMPLETE</promise>"}}`, `{"type":"user","message":{"content":[{"type":"text","text":"x"}]}}`, okLine},
			"usage cost usage end=ok"},
		{"notices", []string{`{"type":"system","subtype":"status"}`, `{"type":"system","subtype":"permission_denied","tool_name":"Bash"}`, okLine}, "usage cost usage end=ok"},
		{"another model", []string{`{"type":"system","subtype":"model_fallback","fallback_model":"claude-haiku-4-5"}`, okLine}, "session usage cost usage end=ok"},
		{"what is new", []string{`{"type":"novelty"}`, `{"type":"system","subtype":"novelty"}`, says("m1", `{"type":"novelty"}`), `{}`, okLine},
			"unknown unknown usage unknown unknown usage cost end=ok"},
		{"what is no JSON", []string{"Warning: x", "", "[1]", `{"type":"assistant"`, okLine}, "unknown unknown unknown usage cost usage end=ok"},
		{"a limit that is allowed", []string{`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1795182691}}`, okLine}, "usage cost usage end=ok"},
		{"a limit with paid overage", []string{`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","isUsingOverage":true}}`, okLine}, "usage cost usage end=ok"},
		{"thoughts", []string{says("m1", `{"type":"thinking","thinking":"hm"}`), okLine}, "usage thinking usage usage cost end=ok"},
		{"an error that it got over", []string{`{"type":"assistant","error":"max_output_tokens","message":{"id":"e","model":"<synthetic>","content":[]}}`, says("m1", text("Hi.")), okLine},
			"error usage text usage usage cost end=ok"},
		{"an error without a result", []string{`{"type":"assistant","error":"rate_limit","message":{"content":[]}}`}, "error end=missing"},
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

func TestUsagePerMessage(t *testing.T) {
	t.Parallel()
	lines := []string{initLine, says("m1", text("12345678")), says("m1", `{"type":"tool_use","id":"t","name":"Write","input":{"file_path":"/a"}}`)}
	c, _ := read(lines...)
	got := c
	// The input of one message counts once; output is estimated.
	if got.Usage.Input != 10 || got.Usage.CacheRead != 3 || got.Usage.CacheWrite != 2 || got.Usage.Output < 5 || got.Calls != 1 || got.Turns != 1 {
		t.Errorf("usage %+v, calls %d, turns %d", got.Usage, got.Calls, got.Turns)
	}
	c, _ = read(append(lines, okLine)...)
	if got := c; got.Usage.Output != 20 || got.Cost != 500_000 || got.CostSource != agent.CostReported {
		t.Errorf("after the result: %+v", got)
	}
}

func TestUsageOfTheAPIItself(t *testing.T) {
	t.Parallel()
	c, _ := read(initLine,
		`{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1","usage":{"input_tokens":10}}}}`,
		`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}}`,
		says("m1", text(strings.Repeat("long ", 100))),
		`{"type":"stream_event","event":{"type":"message_delta","usage":{"output_tokens":7}}}`)
	if got := c; got.Usage.Input != 10 || got.Usage.Output != 7 || got.Calls != 1 {
		t.Errorf("usage %+v, calls %d", got.Usage, got.Calls)
	}
}

func TestSubAgents(t *testing.T) {
	t.Parallel()
	const sub = `{"type":"assistant","parent_tool_use_id":"t1","message":{"id":"m2","content":[{"type":"text","text":"<promise>COMPLETE</promise>"}],"usage":{"input_tokens":5}}}`
	c, _ := read(initLine, says("m1", text("My word.")), sub)
	if got := c; got.Message != "My word." || got.Calls != 2 || got.Turns != 1 {
		t.Errorf("message %q, calls %d, turns %d", got.Message, got.Calls, got.Turns)
	}
}

func TestTools(t *testing.T) {
	t.Parallel()
	_, events := read(
		says("m1", `{"type":"tool_use","id":"t1","name":"Edit","input":{"file_path":"/r/a.go","old_string":"x","command":"sh"}}`),
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true}]}}`)
	var start, end agent.Event
	for _, e := range events {
		if e.Kind == agent.ToolStart {
			start = e
		}
		if e.Kind == agent.ToolEnd {
			end = e
		}
	}
	if start.Tool != "Edit" || len(start.Files) != 1 || start.Files[0] != "/r/a.go" || start.Command != "sh" {
		t.Errorf("start is %+v", start)
	}
	if end.Tool != "Edit" || !end.Failed {
		t.Errorf("end is %+v", end)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	const limit = `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795182691,"rateLimitType":"five_hour"}}`
	apology := func(word, status, text string) string {
		return fmt.Sprintf(`{"type":"assistant","error":%q,"api_error_status":%s,"message":{"id":"x","model":"<synthetic>","content":[{"type":"text","text":%q}]}}`, word, status, text)
	}
	result := func(rest string) string { return `{"type":"result","is_error":true,` + rest + `}` }
	for _, test := range []struct {
		name   string
		lines  []string
		status int
		kind   string
		text   string
		reset  int64
		calls  int
	}{
		{"bad key", []string{apology("authentication_failed", "401", "Invalid API key"), result(`"subtype":"success","api_error_status":401,"result":"Invalid API key"`)}, 401, "authentication_failed", "Invalid API key", 0, 1},
		{"the status comes with the result", []string{apology("rate_limit", "null", "Slow down"), result(`"subtype":"success","api_error_status":429,"result":"Slow down"`)}, 429, "rate_limit", "Slow down", 0, 1},
		{"a limit with its reset", []string{limit, apology("rate_limit", "429", "limit"), result(`"subtype":"success","api_error_status":429,"result":"limit"`)}, 429, "rate_limit", "limit", 1795182691, 1},
		{"only a status", []string{result(`"subtype":"success","api_error_status":429,"result":"limit"`)}, 429, "rate_limit", "limit", 0, 1},
		{"budget", []string{result(`"subtype":"error_max_budget_usd","errors":["Reached maximum budget ($1)"]`)}, 0, "error_max_budget_usd", "Reached maximum budget ($1)", 0, 0},
		{"turns", []string{`{"type":"result","is_error":false,"subtype":"error_max_turns","errors":["3"]}`}, 0, "error_max_turns", "3", 0, 0},
		{"context", []string{apology("invalid_request", "400", "Prompt is too long"), result(`"subtype":"success","api_error_status":400,"terminal_reason":"prompt_too_long","result":"x"`)}, 400, "prompt_too_long", "Prompt is too long", 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c, _ := read(test.lines...)
			got := c
			if got.Terminal != loop.TerminalFailed || len(got.Errors) == 0 {
				t.Fatalf("outcome is %+v", got)
			}
			e := got.Errors[len(got.Errors)-1]
			if e.Status != test.status || e.Type != test.kind || e.Message != test.text || got.Calls != test.calls {
				t.Errorf("error %+v, calls %d", e, got.Calls)
			}
			if test.reset != 0 && e.ResetAt.Unix() != test.reset || test.reset == 0 && !e.ResetAt.IsZero() {
				t.Errorf("reset at %v, want %d", e.ResetAt, test.reset)
			}
		})
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	const retry = `{"type":"system","subtype":"api_retry","attempt":1,"max_retries":2,"retry_delay_ms":561.2,"error_status":529,"error":"overloaded"}`
	c, _ := read(initLine, retry, retry)
	got := c
	if got.Retries != 2 || got.Calls != 2 || len(got.Errors) != 1 || got.Errors[0].Status != 529 || got.Errors[0].Type != "overloaded" {
		t.Errorf("outcome is %+v", got)
	}
}

func TestAbsurdNumbers(t *testing.T) {
	t.Parallel()
	c, _ := read(`{"type":"result","subtype":"success","total_cost_usd":-5,"num_turns":-7,"usage":{"input_tokens":-1,"output_tokens":1e300},"modelUsage":{"m":{"inputTokens":"9"}}}`)
	if got := c; got.Usage != (agent.Usage{}) || got.Cost != 0 || got.CostSource != agent.CostNone || got.Turns != 0 {
		t.Errorf("outcome is %+v", got)
	}
}

func TestCutLine(t *testing.T) {
	t.Parallel()
	p, c := NewParser(), agent.NewCollector()
	p.Line([]byte(`{"type":"assistant","message":{"content":[{"type":"text","text":"aaaa`), true, c.Add)
	p.Line([]byte(okLine), false, c.Add)
	p.Close(c.Add)
	if got := c.Outcome(); got.Message != "The end." || got.Unknown != 1 || got.Terminal != loop.TerminalOK {
		t.Errorf("outcome is %+v", got)
	}
}

func read(lines ...string) (agent.Outcome, []agent.Event) { return reading.Run(NewParser(), lines...) }

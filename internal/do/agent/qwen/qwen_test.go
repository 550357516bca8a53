package qwen

import (
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/reading"
)

func read(lines ...string) agent.Outcome {
	got, _ := reading.Run(NewParser(), lines...)
	return got
}

const (
	refusal = `{"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"[API Error: 429 Rate limit reached]"}],"usage":{"input_tokens":0,"output_tokens":0}}}`
	failing = `{"type":"result","subtype":"error_during_execution","is_error":true,"error":{"message":"[API Error: 429 Rate limit reached]"}}`
	told    = `{"type":"result","subtype":"success","is_error":false,"result":"[API Error: 429 Rate limit reached]","usage":{"input_tokens":9,"output_tokens":1}}`
)

// What only the text tells apart from the model's own words is an error when
// the run fails, and words when it does not.
func TestApology(t *testing.T) {
	t.Parallel()
	got := read(refusal, failing)
	if got.Terminal != loop.TerminalFailed || len(got.Errors) != 1 || got.Errors[0].Status != 429 || got.Errors[0].Type != "rate_limit" || got.Calls != 1 {
		t.Errorf("a failure is %+v", got)
	}
	got = read(refusal, told)
	if got.Terminal != loop.TerminalOK || len(got.Errors) != 0 || got.Message == "" {
		t.Errorf("words about an error are %+v", got)
	}
	for _, text := range []string{"", "[API Error: ", "API Error: 429]", "see [API Error: 429 x]", "[API Error: 429 x] and more"} {
		if err := readApology(text); err != nil {
			t.Errorf("%q is taken for the program's: %+v", text, err)
		}
	}
}

func TestUsagePerCall(t *testing.T) {
	t.Parallel()
	got := read(
		`{"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"I write."}],"usage":{"input_tokens":0,"output_tokens":0}}}`,
		`{"type":"assistant","message":{"id":"2","content":[{"type":"tool_use","id":"t","name":"write_file","input":{"file_path":"/a"}}],"usage":{"input_tokens":1200,"output_tokens":40,"cache_read_input_tokens":300}}}`)
	if want := (agent.Usage{Input: 900, Output: 40, CacheRead: 300}); got.Usage != want || got.Calls != 1 || got.Turns != 1 {
		t.Errorf("usage %+v, calls %d, turns %d", got.Usage, got.Calls, got.Turns)
	}
}

// An announced retry and the one that is made are one.
func TestRetries(t *testing.T) {
	t.Parallel()
	const wait, again = `{"type":"system","subtype":"retry","data":{"attempt":1,"delayMs":60000}}`, `{"type":"system","subtype":"retry","data":{"reason":"retry"}}`
	got := read(wait)
	if got.Retries != 1 || got.Calls != 0 || len(got.Errors) != 1 || got.Errors[0].RetryAfter != time.Minute {
		t.Errorf("an announcement is %+v", got)
	}
	if got = read(wait, again); got.Retries != 1 || got.Calls != 1 {
		t.Errorf("a retry that was announced is %+v", got)
	}
	if got = read(again, again); got.Retries != 2 || got.Calls != 2 {
		t.Errorf("two retries are %+v", got)
	}
}

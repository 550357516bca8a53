package cline

import (
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/reading"
)

func event(rest string) string { return `{"type":"agent_event","event":{` + rest + `}}` }

// run is a whole run, in lines as small as the parser needs them.
var run = []string{
	`{"type":"hook_event","hookEventName":"agent_start","taskId":"s1","parentAgentId":null}`,
	event(`"type":"iteration_start","iteration":1`),
	event(`"type":"content_start","contentType":"text","text":"I test.","accumulated":"I test."`),
	event(`"type":"usage","inputTokens":120,"outputTokens":4,"cacheReadTokens":30,"totalCost":0.001`),
	event(`"type":"content_end","contentType":"text","text":"I test."`),
	event(`"type":"content_end","contentType":"reasoning","reasoning":"hm"`),
	event(`"type":"content_start","contentType":"tool","toolName":"run_commands","input":{"commands":["go vet","go test"]}`),
	event(`"type":"content_update","contentType":"tool","update":{"chunk":"<promise>COMPLETE</promise>"}`),
	event(`"type":"content_end","contentType":"tool","toolName":"run_commands","output":[{"success":true},{"success":false}]`),
	event(`"type":"error","error":{"name":"Error","message":"1 tool call(s) failed"}`),
	event(`"type":"iteration_start","iteration":2`),
	event(`"type":"content_start","contentType":"text","text":"Done.\n<pr"`),
	event(`"type":"content_start","contentType":"text","text":"omise>COMPLETE</promise>"`),
	event(`"type":"content_end","contentType":"text","text":"Done.\n<promise>COMPLETE</promise>"`),
	event(`"type":"done","reason":"completed"`),
	`{"type":"run_result","finishReason":"completed","usage":{"inputTokens":1},"aggregateUsage":{"inputTokens":250,"outputTokens":6,"cacheReadTokens":60,"totalCost":0.0025},"text":"Done.\n<promise>COMPLETE</promise>","model":{"id":"m"}}`,
}

func TestRun(t *testing.T) {
	t.Parallel()
	const said = "Done.\n<promise>COMPLETE</promise>"
	got, events := read(run...)
	if got.Message != said || got.Terminal != loop.TerminalOK || got.Session != "s1" || got.Model != "m" || got.Unknown != 0 || len(got.Errors) != 0 {
		t.Errorf("outcome is %+v", got)
	}
	if want := (agent.Usage{Input: 190, Output: 6, CacheRead: 60}); got.Usage != want || got.Calls != 2 || got.Turns != 2 || got.Cost != 2500 {
		t.Errorf("outcome is %+v", got)
	}
	if want := "> run_commands go vet\ngo test ; < run_commands true"; reading.Tools(events) != want {
		t.Errorf("tools are %s", reading.Tools(events))
	}
	if got, _ := read(run[:13]...); got.Message != said || got.Terminal != loop.TerminalMissing || got.Usage.Input != 90 {
		t.Errorf("cut off: %+v", got)
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	refused := event(`"type":"error","error":{"message":"The usage limit has been reached"},"errorClass":"unknown","recoverable":false`)
	end := func(reason string) string {
		return fmt.Sprintf(`{"type":"run_result","finishReason":%q,"text":"words"}`, reason)
	}
	const aborted = `{"type":"run_aborted","reason":"local_abort"}`
	for _, test := range []struct {
		name     string
		lines    []string
		terminal loop.Terminal
		kind     string
	}{
		{"an error", []string{refused, end("error")}, loop.TerminalFailed, "usage_limit_reached"},
		{"an error without a reason", []string{end("error")}, loop.TerminalFailed, "error"},
		{"an error and no result", []string{refused}, loop.TerminalMissing, "usage_limit_reached"},
		{"an error that it got over", []string{refused, run[10], end("completed")}, loop.TerminalOK, ""},
		{"aborted", []string{end("aborted")}, loop.TerminalFailed, "aborted"},
		{"aborted after it completed", []string{end("completed"), aborted}, loop.TerminalFailed, "aborted"},
		{"an end of a new kind", []string{end("novelty")}, loop.TerminalFailed, "novelty"},
	} {
		got, _ := read(test.lines...)
		kind := ""
		if n := len(got.Errors); n > 0 {
			kind = got.Errors[n-1].Type
		}
		if got.Terminal != test.terminal || kind != test.kind {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

func TestAbsurdNumbers(t *testing.T) {
	t.Parallel()
	got, _ := read(event(`"type":"usage","inputTokens":-5,"outputTokens":1e300,"cacheReadTokens":"9","totalCost":-1`), event(`"type":"usage","inputTokens":10,"cacheReadTokens":30,"totalCost":1e12`))
	if got.Usage != (agent.Usage{CacheRead: 30}) || got.Cost != 0 || got.CostSource != agent.CostNone {
		t.Errorf("outcome is %+v", got)
	}
}

func read(lines ...string) (agent.Outcome, []agent.Event) { return reading.Run(NewParser(), lines...) }

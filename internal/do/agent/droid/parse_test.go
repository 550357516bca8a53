package droid

import (
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/reading"
)

// run is a whole run, in lines as small as the parser needs them.
var run = []string{
	`{"type":"system","subtype":"init","session_id":"s1","model":"m"}`,
	`{"type":"message","role":"user","id":"0","text":"Say <promise>COMPLETE</promise>"}`,
	`{"type":"reasoning","id":"1","text":"hm"}`,
	`{"type":"message","role":"assistant","id":"1","text":"I write."}`,
	`{"type":"tool_call","id":"c1","messageId":"1","toolName":"Create","parameters":{"file_path":"/a","content":"x"}}`,
	`{"type":"tool_result","id":"c1","messageId":"r1","toolId":"Create","isError":false,"value":"<promise>COMPLETE</promise>"}`,
	`{"type":"tool_call","id":"c2","messageId":"2","toolName":"Execute","parameters":{"command":"go test"}}`,
	`{"type":"tool_result","id":"c2","messageId":"r2","toolId":"Execute","isError":true,"error":{"message":"no"}}`,
	`{"type":"message","role":"assistant","id":"3","text":"Done."}`,
	`{"type":"completion","finalText":"Done.","numTurns":3,"usage":{"input_tokens":70,"output_tokens":5,"cache_read_input_tokens":30,"factory_credits":9}}`,
}

func TestRun(t *testing.T) {
	t.Parallel()
	got, events := read(run...)
	if got.Message != "Done." || got.Terminal != loop.TerminalOK || got.Session != "s1" || got.Model != "m" || got.Unknown != 0 {
		t.Errorf("outcome is %+v", got)
	}
	if want := (agent.Usage{Input: 70, Output: 5, CacheRead: 30}); got.Usage != want || got.Calls != 3 || got.Turns != 3 || got.CostSource != agent.CostNone {
		t.Errorf("outcome is %+v", got)
	}
	if want := "> Create  /a; < Create false; > Execute go test ; < Execute true"; reading.Tools(events) != want {
		t.Errorf("tools are %s", reading.Tools(events))
	}
	if got, _ := read(run[:9]...); got.Message != "Done." || got.Terminal != loop.TerminalMissing {
		t.Errorf("cut off: %+v", got)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	const reason, end = `{"type":"error","source":"agent_loop","message":"429 The usage limit has been reached"}`, `{"type":"error","source":"cli","message":"Exec failed"}`
	for _, test := range []struct {
		name     string
		lines    []string
		terminal loop.Terminal
		errors   int
		status   int
	}{
		{"a reason and the end", []string{reason, end}, loop.TerminalFailed, 1, 429},
		{"only a reason", []string{reason}, loop.TerminalFailed, 1, 429},
		{"only the end", []string{end}, loop.TerminalFailed, 1, 0},
		{"it went on", []string{reason, run[3]}, loop.TerminalMissing, 1, 429},
		{"it went on, and well", []string{reason, run[8], run[9]}, loop.TerminalOK, 1, 429},
		{"without a word", []string{`{"type":"error","source":"cli"}`}, loop.TerminalFailed, 1, 0},
	} {
		got, _ := read(test.lines...)
		if got.Terminal != test.terminal || len(got.Errors) != test.errors || got.Errors[0].Status != test.status || got.Errors[0].Message == "" {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

// Each answer is a model call, so that a limit on calls ends a program that
// asks its model without end.
func TestEndlessLoop(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 50 {
		lines = append(lines, fmt.Sprintf(`{"type":"message","role":"assistant","id":"m%d","text":"again"}`, i))
	}
	if got, _ := read(lines...); got.Calls != 50 || got.Turns != 50 {
		t.Errorf("calls %d, turns %d", got.Calls, got.Turns)
	}
}

func read(lines ...string) (agent.Outcome, []agent.Event) { return reading.Run(NewParser(), lines...) }

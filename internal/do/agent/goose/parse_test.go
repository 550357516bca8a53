package goose

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/reading"
)

func message(role, id, content string) string {
	return fmt.Sprintf(`{"type":"message","message":{"id":%q,"role":%q,"created":1,"content":[%s]}}`, id, role, content)
}

// run is a whole run, in lines as small as the parser needs them.
var run = []string{
	message("user", "0", `{"type":"text","text":"<promise>COMPLETE</promise>"}`),
	message("assistant", "1", `{"type":"text","text":"I te"}`),
	message("assistant", "1", `{"type":"text","text":"st."},{"type":"toolRequest","id":"t","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"go test"}}}}`),
	message("user", "2", `{"type":"toolResponse","id":"t","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"<promise>COMPLETE</promise> \"isError\":true"}],"isError":false}}}`),
	`{"type":"notification","extension_id":"x","log":{"message":"<promise>COMPLETE</promise>"}}`,
	message("assistant", "3", `{"type":"thinking","thinking":"hm"},{"type":"text","text":"Done.\n<pr"}`),
	message("assistant", "3", `{"type":"text","text":"omise>COMPLETE</promise>"}`),
	`{"type":"complete","total_tokens":106,"input_tokens":100,"output_tokens":6,"cache_read_input_tokens":60,"cost_usd":0.0025}`,
}

func TestRun(t *testing.T) {
	t.Parallel()
	const said = "Done.\n<promise>COMPLETE</promise>"
	got, events := read(run...)
	if got.Message != said || got.Terminal != loop.TerminalOK || got.Unknown != 0 || len(got.Errors) != 0 {
		t.Errorf("outcome is %+v", got)
	}
	if want := (agent.Usage{Input: 40, Output: 6, CacheRead: 60}); got.Usage != want || got.Calls != 2 || got.Turns != 2 || got.Cost != 2500 || got.CostSource != agent.CostReported {
		t.Errorf("outcome is %+v", got)
	}
	if want := "> developer__shell go test ; < developer__shell false"; reading.Tools(events) != want {
		t.Errorf("tools are %s", reading.Tools(events))
	}
	if got, _ := read(run[:7]...); got.Message != said || got.Terminal != loop.TerminalMissing {
		t.Errorf("cut off: %+v", got)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	const problem, end = `{"type":"error","error":"Rate limit exceeded: status 429"}`, `{"type":"complete","total_tokens":null}`
	for _, test := range []struct {
		name     string
		lines    []string
		terminal loop.Terminal
		status   int
	}{
		{"an error", []string{problem, end}, loop.TerminalFailed, 429},
		{"an error and no end", []string{problem}, loop.TerminalMissing, 429},
		{"it went on", []string{problem, run[6], end}, loop.TerminalOK, 429},
		{"nothing wrong", []string{run[6], end}, loop.TerminalOK, 0},
	} {
		got, _ := read(test.lines...)
		status := 0
		if len(got.Errors) > 0 {
			status = got.Errors[0].Status
		}
		if got.Terminal != test.terminal || status != test.status {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
	for _, result := range []string{`{"status":"error","error":"no"}`, `{"status":"success","value":{"content":[],"isError":true}}`} {
		_, events := read(run[2], message("user", "2", `{"type":"toolResponse","id":"t","toolResult":`+result+`}`))
		if !strings.HasSuffix(reading.Tools(events), "< developer__shell true") {
			t.Errorf("%s: tools are %s", result, reading.Tools(events))
		}
	}
}

func read(lines ...string) (agent.Outcome, []agent.Event) { return reading.Run(NewParser(), lines...) }

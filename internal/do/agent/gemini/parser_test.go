package gemini

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
	initLine   = `{"type":"init","session_id":"s1","model":"gemini-2.5-flash"}`
	echoLine   = `{"type":"message","role":"user","content":"Say <promise>COMPLETE</promise> at the end."}`
	okLine     = `{"type":"result","status":"success","stats":{"total_tokens":145,"input_tokens":100,"output_tokens":40,"cached":30,"input":70,"tool_calls":1,"models":{"gemini-2.5-pro":{"total_tokens":145}}}}`
	shellLine  = `{"type":"tool_use","tool_name":"run_shell_command","tool_id":"c1","parameters":{"command":"go test"}}`
	shellEnd   = `{"type":"tool_result","tool_id":"c1","status":"error","output":"<promise>COMPLETE</promise>"}`
	writeLine  = `{"type":"tool_use","tool_name":"write_file","tool_id":"c2","parameters":{"content":"x","file_path":"/r/a.go"}}`
	writeEnd   = `{"type":"tool_result","tool_id":"c2","status":"success"}`
	loopedLine = `{"type":"error","severity":"warning","message":"Loop detected, stopping execution"}`
)

func piece(text string) string {
	return fmt.Sprintf(`{"type":"message","role":"assistant","content":%q,"delta":true}`, text)
}

func failed(kind, message string) string {
	return fmt.Sprintf(`{"type":"result","status":"error","error":{"type":%q,"message":%q},"stats":{"total_tokens":0}}`, kind, message)
}

func TestLineTypes(t *testing.T) {
	t.Parallel()
	const ok = "usage session end=ok"
	for _, test := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"a run", []string{initLine, echoLine, piece("Hel"), piece("lo."), okLine}, "session text " + ok},
		{"nothing at all", nil, "end=missing"},
		{"no result", []string{initLine, echoLine, piece("Hello.")}, "session text end=missing"},
		{"a message after the result", []string{okLine, piece("More.")}, ok + " text end=missing"},
		{"a tool after the result", []string{okLine, shellLine}, ok + " tool end=missing"},
		{"tools", []string{piece("a"), shellLine, writeLine, shellEnd, writeEnd, piece("b"), okLine}, "text tool tool tool_end tool_end text " + ok},
		{"whole messages", []string{`{"type":"message","role":"assistant","content":"a"}`, `{"type":"message","role":"assistant","content":"b"}`, okLine}, "text text " + ok},
		{"a loop that it detected", []string{initLine, loopedLine, okLine}, "session usage session error end=failed"},
		{"a loop without a result", []string{loopedLine}, "error end=missing"},
		{"an error and success", []string{`{"type":"error","severity":"error","message":"Maximum session turns exceeded"}`, okLine}, "usage session error end=failed"},
		{"another warning", []string{`{"type":"error","severity":"warning","message":"Agent execution blocked: x"}`, okLine}, "unknown " + ok},
		{"an error", []string{initLine, failed("unknown", "x")}, "session usage error end=failed"},
		{"an error without a word", []string{`{"type":"result","status":"error"}`}, "usage error end=failed"},
		{"what is new", []string{`{"type":"novelty"}`, `{}`, okLine}, "unknown unknown " + ok},
		{"what is no JSON", []string{"Warning: x", "", "[1]", `{"type":"result"`, okLine}, "unknown unknown unknown " + ok},
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

// A signal that is split over pieces is whole, and the echo's is none.
func TestMessage(t *testing.T) {
	t.Parallel()
	const sign = "<promise>COMPLETE</promise>"
	for _, test := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"split", []string{echoLine, piece("Done.\n<pr"), piece("omise>COMPLETE</promise>"), okLine}, "Done.\n" + sign},
		{"split, with noise between", []string{piece("Done.\n<pr"), "Warning: x", `{"type":"novelty"}`, piece("omise>COMPLETE</promise>"), okLine}, "Done.\n" + sign},
		{"after a tool", []string{piece("First."), shellLine, shellEnd, piece("La"), piece("st."), okLine}, "Last."},
		{"only an echo", []string{echoLine, okLine}, ""},
		{"only in a tool's output", []string{shellLine, shellEnd, okLine}, ""},
		{"an echo between pieces", []string{piece("a"), echoLine, piece("b"), okLine}, "a\nb"},
		{"cut off", []string{piece("a"), piece("b")}, "ab"},
	} {
		if got, _ := read(test.lines...); got.Message != test.want {
			t.Errorf("%s: message is %q, want %q", test.name, got.Message, test.want)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	got, _ := read(initLine, piece("x"), okLine)
	want := agent.Usage{Input: 70, Output: 45, CacheRead: 30} // with the 5 tokens of thoughts
	if got.Usage != want || got.CostSource != agent.CostNone || got.Model != "gemini-2.5-pro" || got.Session != "s1" {
		t.Errorf("outcome is %+v, want usage %+v", got, want)
	}
	c, p := agent.NewCollector(), NewParser()
	c.SetPrices(agent.Prices{"gemini-2.5-pro": {Input: 1_000_000, Output: 2_000_000}})
	p.Line([]byte(initLine), false, c.Add)
	p.Line([]byte(okLine), false, c.Add)
	if got := c.Outcome(); got.Cost != 70+90 || got.CostSource != agent.CostEstimated {
		t.Errorf("cost is %d, %s", got.Cost, got.CostSource)
	}
	got, _ = read(`{"type":"result","status":"success","stats":{"total_tokens":-5,"input_tokens":210,"output_tokens":1e300,"cached":600,"models":[]}}`)
	if got.Usage != (agent.Usage{CacheRead: 600}) {
		t.Errorf("usage is %+v", got.Usage)
	}
}

func TestTools(t *testing.T) {
	t.Parallel()
	got, events := read(initLine, piece("a"), shellLine, writeLine, shellEnd, writeEnd, piece("b"), okLine)
	if got.Tools != 2 || got.Calls != 2 || got.Turns != 2 {
		t.Errorf("outcome is %+v", got)
	}
	if e := events[2]; e.Tool != "run_shell_command" || e.Command != "go test" {
		t.Errorf("the shell is %+v", e)
	}
	if e := events[3]; e.Tool != "write_file" || strings.Join(e.Files, " ") != "/r/a.go" {
		t.Errorf("the file is %+v", e)
	}
	if e := events[4]; e.Tool != "run_shell_command" || !e.Failed {
		t.Errorf("the shell's end is %+v", e)
	}
	if e := events[5]; e.Tool != "write_file" || e.Failed {
		t.Errorf("the file's end is %+v", e)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name, kind, message string
		status              int
		want                string
		class               failure.Class
		wait                time.Duration
	}{
		{"key", "unknown", `[API Error: {"error":{"code":400,"details":[{"reason":"API_KEY_INVALID"}],"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]`, 400, "api_key_invalid", failure.Auth, 0},
		{"overloaded", "unknown", `[API Error: {"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]`, 503, "unavailable", failure.ServiceUnavailable, 0},
		{"context", "unknown", `[API Error: {"error":{"code":400,"message":"The input token count (12) exceeds the maximum number of tokens allowed (10).","status":"INVALID_ARGUMENT"}}]`, 400, "invalid_argument", failure.ContextLength, 0},
		{"delay", "unknown", `[API Error: {"error":{"code":429,"message":"Slow down","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x","retryDelay":"37.5s"}]}}]`, 429, "resource_exhausted", failure.RateLimit, 37500 * time.Millisecond},
		{"day", "unknown", "[API Error: You have exhausted your daily quota on this model.]\nPlease wait and try again later.", 429, "quota_exhausted", failure.QuotaExhausted, 0},
		{"rate", "unknown", "[API Error: You exceeded your current quota. Please retry in 2s.\nSuggested retry after 2s.]\nPlease wait.", 429, "rate_limit", failure.RateLimit, 2 * time.Second},
		{"stream", "unknown", "[API Error: terminated]", 0, "connection_failed", failure.Network, 0},
		{"turns", "FatalTurnLimitedError", "Reached max session turns for this session.", 0, "max_turns", failure.Unknown, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, _ := read(initLine, echoLine, failed(test.kind, test.message))
			calls := 1
			if test.want == "max_turns" {
				calls = 0
			}
			if got.Terminal != loop.TerminalFailed || len(got.Errors) != 1 || got.Calls != calls {
				t.Fatalf("outcome is %+v", got)
			}
			if e := got.Errors[0]; e.Status != test.status || e.Type != test.want || e.Message == "" {
				t.Errorf("error is %+v", e)
			}
			a := failure.Analyse(failure.Evidence{Source: "agent", Name: "gemini", ExitCode: 1, Errors: got.Errors, Now: now})
			if test.class != failure.Unknown && a.Class != test.class {
				t.Errorf("class is %s, want %s", a.Class, test.class)
			}
			if wait := a.WaitUntil.Sub(now); (test.wait == 0) != a.WaitUntil.IsZero() || (test.wait != 0 && wait != test.wait) {
				t.Errorf("wait until %v, want %v", a.WaitUntil, test.wait)
			}
		})
	}
}

// A message may be as long as it likes; the parser holds its end.
func TestBounds(t *testing.T) {
	t.Parallel()
	p, c := NewParser(), agent.NewCollector()
	for i := range 1000 {
		p.Line(fmt.Appendf(nil, `{"type":"tool_use","tool_name":"t","tool_id":"%d%s"}`, i, strings.Repeat("i", 300)), false, func(agent.Event) {})
	}
	long := []byte(piece(strings.Repeat("x", 100_000)))
	for range 100 {
		p.Line(long, false, c.Add)
	}
	p.Line([]byte(piece("\nthe end")), false, c.Add)
	p.Line([]byte(`{"type":"tool_result","output":"aaaa`), true, c.Add)
	p.Line([]byte(okLine), false, c.Add)
	p.Close(c.Add)
	got := c.Outcome()
	if len(got.Message) > agent.MessageCap+100 || !strings.HasSuffix(got.Message, "the end") || got.Unknown != 1 || got.Terminal != loop.TerminalOK {
		t.Errorf("%d bytes of message, %d unknown, terminal %q", len(got.Message), got.Unknown, got.Terminal)
	}
}

// A stream of nothing but words in small pieces.
func BenchmarkPieces(b *testing.B) {
	line := []byte(`{"type":"message","timestamp":"2026-03-02T10:00:00.000Z","role":"assistant","content":"` + strings.Repeat("I look at the code. ", 5) + `","delta":true}`)
	p := NewParser()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		p.Line(line, false, func(agent.Event) {})
	}
}

func read(lines ...string) (agent.Outcome, []agent.Event) { return reading.Run(NewParser(), lines...) }

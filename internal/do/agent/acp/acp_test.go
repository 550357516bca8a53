package acp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
)

func self() (string, error) { return "/bin/pawl", nil }

func TestStart(t *testing.T) {
	t.Parallel()
	a := New("mine", []string{"prog", "acp", "-m={model}"}, self)
	start, err := a.Start(agent.Invocation{PromptFile: "/p", Model: "m", ReadOnly: true, Env: []string{"A=b"}, Routes: []agent.Route{{}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/bin/pawl", Command, "--read-only", "--", "prog", "acp", "-m=m"}; !slices.Equal(start.Args, want) || start.Program != "prog" ||
		start.Stdin != "/p" || start.Parser != "acp" || start.Ask <= 0 || !slices.Equal(start.Env, []string{"A=b"}) {
		t.Errorf("start is %+v", start)
	}
	start, err = a.Start(agent.Invocation{Command: []string{"other"}, Model: "m"})
	if want := []string{"/bin/pawl", Command, "--count", "--model", "m", "--", "other"}; err != nil || !slices.Equal(start.Args, want) {
		t.Errorf("start is %q, %v", start.Args, err)
	}
	if o, err := parseOptions(start.Args[2:]); err != nil || o.model != "m" || o.readOnly || !o.count || !slices.Equal(o.program, []string{"other"}) {
		t.Errorf("options are %+v, %v", o, err)
	}
	for want, in := range map[string]agent.Invocation{
		"has no command":         {Command: []string{""}},
		"take at most 8388608":   {PromptSize: maxPrompt + 1},
		"goes through the proto": {Command: []string{"x", "{prompt}"}},
	} {
		if _, err := a.Start(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// What programs say of an error, in their several ways.
func TestTyped(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		e      rpcError
		status int
		kind   string
		text   string
	}{
		{rpcError{-32603, "Internal error", json.RawMessage(`{"errorKind":"rate_limit","details":"Rate limit reached"}`)}, 0, "rate_limit", "Rate limit reached"},
		{rpcError{-32603, "Internal error: API Error: 401 bad key", json.RawMessage(`{"errorKind":"authentication_failed"}`)}, 0, "authentication_error", "Internal error: API Error: 401 bad key"},
		{rpcError{-32603, "limit", json.RawMessage(`{"codexErrorInfo":"usageLimitExceeded","message":"You've hit your usage limit."}`)}, 0, "usage_limit_reached", "limit: You've hit your usage limit."},
		{rpcError{400, "API key not valid", nil}, 400, "authentication_error", "API key not valid"},
		{rpcError{-32603, "Internal error", json.RawMessage(`{"details":"401 Incorrect API key"}`)}, 401, "authentication_error", "401 Incorrect API key"},
		{rpcError{-32603, "x", json.RawMessage(`{"errorName":"APIError","statusCode":503}`)}, 503, "", "x"},
		{rpcError{-32603, "x", json.RawMessage(`{"errorName":"ContextOverflowError"}`)}, 0, "context_length_exceeded", "x"},
		{rpcError{-32000, "Authentication required", nil}, 0, "authentication_error", "Authentication required"},
		{rpcError{-32603, "", json.RawMessage(`"words"`)}, 0, "", "words"},
		{rpcError{-32603, "", nil}, 0, "", "the program reports an error without a message"},
	} {
		if p := readError(&test.e); p.err.Status != test.status || p.err.Type != test.kind || p.err.Message != test.text {
			t.Errorf("%+v: %+v", test.e, p.err)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]agent.Usage{
		`{"usage":{"inputTokens":100,"outputTokens":10,"cachedReadTokens":40,"totalTokens":110}}`:                                        {Input: 60, Output: 10, CacheRead: 40},
		`{"usage":{"inputTokens":60,"outputTokens":10,"cachedReadTokens":40,"totalTokens":110}}`:                                         {Input: 60, Output: 10, CacheRead: 40},
		`{"usage":{"inputTokens":60,"outputTokens":10,"thoughtTokens":5,"cachedReadTokens":40,"cachedWriteTokens":1,"totalTokens":116}}`: {Input: 60, Output: 15, CacheRead: 40, CacheWrite: 1},
		`{"usage":{"inputTokens":60,"outputTokens":10,"thoughtTokens":5,"totalTokens":75}}`:                                              {Input: 60, Output: 15},
		`{"_meta":{"quota":{"token_count":{"input_tokens":7,"output_tokens":3}}}}`:                                                       {Input: 7, Output: 3},
		`{}`: {}, `x`: {},
	} {
		var result promptResult
		jsonline.Read([]byte(in), &result)
		got := result.usageOfPrompt()
		if got != want {
			t.Errorf("%s: %+v", in, got)
		}
	}
}

func TestParserCutOff(t *testing.T) {
	t.Parallel()
	p, c := NewParser(), agent.NewCollector()
	for _, l := range []string{`{"kind":"text","text":"a"}`, `{"kind":"text","te`, `x`, ``, `{"kind":"later"}`} {
		p.Line([]byte(l), false, c.Add)
	}
	p.Close(c.Add)
	if got := c.Outcome(); got.Terminal != loop.TerminalMissing || got.Message != "a" || got.Unknown != 3 {
		t.Errorf("outcome is %+v", got)
	}
}

// What the agent said before an error is told before it.
func TestParserKeepsTheOrder(t *testing.T) {
	t.Parallel()
	p := NewParser()
	var order []agent.EventKind
	for _, l := range []string{
		`{"kind":"text","text":"I will "}`, `{"kind":"text","text":"try"}`, `{"kind":"error","error":{"message":"no"}}`,
		`{"kind":"text","text":"again"}`, `{"kind":"tool_end"}`, `{"kind":"end","text":"end_turn"}`,
	} {
		p.Line([]byte(l), false, func(e agent.Event) {
			if e.Kind != agent.UsageSeen {
				order = append(order, e.Kind)
			}
		})
	}
	want := []agent.EventKind{agent.Text, agent.Error, agent.Text, agent.ToolEnd, agent.End}
	if !slices.Equal(order, want) {
		t.Errorf("got %q, want %q", order, want)
	}
}

func FuzzParser(f *testing.F) {
	f.Add([]byte("{\"kind\":\"text\",\"text\":\"a\"}\n{\"kind\":\"end\",\"text\":\"end_turn\"}"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		p, c := NewParser(), agent.NewCollector()
		for l := range bytes.Lines(b) {
			p.Line(bytes.TrimSuffix(l, []byte("\n")), len(l)%7 == 0, c.Add)
		}
		p.Close(c.Add)
	})
}

// Whatever a program says, the bridge goes on.
func FuzzTake(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"options":[{"optionId":"a","kind":"allow_once"}]}}`))
	f.Add([]byte(`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"t","rawInput":{"command":["a"]}}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		c := newConnection(newSession(&printer{w: &out}, false, safety.Rules{}))
		_ = c.handleLine(b, len(b)%5 == 0)
		for l := range bytes.Lines(out.Bytes()) {
			if !json.Valid(l) {
				t.Errorf("printed %q", l)
			}
		}
		for len(c.queue) > 0 {
			if l := <-c.queue; !json.Valid(l) {
				t.Errorf("said %q", l)
			}
		}
	})
}

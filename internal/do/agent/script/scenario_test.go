package script

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

func TestBadScenarios(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want string }{
		{"", "no turns"},
		{"turns: []", "no turns"},
		{"scenes: [{when: {prompt: x}}]", "scene 1 has no turns"},
		{"turn: [{say: a}]", "unknown field"},
		{"turns:\n  - sya: hello", "unknown step sya"},
		{"turns:\n  - jump: hello", "the steps are api_error, append, "},
		{"turns:\n  - write: {path: a, contents: b}", "unknown field"},
		{"turns:\n  - write: {content: b}", "needs a path"},
		{"turns:\n  - write: {path: b, mode: \"999\"}", "octal"},
		{"turns:\n  - write: b", "takes a mapping"},
		{"turns:\n  - edit: {path: b}", "old text"},
		{"turns:\n  - exit: 300", "0 to 255"},
		{"turns:\n  - exit: soon", "cannot unmarshal"},
		{"turns:\n  - rate_limit: {retry_after: 5}", "carries a unit"},
		{"turns:\n  - rate_limit: {retry_after: -5s}", "carries a unit"},
		{"turns:\n  - hang: maybe", "cannot unmarshal"},
		{"turns:\n  - just words", "a turn is a mapping"},
		{"turns: [", ""},
	} {
		_, err := Parse([]byte(test.in))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: error is %v, want %q", test.in, err, test.want)
		}
	}
}

func TestErrorShowsThePlace(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte("name: x\nturns:\n  - say: hello\n    edti: {path: a}\n"))
	if err == nil || !strings.Contains(err.Error(), "[4:5]") || !strings.Contains(err.Error(), "^") || !strings.Contains(err.Error(), "edti: {path: a}") {
		t.Errorf("error is %v", err)
	}
}

func FuzzParser(f *testing.F) {
	f.Add(`{"type":"delta","text":"a"}` + "\n" + `{"type":"end","ok":true}`)
	f.Add(`{"type":"usage","input":5,"calls":-1,"total":true}` + "\n" + `{"type":"cost","usd":1e300}`)
	f.Add(`{"type":"rate_limit","retry_after":"-5s","reset_at":"never","files":[1]}`)
	f.Fuzz(func(t *testing.T, in string) {
		p, c := NewParser(), agent.NewCollector()
		for line := range strings.Lines(in) {
			p.Line([]byte(strings.TrimSuffix(line, "\n")), len(line)%5 == 0, c.Add)
		}
		p.Close(c.Add)
		if got := c.Outcome(); got.Terminal == "" || c.Tokens() < 0 || c.Calls() < 0 || got.Cost < 0 {
			t.Fatalf("outcome is %+v", got)
		}
	})
}

func FuzzScenario(f *testing.F) {
	f.Add("turns: [{say: a, write: {path: b, content: c}}]")
	f.Add("turns:\n  - - say: [a, b]\n    - raw: echo\n  - hang: true\n")
	f.Fuzz(func(t *testing.T, in string) {
		s, err := Parse([]byte(in))
		if (s == nil) == (err == nil) {
			t.Fatalf("%v and %v", s, err)
		}
	})
}

package jsonline

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

type sample struct {
	Type  string
	Count int64
	Tags  []string
	Raw   json.RawMessage
}

// A field of another type is left out; the others of its line are read.
func TestDecode(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]sample{
		`{"type":"a","count":5,"tags":["x"],"raw":{"b":1}}`: {"a", 5, []string{"x"}, json.RawMessage(`{"b":1}`)},
		`  {"type":7,"count":"5","tags":"x"}`:               {},
		`{"count":1e300,"type":"a"}`:                        {Type: "a"},
		"{\"type\":\"\xff\\ud800\"}":                        {Type: "\uFFFD\uFFFD"},
	} {
		var got sample
		if !Decode([]byte(in), false, &got, func(e agent.Event) { t.Errorf("%s: %+v", in, e) }) {
			t.Errorf("%s is not read", in)
		}
		if got.Type != want.Type || got.Count != want.Count || len(got.Tags) != len(want.Tags) || string(got.Raw) != string(want.Raw) {
			t.Errorf("%s is %+v, want %+v", in, got, want)
		}
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"x", "[1]", "null", "17", `"x"`, `{"a"`, `{"a":`, `{"a":1`, `{"a":"b`, `{"a":"b\"}`, `{"a":{"b":1}`, `{a:1}`, `{"a" 1}`, `{"a":1 "b":2}`, `{"a":,}`,
		strings.Repeat(`{"a":[`, 20_000), `{"a":NaN}`, `{} {}`,
	} {
		unknown := 0
		if Decode([]byte(in), false, &sample{}, func(agent.Event) { unknown++ }) || unknown != 1 {
			t.Errorf("%.40q is taken for a whole object", in)
		}
	}
	if Decode([]byte(`{}`), true, &sample{}, func(agent.Event) {}) {
		t.Error("a cut line is read")
	}
	if Decode(nil, false, &sample{}, func(agent.Event) { t.Error("an empty line is something") }) {
		t.Error("an empty line is read")
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{`"a"`: "a", `{"message":"b"}`: "b", `7`: "", ``: "", `null`: "", `{"message":7}`: ""} {
		if got := Message(json.RawMessage(in)); got != want {
			t.Errorf("%s is %q, want %q", in, got, want)
		}
	}
}

func TestDraft(t *testing.T) {
	t.Parallel()
	var d Draft
	if text, open := d.Take(); open || text != "" {
		t.Errorf("nothing is %q", text)
	}
	d.Join("a")
	d.Join("b")
	if text, open := d.Take(); !open || text != "ab" {
		t.Errorf("the pieces are %q", text)
	}
	d.Join("c")
	d.Drop()
	if _, open := d.Take(); open {
		t.Error("what was dropped is there")
	}
}

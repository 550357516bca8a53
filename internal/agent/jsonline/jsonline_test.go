package jsonline

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestGet(t *testing.T) {
	t.Parallel()
	const doc = `{"a": {"b": [1, {"c": "}]"}], "q\"": 2}, "s":"x\"y\\", "n":-1.5e1 , "last":true}`
	for _, test := range []struct {
		path []string
		want string
	}{
		{[]string{"a", "b"}, `[1, {"c": "}]"}]`},
		{[]string{"a", `q\"`}, "2"},
		{[]string{"s"}, `"x\"y\\"`},
		{[]string{"n"}, "-1.5e1"},
		{[]string{"last"}, "true"},
		{[]string{"no"}, ""},
		{[]string{"s", "deeper"}, ""},
	} {
		if got := string(Get([]byte(doc), test.path...)); got != test.want {
			t.Errorf("%v is %s, want %s", test.path, got, test.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		"12": 12, "-3": -3, "1.9": 1, "1e3": 1000, "1e400": 0, "9e18": 0, "null": 0, `"5"`: 0, "": 0, "NaN": 0, "Infinity": 0, "0x10": 0,
	} {
		if got := Int([]byte(in)); got != want {
			t.Errorf("%q is %d, want %d", in, got, want)
		}
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`"a"`: "a", `"a\nb\u00e4\ud83d\ude00"`: "a\nbä😀", `"\ud800"`: "\uFFFD", "\"\xff\"": "\uFFFD", "null": "", `"`: "", "5": "",
	} {
		if got := String([]byte(in)); got != want {
			t.Errorf("%s is %q, want %q", in, got, want)
		}
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", "x", "[1]", `{"a"`, `{"a":`, `{"a":1`, `{"a":"b`, `{"a":"b\"}`, `{"a":{"b":1}`, `{a:1}`, `{"a" 1}`, `{"a":1 "b":2}`, `{"a":,}`,
		strings.Repeat(`{"a":[`, 20_000),
	} {
		if Object([]byte(in), func(_, _ []byte) bool { return true }) {
			t.Errorf("%.40q is taken for a whole object", in)
		}
	}
}

// What encoding/json takes for an object, Object does too, with the same values.
func FuzzObject(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,2,{"c":"\"}"}]},"d":"\\","e":null}`))
	f.Add([]byte(`{"a":"\ud83d\ude00\n","a":2} `))
	f.Add([]byte(`[{},[],""]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := map[string]string{}
		whole := Object(b, func(key, value []byte) bool {
			got[String([]byte(`"`+string(key)+`"`))] = string(value)
			return true
		})
		Array(b, func([]byte) bool { return true })
		var want map[string]json.RawMessage
		if json.Unmarshal(b, &want) != nil || want == nil {
			return
		}
		if !whole {
			t.Fatalf("%q is not taken for a whole object", b)
		}
		for key, value := range want {
			if got[key] != string(value) {
				t.Fatalf("%q is %q, want %q", key, got[key], value)
			}
			var s string
			if utf8.Valid(value) && json.Unmarshal(value, &s) == nil && String(value) != s {
				t.Fatalf("%q is %q, want %q", value, String(value), s)
			}
		}
	})
}

func TestBoundedValues(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want string }{{`"abc"`, "ab"}, {`"a"`, "a"}, {`"aäö"`, "a"}, {`7`, ""}} {
		if got := Short([]byte(test.in), 2); got != test.want {
			t.Errorf("%s is %q, want %q", test.in, got, test.want)
		}
	}
	for in, want := range map[string]int64{"5": 5, "-5": 0, "1e300": 0, "1000000000001": 0, `"5"`: 0, "": 0} {
		if got := Count([]byte(in)); got != want {
			t.Errorf("%s counts %d, want %d", in, got, want)
		}
	}
	for in, want := range map[string]int{"429": 429, "99": 0, "1000": 0, "null": 0, "-404": 0} {
		if got := Status([]byte(in)); got != want {
			t.Errorf("status %s is %d, want %d", in, got, want)
		}
	}
}

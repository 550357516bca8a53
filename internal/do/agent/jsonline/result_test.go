package jsonline

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestResult(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`"a\nb"`: "a\nb",
		`null`:   "",
		``:       "",
		`""`:     "",
		`7`:      "",
		`[{"type":"text","text":"a"},{"type":"image","data":"x"},"b"]`:          "a\nb",
		`{"content":[{"type":"text","text":"a"}],"isError":false}`:              "a",
		`{"status":"success","value":{"content":[{"type":"text","text":"a"}]}}`: "a",
		`{"success":{"stdout":"a","stderr":"b","exitCode":1}}`:                  "a\nb",
		`[{"query":"ls","result":"a","success":true}]`:                          "a",
		`[{"query":"ls","result":""}]`:                                          "",
		`{"files":3}`:                                                           `{"files":3}`,
		`{}`:                                                                    "",
		`[[[[[[[["a"]]]]]]]]`:                                                   `[[[[[[[["a"]]]]]]]]`,
	} {
		if got := Result([]byte(in), 100); got != want {
			t.Errorf("%s is %q, want %q", in, got, want)
		}
	}
}

// Whatever is cut, what stays is text and within its size.
func TestResultIsCut(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"a", "ä", `\n`, `\\`, `\"`, "\\ud83d\\ude00", "\U0001F600", `\u0041`} {
		long := []byte(`"` + strings.Repeat(piece, 100) + `"`)
		for _, b := range [][]byte{long, []byte(`{"text":` + string(long) + `,"output":` + string(long) + `}`)} {
			for n := range 60 {
				got := Result(b, n)
				if !utf8.ValidString(got) || strings.Contains(got, "\uFFFD") || len(got) > n+len("…") || !strings.HasSuffix(got, "…") {
					t.Fatalf("%d bytes of %q are %q", n, piece, got)
				}
			}
		}
	}
}

func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"text":"a\u0000\ud83d"}]}`), 3)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		n = min(max(n, 0), 1000)
		if got := Result(b, n); !utf8.ValidString(got) || len(got) > 3*n+len("…") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	})
}

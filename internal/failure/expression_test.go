package failure

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What words tell of an expression must be what the expression says.
func TestExpressionsAgreeWithTheirWords(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/labelled/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no labelled sets: %v", err)
	}
	var all []*expression
	for _, r := range rules().rules {
		for _, e := range []func() *expression{r.re, r.not} {
			if e != nil {
				all = append(all, e())
			}
		}
	}
	n := 0
	for _, path := range paths {
		for _, l := range readFresh(t, path) {
			for line := range strings.SplitSeq(l.Output, "\n") {
				if n++; n%5 != 0 || len(line) > 200 { // enough of them
					continue
				}
				p := spot{l: line, small: smallLetters(line)}
				for _, e := range all {
					if got, want := e.matches(p), e.MatchString(line); got != want {
						t.Errorf("%q in %q: %v, want %v (needs %q, sure %q)", e, line, got, want, e.needs, e.sure)
					}
				}
			}
		}
	}
}

func TestWordsOfExpressions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source string
		needs  [][]string
		sure   []string
	}{
		{`(?i)error: \d+`, [][]string{{"error: "}}, nil},
		{`Error`, [][]string{{"error"}}, nil},
		{`(?i)not found|broken pipe`, [][]string{{"not found", "en pipe"}}, []string{"not found", "broken pipe"}},
		{`(?i)parse error (on|in)`, [][]string{{"e error "}, {"on", "in"}}, []string{"parse error on", "parse error in"}},
		{`^\s*at (\d|x)`, [][]string{{"at "}}, nil},
		{`\w+|error`, nil, nil},
		{`(warn)?ing`, [][]string{{"ing"}}, nil},
	} {
		e := compile(c.source)
		if !slices.EqualFunc(e.needs, c.needs, slices.Equal[[]string]) || !slices.Equal(e.sure, c.sure) {
			t.Errorf("%s: needs %q, sure %q", c.source, e.needs, e.sure)
		}
	}
}

func TestSmallLetters(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é Ä a_Z ", 100)
	for s, want := range map[string]string{"": "", "plain": "plain", "ReadTimeout É": "readtimeout É", long: strings.ReplaceAll(long, "Z", "z")} {
		if got := smallLetters(s); got != want {
			t.Errorf("%q: %q", s, got)
		}
	}
}

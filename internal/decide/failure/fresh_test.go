package failure

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
)

// The sets in testdata/labelled were written before the rules that they
// measure: outputs of tools that ran here, and outputs in the exact formats of
// tools that did not. A case is
//
//	##### id: class [transient] [exit=N] [by=agent] [escaped]
//	#fact a string that the analysis has to convey
//	the output, up to the next case
//
// "escaped" outputs are written with Go's escapes, such as \x1b and \r.
func readFresh(tb testing.TB, path string) []labelled {
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var out []labelled
	for block := range strings.SplitSeq(strings.TrimPrefix(string(data), "##### "), "\n##### ") {
		head, body, _ := strings.Cut(block, "\n")
		out = append(out, freshCase(tb, head, body))
	}
	return out
}

func freshCase(tb testing.TB, head, body string) labelled {
	id, rest, _ := strings.Cut(head, ": ")
	l := labelled{ID: id}
	escaped := false
	for i, word := range strings.Fields(rest) {
		switch exit, isExit := strings.CutPrefix(word, "exit="); {
		case i == 0:
			l.Class = Class(word)
		case word == "transient":
			l.Transient = true
		case word == "escaped":
			escaped = true
		case word == "by=agent":
			l.Tool = "agent"
		case isExit:
			n, err := strconv.Atoi(exit)
			if err != nil {
				tb.Fatalf("%s: %v", id, err)
			}
			l.ExitCode = &n
		default:
			tb.Fatalf("%s: what is %q?", id, word)
		}
	}
	for strings.HasPrefix(body, "#fact ") {
		fact, more, _ := strings.Cut(body, "\n")
		l.Feedback = append(l.Feedback, strings.TrimPrefix(fact, "#fact "))
		body = more
	}
	if escaped {
		for _, e := range [][2]string{{`\x1b`, "\x1b"}, {`\r`, "\r"}, {`\xe2\x80\xba`, "›"}} {
			body = strings.ReplaceAll(body, e[0], e[1])
		}
	}
	l.Output = body
	return l
}

func TestFreshSets(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/labelled/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no labelled sets: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			m := measure(t, readFresh(t, path))
			m.show(t)
			m.require(t, targets)
		})
	}
}

// TestFreshSetsAreWhole: every class that the text of an output can show is in
// the sets, and no id twice. Limits, trees that were compared and answers that
// are none are known by other means.
func TestFreshSetsAreWhole(t *testing.T) {
	t.Parallel()
	paths, _ := filepath.Glob("testdata/labelled/*.txt")
	ids, classes := map[string]bool{}, map[Class]int{}
	for _, path := range paths {
		for _, l := range readFresh(t, path) {
			if ids[l.ID] {
				t.Errorf("%s is there twice", l.ID)
			}
			ids[l.ID] = true
			classes[l.Class]++
			for _, f := range l.Feedback {
				if out := printed.Read(l.Output).Text; !strings.Contains(out, f) && !strings.Contains(l.Output, f) {
					t.Errorf("%s: the fact %q is not in the output", l.ID, f)
				}
			}
		}
	}
	known := map[Class]bool{}
	for _, c := range Classes() {
		known[c] = true
		if classes[c] == 0 && !slices.Contains(append(Unanswered(), LimitExceeded, Tampering), c) {
			t.Errorf("no output of class %s", c)
		}
	}
	for c := range classes {
		if !known[c] {
			t.Errorf("no class is called %q", c)
		}
	}
}

var labelledAt = time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC)

package failure

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
	"time"
)

// labelledPath is a set of real outputs with their classes, kept outside of
// the repository. The tests that need it say so and are skipped without it.
const labelledPath = "../../../shared/failures/dev.jsonl"

type labelled struct {
	ID        string   `json:"id"`
	Tool      string   `json:"tool"`
	ExitCode  *int     `json:"exit_code"`
	Output    string   `json:"output"`
	Class     Class    `json:"class"`
	Transient bool     `json:"transient"`
	Feedback  []string `json:"feedback"`
}

func (l labelled) evidence() Evidence {
	e := Evidence{Source: "gate", Name: "step", ExitCode: 1, Output: l.Output, Now: time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC)}
	if l.ExitCode != nil {
		e.ExitCode = *l.ExitCode
	}
	for _, agent := range []string{"Claude Code", "Codex", "Gemini", "opencode", "Qwen", "Amp", "Copilot", "ralph", "agent"} {
		if strings.Contains(l.Tool, agent) {
			e.Source, e.Name = "agent", l.Tool
		}
	}
	return e
}

func readLabelled(tb testing.TB) []labelled {
	f, err := os.Open(labelledPath)
	if err != nil {
		tb.Skipf("the labelled set is not there (%s): accuracy is not measured", labelledPath)
	}
	defer f.Close()
	var out []labelled
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var l labelled
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			tb.Fatalf("cannot read case %d: %v", len(out)+1, err)
		}
		out = append(out, l)
	}
	if err := s.Err(); err != nil {
		tb.Fatal(err)
	}
	return out
}

// conveys tells whether a fact reaches the reader of an analysis: literally,
// or as the file, line and column of an item with the rest in its message.
func conveys(a Analysis, fact string) bool {
	if strings.Contains(a.Summary, fact) {
		return true
	}
	at, located := placeIn(fact)
	rest := strings.Trim(at.rest, " :,-)")
	for _, i := range a.Items {
		for _, s := range []string{i.File, i.Test, i.Message, i.Expected, i.Received, fmt.Sprintf("%s:%d", i.File, i.Line), fmt.Sprintf("%s:%d:%d", i.File, i.Line, i.Column), "expected: " + i.Expected, "Expected: " + i.Expected} {
			if strings.Contains(s, fact) {
				return true
			}
		}
		if located && i.Line == at.line && strings.HasSuffix(i.File, at.file) && strings.Contains(i.Message, rest) {
			return true
		}
		if _, line, ok := strings.Cut(fact, "line "); ok && strings.Contains(fmt.Sprint(i.Line), line) && i.Line > 0 {
			return true
		}
		var l, c int
		if n, _ := fmt.Sscanf(fact, "%d:%d", &l, &c); n == 2 && i.Line == l && i.Column == c {
			return true
		}
	}
	return false
}

// The floors are what was reached, rounded down a little: an edit of a rule
// that loses more than it wins fails here.
const (
	floorClass     = 98.0
	floorTransient = 99.0
	floorFeedback  = 94.0
)

func TestLabelledSet(t *testing.T) {
	cases := readLabelled(t)
	verbose := os.Getenv("FAILURE_MISSES") != ""
	type tally struct{ right, all int }
	classes := map[Class]*tally{}
	var class, transient, facts tally
	for _, l := range cases {
		a := Analyse(l.evidence())
		if classes[l.Class] == nil {
			classes[l.Class] = &tally{}
		}
		classes[l.Class].all++
		class.all++
		transient.all++
		if a.Class == l.Class {
			class.right++
			classes[l.Class].right++
		} else if verbose {
			t.Logf("%s: %s, not %s: %s", l.ID, l.Class, a.Class, a.Summary)
		}
		if a.Transient == l.Transient {
			transient.right++
		} else if verbose {
			t.Logf("%s: transient %v", l.ID, l.Transient)
		}
		for _, f := range l.Feedback {
			facts.all++
			if conveys(a, f) {
				facts.right++
			} else if verbose {
				t.Logf("%s (%s): fact missing: %q", l.ID, l.Class, f)
			}
		}
	}
	percent := func(y tally) float64 { return 100 * float64(y.right) / float64(y.all) }
	names := make([]string, 0, len(classes))
	for c := range classes {
		names = append(names, string(c))
	}
	sort.Strings(names)
	for _, c := range names {
		t.Logf("%-20s %3d of %3d", c, classes[Class(c)].right, classes[Class(c)].all)
	}
	t.Logf("class     %.1f %% (%d of %d)", percent(class), class.right, class.all)
	t.Logf("transient %.1f %% (%d of %d)", percent(transient), transient.right, transient.all)
	t.Logf("feedback  %.1f %% (%d of %d)", percent(facts), facts.right, facts.all)
	if percent(class) < floorClass || percent(transient) < floorTransient || percent(facts) < floorFeedback {
		t.Errorf("accuracy is below the floors: class %v %%, transient %v %%, feedback %v %%", floorClass, floorTransient, floorFeedback)
	}
}

func BenchmarkAnalyseLabelled(b *testing.B) {
	cases := readLabelled(b)
	var n int64
	evidence := make([]Evidence, len(cases))
	for i, l := range cases {
		evidence[i] = l.evidence()
		n += int64(len(l.Output))
	}
	Analyse(evidence[0])
	b.SetBytes(n)
	for b.Loop() {
		for _, e := range evidence {
			Analyse(e)
		}
	}
}

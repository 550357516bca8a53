package board

import (
	"fmt"
	"strings"
	"testing"
)

// A proposal is refused with what must change, so that the agent that wrote it can.
func TestPropose(t *testing.T) {
	t.Parallel()
	const good = `{"ref":"a","title":"Parse","acceptance":["tests pass"]}`
	many := strings.Builder{}
	for i := range MaxProposed + 1 {
		fmt.Fprintf(&many, `{"ref":"r%d","title":"t%d","acceptance":["x"]}`+"\n", i, i)
	}
	for text, want := range map[string]string{
		good: "",
		good + "\n" + `{"ref":"b","title":"Use","acceptance":["x"],"needs":["a"]}`: "",
		`{"ref":"a","title":"x","acceptance":["y"],"needs":["task-001"]}`:          "",
		good + "\n" + `{"ref":"b","title":" parse ","acceptance":["x"]}`:           "line 2: the title",
		`{"ref":"a","title":"x"}`: "line 1: it has no acceptance criterion",
		`{"ref":"a","title":"x","acceptance":["y"],"tags":["agent:x"]}`:                                                                              "line 1: it has tags",
		`{"title":"x","acceptance":["y"]}`:                                                                                                           "line 1: it has no ref",
		`{"ref":"a","title":"x","acceptance":["y"],"status":"done"}`:                                                                                 "line 1: it is done",
		`{"ref":"a","title":"x","acceptance":["y"],"type":"operation"}`:                                                                              "line 1: it is nested",
		`{"ref":"a","title":"x","acceptance":["1","2","3","4","5","6","7","8"]}`:                                                                     "line 1: it is too large for one task (8 criteria",
		`{"ref":"a","title":"x","acceptance":["1"],"needs":["b"]}`:                                                                                   "which is neither in the list",
		`{"ref":"a","title":"x","acceptance":["1"],"description":"` + strings.Repeat("d", 4001) + `"}`:                                               "split it",
		good + "\n" + `{"ref":"b","title":"y","acceptance":["x"],"needs":["c"]}` + "\n" + `{"ref":"c","title":"z","acceptance":["x"],"needs":["b"]}`: "b → c → b",
		many.String():                         "51 tasks are too many",
		"nothing":                             "it has no tasks",
		strings.Repeat(" ", maxProposalLen+1): "256 KiB",
	} {
		drafts, err := Propose([]byte(text))
		if want == "" && (err != nil || len(drafts) == 0) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.200q: %v, want %q", text, err, want)
		}
	}
}

// The refs of a proposal are names within it: one that the board has makes way.
func TestFreeRefs(t *testing.T) {
	t.Parallel()
	drafts := []Draft{
		{Case: Case{Ref: "docs", Needs: []string{"tests", "task-001"}}},
		{Case: Case{Ref: "tests"}},
		{Case: Case{Ref: "docs-2", Needs: []string{"docs"}}},
	}
	FreeRefs(drafts, map[string]bool{"docs": true, "docs-3": true})
	var got []string
	for _, d := range drafts {
		got = append(got, fmt.Sprint(d.Case.Ref, d.Case.Needs))
	}
	if want := "docs-4[tests task-001] tests[] docs-2[docs-4]"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

func TestWaves(t *testing.T) {
	t.Parallel()
	draft := func(ref string, needs ...string) Draft { return Draft{Case: Case{Ref: ref, Needs: needs}} }
	for want, drafts := range map[string][]Draft{
		"[[a b] [c] [d]]": {draft("a"), draft("d", "c", "a"), draft("c", "b"), draft("b")},
		"[]":              {draft("a", "a")},
		"[[a] [b]]":       {draft("a", "task-001"), draft("b", "a", "task-001")},
	} {
		if got := fmt.Sprint(Waves(drafts)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

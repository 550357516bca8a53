package run

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
)

// The models of all iterations are added up, and a cost that is not known is said.
func TestShowModels(t *testing.T) {
	t.Parallel()
	records := []loop.Record{
		{Models: []loop.ModelUse{
			{Model: "big", Calls: 2, Input: 1000, CacheRead: 9000, Output: 50, Cost: 30_000},
			{Model: "new", Calls: 1, Input: 10, Output: 1, Unpriced: true},
		}},
		{},
		{Models: []loop.ModelUse{{Model: "big", Calls: 3, Input: 500, Output: 50, Cost: 20_000}}},
	}
	var out strings.Builder
	showModels(&command.App{Stdout: &out}, records)
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"", "MODEL CALLS INPUT CACHE READ CACHE WRITE OUTPUT COST", "big 5 1.5k 9.0k 0 100 $0.05", "new 1 10 0 0 1 unknown"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("it shows %q", got)
	}
	out.Reset()
	showModels(&command.App{Stdout: &out}, records[1:2])
	if out.String() != "" {
		t.Errorf("of no model it shows %q", out.String())
	}
	shown := report.Models(records[0].Models)
	if len(shown) != 2 || *shown[0].CostUSD != 0.03 || shown[1].CostUSD != nil || shown[0].CacheRead != 9000 {
		t.Errorf("programs read %+v", shown)
	}
}

// On a narrow terminal a gate that is not red is its mark.
func TestGateWords(t *testing.T) {
	t.Parallel()
	r := loop.Record{Gates: []loop.Gate{
		{Name: "build", Status: loop.GatePassed}, {Name: "tests", Status: loop.GateTimedOut}, {Name: "lint", Status: loop.GateNotRun},
	}}
	if got, want := gateWords(r, false), "✓build ✗tests ○lint"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := gateWords(r, true), "✗tests ✓○"; got != want {
		t.Errorf("narrow: got %q, want %q", got, want)
	}
}

// Of a long file only what is in conflict is printed, with some lines around it.
func TestConflictLines(t *testing.T) {
	t.Parallel()
	same := strings.Repeat("same\n", 50)
	conflict := "<<<<<<< mine\na\n||||||| base\nb\n=======\nc\n>>>>>>> agent\n"
	around := "same\nsame\nsame\n"
	for text, want := range map[string]string{
		conflict:                        conflict,
		same + conflict + same:          "… 47 lines without a conflict\n" + around + conflict + around + "… 47 lines without a conflict\n",
		conflict + "x\n" + conflict:     conflict + "x\n" + conflict,
		conflict + same + conflict:      conflict + around + "… 44 lines without a conflict\n" + around + conflict,
		"same\r\n" + conflict:           "same\n" + conflict,
		"no marks\n":                    "no marks\n",
		same + "<<<<<<< mine\nno end\n": same + "<<<<<<< mine\nno end\n",
		"<<< mine\n" + same + conflict:  "… 48 lines without a conflict\n" + around + conflict,
	} {
		if got := strings.Join(conflictLines(text), "\n") + "\n"; got != want {
			t.Errorf("of %q:\n%s\nwant:\n%s", text, got, want)
		}
	}
}

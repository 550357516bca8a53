package report

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Before a check has run it is known which criterion it shows; then it is known how it ended. A sealed check
// has no name but its number, since an agent may read this.
func TestProofsOf(t *testing.T) {
	t.Parallel()
	task := board.Case{Acceptance: []string{"it greets", "it counts", "it is quick"}, Checks: board.Checks{
		Verify: []board.TaskCheck{{Name: "greets", Criterion: "It greets"}, {Command: "make lint"}},
		Sealed: []board.TaskCheck{{Name: "secret", Command: "sh secret.sh", Criterion: "it counts"}}}}
	gate := func(name, criterion, before string, status loop.GateStatus) loop.Gate {
		return loop.Gate{Name: name, Criterion: criterion, Before: before, Status: status, Origin: loop.OfTask}
	}
	records := []loop.Record{
		{Number: 1, Gates: []loop.Gate{gate("task-001: greets", "It greets", "red", loop.GateFailed)}},
		{Number: 2, Gates: []loop.Gate{{Name: "unit", Criterion: "it is quick"}, gate("task-001: greets", "It greets", "", loop.GatePassed)},
			Evidence: []loop.Evidence{{Gate: "task-001: greets", File: "said.txt"}, {Gate: "unit", File: "unit.xml"}}},
		{Number: 3},
	}
	for want, got := range map[string][]Proof{
		"it greets: greets not run yet|it counts: sealed check 1 not run yet|it is quick: not checked|make lint not run yet":        ProofsOf(&task, nil),
		"it greets: task-001: greets passed; before the work red; it left said.txt|it counts: not checked|it is quick: not checked": ProofsOf(&task, records),
		"": ProofsOf(&board.Case{}, records[2:]),
	} {
		var lines []string
		for _, p := range got {
			lines = append(lines, p.String())
		}
		if text := strings.Join(lines, "|"); text != want {
			t.Errorf("%s\nwant %s", text, want)
		}
	}
}

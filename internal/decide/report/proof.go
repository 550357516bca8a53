package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Proof says of a criterion which check shows it, and how that ended; or of a check without a criterion how it ended.
type Proof struct {
	Criterion string          `json:"criterion,omitempty"`
	Check     string          `json:"check,omitempty" doc:"Its name; without it nobody checked the criterion."`
	Before    string          `json:"before,omitempty" doc:"How it ended before the work."`
	After     loop.GateStatus `json:"after,omitempty" doc:"How it ended last; nothing until it ran."`
	Note      string          `json:"note,omitempty" doc:"What explains that."`
	Iteration int             `json:"iteration,omitempty" doc:"The one that it ended in."`
	Evidence  []loop.Evidence `json:"evidence,omitempty" nullable:"false" doc:"Files that the check left then."`
}

// ProofsOf lists which checks show the criteria of a task, in their order, and then its other checks. How they ended
// is by the iterations that worked on it; until one ran checks they are those of the task.
func ProofsOf(task *board.Case, records []loop.Record) (list []Proof) {
	checks := lists.Each(task.Verify, func(c board.TaskCheck) Proof {
		return Proof{Criterion: c.Criterion, Check: c.Label()}
	})
	for i, c := range task.Sealed {
		checks = append(checks, Proof{Criterion: c.Criterion, Check: fmt.Sprintf("sealed check %d", i+1)})
	}
	before := map[string]string{}
	for _, r := range records {
		if len(r.Gates) > 0 {
			checks = nil
		}
		for _, g := range r.Gates {
			before[g.Name] = cmp.Or(g.Before, before[g.Name])
			isOther := func(e loop.Evidence) bool { return e.Gate != g.Name }
			if g.Origin != "" {
				checks = append(checks, Proof{g.Criterion, g.Name, before[g.Name], g.Status, g.Note, r.Number,
					slices.DeleteFunc(slices.Clone(r.Evidence), isOther)})
			}
		}
	}
	for _, criterion := range task.Acceptance {
		n := len(list)
		checks = slices.DeleteFunc(checks, func(p Proof) bool {
			if !strings.EqualFold(strings.TrimSpace(criterion), p.Criterion) {
				return false
			}
			p.Criterion = criterion
			list = append(list, p)
			return true
		})
		if len(list) == n {
			list = append(list, Proof{Criterion: criterion})
		}
	}
	return append(list, checks...)
}

// String says it in one line.
func (p Proof) String() string {
	if p.Check == "" {
		return p.Criterion + ": not checked"
	}
	text := fmt.Sprintf("%s %s", Line(p.Check, 200), cmp.Or(p.After, "not run yet"))
	if p.Criterion != "" {
		text = fmt.Sprintf("%s: %s", p.Criterion, text)
	}
	if p.Note != "" {
		text += " (" + p.Note + ")"
	}
	if p.Before != "" {
		text += "; before the work " + p.Before
	}
	if len(p.Evidence) > 0 {
		names := lists.Each(p.Evidence, func(e loop.Evidence) string { return e.File })
		text += "; it left " + strings.Join(names, ", ")
	}
	return text
}

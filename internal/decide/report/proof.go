package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Proof says of a criterion which check shows it, and how that ended; or of a check without a criterion how it ended.
type Proof struct {
	Criterion string          `json:"criterion,omitempty"`
	Check     string          `json:"check,omitempty" doc:"Its name; without it nobody checked the criterion."`
	Before    string          `json:"before,omitempty" doc:"How it ended before the work."`
	After     loop.GateStatus `json:"after,omitempty" doc:"How it ended last."`
	Note      string          `json:"note,omitempty" doc:"What explains that."`
	Iteration int             `json:"iteration,omitempty" doc:"The one that it ended in."`
	Evidence  []loop.Evidence `json:"evidence,omitempty" nullable:"false" doc:"Files that the check left then."`
}

// ProofsOf lists what shows the criteria of a task, in their order, and then its other checks, by the iterations that
// worked on it.
func ProofsOf(criteria []string, records []loop.Record) (list []Proof) {
	before := map[string]string{}
	var last loop.Record
	for _, r := range records {
		for _, g := range r.Gates {
			before[g.Name] = cmp.Or(g.Before, before[g.Name])
		}
		if len(r.Gates) > 0 {
			last = r
		}
	}
	addChecks := func(of func(g loop.Gate) bool, criterion string) bool {
		found := false
		for _, g := range last.Gates {
			if g.Origin == "" || !of(g) {
				continue
			}
			found = true
			isOther := func(e loop.Evidence) bool { return e.Gate != g.Name }
			list = append(list, Proof{cmp.Or(criterion, g.Criterion), g.Name, before[g.Name], g.Status, g.Note,
				last.Number, slices.DeleteFunc(slices.Clone(last.Evidence), isOther)})
		}
		return found
	}
	shows := func(criterion string) func(loop.Gate) bool {
		return func(g loop.Gate) bool { return strings.EqualFold(strings.TrimSpace(criterion), g.Criterion) }
	}
	for _, criterion := range criteria {
		if !addChecks(shows(criterion), criterion) {
			list = append(list, Proof{Criterion: criterion})
		}
	}
	addChecks(func(g loop.Gate) bool {
		return !slices.ContainsFunc(criteria, func(criterion string) bool { return shows(criterion)(g) })
	}, "")
	return list
}

// String says it in one line.
func (p Proof) String() string {
	if p.Check == "" {
		return p.Criterion + ": not checked"
	}
	text := fmt.Sprintf("%s %s", Line(p.Check, 200), p.After)
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

package run

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/keep/outputs"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// showProof shows what proves the criteria of a task, and where the files of evidence are.
func showProof(a *command.App, p *action.Operator, r store.Run, records []loop.Record, proof []report.Proof) {
	if len(proof) > 0 {
		a.Result("\nProof:\n")
	}
	for _, one := range proof {
		a.Result("  - %s\n", report.Line(one.String(), 1000))
	}
	heading := "\nEvidence:\n"
	runs := filepath.Join(statedir.Of(r.Root, a.Env), "runs")
	for _, rec := range records {
		for _, e := range rec.Evidence {
			path := ""
			root, err := outputs.Open(runs, p.Store.OutputsFolder(), r.ID, strconv.Itoa(rec.Number))
			if err == nil {
				path = filepath.Join(root.Name(), "evidence", e.File)
				_, err = root.Stat(filepath.Join("evidence", e.File))
				_ = root.Close()
			}
			if err != nil {
				path = e.File + ", which is " + outputs.ReasonGone(p.Store.OutputsFolder(), rec.Pushed)
			}
			a.Result("%s  - %s: %s\n", heading, report.Line(cmp.Or(e.Gate, rec.Agent), 100), path)
			heading = ""
		}
	}
}

// showHarm lists what was refused, what looks like a secret, and what was
// withheld, below the iterations.
func showHarm(a *command.App, records []loop.Record) {
	var lines []string
	held := map[string]bool{}
	for _, r := range records {
		if f := r.Refused; f != nil {
			lines = append(lines, fmt.Sprintf("Iteration %d was ended at: %s\n  %s: it %s (%s)", r.Number,
				report.Line(f.Command, 200), f.Operation.Message(), f.Why, f.Pattern))
		}
		for _, s := range r.Secrets {
			lines = append(lines, fmt.Sprintf("Iteration %d added what looks like a secret: %s:%d (%s)", r.Number,
				report.Line(s.File, 200), s.Line, s.Kind))
		}
		for _, n := range r.Withheld {
			held[n] = true
		}
	}
	if len(held) > 0 {
		lines = append(lines, "Environment: "+session.WithheldWords(slices.Sorted(maps.Keys(held)), "the agent"))
	}
	if len(lines) > 0 {
		a.Result("\n%s\n", strings.Join(lines, "\n"))
	}
}

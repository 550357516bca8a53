package run

import (
	"time"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file is what pawl show prints of what people asked and reviews said.

// saidRow is a request of a person to a run, in show --json.
type saidRow struct {
	At     time.Time `json:"at"`
	Kind   string    `json:"kind"` // stop, pause, resume, answer, choice, reply, message or limits
	Person string    `json:"person"`
	Host   string    `json:"host"`
	Text   string    `json:"text"`
	Taken  bool      `json:"taken"` // the run has it
}

func saidRowOf(c store.Control) saidRow {
	return saidRow{c.At.UTC(), c.Kind, c.Person, c.Host, c.Text, c.Taken}
}

// showAsked lists who asked what of a run, below the iterations.
func showAsked(a *command.App, all []store.Control, shared bool) {
	if len(all) == 0 {
		return
	}
	a.Result("\n")
	var rows [][]any
	for _, c := range all {
		what := c.Kind
		if !c.Taken {
			what += ", not taken yet"
		}
		rows = append(rows, []any{command.Minute(c.At), report.Line(c.Who(shared), 60), what, report.Line(c.Text, 200)})
	}
	a.Table("ASKED AT\tBY\tWHAT\tTEXT", rows, a.Columns())
}

// reviewMark is a review among the gates of show.
func reviewMark(v *loop.Review) string {
	switch v.Verdict {
	case loop.Approved:
		return "✓review"
	case loop.Rejected:
		return "✗review"
	}
	return "?review"
}

// showReviews lists what reviews said, below the iterations.
func showReviews(a *command.App, records []loop.Record) {
	for i := range records {
		r := &records[i]
		if r.Review == nil {
			continue
		}
		a.Result("\nReview of iteration %d: %s\n", r.Number, console.ReviewLine(r.Review))
		for _, f := range r.Review.Items {
			a.Result("  [%s] %s\n", f.Severity, report.Line(report.ItemLine(f.Item), 300))
		}
		if n := len(r.Review.Reverted); n > 0 {
			a.Result("  It changed %s, now restored: %s\n", fault.Numbered(n, "file"),
				report.Line(r.Review.Reverted[0], 100))
		}
	}
}

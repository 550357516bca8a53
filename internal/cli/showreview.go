package cli

import (
	"fmt"

	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
)

// This file is what pawl show tells of reviews.

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
func (a *app) showReviews(records []loop.Record) {
	for i := range records {
		r := &records[i]
		if r.Review == nil {
			continue
		}
		a.result("\nReview of iteration %d: %s\n", r.Number, console.ReviewLine(r.Review))
		for _, f := range r.Review.Items {
			a.result("  [%s] %s\n", f.Severity, report.Line(console.Item(f.File, f.Line, "", f.Message, "", ""), 300))
		}
		if n := len(r.Review.Reverted); n > 0 {
			a.result("  It changed %d file(s), which were put back: %s\n", n, report.Line(r.Review.Reverted[0], 100))
		}
	}
}

func reviewText(v journal.Review) string {
	return fmt.Sprintf(" %d %s", v.Number, console.ReviewLine(&v.Review))
}

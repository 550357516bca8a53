package cli

import (
	"context"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/control"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
)

// printQuestion shows an escalation: what was tried, what the run changed, and
// what can be done. It is a result: a person decides from it. here is true when
// the answer is asked for below it.
func (a *app) printQuestion(run string, st loop.Status, q *loop.Question, changes string, here bool) {
	if asked := q.Asked(); len(asked) > 1 {
		a.printAsked(run, asked, here)
		return
	}
	a.result("\nA person is needed: %s\n", cleanLines(q.Text, 2000))
	if q.Asker != "" && !here {
		a.result("\n  Answer it:  pawl answer %s TEXT\n  Then go on: pawl resume %s\n\n", run, run)
	}
	if q.Asker != "" {
		return
	}
	if len(q.Attempts) > 0 {
		a.result("\nAttempts:\n")
		for _, t := range q.Attempts {
			a.result("  %s\n", report.Line(t, 300))
		}
	}
	if q.Pattern != "" {
		a.result("Pattern: %s\n", q.Pattern)
	}
	if changes != "" {
		a.result("\nWhat the run changed:\n%s", changes)
	}
	if len(q.Choices) > 0 {
		a.printChoices(run, st, q, here)
		return
	}
	choices := [][2]string{{"Go on with advice", "pawl answer " + run + " \"what to do differently\" && pawl resume " + run}}
	if st != loop.Pending { // a question needs its answer
		choices = append(choices, [2]string{"Go on as before", "pawl resume " + run})
	}
	choices = append(choices,
		[2]string{"See all that happened", "pawl show " + run + ", pawl show " + run + " --diff"},
		[2]string{"Undo the run's changes", "pawl rollback " + run + " --to 0"})
	a.result("\n")
	for i, c := range choices {
		a.result("  %d. %-24s %s\n", i+1, c[0]+":", c[1])
	}
}

// printAsked shows the questions of several steps.
func (a *app) printAsked(run string, asked []loop.Asks, here bool) {
	a.result("\n%d steps need a person:\n", len(asked))
	for _, q := range asked {
		a.result("  %s: %s\n", report.Line(q.Step, 200), strings.ReplaceAll(cleanLines(q.Text, 2000), "\n", "\n    "))
	}
	if !here {
		a.result("\n  Answer each: pawl answer %s --step %s TEXT\n  Then go on:  pawl resume %s\n\n", run, action.Word(asked[0].Step), run)
	}
}

// printChoices lists the numbered options, and how one is chosen from here.
func (a *app) printChoices(run string, st loop.Status, q *loop.Question, here bool) {
	a.result("\n")
	for i, c := range q.Choices {
		a.result("  %d. %s\n", i+1, report.Line(c.Text, 200))
	}
	a.result("\n")
	if !here {
		a.result("Choose one:       pawl answer %s NUMBER\n", run)
		words := "\"what to do differently\""
		if q.Choices[0].Do == control.Accept { // green work waits for its review
			words = "approve, or: pawl answer " + run + " \"reject: what must change\""
		}
		a.result("Or in your words: pawl answer %s %s\n", run, words)
		a.result("Then go on:       pawl resume %s\n", run)
		if st != loop.Pending { // a question needs its answer
			a.result("                  (which goes on as before when nothing was answered)\n")
		}
	}
	a.result("All of it:        pawl show %s, pawl show %s --diff\n\n", run, run)
}

// shownChanges is the diff for a question, unless the configuration leaves it out.
func (s *session) shownChanges(run string, q *loop.Question) string {
	if q.NoDiff {
		return ""
	}
	return s.changes(run)
}

const (
	// shownDiff and shownLines bound the diff in an escalation; show --diff has all.
	shownDiff  = 16 << 10
	shownLines = 40
	diffBound  = 10 * time.Second
)

// changes is the beginning of what the run changed, "" outside of git.
func (s *session) changes(run string) string {
	if s.tree == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), diffBound)
	defer cancel()
	snaps, err := s.tree.Snapshots(ctx, run)
	if err != nil || len(snaps) == 0 {
		return ""
	}
	patch, cut, err := s.tree.Diff(ctx, snaps[0].Tree, snaps[len(snaps)-1].Tree, shownDiff)
	if err != nil || patch == "" {
		return ""
	}
	lines := strings.Split(strings.TrimSuffix(patch, "\n"), "\n")
	if len(lines) > shownLines {
		lines, cut = lines[:shownLines], true
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString("  " + console.Printable(l) + "\n")
	}
	if cut {
		b.WriteString("  … all of it: pawl show " + run + " --diff\n")
	}
	return b.String()
}

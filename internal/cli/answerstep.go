package cli

import (
	"bufio"
	"strings"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
)

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

// askForSteps asks on the terminal for each step; ok is false when all wait.
func (a *app) askForSteps(in *bufio.Reader, run string, asked []loop.Asks) (rep action.Reply, ok bool) {
	for _, q := range asked {
		line, err := a.readLine(in, "Your answer to "+report.Line(q.Step, 200)+" (Enter: later): ")
		if line != "" {
			rep.Steps = append(rep.Steps, loop.Asks{Step: q.Step, Text: line})
		}
		if err != nil {
			break
		}
	}
	if len(rep.Steps) == 0 {
		a.say("The questions wait. Answer one with: pawl answer %s --step STEP TEXT", run)
	}
	return rep, len(rep.Steps) > 0
}

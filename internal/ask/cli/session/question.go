package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
)

// askPerson asks on the terminal until it has an answer. ok is false when the
// question is to wait; Ctrl+C ends pawl, and the question waits too.
func askPerson(a *command.App, run string, s loop.State) (rep action.Reply, ok bool) {
	in := bufio.NewReader(a.Stdin)
	prompt := "Your answer (Enter: later): "
	if q := s.Question; len(q.Choices) > 0 {
		prompt = fmt.Sprintf("Your answer (1-%d, or in words; Enter: later): ", len(q.Choices))
	}
	if asked := s.Question.Asked(); len(asked) > 1 {
		return askForSteps(a, in, run, asked)
	}
	for {
		line, err := readLine(a, in, prompt)
		if line == "" || err != nil {
			a.Say("The question is kept. Answer it later with: pawl answer %s NUMBER|TEXT", run)
			return rep, false
		}
		rep, err := action.ReadReply(&s, []string{line})
		if err == nil && rep.Number != 0 && rep.Choice.Advice {
			more := "Anything that the agent should know (Enter: nothing)? "
			if rep.Choice.Needs {
				more = "What must change? "
			}
			rep.Text, _ = readLine(a, in, more)
			err = rep.CheckWords()
		}
		if err == nil {
			return rep, true
		}
		a.Say("%v", err)
	}
}

// askForSteps asks on the terminal for each step; ok is false when all wait.
func askForSteps(a *command.App, in *bufio.Reader, run string, asked []loop.Asks) (rep action.Reply, ok bool) {
	for _, q := range asked {
		line, err := readLine(a, in, "Your answer to "+report.Line(q.Step, 200)+" (Enter: later): ")
		if line != "" {
			rep.Steps = append(rep.Steps, loop.Asks{Step: q.Step, Text: line})
		}
		if err != nil {
			break
		}
	}
	if len(rep.Steps) == 0 {
		a.Say("The questions are kept. Answer one with: pawl answer %s --step STEP TEXT", run)
	}
	return rep, len(rep.Steps) > 0
}

func readLine(a *command.App, in *bufio.Reader, prompt string) (string, error) {
	_, _ = fmt.Fprint(a.Stderr, prompt)
	line, err := in.ReadString('\n')
	if errors.Is(err, io.EOF) {
		_, _ = fmt.Fprintln(a.Stderr)
	}
	return strings.TrimSpace(line), err
}

// resumeAnswered resumes a run whose question was answered on the terminal, and
// makes the exit status of how it ended then.
func (s *Session) resumeAnswered(ctx context.Context, run string, rep action.Reply) error {
	if !rep.EndsRun() {
		s.showing.Lock()
		s.Screen = console.New(s.App.Terminal(), s.Plan.Name)
		s.showing.Unlock()
		return s.DriveOn(ctx, run, rep.Event(&s.Plan.Policy))
	}
	r, err := s.Store.Run(ctx, run)
	if err == nil {
		err = s.App.Operator(s.Store, r.Root).EndByOption(ctx, r, rep)
	}
	if err != nil {
		return s.App.ExplainNotFound(err, run)
	}
	switch rep.Choice.Do {
	case control.TakeOver:
		return command.StatusError(command.ExitPerson)
	case control.GiveUp:
		return command.StatusError(command.ExitFailed)
	}
	return nil
}

// PrintQuestion shows an escalation: what was tried, what the run changed, and
// what can be done. It is a result: a person decides from it. here is true when
// the answer is asked for below it. task is the run's; of a procedure it has no id.
func PrintQuestion(a *command.App, run string, task *board.Case, st loop.Status, q *loop.Question, changes string,
	here bool) {
	if asked := q.Asked(); len(asked) > 1 {
		printAsked(a, run, asked, here)
		return
	}
	a.Result("\nA person is needed: %s\n", command.CleanLines(q.Text, 2000))
	if q.Asker != "" && !here {
		a.Result("\n  Answer it, and continue: pawl answer %s TEXT\n\n", run)
	}
	if q.Asker != "" {
		return
	}
	if len(q.Attempts) > 0 {
		a.Result("\nAttempts:\n")
		for _, t := range q.Attempts {
			a.Result("  %s\n", report.Line(t, 300))
		}
	}
	if q.Pattern != "" {
		a.Result("Pattern: %s\n", q.Pattern)
	}
	a.Result("%s", changes)
	if len(q.Choices) > 0 {
		printChoices(a, run, st, q, here)
		return
	}
	choices := [][2]string{{"Answer", "pawl answer " + run + " \"your answer\""}}
	if st != loop.Pending { // nothing was asked that needs an answer
		choices = [][2]string{{"Continue with advice", "pawl answer " + run + " \"what to do differently\""},
			{"Continue as before", "pawl resume " + run}}
	}
	choices = append(choices,
		[2]string{"See all that happened", "pawl show " + run + ", pawl show " + run + " --diff"},
		[2]string{"Undo the run's changes", UndoCommand(run, task)})
	a.Result("\n")
	for _, c := range choices {
		a.Result("%-24s %s\n", c[0]+":", c[1])
	}
}

// UndoCommand takes back what a run changed.
func UndoCommand(run string, task *board.Case) string {
	switch {
	case task.Status == board.Done:
		return "pawl revert " + task.ID
	case task.ID != "":
		return "pawl case rollback " + task.ID
	}
	return "pawl rollback " + run + " --to 0"
}

// printAsked shows the questions of several steps.
func printAsked(a *command.App, run string, asked []loop.Asks, here bool) {
	a.Result("\n%d steps need a person:\n", len(asked))
	for _, q := range asked {
		a.Result("  %s: %s\n", report.Line(q.Step, 200), strings.ReplaceAll(command.CleanLines(q.Text, 2000), "\n", "\n    "))
	}
	if !here {
		a.Result("\n  Answer each: pawl answer %s --step %s TEXT\n  The last answer resumes the run.\n\n", run,
			fault.QuoteShell(asked[0].Step))
	}
}

// printChoices lists the numbered options, and how one is chosen from here.
func printChoices(a *command.App, run string, st loop.Status, q *loop.Question, here bool) {
	a.Result("\n")
	for i, c := range q.Choices {
		a.Result("  %d. %s\n", i+1, report.Line(c.Text, 200))
	}
	a.Result("\n")
	if !here {
		a.Result("Choose one:       pawl answer %s NUMBER\n", run)
		words := "\"what to do differently\""
		if q.Choices[0].Do == control.Accept { // green work waits for its review
			words = "approve, or: pawl answer " + run + " \"reject: what must change\""
		}
		if slices.ContainsFunc(q.Choices, func(c control.Choice) bool { return c.Advice && !c.Needs }) {
			a.Result("With guidance:    pawl answer %s NUMBER \"what to do differently\"\n", run)
		}
		a.Result("Or in your words: pawl answer %s %s\n", run, words)
		isAtLimit := st == loop.Exhausted || st == loop.TimedOut // which has to be raised
		if st != loop.Pending && !isAtLimit {                    // a question needs its answer
			a.Result("Continue:         pawl resume %s\n", run)
		}
	}
	a.Result("All of it:        pawl show %s, pawl show %s --diff\n\n", run, run)
}

// shownChanges shows the changes of the run, unless the configuration leaves them out, and names
// the files that the person changed meanwhile. It is "" outside of git.
func (s *Session) shownChanges(run string, q *loop.Question) string {
	if s.Tree == nil || s.Store == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), command.DiffBound)
	defer cancel()
	r, err := s.Store.Run(ctx, run)
	if err != nil {
		return ""
	}
	w, err := s.App.Operator(s.Store, r.Root).WorkOf(ctx, r)
	if err != nil {
		return ""
	}
	shown := ""
	if !q.NoDiff {
		shown = beginningOfChanges(ctx, run, &w)
	}
	if mine, err := w.PersonsEdits(ctx); err == nil && len(mine) > 0 {
		shown += "\nYour own edits came in while it worked: " + deliver.Some(mine) +
			". They may be why a gate is red; giving up leaves them as they are.\n"
	}
	return shown
}

// beginningOfChanges returns the beginning of a run's work; "" when there is none.
func beginningOfChanges(ctx context.Context, run string, w *action.Work) string {
	patch, cut, err := w.Tree.Diff(ctx, w.From, w.To, command.ShownDiff)
	if err != nil || patch == "" {
		return ""
	}
	lines := strings.Split(strings.TrimSuffix(patch, "\n"), "\n")
	if len(lines) > command.ShownLines {
		lines, cut = lines[:command.ShownLines], true
	}
	var b strings.Builder
	b.WriteString("\nWhat the run changed:\n")
	for _, l := range lines {
		b.WriteString("  " + console.Printable(l) + "\n")
	}
	if cut {
		b.WriteString("  … all of it: pawl show " + run + " --diff\n")
	}
	return b.String()
}

// readSetup returns the stored setup of a run; it is empty if the run cannot be read.
func (s *Session) readSetup(ctx context.Context, run string) action.Setup {
	r, err := s.Store.Run(ctx, run)
	if err != nil {
		return action.Setup{}
	}
	return action.SetupOf(r)
}

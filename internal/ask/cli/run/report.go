package run

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// The forms that show can print a run in.
const (
	formText     = "text"
	formJSON     = "json"
	formMarkdown = "markdown"
	formHTML     = "html"
)

var showForms = []string{formText, formJSON, formMarkdown, formHTML}

// showing is what the flags of show ask for.
type showing struct {
	diff         bool
	form, output string
}

func (s *showing) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&s.diff, "diff", false, "show what the run changed, as a patch")
	f.StringVar(&s.form, "format", "", "text, json, or a report: markdown or html (one file that needs nothing else)")
	f.StringVarP(&s.output, "output", "o", "", "write to `FILE` instead of stdout")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(showForms, cobra.ShellCompDirectiveNoFileComp))
	cmd.MarkFlagsMutuallyExclusive("diff", "format")
}

// checkFlags checks the flags against each other. md is accepted for markdown.
func (s *showing) checkFlags(a *command.App) error {
	switch s.form {
	case "":
		s.form = formText
		if a.JSON {
			s.form = formJSON
		}
	case "md":
		s.form = formMarkdown
	}
	if !slices.Contains(showForms, s.form) {
		return command.Usage("--format %s: it is text, json, markdown or html", s.form)
	}
	if a.JSON && s.form != formJSON {
		return command.Usage("--json and --format %s: use one of them", s.form)
	}
	if s.diff && s.form == formJSON {
		return command.Usage("--diff prints a patch: it has no JSON")
	}
	a.JSON = s.form == formJSON
	return nil
}

// writeInto collects what do prints, and writes it to the file if do succeeds.
func writeInto(a *command.App, file string, do func() error) error {
	if file == "" {
		return do()
	}
	stdout, page := a.Stdout, &bytes.Buffer{}
	a.Stdout = page
	err := do()
	a.Stdout = stdout
	if err != nil {
		return err
	}
	if err := files.Replace(a.InDir(file), page.Bytes(), 0o644, false); err != nil {
		return fmt.Errorf("cannot write %s: %v", file, err)
	}
	a.Say("Written to %s", file)
	return nil
}

// showReport prints a run as a report.
func showReport(ctx context.Context, a *command.App, p *action.Operator, r store.Run, form string) error {
	in, err := reportInput(ctx, p, r)
	if err != nil {
		return err
	}
	rep := report.New(in)
	write := rep.HTML
	if form == formMarkdown {
		write = rep.Markdown
	}
	text, err := write()
	if err == nil {
		a.Result("%s", text)
	}
	return err
}

func reportInput(ctx context.Context, p *action.Operator, r store.Run) (in report.Input, err error) {
	l, _ := p.AsIs(ctx, r)
	in = report.Input{
		Run: r.ID, Name: r.Name, Kind: r.Kind, Status: loop.Status(l.Status), Why: l.Why,
		StartedAt: r.StartedAt.Local(),
		Now:       time.Now(), Task: action.TaskOf(ctx, p.Store, r),
		Changes: changesOf(ctx, p, r), Sandbox: action.SetupOf(r).Sandbox, Version: command.BuildVersion(),
	}
	if in.State, err = storedrun.StateOf(r); err != nil {
		return in, err
	}
	if in.Records, err = p.Store.Iterations(ctx, r.ID); err != nil {
		return in, err
	}
	if in.Moments, err = listMoments(ctx, p.Store, r.ID); err != nil {
		return in, err
	}
	if r.Kind == string(loop.Workflow) {
		if in.Executions, err = action.ListExecutions(ctx, p.Store, r.ID); err != nil {
			return in, err
		}
	}
	in.Next = suggestCommands(r, &in.Task, in.Status, in.State.Question, in.Changes)
	return in, nil
}

// changeWords are git's letters for what became of a file.
var changeWords = map[byte]string{'A': "added", 'M': "modified", 'D': "deleted", 'R': "renamed"}

// changesOf returns the changes of the run for its report. It returns nil outside of git,
// and if the snapshots have been removed.
func changesOf(ctx context.Context, p *action.Operator, r store.Run) *report.Changes {
	w, err := p.WorkOf(ctx, r)
	if err != nil {
		return nil
	}
	all, more, err := w.Tree.Changes(ctx, w.From, w.To)
	stat, serr := w.Tree.DiffStat(ctx, w.From, w.To)
	if err != nil || serr != nil {
		return nil
	}
	out := &report.Changes{More: more, Added: stat.Added, Deleted: stat.Deleted}
	for _, c := range all {
		out.Files = append(out.Files, report.File{Status: cmp.Or(changeWords[c.Status], "changed"), Path: c.Path})
	}
	return out
}

// listMoments reads the journal of a run for a report.
func listMoments(ctx context.Context, st *store.Store, run string) (all []report.Moment, err error) {
	for e, err := range journal.Read(ctx, st, run, 0) {
		if err != nil {
			return nil, err
		}
		all = append(all, momentsOf(e)...)
	}
	return all, nil
}

// momentKinds are those of the events that a report is about.
var momentKinds = map[string]report.MomentKind{
	journal.RunCreated: report.Began, journal.RunResumed: report.Resumed, journal.Recovered: report.Recovered,
	journal.IterationEnded: report.Ended, journal.IterationReviewed: report.Ended,
	journal.StepStarted: report.Sign, journal.StepEnded: report.Sign,
	journal.WaitStarted: report.WaitBegan, journal.WaitOver: report.WaitEnded,
	journal.QuestionAsked: report.Asked, journal.Answered: report.Answered, journal.Warning: report.Warned,
	journal.Paused: report.Rested, journal.Finished: report.Rested,
	journal.RolledBack: report.RolledBack,
}

// momentsOf translates an event into moments of a report. An event that is stored with
// the next command also has a moment for the strategy that was chosen, or for the wait
// that begins.
func momentsOf(e journal.Event) (all []report.Moment) {
	data := decodeData[struct {
		Number, Attempt, To int
		Text, Why, From     string
		Next                *loop.Command
	}](e)
	add := func(kind report.MomentKind, number, attempt int, text string) {
		all = append(all, report.Moment{At: e.At.Local(), Kind: kind, Number: number, Attempt: attempt, Text: text})
	}
	text := cmp.Or(data.Text, data.Why, data.From)
	if e.Kind == journal.RolledBack {
		text = fmt.Sprintf("the snapshot after iteration %d", data.To)
	}
	if kind, ok := momentKinds[e.Kind]; ok {
		add(kind, data.Number, data.Attempt, text)
	}
	c := data.Next
	if c == nil {
		return all
	}
	again := c.Kind == loop.Run || c.Kind == loop.Wait
	if again && c.StrategyWhy != "" {
		add(report.Chosen, c.Iteration, c.Attempt, c.StrategyWhy)
	}
	if c.Kind == loop.Wait {
		add(report.WaitBegan, 0, 0, c.Why)
	}
	return all
}

// suggestCommands returns the commands that a report offers for a run of this status; task is empty where it has none.
func suggestCommands(r store.Run, task *board.Case, st loop.Status, q *loop.Question, c *report.Changes) []report.Advice {
	show, logs, resume, answer := "pawl show "+r.ID, "pawl logs "+r.ID, "pawl resume "+r.ID, "pawl answer "+r.ID
	var out []report.Advice
	switch st {
	case loop.Running, loop.Waiting:
		return []report.Advice{{What: "Watch it", Command: logs + " -f"},
			{What: "Stop it", Command: "pawl stop " + r.ID}}
	case loop.Pending:
		out = append(out, report.Advice{What: "Answer the question", Command: answer + " \"…\""})
	case loop.Blocked, loop.Aborted, loop.FailedRun:
		if q != nil && len(q.Choices) > 0 {
			out = append(out, report.Advice{What: "Choose an option", Command: answer + " NUMBER"})
		}
		out = append(out, report.Advice{What: "Continue with advice", Command: answer + " \"what to do differently\""},
			report.Advice{What: "Continue as before", Command: resume})
	case loop.TimedOut, loop.Exhausted:
		out = append(out, report.Advice{What: "Continue with a higher limit", Command: resume +
			" --max-iterations N, --max-cost USD or --timeout DURATION"})
	case loop.Paused, loop.Interrupted, loop.Stopped:
		out = append(out, report.Advice{What: "Go on", Command: resume})
	}
	undo := report.Advice{What: "Undo what it changed", Command: session.UndoCommand(r.ID, task)}
	switch {
	case task.Status == board.Done:
		undo.What = "Take back what it landed"
	case task.ID == "" && action.SetupOf(r).Undelivered != "":
		undo = report.Advice{What: "Apply it to your files", Command: "pawl apply " + r.ID}
	}
	switch {
	case c != nil && len(c.Files) > 0:
		out = append(out, report.Advice{What: "See what it changed", Command: show + " --diff"}, undo)
	case st != loop.Completed:
		out = append(out, report.Advice{What: "See what happened", Command: logs})
	}
	return out
}

// maxDiff bounds what show --diff prints.
const maxDiff = 100 << 20

func showDiff(ctx context.Context, a *command.App, p *action.Operator, r store.Run) error {
	w, err := p.WorkOf(ctx, r)
	if err != nil {
		return err
	}
	if w.Said != "" {
		a.Say("%s", w.Said)
	}
	return printDiff(ctx, a, w.Tree, w.From, w.To)
}

func printDiff(ctx context.Context, a *command.App, tree *workspace.Checkout, from, to string) error {
	patch, cut, err := tree.Diff(ctx, from, to, maxDiff)
	if err != nil {
		return err
	}
	a.Result("%s", patch)
	if cut {
		a.Say("The patch was cut at 100 MB.")
	}
	return nil
}

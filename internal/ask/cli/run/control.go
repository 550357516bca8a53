package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/retention"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

func answerCommand(a *command.App) *cobra.Command {
	step, stay := "", false
	cmd := command.Leaf("answer RUN TEXT|NUMBER", "Answer a run's question, in words or with the number of an option",
		command.RunAndText("an answer", "answer"),
		func(ctx context.Context, args []string) error {
			goesOn, run := false, ""
			err := a.WithRun(ctx, args[0], func(p *action.Operator, r store.Run) (err error) {
				run = r.ID
				goesOn, err = p.Answer(ctx, r, step, args[1:])
				drives := stay || storedrun.Alive(r.Owner)
				if goesOn && drives {
					goesOn = false
					a.Say("Continue with: pawl resume %s", r.ID)
				}
				return err
			})
			if err != nil || !goesOn {
				return err
			}
			return resumeByName(ctx, a, run, planner.Flags{})
		})
	cmd.Flags().BoolVar(&stay, "no-resume", false, "keep the answer, but do not continue the run")
	cmd.Flags().StringVar(&step, "step", "", "the step of a workflow to answer, if several ask")
	return cmd
}

func stopCommand(a *command.App) *cobra.Command {
	return a.OnRun("stop RUN", "Stop a run now; its agent is ended, its work is kept",
		func(p *action.Operator, ctx context.Context, r store.Run) error { return p.Stop(ctx, r, true) })
}

func messageCommand(a *command.App) *cobra.Command {
	return command.Leaf("message RUN TEXT", "Send a message to the agent of a run; all later prompts contain it",
		command.RunAndText("a message", "message"),
		func(ctx context.Context, args []string) error {
			return a.WithRun(ctx, args[0], func(p *action.Operator, r store.Run) error {
				return p.Message(ctx, r, strings.Join(args[1:], " "), "cli")
			})
		})
}

func rollbackCommand(a *command.App) *cobra.Command {
	to := action.BackTo{N: -1}
	var cmd *cobra.Command
	cmd = a.OnRun("rollback RUN", "Restore the files from the snapshot after an iteration; this can be undone",
		func(p *action.Operator, ctx context.Context, r store.Run) error {
			if err := command.CheckBackTo(cmd, to, "run"); err != nil {
				return err
			}
			return p.Rollback(ctx, r, to)
		})
	command.TextOnly(cmd)
	cmd.Flags().IntVar(&to.N, "to", -1,
		"the iteration `N` whose snapshot to go back to; 0 is before the run; default: the one before the last")
	cmd.Flags().Lookup("to").DefValue = "0" // help says in words what the default is
	cmd.Flags().BoolVar(&to.Undo, "undo", false, "bring back what was there before the last rollback")
	return cmd
}

func applyCommand(a *command.App) *cobra.Command {
	var o action.ApplyOptions
	cmd := a.OnRun("apply RUN", "Bring work of a run that was not delivered into your files",
		func(p *action.Operator, ctx context.Context, r store.Run) error { return applyWork(ctx, a, p, r, o) })
	cmd.Flags().BoolVar(&o.Check, "check", false, "only say what would be done")
	cmd.Flags().BoolVarP(&o.Confirmed, "yes", "y", false,
		"also apply protected files, and files that your own programs run by themselves, such as git hooks")
	return cmd
}

// applyWork delivers the run's work and prints the result. A conflict is an error.
func applyWork(ctx context.Context, a *command.App, p *action.Operator, r store.Run, o action.ApplyOptions) error {
	out, err := p.Apply(ctx, r, o)
	if err != nil {
		return err
	}
	if !a.JSON {
		p.PrintApplied(out, a.Verbose)
	} else if err := a.Document(out); err != nil {
		return err
	}
	switch out.Status {
	case "confirm":
		return command.StatusError(command.ExitPerson)
	case "conflict":
		return command.StatusError(command.ExitFailed)
	}
	return nil
}

func settleCommand(a *command.App) *cobra.Command {
	choices := []delivery.Choice{delivery.Mine, delivery.Agents, delivery.Both, delivery.Edited}
	chosen := make([]bool, len(choices))
	cmd := command.Leaf("settle RUN [PATH]", "Resolve a file that you and the agent both changed",
		func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return command.Usage("settle needs a run, and a file to settle one: pawl settle RUN PATH --mine")
			}
			return nil
		},
		func(ctx context.Context, args []string) error {
			var choice delivery.Choice
			for i, is := range chosen {
				if is && choice != "" {
					return command.Usage("--%s and --%s cannot be used together", choice, choices[i])
				} else if is {
					choice = choices[i]
				}
			}
			if (choice != "") != (len(args) == 2) {
				return command.Usage("give a file and a choice: pawl settle %s PATH --mine, --agent, --both or --edit",
					args[0])
			}
			return a.WithRun(ctx, args[0], func(p *action.Operator, r store.Run) error {
				if choice == "" {
					return showConflicts(ctx, a, p, r)
				}
				return takeSide(ctx, a, p, r, args[1], choice)
			})
		})
	for i, use := range []string{"keep your lines where both changed them", "take the agent's lines there",
		"take the lines of both, yours first", "write the file in your editor, from both sides"} {
		cmd.Flags().BoolVar(&chosen[i], string(choices[i]), false, use)
	}
	return cmd
}

// showConflicts prints both sides of each file.
func showConflicts(ctx context.Context, a *command.App, p *action.Operator, r store.Run) error {
	all, err := p.ListConflicts(ctx, r)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.Document(all)
	}
	open := 0
	for _, c := range all {
		switch {
		case c.Settled != nil:
			a.Result("%s: settled\n", report.Line(c.Path, 300))
			continue
		case c.Text == "":
			a.Result("%s: %s\n", report.Line(c.Path, 300), c.Why)
		default:
			a.Result("%s:\n", report.Line(c.Path, 300))
			for _, line := range conflictLines(c.Text) {
				a.Result("%s\n", console.Printable(line))
			}
		}
		open++
	}
	if open == 0 {
		if len(all) == 0 {
			return sayNoConflicts(ctx, a, p, r)
		}
		a.Say("Continue with: %s. Or choose again: pawl settle %s PATH --mine, --agent, --both or --edit",
			bringsWorkHome(r), r.ID)
		return nil
	}
	a.Say("Choose for each: pawl settle %s PATH --mine, --agent, --both or --edit. Then: %s", r.ID, bringsWorkHome(r))
	return nil
}

// sayNoConflicts names the command that delivers work, if there is any left.
func sayNoConflicts(ctx context.Context, a *command.App, p *action.Operator, r store.Run) error {
	next := ""
	status := loop.Status(r.Status)
	left := action.SetupOf(r).ListUndelivered(ctx, p.Store, "", r.ID, status)
	if len(left) > 0 || action.CanContinue(status) {
		next = ". Continue with: " + bringsWorkHome(r)
	}
	a.Say("Run %s has no conflicts to settle%s", r.ID, next)
	return nil
}

// linesAround is how many lines are printed before and after a conflict.
const linesAround = 3

// conflictLines are the lines of a file that are in conflict, with some around them, and how many are left out
// between.
func conflictLines(text string) (out []string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	shown := make([]bool, len(lines))
	begun := -1
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		rest := strings.TrimLeft(line, "<>")
		isMark := len(line)-len(rest) >= 7
		switch {
		case isMark && line[0] == '<' && rest == " mine":
			begun = i
		case isMark && line[0] == '>' && rest == " agent" && begun >= 0:
			for n := max(0, begun-linesAround); n <= min(len(lines)-1, i+linesAround); n++ {
				shown[n] = true
			}
			begun = -1
		}
	}
	if !slices.Contains(shown, true) {
		return lines
	}
	left := 0
	for i := range len(lines) + 1 {
		isShown := i < len(lines) && shown[i]
		ends := isShown || i == len(lines)
		if left > 0 && ends {
			out, left = append(out, fmt.Sprintf("… %s without a conflict", fault.Numbered(left, "line"))), 0
		}
		if isShown {
			out = append(out, strings.TrimRight(lines[i], "\r"))
		} else {
			left++
		}
	}
	return out
}

// bringsWorkHome is the command that delivers the work of a run after its conflicts.
func bringsWorkHome(r store.Run) string {
	if action.CanContinue(loop.Status(r.Status)) {
		return "pawl resume " + r.ID
	}
	return "pawl apply " + r.ID
}

// takeSide stores which side of a file the user chose.
func takeSide(ctx context.Context, a *command.App, p *action.Operator, r store.Run, path string, choice delivery.Choice,
) error {
	here, err := filepath.Abs(filepath.Join(a.Dir, path))
	if filepath.IsAbs(path) {
		here = path
	}
	if err != nil {
		return err
	}
	draft := ""
	path, left, err := p.SettleConflict(ctx, r, []string{here, filepath.ToSlash(filepath.Clean(path))}, choice,
		func(path string, text []byte) (edited []byte, err error) {
			edited, draft, err = editText(ctx, a, path, text)
			return edited, err
		})
	switch {
	case err != nil && draft != "":
		return fault.Of(fault.Refused, err).Hint("What you wrote is kept: %s", draft).
			Hint("Edit the file again: pawl settle %s %s --edit", r.ID, path)
	case err != nil:
		return err
	case draft != "":
		_ = os.RemoveAll(filepath.Dir(draft))
	}
	how := map[delivery.Choice]string{delivery.Mine: "with your lines", delivery.Agents: "with the agent's lines",
		delivery.Both: "with the lines of both", delivery.Edited: "as you edited it"}[choice]
	if left > 0 {
		a.Say("%s is settled %s; %s left: pawl settle %s", path, how, fault.Numbered(left, "file"), r.ID)
		return nil
	}
	a.Say("%s is settled %s. Continue with: %s", path, how, bringsWorkHome(r))
	return nil
}

// editText has the person write a text in their editor. draft is the file that has it, in a folder of
// its own; "" if they changed nothing.
func editText(ctx context.Context, a *command.App, path string, text []byte) (edited []byte, draft string, err error) {
	dir, err := os.MkdirTemp("", "pawl-settle-")
	if err != nil {
		return nil, "", err
	}
	file := filepath.Join(dir, filepath.Base(path))
	if err = os.WriteFile(file, text, 0o600); err == nil {
		err = a.Edit(ctx, file)
	}
	edited, rerr := os.ReadFile(file)
	if rerr != nil || bytes.Equal(edited, text) {
		return edited, "", errors.Join(err, rerr, os.RemoveAll(dir))
	}
	return edited, file, err
}

func gcCommand(a *command.App) *cobra.Command {
	var dry bool
	cmd := command.Plain("gc", "Remove old runs, their output and old events",
		func(ctx context.Context) error { return collectGarbage(ctx, a, dry) })
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would be removed")
	return cmd
}

func collectGarbage(ctx context.Context, a *command.App, dry bool) error {
	c, err := a.Load(nil)
	if err != nil {
		return err
	}
	return a.WithOperator(ctx, func(p *action.Operator) error {
		o, err := command.RetentionOptions(ctx, c, statedir.Of(c.Root, a.Env), p.Store)
		if err != nil {
			return err
		}
		o.Dry = dry
		r, err := retention.Sweep(ctx, o)
		if a.JSON {
			return errors.Join(a.JSONLine(r), err)
		}
		verb := "Removed"
		if dry {
			verb = "Would remove"
		}
		a.Result("%s %s and the output of %s (%.1f MB), %s and %s.\n", verb, fault.Numbered(r.Runs, "run"),
			fault.Numbered(r.Outputs, "iteration"), float64(r.Bytes)/1e6, fault.Numbered(r.Events, "event"),
			fault.Numbered(r.Refs, "ref"))
		if r.Kept > 0 {
			a.Result("Kept %s with work that is not in your files: pawl ps\n", fault.Numbered(r.Kept, "run"))
		}
		if r.Broken > 0 {
			a.Result("Removed %s of pawl's own that pointed to nothing\n", fault.Numbered(r.Broken, "ref"))
		}
		if r.Packed > 0 {
			a.Result("%s loose objects: %d\n", map[bool]string{false: "Packed", true: "Would pack"}[dry], r.Packed)
		}
		return err
	})
}

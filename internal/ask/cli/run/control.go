package run

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/do/engine"
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
				drives := stay || engine.Alive(r.Owner)
				if goesOn && drives {
					goesOn = false
					a.Say("Go on with: pawl resume %s", r.ID)
				}
				return err
			})
			if err != nil || !goesOn {
				return err
			}
			return resume(ctx, a, run, planner.Flags{})
		})
	cmd.Flags().BoolVar(&stay, "no-resume", false, "keep the answer, and do not go on with the run")
	cmd.Flags().StringVar(&step, "step", "", "the step of a workflow that is answered, where several ask")
	return cmd
}

func stopCommand(a *command.App) *cobra.Command {
	return a.OnRun("stop RUN", "Stop a run now; its agent is ended, its work is kept",
		func(ctx context.Context, p *action.Operator, r store.Run) error { return p.Stop(ctx, r, true) })
}

func discardCommand(a *command.App) *cobra.Command {
	return a.OnRun("discard RUN", "Give up a run that waits; files and history stay",
		func(ctx context.Context, p *action.Operator, r store.Run) error { return p.DiscardRun(ctx, r) })
}

func pauseCommand(a *command.App) *cobra.Command {
	return a.OnRun("pause RUN", "Pause a run at the end of its iteration",
		func(ctx context.Context, p *action.Operator, r store.Run) error { return p.Pause(ctx, r) })
}

func messageCommand(a *command.App) *cobra.Command {
	return command.Leaf("message RUN TEXT", "Tell the agent of a run something; all later prompts have it",
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
	cmd = a.OnRun("rollback RUN", "Put the files back to the snapshot after an iteration; itself undoable",
		func(ctx context.Context, p *action.Operator, r store.Run) error {
			if err := command.CheckBackTo(cmd, to, "run"); err != nil {
				return err
			}
			return p.Rollback(ctx, r, to)
		})
	command.TextOnly(cmd)
	cmd.Flags().IntVar(&to.N, "to", -1,
		"the iteration `N` whose snapshot to go back to; 0 is before the run; default: the one before the last")
	cmd.Flags().Lookup("to").DefValue = "0" // help says in words what the default is
	cmd.Flags().BoolVar(&to.Undo, "undo", false, "get back what was there before the last rollback")
	return cmd
}

func applyCommand(a *command.App) *cobra.Command {
	var check bool
	cmd := a.OnRun("apply RUN", "Bring what a run did in its copy into your files",
		func(ctx context.Context, p *action.Operator, r store.Run) error { return apply(ctx, a, p, r, check) })
	cmd.Flags().BoolVar(&check, "check", false, "say what would be done, and do nothing")
	return cmd
}

// apply prints what became of a result. That it does not fit is a failure.
func apply(ctx context.Context, a *command.App, p *action.Operator, r store.Run, check bool) error {
	out, err := p.Apply(ctx, r, check)
	if err != nil {
		return err
	}
	if !a.JSON {
		p.PrintApplied(out, a.Verbose)
	} else if err := a.Document(out); err != nil {
		return err
	}
	if out.Status == "conflict" {
		return command.StatusError(command.ExitFailed)
	}
	return nil
}

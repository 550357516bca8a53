package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// onRun is a command that does one thing with a run.
func (a *app) onRun(use, short string, do func(context.Context, *action.Operator, sqlite.Run) error) *cobra.Command {
	return leaf(use, short, exactlyOne("a run or a procedure"), func(ctx context.Context, args []string) error {
		return a.withRun(ctx, args[0], func(p *action.Operator, r sqlite.Run) error { return do(ctx, p, r) })
	})
}

func (a *app) stopCommand() *cobra.Command {
	return a.onRun("stop RUN", "Stop a run now; its agent is ended, its work is kept",
		func(ctx context.Context, p *action.Operator, r sqlite.Run) error { return p.Stop(ctx, r, true) })
}

func (a *app) pauseCommand() *cobra.Command {
	return a.onRun("pause RUN", "Pause a run at the end of its iteration",
		func(ctx context.Context, p *action.Operator, r sqlite.Run) error { return p.Pause(ctx, r) })
}

// aRunAndText is for commands that take a run and words; what names the words.
func aRunAndText(what, example string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < 2 || strings.TrimSpace(strings.Join(args[1:], " ")) == "" {
			return usage("%s needs a run and a text: pawl %s RUN TEXT", what, example)
		}
		return nil
	}
}

func (a *app) messageCommand() *cobra.Command {
	cmd := leaf("message RUN TEXT", "Tell the agent of a run something; it goes into the next prompt", aRunAndText("a message", "message"),
		func(ctx context.Context, args []string) error {
			return a.withRun(ctx, args[0], func(p *action.Operator, r sqlite.Run) error {
				return p.Message(ctx, r, strings.Join(args[1:], " "), "cli")
			})
		})
	cmd.Long = "Tell the agent of a run something. An agent that works is not interrupted: the text goes into the\n" +
		"prompt of the next iteration, also when the run rests now and goes on later. Of a workflow, the\n" +
		"agent of the step that starts next is told."
	cmd.Example = "  pawl message build \"the fixture is in testdata/small\""
	return cmd
}

func (a *app) rollbackCommand() *cobra.Command {
	to := action.BackTo{N: -1}
	var cmd *cobra.Command
	cmd = a.onRun("rollback RUN", "Put the files back to the snapshot after an iteration; itself undoable",
		func(ctx context.Context, p *action.Operator, r sqlite.Run) error {
			if err := checkBackTo(cmd, to, "run"); err != nil {
				return err
			}
			return p.Rollback(ctx, r, to)
		})
	cmd.Long = "Put the files back to the snapshot after iteration N; 0 is before the run. Only files that differ\n" +
		"are changed. What was there before is kept: --undo gets it back."
	cmd.Example = "  pawl rollback build --to 0\n  pawl rollback 7k3f --to 3\n  pawl rollback build --undo"
	cmd.Flags().IntVar(&to.N, "to", -1, "the iteration `N` whose snapshot to go back to; 0 is before the run; default: the one before the last")
	cmd.Flags().BoolVar(&to.Undo, "undo", false, "get back what was there before the last rollback")
	return cmd
}

// checkBackTo checks --to and --undo of a rollback; before is what 0 is before.
func checkBackTo(cmd *cobra.Command, to action.BackTo, before string) error {
	switch given := cmd.Flags().Changed("to"); {
	case given && to.Undo:
		return usage("--to and --undo exclude each other")
	case given && to.N < 0:
		return usage("--to %d: iterations count from 1; 0 is before the %s", to.N, before)
	}
	return nil
}

func (a *app) applyCommand() *cobra.Command {
	var check, discard bool
	cmd := a.onRun("apply RUN", "Bring what a run did in its copy into your files",
		func(ctx context.Context, p *action.Operator, r sqlite.Run) error {
			switch {
			case check && discard:
				return usage("--check and --discard exclude each other")
			case discard:
				return a.applied(p, func() (action.Application, error) { return p.Discard(ctx, r) })
			}
			return a.applied(p, func() (action.Application, error) { return p.Apply(ctx, r, check) })
		})
	cmd.Long = "Bring what a run at the level paranoid did in its disposable copy into your files. Only paths that the\n" +
		"run changed are written; if you changed one of them too, nothing is. Commits stay in the copy: files come.\n" +
		"What was there before is kept: pawl rollback RUN --undo gets it back."
	cmd.Example = "  pawl show build --diff\n  pawl apply build --check\n  pawl apply build"
	cmd.Flags().BoolVar(&check, "check", false, "say what would be done, and do nothing")
	cmd.Flags().BoolVar(&discard, "discard", false, "give the result up: remove the copy and what is kept of it")
	return cmd
}

// applied prints what became of a result. That it does not fit is a failure.
func (a *app) applied(p *action.Operator, do func() (action.Application, error)) error {
	out, err := do()
	if err != nil {
		return err
	}
	if !a.json {
		p.TellApplied(out, a.verbose)
	} else if err := a.document(out); err != nil {
		return err
	}
	if out.Status == "conflict" {
		return status(exitFailed)
	}
	return nil
}

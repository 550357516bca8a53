package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

func (a *app) applyCommand() *cobra.Command {
	var how applying
	cmd := &cobra.Command{
		Use: "apply RUN", Short: "Bring what a run did in its copy into your files",
		Long: "Bring what a run at the level paranoid did in its disposable copy into your files. Only paths that the\n" +
			"run changed are written; if you changed one of them too, nothing is. Commits stay in the copy: files come.\n" +
			"What was there before is kept: pawl rollback RUN --undo gets it back.",
		Example: "  pawl show build --diff\n  pawl apply build --check\n  pawl apply build",
		Args:    exactlyOne("a run or a procedure"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if how.check && how.discard {
				return usage("--check and --discard exclude each other")
			}
			return a.withRun(cmd.Context(), args[0], func(st *sqlite.Store, r sqlite.Run) error {
				return a.apply(cmd.Context(), st, r, how)
			})
		},
	}
	cmd.Flags().BoolVar(&how.check, "check", false, "say what would be done, and do nothing")
	cmd.Flags().BoolVar(&how.discard, "discard", false, "give the result up: remove the copy and what is kept of it")
	return cmd
}

type applying struct{ check, discard bool }

func (a *app) apply(ctx context.Context, st *sqlite.Store, r sqlite.Run, how applying) error {
	p := a.person(st, r.Root)
	do := func() (action.Application, error) { return p.Apply(ctx, r, how.check) }
	if how.discard {
		do = func() (action.Application, error) { return p.Discard(ctx, r) }
	}
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

// sayCopy says where the result of a run that worked on a copy is.
func (s *session) sayCopy(ctx context.Context, run string) {
	if !s.plan.Copy || s.tree == nil {
		return
	}
	snaps, err := s.tree.Snapshots(ctx, run)
	if err != nil || len(snaps) == 0 || snaps[0].Tree == snaps[len(snaps)-1].Tree {
		return
	}
	s.a.say("Your files were not touched: the result is in a copy.")
	s.a.say("  See it:   pawl show %s --diff", run)
	s.a.say("  Apply it: pawl apply %s", run)
}

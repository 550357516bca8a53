package cli

import (
	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

func (a *app) caseRollbackCommand() *cobra.Command {
	var to action.BackTo
	cmd := &cobra.Command{
		Use: "rollback ID", Short: "Take back the work of a task: its workspace as it began, or after an iteration; itself undoable",
		Long: "Put the workspace of a task back to the commit that it began at, or with --to N to the snapshot after\n" +
			"iteration N of its last run, and the task to pending. What was there before is kept on a ref: --undo gets it back.\n" +
			"Files that git ignores stay as they are.",
		Example: "  pawl case rollback task-007\n  pawl case rollback 7 --to 3\n  pawl case rollback 7 --undo",
		Args:    exactlyOne("the id of a task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := action.CaseID(args[0])
			if err != nil {
				return err
			}
			switch {
			case cmd.Flags().Changed("to") && to.Undo:
				return usage("--to and --undo exclude each other")
			case to.N < 0:
				return usage("--to %d: iterations count from 1; 0 is before the first", to.N)
			}
			return a.withPool(cmd.Context(), func(store *sqlite.Store, p *pool.Pool) error {
				return a.done(a.person(store, p.Root()).RollbackTask(cmd.Context(), p, id, to))
			})
		},
	}
	cmd.Flags().IntVar(&to.N, "to", 0, "the iteration `N` after which the files are wanted; 0 is before the first")
	cmd.Flags().BoolVar(&to.Undo, "undo", false, "get back what was there before the last rollback")
	return cmd
}

package cli

import (
	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

func (a *app) rollbackCommand() *cobra.Command {
	to := action.BackTo{N: -1}
	cmd := &cobra.Command{
		Use: "rollback RUN", Short: "Put the files back to the snapshot after an iteration; itself undoable",
		Long: "Put the files back to the snapshot after iteration N; 0 is before the run. Only files that differ\n" +
			"are changed. What was there before is kept: --undo gets it back.",
		Example: "  pawl rollback build --to 0\n  pawl rollback 7k3f --to 3\n  pawl rollback build --undo",
		Args:    exactlyOne("a run or a procedure"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch given := cmd.Flags().Changed("to"); {
			case given && to.Undo:
				return usage("--to and --undo exclude each other")
			case given && to.N < 0:
				return usage("--to %d: iterations count from 1; 0 is before the run", to.N)
			}
			return a.withRun(cmd.Context(), args[0], func(st *sqlite.Store, r sqlite.Run) error {
				return a.person(st, r.Root).Rollback(cmd.Context(), r, to)
			})
		},
	}
	cmd.Flags().IntVar(&to.N, "to", -1, "the iteration `N` whose snapshot to go back to; 0 is before the run; default: the one before the last")
	cmd.Flags().BoolVar(&to.Undo, "undo", false, "get back what was there before the last rollback")
	return cmd
}

package cli

import (
	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

func (a *app) stopCommand() *cobra.Command {
	return &cobra.Command{
		Use: "stop RUN", Short: "Stop a run now; its agent is ended, its work is kept",
		Args: exactlyOne("a run or a procedure"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRun(cmd.Context(), args[0], func(st *sqlite.Store, r sqlite.Run) error { return a.person(st, r.Root).Stop(cmd.Context(), r, true) })
		},
	}
}

func (a *app) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "pause RUN", Short: "Pause a run at the end of its iteration",
		Args: exactlyOne("a run or a procedure"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRun(cmd.Context(), args[0], func(st *sqlite.Store, r sqlite.Run) error { return a.person(st, r.Root).Pause(cmd.Context(), r) })
		},
	}
}

// person does things to the work of root, and says what came of them.
func (a *app) person(store *sqlite.Store, root string) *action.Operator {
	return &action.Operator{
		Store: store, Root: root, Env: a.env, Log: openLog, Say: a.say,
		Planner: func(root string, f planner.Flags) (*planner.Planner, error) {
			there := *a
			there.dir = root
			c, err := there.load(f.Paths())
			return there.planner(c, f), err
		},
		Result: func(format string, args ...any) {
			if !a.json {
				a.result(format, args...)
			}
		},
	}
}

// done prints a task that a deed changed: its document with --json, else a line.
func (a *app) done(d action.Done, err error) error {
	if err != nil {
		return err
	}
	return a.sayCase(&d.Case, "%s", d.Text)
}

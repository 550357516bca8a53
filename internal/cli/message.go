package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/sqlite"
)

func (a *app) messageCommand() *cobra.Command {
	return &cobra.Command{
		Use: "message RUN TEXT", Short: "Tell the agent of a run something; it goes into the next prompt",
		Long: "Tell the agent of a run something. An agent that works is not interrupted: the text goes into the\n" +
			"prompt of the next iteration, also when the run rests now and goes on later. Of a workflow, the\n" +
			"agent of the step that starts next is told.",
		Example: "  pawl message build \"the fixture is in testdata/small\"",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 || strings.TrimSpace(strings.Join(args[1:], " ")) == "" {
				return usage("a message needs a run and a text: pawl message RUN TEXT")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRun(cmd.Context(), args[0], func(st *sqlite.Store, r sqlite.Run) error {
				return a.person(st, r.Root).Message(cmd.Context(), r, strings.Join(args[1:], " "), "cli")
			})
		},
	}
}

package setup

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/cli/command"
)

func versionCommand(a *command.App) *cobra.Command {
	return command.Leaf("version", "Print the version", command.AtMost(0), func(context.Context, []string) error {
		if a.JSON {
			return a.JSONLine(map[string]string{"version": command.BuildVersion()})
		}
		a.Result("pawl %s\n", command.BuildVersion())
		return nil
	})
}

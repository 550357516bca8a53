package setup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/forge"
)

func upgradeCommand(a *command.App) *cobra.Command {
	check, from := false, ""
	cmd := command.Leaf("upgrade --check", "Say which release is the newest; nothing is replaced", command.AtMost(0),
		func(ctx context.Context, _ []string) error {
			if !check {
				return command.Usage("pawl does not replace itself").
					Hint("See whether there is a newer one: pawl upgrade --check").
					Hint("Install it as this one was installed: docs/install.md")
			}
			r, err := forge.NewestRelease(ctx, from)
			if err != nil {
				return fault.Of(fault.Failed, fmt.Errorf("cannot see which release is the newest: %v", err)).
					Hint("This is pawl %s; all are at https://github.com/pawl-dev/pawl/releases", command.BuildVersion()).
					Hint("Ask a mirror: pawl upgrade --check --from URL")
			}
			if a.JSON {
				return a.JSONLine(map[string]any{"version": command.BuildVersion(), "newest": r.Name, "published": r.When, "page": r.Page})
			}
			a.Result("%s\n", comparison(command.BuildVersion(), r))
			return nil
		})
	cmd.Flags().BoolVar(&check, "check", false, "ask which release is the newest")
	cmd.Flags().StringVar(&from, "from", forge.Releases, "ask `URL`, which answers as GitHub does")
	return cmd
}

// comparison puts the newest release beside this program.
func comparison(version string, r forge.Release) string {
	if own, _, _ := strings.Cut(version, " "); own == r.Name {
		return fmt.Sprintf("This is pawl %s, the newest release.", r.Name)
	}
	return fmt.Sprintf("This is pawl %s. The newest release is %s, of %s: %s", version, r.Name, r.When.Format(time.DateOnly), r.Page)
}

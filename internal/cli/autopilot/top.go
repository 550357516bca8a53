package autopilot

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/dashboard"
	"github.com/pawl-dev/pawl/internal/store"
)

func topCommand(a *command.App) *cobra.Command {
	return command.Leaf("top", "Watch the autopilot in this terminal", command.AtMost(0),
		func(ctx context.Context, _ []string) error {
			if !a.Interactive() {
				return command.Usage("pawl top draws on a terminal, and this is none").Hint("Print it once: pawl autopilot status")
			}
			return a.WithOperator(ctx, func(p *action.Operator) error {
				p.Store.OnWait(nil) // the dashboard has the screen
				o := dashboardOptions(a, p.Store, p.Root)
				o.Hint = "Enter leaves; read along with an agent: pawl logs TASK -f"
				if f, ok := a.Stdin.(*os.File); ok {
					o.Leave = func() bool {
						typed := console.Waits(f)
						if typed {
							_, _ = f.Read(make([]byte, 4096)) // the shell would take it for its own
						}
						return typed
					}
				}
				dashboard.Watch(ctx, o)
				return nil
			})
		})
}

// dashboardOptions looks at the autopilot of root.
func dashboardOptions(a *command.App, db *store.Store, root string) dashboard.Options {
	return dashboard.Options{
		Look: func(ctx context.Context) (autopilot.View, error) {
			return autopilot.Status(ctx, db, root)
		},
		Next: nextStep, Out: console.Raw(a.Stderr), Color: a.Terminal().Color,
	}
}

package board

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/cli/session"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/git"
)

func caseSyncCommand(a *command.App) *cobra.Command {
	return command.Leaf("sync", "Make tasks of the forge's issues, and say there what became of them",
		command.AtMost(0), func(ctx context.Context, _ []string) error {
			return a.WithOperator(ctx, func(p *action.Operator) error { return syncIssues(ctx, a, p) })
		})
}

func syncIssues(ctx context.Context, a *command.App, p *action.Operator) error {
	c, err := a.Load(nil)
	if err != nil {
		return err
	}
	repo, err := git.OpenStore(ctx, c.Root)
	if err != nil {
		return command.Usage("%v", err)
	}
	target, err := action.LandingTarget(ctx, c, repo)
	if err != nil {
		return err
	}
	o, ok, err := session.Issues(ctx, a, c, repo, target, config.StateDir(c.Root, a.Env), nil)
	if err != nil {
		return err
	}
	if !ok {
		return command.Usage("no issues are to be tasks").
			Hint("Say which, in %s: forge: {issues: {label: pawl}}", c.Name())
	}
	defer o.Forge.Close()
	if about, err := o.Forge.About(ctx); err == nil { // what stands in the way, the sync says
		session.SayRenamed(a, o.Forge.Where, about.Name)
	}
	return p.SyncIssues(ctx, o)
}

package serve

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/mcp"
	"github.com/pawl-dev/pawl/internal/ask/web"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// MCPCommand is pawl mcp.
func MCPCommand(a *command.App) *cobra.Command {
	var inside string
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve pawl's tools to a program over the Model Context Protocol",
		Args: command.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if inside != "" {
				return mcp.NewInside(inside, command.BuildVersion()).Serve(cmd.Context(), a.Stdin, a.Stdout)
			}
			return serveMCP(cmd.Context(), a)
		},
	}
	cmd.Flags().StringVar(&inside, "run", "", "the `FOLDER` of a run: the tools of its agent, as agents.NAME.mcp starts them")
	return cmd
}

func serveMCP(ctx context.Context, a *command.App) error {
	if err := notServedInside(a, "pawl mcp"); err != nil {
		return err
	}
	if a.Interactive() {
		return command.Usage("pawl mcp talks to a program, not to a person").
			Hint("Let Claude Code start it: claude mcp add pawl -- pawl mcp")
	}
	db, root, err := a.Store(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, stop := untilSignal(ctx)
	defer stop()
	runs := &children{a: a, root: root}
	defer runs.end()
	server, err := tools(web.New(nil, options(ctx, a, db, root, runs)), db, config.StateDir(root, a.Env))
	if err != nil {
		return err
	}
	err = server.Serve(ctx, a.Stdin, a.Stdout)
	stop() // from here on a second signal ends pawl at once
	return err
}

// tools are those of the API, and a few more.
func tools(api *web.Server, db *store.Store, stateDir string) (*mcp.Server, error) {
	text, err := api.Description()
	if err != nil {
		return nil, err
	}
	return mcp.New(mcp.Options{
		API: api.API(), Description: text, Version: command.BuildVersion(), StateDir: stateDir,
		Next: func(ctx context.Context) (board.Choice, bool, error) {
			return db.NextCaseOf(ctx, store.CaseFilter{}, nil)
		},
	})
}

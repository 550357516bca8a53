// Package setup has the commands about the installation: init, config, prices,
// schema, doctor, notify and version.
package setup

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/agent/agents"
	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/config"
)

// Commands are the commands about the installation.
func Commands(a *command.App) []*cobra.Command {
	return []*cobra.Command{
		initCommand(a), notifyCommand(a), configCommand(a), schemaCommand(a), doctorCommand(a),
		pricesCommand(a), versionCommand(a),
	}
}

func configCommand(a *command.App) *cobra.Command {
	return command.Leaf("config [KEY]", "Print every effective setting and where it comes from", command.AtMost(1),
		func(_ context.Context, args []string) error {
			c, err := a.Peek()
			if err != nil {
				return err
			}
			return printConfig(a, c, strings.Join(args, ""))
		})
}

func printConfig(a *command.App, c *config.Config, prefix string) error {
	var found []config.Entry
	for _, e := range c.Entries() {
		if prefix == "" || e.Path == prefix || strings.HasPrefix(e.Path, prefix+".") {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return command.Usage("there is no setting %q; 'pawl config' lists them all", prefix)
	}
	return command.Listing(a, found, "", "", func(e config.Entry) command.Row {
		return command.Row{JSON: map[string]string{"path": e.Path, "value": e.Value, "source": e.Source},
			Cells: []any{e.Path + ": " + e.Value, "(from: " + e.Source + ")"}}
	})
}

func schemaCommand(a *command.App) *cobra.Command {
	cmd := command.Leaf("schema [workflow]", "Print the JSON Schema of pawl.yaml, or of workflow files",
		command.AtMost(1), func(_ context.Context, args []string) error {
			schema := config.Schema()
			if len(args) > 0 {
				if args[0] != "workflow" {
					return command.Usage("unknown schema %q: write 'pawl schema' or 'pawl schema workflow'", args[0])
				}
				schema = config.WorkflowSchema()
			}
			a.Result("%s\n", strings.TrimSuffix(string(schema), "\n"))
			return nil
		})
	cmd.ValidArgs = []string{"workflow"}
	return cmd
}

func initCommand(a *command.App) *cobra.Command {
	return command.Leaf("init", "Look at the repository and write a commented pawl.yaml; never overwrites",
		command.AtMost(0),
		func(context.Context, []string) error { return writeConfig(a) })
}

func writeConfig(a *command.App) error {
	root, err := a.Root()
	if err != nil {
		return err
	}
	var found []string
	for _, p := range agents.Programs() {
		if _, err := a.LookPath(p.Binary); err == nil {
			found = append(found, p.Name)
		}
	}
	p, err := config.Propose(root, found, a.LookPath)
	if err != nil {
		return err
	}
	path := filepath.Join(root, "pawl.yaml")
	if err := config.WriteNew(path, p.YAML()); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return command.Usage("%s is there already, and init never overwrites", path).
				Hint("See what is in force: pawl config")
		}
		return err
	}
	a.Result("Wrote %s\n", path)
	if len(p.Gates) == 0 {
		a.Say("Warning: No verification commands configured")
		a.Say("  Nothing in the repository says how it is tested. Add your commands under verification in pawl.yaml.")
	}
	a.Say("Next: read it, then see the prompt with 'pawl run build --dry-run', and start with 'pawl run build'.")
	return nil
}

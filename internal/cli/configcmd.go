package cli

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	return leaf("config [KEY]", "Print every effective setting and where it comes from", atMost(1), func(_ context.Context, args []string) error {
		c, err := a.load(nil)
		if err != nil {
			return err
		}
		return a.printConfig(c, strings.Join(args, ""))
	})
}

func (a *app) printConfig(c *config.Config, prefix string) error {
	var found []config.Entry
	for _, e := range c.Entries() {
		if prefix == "" || e.Path == prefix || strings.HasPrefix(e.Path, prefix+".") {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return usage("there is no setting %q; 'pawl config' lists them all", prefix)
	}
	return listing(a, found, "", "", func(e config.Entry) row {
		return row{map[string]string{"path": e.Path, "value": e.Value, "source": e.Source}, []any{e.Path + ": " + e.Value, "(from: " + e.Source + ")"}}
	})
}

func (a *app) schemaCommand() *cobra.Command {
	cmd := leaf("schema [workflow]", "Print the JSON Schema of pawl.yaml, or of workflow files", atMost(1), func(_ context.Context, args []string) error {
		schema := config.Schema()
		if len(args) > 0 {
			if args[0] != "workflow" {
				return usage("unknown schema %q: write 'pawl schema' or 'pawl schema workflow'", args[0])
			}
			schema = config.WorkflowSchema()
		}
		a.result("%s\n", strings.TrimSuffix(string(schema), "\n"))
		return nil
	})
	cmd.ValidArgs = []string{"workflow"}
	return cmd
}

func (a *app) initCommand() *cobra.Command {
	return leaf("init", "Look at the repository and write a commented pawl.yaml; never overwrites", atMost(0),
		func(context.Context, []string) error { return a.init() })
}

func (a *app) init() error {
	root, err := a.root()
	if err != nil {
		return err
	}
	p, err := config.Propose(root, a.lookPath)
	if err != nil {
		return err
	}
	path := filepath.Join(root, "pawl.yaml")
	if err := config.WriteNew(path, p.YAML()); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return usage("%s is there already, and init never overwrites", path).Hint("See what is in force: pawl config")
		}
		return err
	}
	a.result("Wrote %s\n", path)
	if len(p.Gates) == 0 {
		a.say("Warning: No verification commands configured")
		a.say("  Nothing in the repository says how it is tested. Add your commands under verification in pawl.yaml.")
	}
	a.say("Next: read it, then see the prompt with 'pawl run build --dry-run', and start with 'pawl run build'.")
	return nil
}

// lookPath finds a program in the PATH that Main was given; a name with a
// slash is a path.
func (a *app) lookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		return exec.LookPath(name)
	}
	for _, d := range filepath.SplitList(a.getenv("PATH")) {
		if d == "" {
			d = "."
		}
		if p, err := exec.LookPath(filepath.Join(d, name)); err == nil && name != "" {
			return p, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/fault"
)

func stateDir(root string, env []string) string { return config.StateDir(root, env) }

func (a *app) configCommand() *cobra.Command {
	return &cobra.Command{
		Use: "config [KEY]", Short: "Print every effective setting and where it comes from",
		Args: atMost(1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.load(nil)
			if err != nil {
				return err
			}
			prefix := ""
			if len(args) == 1 {
				prefix = args[0]
			}
			return a.printConfig(c, prefix)
		},
	}
}

func (a *app) printConfig(c *config.Config, prefix string) error {
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	found := false
	for _, e := range c.Entries() {
		if prefix != "" && e.Path != prefix && !strings.HasPrefix(e.Path, prefix+".") {
			continue
		}
		found = true
		if a.json {
			line, err := json.Marshal(map[string]string{"path": e.Path, "value": e.Value, "source": e.Source})
			if err != nil {
				return err
			}
			a.result("%s\n", line)
			continue
		}
		_, _ = fmt.Fprintf(w, "%s: %s\t(from: %s)\n", e.Path, e.Value, e.Source)
	}
	if !found {
		return usage("there is no setting %q; 'pawl config' lists them all", prefix)
	}
	return w.Flush()
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema [workflow]", Short: "Print the JSON Schema of pawl.yaml, or of workflow files", Args: atMost(1),
		ValidArgs: []string{"workflow"},
		RunE: func(_ *cobra.Command, args []string) error {
			schema := config.Schema()
			if len(args) > 0 {
				if args[0] != "workflow" {
					return usage("unknown schema %q: write 'pawl schema' or 'pawl schema workflow'", args[0])
				}
				schema = config.WorkflowSchema()
			}
			a.result("%s\n", strings.TrimSuffix(string(schema), "\n"))
			return nil
		},
	}
}

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use: "init", Short: "Look at the repository and write a commented pawl.yaml; never overwrites",
		Args: atMost(0),
		RunE: func(*cobra.Command, []string) error { return a.init() },
	}
}

func (a *app) init() error {
	root, err := config.FindRoot(a.dir)
	if err != nil {
		return fault.Of(fault.Refused, err)
	}
	p, err := config.Propose(root, a.lookPath)
	if err != nil {
		return fault.Of(fault.Failed, err)
	}
	path := filepath.Join(root, "pawl.yaml")
	if err := config.WriteNew(path, p.YAML()); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return usage("%s is there already, and init never overwrites", path).Hint("See what is in force: pawl config")
		}
		return fault.Of(fault.Failed, err)
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

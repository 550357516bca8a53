package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
)

func (a *app) doctorCommand() *cobra.Command {
	cmd := leaf("doctor", "Say what pawl finds on this machine and in this repository", atMost(0),
		func(ctx context.Context, _ []string) error { return a.doctor(ctx) })
	cmd.Long = "Say what pawl finds on this machine and in this repository.\n\n" +
		"Each agent program that is installed is asked for its version. With -v also those that are not, and how to get them."
	return cmd
}

// finding is one line of the doctor's.
type finding struct {
	What  string `json:"what"`
	Found string `json:"found"`
}

func (a *app) doctor(ctx context.Context) error {
	machine, err := a.findings(ctx)
	if err != nil {
		return err
	}
	programs := a.agentsFound(ctx)
	if a.json {
		return a.document(struct {
			Machine []finding    `json:"machine"`
			Agents  []agentState `json:"agents"`
		}{machine, programs})
	}
	var rows [][]any
	for _, f := range machine {
		rows = append(rows, []any{f.What, f.Found})
	}
	a.table("", rows, 0)
	a.printAgents(programs)
	return nil
}

// findings are what is found beside agents.
func (a *app) findings(ctx context.Context) ([]finding, error) {
	root, err := config.FindRoot(a.dir)
	if err != nil {
		return nil, fault.Of(fault.Refused, err)
	}
	dir := config.StateDir(root, a.env)
	var conf, environment, told string
	var own []finding
	if c, err := a.load(nil); err != nil {
		environment, told = "not known without a configuration", "not known without a configuration"
		conf = strings.SplitN(err.Error(), "\n", 2)[0]
	} else {
		conf, environment, told = configFound(c), a.environmentFound(c), a.toldFound(c)
		own = a.acpFound(ctx, c)
	}
	found := []finding{
		{"pawl", fmt.Sprintf("%s, %s/%s", version(), runtime.GOOS, runtime.GOARCH)},
		{"git", a.gitFound(ctx)},
		{"root", root},
		{"state", dir},
		{"database", databaseFound(ctx, dir)},
		{"configuration", conf},
		{"processes", processFound()},
		{"environment", environment},
		{"notifications", told},
	}
	return slices.Concat(found, sandboxFound(ctx), own), nil
}

func (a *app) gitFound(ctx context.Context) string {
	path, err := a.lookPath("git")
	if err != nil {
		return "not found: pawl works without, but takes no snapshots"
	}
	return path + a.snapshotsPossible(ctx)
}

func (a *app) snapshotsPossible(ctx context.Context) string {
	root, err := config.FindRoot(a.dir)
	if err != nil {
		return ""
	}
	if _, err := workspace.Open(ctx, root, workspace.Options{StateDir: config.StateDir(root, a.env)}); err != nil {
		return "; no snapshots here: " + err.Error()
	}
	return "; snapshots are taken here"
}

func databaseFound(ctx context.Context, dir string) string {
	path := filepath.Join(dir, "pawl.db")
	if _, err := os.Stat(path); err != nil {
		return "none yet"
	}
	store, err := sqlite.Open(ctx, path)
	if err != nil {
		return err.Error()
	}
	defer store.Close()
	if err := store.Check(ctx); err != nil {
		return err.Error()
	}
	return "sound"
}

func configFound(c *config.Config) string {
	if c.File == "" {
		return "none: there is no pawl.yaml in " + c.Root + "; 'pawl init' writes one"
	}
	return fmt.Sprintf("%s: %d procedure(s), %d gate(s)", c.Name(), len(c.Procedures), len(c.Verification.Commands))
}

func processFound() string {
	if runtime.GOOS == "linux" {
		return "sub-reaper: everything that an agent starts is found and ended"
	}
	return "no sub-reaper on this system: a process that leaves its session is found by its mark only"
}

// sandboxFound says what the machine offers, and what each level comes to.
func sandboxFound(ctx context.Context) []finding {
	offer := sandbox.Probe(ctx)
	what := offer.String()
	if offer.Missing != "" {
		what += "; no namespaces: " + offer.Missing
	}
	out := []finding{{"sandbox", what}}
	for _, level := range []string{sandbox.Normal, sandbox.Paranoid} {
		v := sandbox.Judge(level, offer, false)
		if v.Refused != "" {
			out = append(out, finding{"level " + level, "refused: " + v.Refused})
			continue
		}
		out = append(out, finding{"level " + level, strings.Join(append([]string{v.Enforced}, v.Gaps...), "; ")})
	}
	return out
}

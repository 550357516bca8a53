package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/agents"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Say what pawl finds on this machine and in this repository", Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

func (a *app) doctor(ctx context.Context) error {
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	row := func(what, found string) { _, _ = fmt.Fprintf(w, "%s\t%s\n", what, found) }
	row("pawl", fmt.Sprintf("%s, %s/%s", version(), runtime.GOOS, runtime.GOARCH))
	row("git", a.gitFound(ctx))
	root, err := config.FindRoot(a.dir)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	row("root", root)
	dir := config.StateDir(root, a.env)
	row("state", dir)
	row("database", databaseFound(ctx, dir))
	if c, err := a.load(nil); err != nil {
		row("configuration", strings.SplitN(err.Error(), "\n", 2)[0])
	} else {
		row("configuration", configFound(c))
	}
	row("processes", processFound())
	row("sandbox", "not in this version: levels limit cost and calls, not what an agent may touch")
	for _, name := range agents.Names() {
		if name != "script" {
			row("agent "+name, a.agentFound(ctx, name))
		}
	}
	return w.Flush()
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
	return fmt.Sprintf("%s: %d procedure(s), %d gate(s)", configName(c), len(c.Procedures), len(c.Verification.Commands))
}

func processFound() string {
	if runtime.GOOS == "linux" {
		return "sub-reaper: everything that an agent starts is found and ended"
	}
	return "no sub-reaper on this system: a process that leaves its session is found by its mark only"
}

// versionBound is how long a program may take to tell its version.
const versionBound = 10 * time.Second

func (a *app) agentFound(ctx context.Context, name string) string {
	ad, _ := agents.Lookup(name)
	start, err := ad.Start(agent.Invocation{PromptFile: os.DevNull})
	if err != nil {
		return err.Error()
	}
	path, err := a.lookPath(start.Args[0])
	if err != nil {
		return "not installed: " + ad.Install()
	}
	ctx, cancel := context.WithTimeout(ctx, versionBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env, cmd.WaitDelay = a.env, time.Second
	out, err := cmd.Output()
	if err != nil {
		return fmt.Sprintf("%s (its version is not known: %v)", path, err)
	}
	usage := "tokens and cost at the end"
	if ad.LiveUsage() {
		usage = "tokens and cost while it runs"
	}
	return fmt.Sprintf("%s, %s: final message, tools, errors, %s", path, clean(string(out), 60), usage)
}

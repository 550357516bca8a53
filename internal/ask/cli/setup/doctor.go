package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

func doctorCommand(a *command.App) *cobra.Command {
	quick, warm, restored := false, false, false
	cmd := command.Plain("doctor", "Check what pawl finds here, and whether a run and the board can work",
		func(ctx context.Context) error {
			if restored {
				return restoreDatabase(ctx, a)
			}
			return runDoctor(ctx, a, quick, warm)
		})
	cmd.Flags().BoolVar(&quick, "quick", false, "skip the gates")
	cmd.Flags().BoolVar(&warm, "warm", false, "first run the gates outside of the sandbox, to fill your caches")
	cmd.Flags().BoolVar(&restored, "restore", false,
		"restore a missing or damaged database from its last copy")
	cmd.MarkFlagsMutuallyExclusive("quick", "warm", "restore")
	return cmd
}

// finding is one line of the doctor's.
type finding struct {
	What  string `json:"what"`
	Found string `json:"found"`
}

func runDoctor(ctx context.Context, a *command.App, quick, warm bool) error {
	machine, err := inspectMachine(ctx, a)
	if err != nil {
		return err
	}
	root, err := statedir.FindRoot(a.Dir)
	if err != nil {
		return fault.Of(fault.Refused, err)
	}
	programs := agentsFound(ctx, a, root)
	if !a.JSON {
		rows := lists.Each(machine, func(f finding) []any { return []any{f.What, f.Found} })
		a.Table("", rows, 0)
		printAgents(a, programs)
		a.Result("\n")
	}
	k := examineSetup(ctx, a, quick, warm)
	if a.JSON {
		err = a.Document(struct {
			Machine []finding    `json:"machine"`
			Agents  []agentState `json:"agents"`
			Checks  []check      `json:"checks"`
		}{machine, programs, k.list})
	} else {
		k.printChecks(a)
	}
	if !slices.ContainsFunc(k.list, func(c check) bool { return c.State != sound }) {
		a.Say("A run and the board can work here.")
	}
	if n := k.countFailed(); n > 0 && err == nil {
		stopped := "the board cannot work as it is; a run can"
		isOther := func(c check) bool { return c.State == problem && !slices.Contains(c.Hints, hintRed) }
		if slices.ContainsFunc(k.list, isOther) {
			stopped = "a run or the board cannot work as it is"
		}
		a.Say("%s: %s.", fault.Numbered(n, "problem"), stopped)
		return command.StatusError(command.ExitFailed)
	}
	return err
}

// inspectMachine collects all findings except those about agents.
func inspectMachine(ctx context.Context, a *command.App) ([]finding, error) {
	root, err := statedir.FindRoot(a.Dir)
	if err != nil {
		return nil, fault.Of(fault.Refused, err)
	}
	dir := statedir.Of(root, a.Env)
	var conf, environment, told string
	database := ""
	c, err := a.Peek()
	if err != nil {
		environment, told = "not known without a configuration", "not known without a configuration"
		conf = strings.SplitN(err.Error(), "\n", 2)[0]
	} else {
		database = checkSharedDatabase(ctx, a, c)
		conf, environment, told = configFound(c), describeEnvironment(a, c), notificationsFound(a, c)
	}
	found := []finding{
		{"pawl", fmt.Sprintf("%s, %s/%s", command.BuildVersion(), runtime.GOOS, runtime.GOARCH)},
		{"git", gitFound(ctx, a)},
		{"root", root},
		{"state", stateFound(ctx, root, a.Env)},
		{"database", cmp.Or(database, databaseFound(ctx, dir))},
		{"configuration", conf},
		{"processes", processFound()},
		{"environment", environment},
		{"notifications", told},
	}
	return append(found, sandboxFound(ctx)...), nil
}

// stateFound names the state folder, and those of other repositories that were here.
func stateFound(ctx context.Context, root string, env []string) string {
	text := statedir.Of(root, env)
	if others := statedir.OfOthers(root, env); len(others) > 0 {
		text += "; of another repository that was at this path: " + strings.Join(others, ", ")
	}
	if gone := statedir.OfGone(root, env, command.FindCommit(ctx, root)); len(gone) > 0 {
		text += "; of one with the same commits that is no longer at its path: " + strings.Join(gone, ", ")
	}
	return text
}

func gitFound(ctx context.Context, a *command.App) string {
	path, err := a.LookPath("git")
	if err != nil {
		return "not found: pawl works without, but takes no snapshots"
	}
	return path + snapshotsPossible(ctx, a)
}

func snapshotsPossible(ctx context.Context, a *command.App) string {
	root, err := statedir.FindRoot(a.Dir)
	if err != nil {
		return ""
	}
	if _, err := workspace.Open(ctx, root, workspace.Options{StateDir: statedir.Of(root, a.Env)}); err != nil {
		return "; no snapshots here: " + err.Error()
	}
	return "; snapshots are taken here"
}

// checkSharedDatabase describes the shared database, or the error; "" without one.
func checkSharedDatabase(ctx context.Context, a *command.App, c *config.Config) string {
	if c.Cluster.Store == "" {
		return ""
	}
	if err := a.KnowsShared(c); err != nil {
		return err.Error()
	}
	db, err := a.Database(ctx, c)
	if err != nil {
		return err.Error()
	}
	defer db.Close()
	return "shared: " + db.Path()
}

func databaseFound(ctx context.Context, dir string) string {
	path := filepath.Join(dir, "pawl.db")
	if !store.There(path) {
		return "none yet"
	}
	if err := databaseState(ctx, path); err != nil {
		return err.Error()
	}
	return "sound"
}

func databaseState(ctx context.Context, path string) error {
	db, err := store.Open(ctx, path)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Check(ctx)
}

// restoreDatabase puts a copy of the database back where there is no sound one.
func restoreDatabase(ctx context.Context, a *command.App) error {
	root, err := statedir.FindRoot(a.Dir)
	if err != nil {
		return fault.Of(fault.Refused, err)
	}
	path := filepath.Join(statedir.Of(root, a.Env), "pawl.db")
	if !store.There(path) {
		return fault.Refuse("there is no database of %s, and no copy of one", root)
	}
	err = databaseState(ctx, path)
	if !errors.Is(err, store.ErrDamaged) {
		if err == nil {
			a.Say("The database is not damaged; nothing was restored.")
		}
		return err
	}
	done, err := store.Restore(ctx, path)
	if err != nil {
		return fault.Of(fault.Refused, err)
	}
	a.Say("%s It lacks what happened later: compare 'pawl case list' with 'git log' before you start the board.", done)
	return nil
}

func configFound(c *config.Config) string {
	if c.File == "" {
		return "none: " + c.DescribeMissingFile() + "; 'pawl init' writes one"
	}
	return fmt.Sprintf("%s: %s, %s", c.Name(), fault.Numbered(len(c.Procedures), "procedure"),
		fault.Numbered(len(c.Verification.Commands), "gate"))
}

func processFound() string {
	if runtime.GOOS == "linux" {
		return "everything that an agent starts is found and ended"
	}
	return "what an agent starts is found and ended, unless it hides on purpose (this system has no sub-reaper)"
}

// sandboxFound lists what the machine offers, and what each level enforces with it.
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

// describeEnvironment names the variables that the configured level withholds from
// agents.
func describeEnvironment(a *command.App, c *config.Config) string {
	level := safety.Level(c.Loop.Safety)
	if level == safety.Permissive {
		return "permissive: agents get all of your environment"
	}
	_, held := level.Environ(a.Env, agents.Variables(c.Agent, c.Agents.Named[c.Agent].Output, a.Getenv),
		planner.Variables(c))
	if len(held) == 0 {
		return string(level) + ": agents get all of your environment; nothing in it looks like a secret of others"
	}
	return string(level) + ": " + session.WithheldWords(held, "agent "+c.Agent)
}

// Package cli is the command line: it makes the root command of the commands that
// the rooms below it have, runs one command line and ends with its exit status. It
// decides nothing about a run. The demo is here since it plays command lines.
package cli

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-dev/pawl/internal/ask/cli/autopilot"
	"github.com/pawl-dev/pawl/internal/ask/cli/board"
	"github.com/pawl-dev/pawl/internal/ask/cli/check"
	"github.com/pawl-dev/pawl/internal/ask/cli/cluster"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/queue"
	"github.com/pawl-dev/pawl/internal/ask/cli/run"
	"github.com/pawl-dev/pawl/internal/ask/cli/serve"
	"github.com/pawl-dev/pawl/internal/ask/cli/setup"
	"github.com/pawl-dev/pawl/internal/ask/cli/trial"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/do/boxnet"
	"github.com/pawl-dev/pawl/internal/do/egress"
	"github.com/pawl-dev/pawl/internal/do/gateway"
	"github.com/pawl-dev/pawl/internal/do/netstack"
	"github.com/pawl-dev/pawl/internal/do/reexec"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// Main runs one command line and returns pawl's exit status. cluster is the client of
// an engine, for a program that has one.
func Main(cluster command.Cluster, args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	ways := boxnet.Ways{Proxy: egress.Out(os.Getenv), Stack: netstack.Serve}
	if code, ok := reexec.Finish(supervisor.Rest{Ways: ways, Models: gateway.Open}); ok {
		return code
	}
	stdout, stderr = console.Safe(stdout), console.Safe(stderr)
	out := &results{to: stdout}
	if !console.OnTerminal(stdout) {
		stdout = out
	}
	a := &command.App{
		Stdin: stdin, Stdout: stdout, Stderr: stderr, Env: env, Args: args, Keys: &command.Keys{}, Cluster: cluster,
	}
	root := buildCommands(a)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		dropBackquotes(root)
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		err = out.writeError()
	}
	return a.Exit(err)
}

// dropBackquotes drops from the texts of flags what marks the name of their value, which a shell shows as it is.
func dropBackquotes(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) })
	for _, child := range cmd.Commands() {
		dropBackquotes(child)
	}
}

// results is where a command's results go, and remembers that they did not get there.
type results struct {
	to  io.Writer
	mu  sync.Mutex
	err error // the first
}

func (r *results) Write(p []byte) (int, error) {
	n, err := r.to.Write(p)
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.err = cmp.Or(r.err, err)
	}
	return n, err
}

// writeError returns the first error of writing results. A closed pipe is none.
func (r *results) writeError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || errors.Is(r.err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("cannot write the results: %v", r.err)
}

// Root is the command line for who describes it: the pages of the manual.
func Root() *cobra.Command { return buildCommands(&command.App{Keys: &command.Keys{}}) }

func buildCommands(a *command.App) *cobra.Command {
	a.Checks = map[*cobra.Command]func([]string) error{}
	root := &cobra.Command{
		Use:           "pawl",
		Short:         "Run AI coding agents in bounded, verified iterations",
		SilenceErrors: true, SilenceUsage: true,
		Version: command.BuildVersion(),
		Args:    cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if a.JSON && command.IsTextOnly(cmd) {
				return command.Usage("%s has no --json", cmd.CommandPath())
			}
			if a.Color != "auto" && a.Color != "always" && a.Color != "never" {
				return command.Usage("--color %s: write auto, always or never", a.Color)
			}
			if info, err := os.Stat(cmp.Or(a.Dir, ".")); err != nil {
				return command.Usage("-C %s: %v", a.Dir, errors.Unwrap(err))
			} else if !info.IsDir() {
				return command.Usage("-C %s: not a folder", a.Dir)
			}
			return a.ClaimState(cmd.Context())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && args[0] == "worker": // pawl-cluster does not come here
				return command.Usage("this program cannot run a worker").Hint("Use pawl-cluster worker")
			case len(args) > 0:
				return command.UnknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	f := root.PersistentFlags()
	f.StringVarP(&a.Dir, "directory", "C", "", "work as if started in `DIR`")
	f.StringVar(&a.File, "config", "", "use `FILE` instead of pawl.yaml")
	f.BoolVar(&a.TrustConfig, "trust-config", false, "use configuration that changed while an agent could write it")
	f.BoolVar(&a.JSON, "json", false, "print JSON")
	f.BoolVarP(&a.Quiet, "quiet", "q", false, "print results and errors only")
	f.BoolVarP(&a.Verbose, "verbose", "v", false, "show what the agent does and why the loop decides")
	f.StringVar(&a.Color, "color", "auto", "`WHEN`: auto, always or never")
	rooms := [][]*cobra.Command{run.Commands(a), autopilot.Commands(a), check.Commands(a), setup.Commands(a)}
	for _, commands := range rooms {
		root.AddCommand(commands...)
	}
	root.AddCommand(board.Command(a), cluster.Command(a), queue.Command(a), queue.ForgeCommand(a))
	root.AddCommand(queue.RevertCommand(a), queue.BisectCommand(a), serve.Command(a), serve.MCPCommand(a),
		trial.Command(a), demoCommand(a))
	root.SetFlagErrorFunc(command.FlagError)
	root.SuggestionsMinimumDistance = 2
	root.SetVersionTemplate("pawl {{.Version}}\n")
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		refuseUnknown(root, help)
	}
	a.Complete(root)
	arrangeCommands(root)
	addDescriptions(root)
	if a.Cluster != nil {
		root.Use = "pawl-cluster"
	}
	return root
}

//go:embed help.txt
var helpTexts string

// addDescriptions gives commands what help.txt says of each: a description, and then examples,
// which are the indented lines.
func addDescriptions(root *cobra.Command) {
	for section := range strings.SplitSeq(strings.TrimPrefix(helpTexts, "# "), "\n\n# ") {
		name, text, _ := strings.Cut(strings.TrimRight(section, "\n"), "\n")
		cmd, _, err := root.Find(strings.Fields(name)[1:])
		if err != nil || cmd.CommandPath() != name {
			panic("cli: help.txt: there is no " + name) // our own file, read by every start
		}
		long, example, found := strings.Cut("\n"+text, "\n  ")
		cmd.Long = strings.TrimPrefix(long, "\n")
		if found {
			cmd.Example = "  " + example
		}
	}
}

// groups are the commands as help shows them; those in none come last.
var groups = [][2]string{
	{"Begin here:", "demo init doctor config trial"},
	{"One piece of work:", "run ps logs show answer message pause stop resume apply discard rollback settle workflow"},
	{"A board of tasks:", "case plan autopilot sprint top serve queue forge cluster stats"},
	{"Loops and logs of your own:", "check explain mcp"},
}

// otherWords are those that commands are looked for by.
var otherWords = map[string][]string{
	"ps": {"status", "list"}, "logs": {"attach", "follow", "tail"}, "case": {"task", "tasks", "add"}, "run": {"start"},
	"stop": {"kill", "cancel"},
}

func arrangeCommands(root *cobra.Command) {
	for _, c := range root.Commands() {
		c.SuggestFor = otherWords[c.Name()]
	}
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g[0], Title: g[0]})
		for _, c := range root.Commands() {
			if slices.Contains(strings.Fields(g[1]), c.Name()) {
				c.GroupID = g[0]
			}
		}
	}
}

// refuseUnknown lets help fail for a command that is not there.
func refuseUnknown(root, help *cobra.Command) {
	show := help.Run
	help.Run = nil
	help.RunE = func(cmd *cobra.Command, args []string) error {
		of, rest, err := root.Find(args)
		if err != nil || len(rest) == 0 || !of.HasSubCommands() {
			show(cmd, args)
			return err
		}
		return command.UnknownCommand(of, rest[0])
	}
}

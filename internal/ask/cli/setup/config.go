// Package setup has the commands about the installation: init, config, prices,
// schema, doctor, notify and version.
package setup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/docs"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/survey"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/do/git"
)

// Commands are the commands about the installation.
func Commands(a *command.App) []*cobra.Command {
	return []*cobra.Command{
		initCommand(a), notifyCommand(a), configCommand(a), schemaCommand(a), doctorCommand(a),
		pricesCommand(a), scheduleCommand(a), versionCommand(a),
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
	found := slices.DeleteFunc(c.Entries(), func(e config.Entry) bool {
		return prefix != "" && e.Path != prefix && !strings.HasPrefix(e.Path, prefix+".")
	})
	if len(found) == 0 {
		e := command.Usage("there is no setting %q; 'pawl config' lists them all", prefix)
		if near := config.NearestKey(prefix); near != "" && near != prefix {
			e = command.Usage("there is no setting %q (did you mean %q?)", prefix, near)
		}
		return e
	}
	cut := false
	for _, e := range found {
		if a.JSON {
			if err := a.JSONLine(e); err != nil {
				return err
			}
			continue
		}
		value, source := []rune(e.Path+": "+e.Value), "(from: "+e.Source+")"
		room := max(a.Columns()-len([]rune(source))-2, valueColumn)
		if a.Columns() > 0 && prefix == "" && len(value) > room {
			value, cut = append(value[:room-1], '…'), true
		}
		a.Result("%-*s  %s\n", valueColumn, string(value), source)
	}
	if cut {
		a.Say("A value that ends in … is longer: 'pawl config KEY' prints all of it.")
	}
	return nil
}

// valueColumn is how wide the column of settings is; a longer one goes beyond it alone.
const valueColumn = 43

func schemaCommand(a *command.App) *cobra.Command {
	cmd := command.Leaf("schema [workflow]", "Print the JSON Schema of pawl.yaml, or of workflow files",
		command.AtMost(1), func(_ context.Context, args []string) error {
			schema := docs.Schema
			if len(args) > 0 {
				if args[0] != "workflow" {
					return command.Usage("unknown schema %q: write 'pawl schema' or 'pawl schema workflow'", args[0])
				}
				schema = docs.WorkflowSchema
			}
			a.Result("%s", schema)
			return nil
		})
	cmd.ValidArgs = []string{"workflow"}
	return cmd
}

func initCommand(a *command.App) *cobra.Command {
	try := false
	cmd := command.Plain("init", "Look at the repository and write a commented pawl.yaml; never overwrites",
		func(ctx context.Context) error { return writeConfig(ctx, a, try) })
	cmd.Flags().BoolVar(&try, "try", false, "then run each gate once in a clone, without asking")
	return cmd
}

func writeConfig(ctx context.Context, a *command.App, try bool) error {
	root, err := a.Root()
	if err != nil {
		return err
	}
	_, err = git.Open(ctx, root)
	if err != nil && !errors.Is(err, git.ErrNotRepository) && !errors.Is(err, git.ErrNoGit) {
		return err // a bare one, for example: nothing could be done with what is written there
	}
	var found []string
	for _, p := range agents.Programs() {
		if _, err := a.LookPath(p.Binary); err == nil {
			found = append(found, p.Name)
		}
	}
	p, err := survey.Of(root, found, a.LookPath)
	if err != nil {
		return err
	}
	if name, from := agentSetElsewhere(a); name != "" {
		p.Agent, p.AgentFrom, p.Others = name, from, nil
	}
	path := filepath.Join(root, statedir.FileName)
	if text, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(text)) == "" {
		_ = os.Remove(path) // somebody has only made the file
	}
	other := filepath.Join(root, "pawl.yml")
	if _, err := os.Stat(other); err == nil {
		return command.Usage("%s is there, and pawl reads %s", other, statedir.FileName).
			Hint("Rename it: mv %s %s", fault.QuoteShell(other), fault.QuoteShell(path))
	}
	if err := config.WriteNew(path, p.YAML()); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return command.Usage("%s is there already, and init never overwrites", path).
				Hint("See what is in force: pawl config").Hint("Try its gates and its agent: pawl doctor")
		}
		return err
	}
	a.Result("Wrote %s\n", path)
	printProposal(a, &p)
	red := false
	switch {
	case len(p.Gates) == 0:
		a.Say("Warning: No verification commands configured")
		a.Say("  Nothing in the repository says how it is tested. Add your commands under verification in pawl.yaml.")
	case try, a.Interactive() && askDefaultYes(a, "Run each gate once now, in a fresh clone of the last commit? [Y/n] "):
		red = tryGates(ctx, a)
	case p.Agent != "":
		a.Say("Check that the gates are green here, before an agent costs money: pawl doctor")
	}
	if len(p.Setup) > 0 {
		a.Say("Each task gets a clone, where pawl runs the set-up. 'pawl run' works on a copy of your files as they are, so run it "+
			"here once yourself: %s", fault.ShellLine(p.Setup))
	}
	printNextSteps(ctx, a, root, p.Agent != "")
	if red && try {
		return command.ExitWith(command.ExitFailed)
	}
	return nil
}

// printNextSteps prints what to do after init, in order.
func printNextSteps(ctx context.Context, a *command.App, root string, agent bool) {
	keep := "Read pawl.yaml and commit it."
	if _, err := git.Open(ctx, root); errors.Is(err, git.ErrNotRepository) {
		keep = "Read pawl.yaml, run 'git init' and commit all: without git there is no undo and no 'pawl autopilot'."
	}
	steps := []string{keep, "See the prompt: pawl run build --dry-run", "Start: pawl run build"}
	last := "A list of tasks: 'pawl case add TITLE', then 'pawl autopilot' works on each in a clone of its own."
	if !agent {
		steps = []string{"Install an agent program and log in to it, or name your own under agents in pawl.yaml.", keep,
			"Check everything: pawl doctor"}
		last = "To watch pawl work without an agent: pawl demo"
	}
	a.Say("Next:")
	for i, step := range steps {
		a.Say("  %d. %s", i+1, step)
	}
	a.Say("%s", last)
}

// agentSetElsewhere is the agent that the user-wide file or PAWL_AGENT names, and which of them does.
func agentSetElsewhere(a *command.App) (name, from string) {
	c, err := a.Peek()
	if err != nil {
		return "", "" // the command that needs the file reports the error
	}
	for _, e := range c.Entries() {
		kind, from, _ := strings.Cut(e.Source, " ")
		if e.Path == "agent" && slices.Contains([]string{"user-wide", "environment"}, kind) {
			return e.Value, from
		}
	}
	return "", ""
}

func printProposal(a *command.App, p *survey.Proposal) {
	switch {
	case p.Agent == "":
		a.Say("No agent program was found on this machine; 'pawl doctor -v' says how to get one.")
	case p.AgentFrom != "":
		a.Say("Agent:  %s (from %s)", p.Agent, p.AgentFrom)
	default:
		a.Say("Agent:  %s", p.Agent)
	}
	for _, s := range p.Setup {
		a.Say("Set-up: %s", s)
	}
	for _, g := range p.Gates {
		only := ""
		if !g.Required {
			only = "; only a warning"
		}
		a.Say("Gate:   %s (from %s%s)", g.Command, g.From, only)
	}
	if len(p.Gates) > 0 {
		a.Say("        (a gate is a command that must pass before an agent's work counts as done)")
	}
	for _, n := range p.Notes {
		a.Say("Note:   %s", n)
	}
}

// askDefaultYes prints a question; Enter alone is a yes.
func askDefaultYes(a *command.App, question string) bool {
	_, _ = fmt.Fprint(a.Stderr, question)
	line, err := bufio.NewReader(a.Stdin).ReadString('\n')
	line = strings.ToLower(strings.TrimSpace(line))
	yes := line == "" || strings.HasPrefix(line, "y")
	return err == nil && yes
}

// tryGates shows what the gates say of the repository as it is.
func tryGates(ctx context.Context, a *command.App) (red bool) {
	k := examineSetup(ctx, a, false, false)
	k.printChecks(a)
	isRed := func(c check) bool {
		ofWork := c.What == "set-up" || strings.HasPrefix(c.What, "gate")
		return ofWork && c.State == problem
	}
	if red = slices.ContainsFunc(k.list, isRed); red {
		a.Say("'pawl run' can start from red gates and repair them; " +
			"the board waits until they are green. 'pawl doctor' runs them again.")
	}
	return red
}

func versionCommand(a *command.App) *cobra.Command {
	return command.Plain("version", "Print the version", func(context.Context) error {
		if a.JSON {
			return a.JSONLine(map[string]string{"version": command.BuildVersion()})
		}
		a.Result("pawl %s\n", command.BuildVersion())
		return nil
	})
}

package setup

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/agents"
	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/report"
)

// agentState is what is known of one agent program and of what is here of it.
type agentState struct {
	Name      string   `json:"name"`
	Installed bool     `json:"installed"`
	Install   string   `json:"install"`
	Path      string   `json:"path,omitempty"`
	Version   string   `json:"version,omitempty"` // in the program's own words
	Login     string   `json:"login,omitempty"`   // the sign of it that was found: a variable, a file
	Tried     string   `json:"tried"`             // the versions that pawl was tried with
	Format    string   `json:"format"`
	Tokens    string   `json:"tokens"`
	Cost      string   `json:"cost"`
	Live      bool     `json:"live_usage"`
	Problems  []string `json:"problems"`
}

// versionBound is how long a program may take to tell its version, which a Node
// program on a busy machine does in seconds.
const versionBound = 30 * time.Second

func agentsFound(ctx context.Context, a *command.App, root string) []agentState {
	var all []agentState
	for _, row := range agents.Table() {
		s := agentState{
			Name: row.Name, Install: row.Install, Tried: cmp.Or(row.Versions, "none"), Format: row.Format,
			Tokens: cmp.Or(row.Tokens, "not known"),
			Cost:   cmp.Or(row.Cost, "not known"), Live: row.LiveUsage, Problems: append([]string{}, row.Problems...),
		}
		ad, _ := agents.Lookup(row.Name)
		if start, err := ad.Start(agent.Invocation{PromptFile: os.DevNull}); err == nil {
			s.Path, err = a.LookPath(start.Args[0])
			s.Installed = err == nil
		}
		if s.Installed {
			s.Version = versionOf(ctx, a, root, s.Path)
			s.Login, _ = loggedIn(a, row.Name)
		}
		all = append(all, s)
	}
	return all
}

// versionOf is what a program says to --version; "" when it says nothing.
func versionOf(ctx context.Context, a *command.App, root, path string) string {
	if _, below := files.ProgramPath(path, root); len(below) > 0 { // an agent may have written it
		return "not asked, as it is in the work tree"
	}
	ctx, cancel := context.WithTimeout(ctx, versionBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env, _ = a.Outside(root)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return report.Line(line, 60)
}

// printAgents describes the programs that are installed, and names the others.
func printAgents(a *command.App, all []agentState) {
	var missing []string
	for _, s := range all {
		if !s.Installed {
			missing = append(missing, s.Name)
			continue
		}
		a.Result("\nagent %s: %s\n", s.Name, cmp.Or(s.Version, "it does not tell its version"))
		a.Result("  program  %s\n", s.Path)
		a.Result("  login    %s\n", cmp.Or(s.Login, "none was found"))
		a.Result("  tried    %s\n", s.Tried)
		a.Result("  tokens   %s\n", s.Tokens)
		a.Result("  cost     %s\n", s.Cost)
		for i, p := range s.Problems {
			label := "         "
			if i == 0 {
				label = "known    "
			}
			a.Result("  %s%s\n", label, p)
		}
	}
	if len(missing) == 0 {
		return
	}
	if len(missing) == len(all) {
		a.Result("\nNo agent program that pawl knows is installed.\n")
	}
	if !a.Verbose {
		a.Result("\nnot installed: %s\n(pawl doctor -v says how to get them)\n", strings.Join(missing, ", "))
		return
	}
	a.Result("\nnot installed:\n")
	for _, s := range all {
		if !s.Installed {
			a.Result("  %-9s %s\n", s.Name, s.Install)
		}
	}
}

package setup

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/agents"
	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/report"
)

// agentState is what is known of one agent program and of what is here of it.
type agentState struct {
	Name      string `json:"name"`
	Installed bool   `json:"installed"`
	Install   string `json:"install"`
	Path      string `json:"path,omitempty"`
	Version   string `json:"version,omitempty"` // in the program's own words
	// Tried are the versions that pawl was tried with; Standing is how the
	// installed one stands to them: tried, newer, older, between or unknown.
	Tried    string   `json:"tried"`
	Standing string   `json:"standing,omitempty"`
	Format   string   `json:"format"`
	Tokens   string   `json:"tokens"`
	Cost     string   `json:"cost"`
	Live     bool     `json:"live_usage"`
	Problems []string `json:"problems"`
}

// versionBound is how long a program may take to tell its version, which a Node
// program on a busy machine does in seconds.
const versionBound = 30 * time.Second

func agentsFound(ctx context.Context, a *command.App) []agentState {
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
			s.Version = versionOf(ctx, a, s.Path)
			s.Standing = standing(s.Version, s.Tried)
		}
		all = append(all, s)
	}
	return all
}

// versionOf is what a program says to --version; "" when it says nothing.
func versionOf(ctx context.Context, a *command.App, path string) string {
	ctx, cancel := context.WithTimeout(ctx, versionBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env, cmd.WaitDelay = a.Env, time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return report.Line(line, 60)
}

var versionNumber = regexp.MustCompile(`\d+(?:\.\d+)+`)

// standing compares a version with those that pawl was tried with.
func standing(found, tried string) string {
	have := versionNumber.FindString(found)
	known := versionNumber.FindAllString(tried, -1)
	if have == "" || len(known) == 0 || strings.HasPrefix(tried, "not run") {
		return "unknown"
	}
	above, below := 0, 0
	for _, k := range known {
		switch compareVersions(have, k) {
		case 0:
			return "tried"
		case 1:
			above++
		default:
			below++
		}
	}
	switch {
	case below == 0:
		return "newer"
	case above == 0:
		return "older"
	}
	return "between"
}

func compareVersions(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		n, _ := strconv.ParseUint(x, 10, 64)
		m, _ := strconv.ParseUint(y, 10, 64)
		return cmp.Compare(n, m)
	})
}

var standings = map[string]string{
	"tried":   "tried with pawl",
	"newer":   "newer than what pawl was tried with ({tried}): what is new in its stream is kept, and mostly harmless",
	"older":   "older than what pawl was tried with ({tried}): if it refuses a flag, update it",
	"between": "pawl was tried with {tried}",
	"unknown": "pawl was not tried with a known version ({tried})",
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
		a.Result("  version  %s\n", strings.ReplaceAll(standings[s.Standing], "{tried}", s.Tried))
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

package setup

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/keep/files"
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

func pricesCommand(a *command.App) *cobra.Command {
	return command.Leaf("prices [MODEL]", "What costs are computed from, of all models or of one", command.AtMost(1),
		func(_ context.Context, args []string) error {
			c, err := a.Peek()
			if err != nil {
				return err
			}
			all := planner.Prices(c)
			if len(args) > 0 {
				return priceOf(a, all, args[0])
			}
			a.Say("US dollars for a million tokens. The list's are of %s; yours are `prices` in the configuration.",
				agent.PricesDate)
			return printPrices(a, all, slices.Sorted(maps.Keys(all)))
		})
}

// priceOf shows the price that holds for a model.
func priceOf(a *command.App, all agent.Prices, model string) error {
	name, _, known := all.Entry(model)
	if !known {
		return command.Usage("no price of %q is known: its cost is unknown, and no limit of money holds for it", model).
			Hint("Say what it costs: prices: {%s: {input: 3, output: 15}}", strconv.Quote(model))
	}
	return printPrices(a, all, []string{name})
}

func printPrices(a *command.App, all agent.Prices, names []string) error {
	const header = "MODEL\tINPUT\tOUTPUT\tCACHE READ\tCACHE WRITE\tLONG PROMPTS\tFASTER\tSOURCE"
	return command.Listing(a, names, "", header, func(name string) command.Row {
		p := all[name]
		source, long, fast := "yours", "", ""
		if p.Listed {
			source = "list of " + agent.PricesDate
		}
		if p.LongFrom > 0 {
			long = fmt.Sprintf("over %dk: %s and %s", p.LongFrom/1000, perMillion(p.For(p.LongFrom+1).Input),
				perMillion(p.For(p.LongFrom+1).Output))
		}
		if quick, known := p.At("fast"); known {
			fast = fmt.Sprintf("%s and %s", perMillion(quick.Input), perMillion(quick.Output))
		}
		return command.Row{JSON: priceJSON(name, p, source), Cells: []any{
			name, perMillion(p.Input), perMillion(p.Output),
			perMillion(p.CacheRead), perMillion(p.CacheWrite), long, fast, source,
		}}
	})
}

// priceLine is a price of `pawl prices --json`, in US dollars for a million tokens.
type priceLine struct {
	Model      string  `json:"model"`
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
	LongFrom   int64   `json:"long_from,omitempty"` // tokens of the prompt
	LongInput  float64 `json:"long_input,omitempty"`
	LongOutput float64 `json:"long_output,omitempty"`
	Listed     bool    `json:"listed"`
	Source     string  `json:"source"`
}

func priceJSON(name string, p agent.Price, source string) priceLine {
	line := priceLine{
		Model: name, Input: usd(p.Input), Output: usd(p.Output),
		CacheRead: usd(p.CacheRead), CacheWrite: usd(p.CacheWrite),
		Listed: p.Listed, Source: source, LongFrom: p.LongFrom,
	}
	if p.LongFrom > 0 {
		long := p.For(p.LongFrom + 1)
		line.LongInput, line.LongOutput = usd(long.Input), usd(long.Output)
	}
	return line
}

func usd(m loop.MicroUSD) float64 { return float64(m) / 1e6 }

func perMillion(m loop.MicroUSD) string { return strconv.FormatFloat(usd(m), 'f', -1, 64) }

package setup

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
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

// versionBound limits how long a program may take to print its version. A Node program
// on a busy machine needs seconds.
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
			s.Version = askVersion(ctx, a, root, s.Path)
			s.Login, _ = action.LoggedIn(a.Env, row.Name)
		}
		all = append(all, s)
	}
	return all
}

// askVersion runs path --version. It returns "" if that prints nothing.
func askVersion(ctx context.Context, a *command.App, root, path string) string {
	if _, below := files.ProgramPath(path, root); len(below) > 0 { // an agent may have written it
		return "not asked, as it is in the work tree"
	}
	ctx, cancel := context.WithTimeout(ctx, versionBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env, _ = a.Outside(root)
	cmd.Dir, cmd.WaitDelay = "/", time.Second // some take settings from where they are started
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
		a.Result("\nagent %s: %s\n", s.Name, cmp.Or(s.Version, "version unknown"))
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
		a.Result("\nnot installed: %s\n('pawl doctor -v' says how to get them)\n", strings.Join(missing, ", "))
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
	update := ""
	c := command.Leaf("prices [MODEL]", "Print the price of a million tokens, by model; limits on cost use it",
		command.AtMost(1),
		func(_ context.Context, args []string) error {
			if update != "" {
				return updatePrices(a, update)
			}
			c, err := a.Peek()
			if err != nil {
				return err
			}
			all := planner.Prices(c, a.Env)
			if len(args) > 0 {
				return printPriceOfModel(a, all, args[0])
			}
			a.Say("US dollars for a million tokens. The built-in list is of %s, from %s.", agent.PricesDate,
				agent.PricesSource)
			if _, about := planner.UpdatedPrices(a.Env); about != "" {
				a.Say("Overridden by: %s (%s).", about, statedir.PricesFile(a.Env))
			}
			a.Say("`prices` in the configuration override both.")
			return printPrices(a, all, slices.Sorted(maps.Keys(all)))
		})
	c.Flags().StringVar(&update, "update", "", "read prices of `FILE`: LiteLLM's model_prices_and_context_window.json")
	return c
}

// updatePrices takes the field's common list over the built-in one.
func updatePrices(a *command.App, file string) error {
	path := file
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.Dir, file)
	}
	list, err := os.ReadFile(path)
	if err != nil {
		return command.Usage("cannot read the prices: %v", err)
	}
	prices, err := agent.FromLiteLLM(list)
	if err != nil {
		return command.Usage("cannot take the prices of %s: %v", file, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	to := statedir.PricesFile(a.Env)
	about := fmt.Sprintf("%s of %s", filepath.Base(path), info.ModTime().Format(time.DateOnly))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := files.Replace(to, []byte(prices.Text(about)), 0o600, true); err != nil {
		return err
	}
	a.Say("%d prices of %s now override the built-in ones. To get those back: rm %s", len(prices), about, to)
	return nil
}

// printPriceOfModel shows the price that holds for a model.
func printPriceOfModel(a *command.App, all agent.Prices, model string) error {
	name, _, known := all.Entry(model)
	if !known {
		return command.Usage("no price of %q is known: it is not called while a cost limit is set", model).
			Hint("Say what a million of its tokens cost: prices: {%s: {input: 3, output: 15}}", strconv.Quote(model)).
			Hint("Or take a newer list: pawl prices --update FILE")
	}
	return printPrices(a, all, []string{name})
}

func printPrices(a *command.App, all agent.Prices, names []string) error {
	const header = "MODEL\tINPUT\tOUTPUT\tCACHE READ\tCACHE WRITE\tLONG PROMPTS\tFASTER\tSOURCE"
	updated, about := planner.UpdatedPrices(a.Env)
	return command.Listing(a, names, "", header, func(name string) command.Row {
		p := all[name]
		source, long, fast := "yours", "", ""
		if p.Listed {
			source = "list of " + agent.PricesDate
			if _, newer := updated[name]; newer {
				source = about
			}
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
		Model: name, Input: microsToDollars(p.Input), Output: microsToDollars(p.Output),
		CacheRead: microsToDollars(p.CacheRead), CacheWrite: microsToDollars(p.CacheWrite),
		Listed: p.Listed, Source: source, LongFrom: p.LongFrom,
	}
	if p.LongFrom > 0 {
		long := p.For(p.LongFrom + 1)
		line.LongInput, line.LongOutput = microsToDollars(long.Input), microsToDollars(long.Output)
	}
	return line
}

func microsToDollars(m loop.MicroUSD) float64 { return float64(m) / 1e6 }

func perMillion(m loop.MicroUSD) string { return strconv.FormatFloat(microsToDollars(m), 'f', -1, 64) }

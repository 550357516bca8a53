package setup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/planner"
)

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
			a.Say("US dollars for a million tokens. The list's are of %s; yours are `prices` in the configuration.", agent.PricesDate)
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

package agent

import (
	"math"
	"strings"

	"github.com/pawl-dev/pawl/internal/loop"
)

// Price is what a million tokens cost.
type Price struct {
	Input, Output, CacheRead, CacheWrite loop.MicroUSD
}

// Prices are by model. A name stands for every model that starts with it; the
// longest that fits counts, so "claude-sonnet-4" prices its dated versions.
type Prices map[string]Price

// Of is the price of a model; false when there is none.
func (p Prices) Of(model string) (Price, bool) {
	best, found := Price{}, -1
	for name, price := range p {
		if strings.HasPrefix(model, name) && len(name) > found {
			best, found = price, len(name)
		}
	}
	return best, found >= 0
}

// Cost is what u costs with model; false when there is no price for it.
func (p Prices) Cost(model string, u Usage) (loop.MicroUSD, bool) {
	price, known := p.Of(model)
	return price.Cost(u), known
}

// Cost is what u costs, rounded up.
func (p Price) Cost(u Usage) loop.MicroUSD {
	micro := float64(u.Input)*float64(p.Input) + float64(u.Output)*float64(p.Output) +
		float64(u.CacheRead)*float64(p.CacheRead) + float64(u.CacheWrite)*float64(p.CacheWrite)
	return loop.MicroUSD(min(math.Ceil(micro/1e6), 1<<60))
}

// Dollars is an amount in USD; -1, which no [Collector] takes, for what cannot
// be the cost of a run.
func Dollars(usd float64) loop.MicroUSD {
	if !(usd >= 0 && usd <= 1_000_000) {
		return -1
	}
	return loop.MicroUSD(math.Round(usd * 1e6))
}

const dollar = loop.MicroUSD(1_000_000)

// ListPrices are the public list prices of common models, for estimates while
// a program reports no cost of its own. A user's `prices` replace entries.
func ListPrices() Prices {
	return Prices{
		"claude-opus-4-5":   {5 * dollar, 25 * dollar, dollar / 2, 25 * dollar / 4},
		"claude-opus-4":     {15 * dollar, 75 * dollar, 3 * dollar / 2, 75 * dollar / 4},
		"claude-sonnet-4":   {3 * dollar, 15 * dollar, 3 * dollar / 10, 15 * dollar / 4},
		"claude-3-7-sonnet": {3 * dollar, 15 * dollar, 3 * dollar / 10, 15 * dollar / 4},
		"claude-haiku-4":    {dollar, 5 * dollar, dollar / 10, 5 * dollar / 4},
		"gpt-5":             {5 * dollar / 4, 10 * dollar, dollar / 8, 5 * dollar / 4},
		"gpt-5-mini":        {dollar / 4, 2 * dollar, dollar / 40, dollar / 4},
		"gemini-2.5-pro":    {5 * dollar / 4, 10 * dollar, 31 * dollar / 100, 5 * dollar / 4},
		"gemini-2.5-flash":  {3 * dollar / 10, 5 * dollar / 2, 3 * dollar / 40, 3 * dollar / 10},
	}
}

package agent

import (
	_ "embed" // prices.txt
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Price is what a million tokens cost.
type Price struct {
	Input, Output, CacheRead, CacheWrite loop.MicroUSD
	// LongFrom is the prompt, in tokens, from which all of a call costs LongInput
	// and LongOutput percent; 0 is none.
	LongFrom              int64 `json:",omitempty"`
	LongInput, LongOutput int64 `json:",omitempty"`
	// Fast is what a faster tier of the provider costs, in percent; 0 is not known.
	Fast int64 `json:",omitempty"`
	// Listed prices are for their model and its dated versions only. The others
	// are for every model whose name starts so.
	Listed bool `json:",omitempty"`
}

// Prices are by model. The longest name that fits counts.
type Prices map[string]Price

// Of is the price of a model; false when there is none. A vendor before the name
// ("openai/gpt-5") is not looked at.
func (p Prices) Of(model string) (Price, bool) {
	_, price, known := p.Entry(model)
	return price, known
}

// Entry is the price of a model with the name that it stands under.
func (p Prices) Entry(model string) (entry string, best Price, known bool) {
	found := -1
	short := strings.TrimSuffix(model[strings.LastIndexByte(model, '/')+1:], "[1m]")
	for name, price := range p {
		rest, fits := strings.CutPrefix(short, name)
		if price.Listed {
			fits = fits && versions().MatchString(rest)
		} else {
			fits = fits || strings.HasPrefix(model, name)
		}
		if fits && len(name) > found {
			entry, best, found = name, price, len(name)
		}
	}
	return entry, best, found >= 0
}

// versions end the names of one model: a date, a number, a preview. Another model of the family ends otherwise.
var versions = sync.OnceValue(func() *regexp.Regexp {
	const date = `\d{8}|\d{4}-\d\d-\d\d|\d\d-\d\d|\d\d-\d{4}`
	return regexp.MustCompile(`^(-preview|-latest|-exp)?([-@](latest|default|\d{3}|` + date + `))?$`)
})

// For is the price of a call whose prompt has so many tokens, those read from the
// cache included.
func (p Price) For(prompt int64) Price {
	if p.LongFrom == 0 || prompt <= p.LongFrom {
		return p
	}
	long := p.times(p.LongInput)
	long.Output = percent(p.Output, p.LongOutput)
	return long
}

// times is the price at so many percent.
func (p Price) times(by int64) Price {
	p.Input, p.Output = percent(p.Input, by), percent(p.Output, by)
	p.CacheRead, p.CacheWrite = percent(p.CacheRead, by), percent(p.CacheWrite, by)
	return p
}

func percent(m loop.MicroUSD, by int64) loop.MicroUSD { return m * loop.MicroUSD(by) / 100 }

// At is the price in a tier of the provider; false when it is not known there.
func (p Price) At(tier string) (Price, bool) {
	switch tier {
	case "", "default", "standard", "auto":
		return p, true
	case "flex", "batch":
		return p.times(50), true
	case "fast", "priority":
		if p.Fast > 0 {
			return p.times(p.Fast), true
		}
	}
	return p, false
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

// PricesDate is the day for which [ListPrices] were looked up.
const PricesDate = "2026-10-24"

//go:embed prices.txt
var priceList string

// ListPrices are the public list prices of common models. A user's `prices`
// replace entries. A model that is not here has no price: nobody guesses one.
func ListPrices() Prices {
	all := Prices{}
	for line := range strings.Lines(priceList) {
		var model string
		var input, output, cacheRead, cacheWrite float64
		p := Price{Listed: true}
		_, err := fmt.Sscan(line, &model, &input, &output, &cacheRead, &cacheWrite, &p.LongFrom, &p.LongInput, &p.LongOutput,
			&p.Fast)
		if err != nil { // a comment: a test counts the prices
			continue
		}
		p.Input, p.Output = Dollars(input), Dollars(output)
		p.CacheRead, p.CacheWrite = Dollars(cacheRead), Dollars(cacheWrite)
		all[model] = p
	}
	return all
}

package agent

import (
	_ "embed" // prices.txt
	"fmt"
	"strings"
)

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

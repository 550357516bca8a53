package agent

import (
	"cmp"
	_ "embed" // prices.txt
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Price is the price of a million tokens.
type Price struct {
	Input, Output, CacheRead, CacheWrite loop.MicroUSD
	// LongFrom is the prompt, in tokens, from which all of a call costs LongInput
	// and LongOutput percent; 0 is none.
	LongFrom              int64 `json:",omitempty"`
	LongInput, LongOutput int64 `json:",omitempty"`
	// Fast is the price of a faster tier of the provider, in percent; 0 is not known.
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
	if price, exact := p[model]; exact {
		return model, price, true
	}
	found := -1
	short := strings.TrimSuffix(model[strings.LastIndexByte(model, '/')+1:], "[1m]")
	if at := strings.LastIndex(short, "anthropic."); at >= 0 { // Bedrock's names
		short = short[at+len("anthropic."):]
	}
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
// Bedrock adds "-v1:0".
var versions = sync.OnceValue(func() *regexp.Regexp {
	const date = `\d{8}|\d{4}-\d\d-\d\d|\d\d-\d\d|\d\d-\d{4}`
	return regexp.MustCompile(`^(-preview|-latest|-exp)?([-@](latest|default|\d{3}|` + date + `))?(-v\d+(:\d+)?)?$`)
})

// For is the price of a call whose prompt has so many tokens, those read from the
// cache included.
func (p Price) For(prompt int64) Price {
	if p.LongFrom == 0 || prompt <= p.LongFrom {
		return p
	}
	long := p.scaleByPercent(p.LongInput)
	long.Output = percentOf(p.Output, p.LongOutput)
	return long
}

// scaleByPercent returns the price at so many percent.
func (p Price) scaleByPercent(by int64) Price {
	p.Input, p.Output = percentOf(p.Input, by), percentOf(p.Output, by)
	p.CacheRead, p.CacheWrite = percentOf(p.CacheRead, by), percentOf(p.CacheWrite, by)
	return p
}

func percentOf(m loop.MicroUSD, by int64) loop.MicroUSD { return m * loop.MicroUSD(by) / 100 }

// At is the price in a tier of the provider; false when it is not known there.
func (p Price) At(tier string) (Price, bool) {
	switch tier {
	case "", "default", "standard", "auto":
		return p, true
	case "flex", "batch":
		return p.scaleByPercent(50), true
	case "fast", "priority":
		if p.Fast > 0 {
			return p.scaleByPercent(p.Fast), true
		}
	}
	return p, false
}

// Cost returns the cost of u with model; false when there is no price for it.
func (p Prices) Cost(model string, u Usage) (loop.MicroUSD, bool) {
	price, known := p.Of(model)
	return price.Cost(u), known
}

// Cost rounds up.
func (p Price) Cost(u Usage) loop.MicroUSD {
	micro := float64(u.Input)*float64(p.Input) + float64(u.Output)*float64(p.Output) +
		float64(u.CacheRead)*float64(p.CacheRead) + float64(u.CacheWrite)*float64(p.CacheWrite)
	return loop.MicroUSD(min(math.Ceil(micro/1e6), 1<<60))
}

// NoPrice explains why a model without a price is not called under a limit of money, and names the
// lines for pawl.yaml.
func NoPrice(model, tier string) string {
	what := strconv.Quote(model)
	if model == "" {
		what = "the agent's model, whose name it does not say,"
	}
	if tier != "" {
		what += " in the tier " + strconv.Quote(tier)
	}
	const text = "the price of %s is not known, so no cost limit can hold; set in pawl.yaml what a million " +
		"tokens cost (prices: {%s: {input: 3, output: 15}}), or let it run with limits.tokens and limits.calls alone " +
		"(safety: {allow_unpriced: true})"
	return fmt.Sprintf(text, what, strconv.Quote(cmp.Or(model, "NAME")))
}

// Dollars is an amount in USD; -1, which no [Collector] takes, for what cannot
// be the cost of a run.
func Dollars(usd float64) loop.MicroUSD {
	if !(usd >= 0 && usd <= 1_000_000) {
		return -1
	}
	return loop.MicroUSD(math.Round(usd * 1e6))
}

// PricesDate is the day for which [ListPrices] were looked up, on [PricesSource].
const (
	PricesDate   = "2026-10-24"
	PricesSource = "the providers' public pages of prices"
)

//go:embed prices.txt
var priceList string

// ListPrices are the public list prices of common models. A user's `prices` replace entries. A
// model that is not here has no price: none is guessed.
func ListPrices() Prices {
	all, _ := ParsePrices(priceList)
	return all
}

// ParsePrices reads a list in the form of [Prices.Text]; about is its first line.
func ParsePrices(text string) (all Prices, about string) {
	all = Prices{}
	for line := range strings.Lines(text) {
		if said, comment := strings.CutPrefix(line, "# "); comment && about == "" {
			about = strings.TrimSpace(said)
		}
		var model string
		var input, output, cacheRead, cacheWrite float64
		p := Price{Listed: true}
		_, err := fmt.Sscan(line, &model, &input, &output, &cacheRead, &cacheWrite, &p.LongFrom, &p.LongInput,
			&p.LongOutput,
			&p.Fast)
		if err != nil { // a comment: a test counts the prices
			continue
		}
		p.Input, p.Output = Dollars(input), Dollars(output)
		p.CacheRead, p.CacheWrite = Dollars(cacheRead), Dollars(cacheWrite)
		all[model] = p
	}
	return all, about
}

// Text is the list as [ParsePrices] reads it.
func (p Prices) Text(about string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", about)
	usd := func(m loop.MicroUSD) string { return strconv.FormatFloat(float64(m)/1e6, 'f', -1, 64) }
	for _, model := range slices.Sorted(maps.Keys(p)) {
		one := p[model]
		fmt.Fprintln(&b, model, usd(one.Input), usd(one.Output), usd(one.CacheRead), usd(one.CacheWrite), one.LongFrom,
			one.LongInput, one.LongOutput, one.Fast)
	}
	return b.String()
}

// tokenPrices is a model in LiteLLM's list: dollars for one token.
type tokenPrices struct {
	Mode       string   `json:"mode"`
	Input      float64  `json:"input_cost_per_token"`
	Output     float64  `json:"output_cost_per_token"`
	CacheRead  *float64 `json:"cache_read_input_token_cost"`
	CacheWrite *float64 `json:"cache_creation_input_token_cost"`
	Fast       float64  `json:"input_cost_per_token_priority"`
	// Tiers are prices by the length of the prompt, of a model that has no other.
	Tiers []tokenPrices `json:"tiered_pricing"`

	longFrom      int64 // tokens
	long, longOut float64
}

// UnmarshalJSON reads the length from which prompts cost more out of the names of its keys.
func (m *tokenPrices) UnmarshalJSON(data []byte) error {
	type plain tokenPrices
	var all map[string]any
	if err := cmp.Or(json.Unmarshal(data, (*plain)(m)), json.Unmarshal(data, &all)); err != nil {
		return err
	}
	for name, value := range all {
		size, found := strings.CutPrefix(name, "input_cost_per_token_above_")
		from, err := strconv.ParseInt(strings.TrimSuffix(size, "k_tokens"), 10, 64)
		first := m.longFrom == 0 || from*1000 < m.longFrom
		if usd, number := value.(float64); found && err == nil && number && first {
			m.longFrom, m.long = from*1000, usd
			m.longOut, _ = all["output_cost_per_token_above_"+size].(float64)
		}
	}
	for _, tier := range m.Tiers { // the dearest: a limit holds for all
		if tier.Output > m.Output {
			m.Input, m.Output, m.CacheRead, m.CacheWrite = tier.Input, tier.Output, tier.CacheRead, tier.CacheWrite
		}
	}
	return nil
}

// FromLiteLLM reads the list of prices that LiteLLM keeps for the field
// (model_prices_and_context_window.json). A model that several providers serve has, under its
// own name alone, the price of the dearest, where the list does not say another: a limit then
// holds for all. What costs nothing there is left out: it may be what a plan pays.
func FromLiteLLM(list []byte) (Prices, error) {
	var models map[string]json.RawMessage
	if err := json.Unmarshal(list, &models); err != nil {
		return nil, fmt.Errorf("it is not a price list of LiteLLM: %v", err)
	}
	all := Prices{}
	for _, name := range slices.Sorted(maps.Keys(models)) {
		var m tokenPrices
		known := json.Unmarshal(models[name], &m) == nil
		chats := known && slices.Contains([]string{"chat", "responses"}, m.Mode)
		if !chats || strings.ContainsAny(name, " \t\n#") || m.toPrice() == (Price{Listed: true}) {
			continue
		}
		all[name] = m.toPrice()
	}
	if len(all) == 0 {
		return nil, errors.New("it has no model with a price for each token (input_cost_per_token)")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		short := name[strings.LastIndexByte(name, '/')+1:]
		for _, alone := range []string{short, withoutVersion(short)} {
			if _, listed := models[alone]; !listed && all[alone].Output < all[name].Output {
				all[alone] = all[name]
			}
		}
	}
	return all, nil
}

// withoutVersion returns the name of a model without its date, -latest or -preview.
func withoutVersion(name string) string {
	for i := 1; i < len(name); i++ {
		if strings.ContainsRune("-@", rune(name[i])) && versions().MatchString(name[i:]) {
			return name[:i]
		}
	}
	return name
}

func (m *tokenPrices) toPrice() Price {
	million := func(usd float64) loop.MicroUSD { return max(0, Dollars(usd*1e6)) }
	p := Price{Input: million(m.Input), Output: million(m.Output), Listed: true}
	p.CacheRead, p.CacheWrite = p.Input, p.Input
	if m.CacheRead != nil {
		p.CacheRead = million(*m.CacheRead)
	}
	if m.CacheWrite != nil {
		p.CacheWrite = million(*m.CacheWrite)
	}
	share := func(of, whole float64) int64 {
		if whole <= 0 || of <= 0 {
			return 100
		}
		return int64(math.Ceil(100*of/whole - 1e-6))
	}
	if m.long > 0 {
		p.LongFrom, p.LongInput, p.LongOutput = m.longFrom, share(m.long, m.Input), share(m.longOut, m.Output)
	}
	if m.Fast > 0 {
		p.Fast = share(m.Fast, m.Input)
	}
	return p
}

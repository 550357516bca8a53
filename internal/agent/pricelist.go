package agent

// PricesDate is the day for which [ListPrices] were looked up.
const PricesDate = "2026-10-24"

// listPrice is a line of the providers' price lists, in US dollars for a million
// tokens, and percent. What a provider does not charge apart costs as input does.
type listPrice struct {
	model                                string
	input, output, cacheRead, cacheWrite float64
	longFrom, longInput, longOutput      int64
	fast                                 int64
}

// ListPrices are the public list prices of common models. A user's `prices`
// replace entries. A model that is not here has no price: nobody guesses one.
func ListPrices() Prices {
	all := Prices{}
	for _, l := range &priceList {
		all[l.model] = Price{
			Input: Dollars(l.input), Output: Dollars(l.output),
			CacheRead: Dollars(l.cacheRead), CacheWrite: Dollars(l.cacheWrite),
			LongFrom: l.longFrom, LongInput: l.longInput, LongOutput: l.longOutput, Fast: l.fast, Listed: true,
		}
	}
	return all
}

var priceList = [...]listPrice{
	{"claude-fable-5-1", 10, 50, 0.25, 12.5, 0, 0, 0, 0},
	{"claude-mythos-5-1", 10, 50, 0.25, 12.5, 0, 0, 0, 0},
	{"claude-fable-5", 10, 50, 1, 12.5, 0, 0, 0, 0},
	{"claude-mythos-5", 10, 50, 1, 12.5, 0, 0, 0, 0},
	{"claude-opus-5-5", 4, 20, 0.2, 5, 0, 0, 0, 200},
	{"claude-opus-5", 5, 25, 0.5, 6.25, 0, 0, 0, 0},
	{"claude-opus-4-8", 5, 25, 0.5, 6.25, 0, 0, 0, 0},
	{"claude-opus-4-7", 5, 25, 0.5, 6.25, 0, 0, 0, 0},
	{"claude-opus-4-6", 5, 25, 0.5, 6.25, 0, 0, 0, 600},
	{"claude-opus-4-5", 5, 25, 0.5, 6.25, 0, 0, 0, 0},
	{"claude-opus-4-1", 15, 75, 1.5, 18.75, 0, 0, 0, 0},
	{"claude-opus-4-0", 15, 75, 1.5, 18.75, 0, 0, 0, 0},
	{"claude-opus-4", 15, 75, 1.5, 18.75, 0, 0, 0, 0},
	{"claude-sonnet-5-5", 2, 10, 0.1, 2.5, 0, 0, 0, 0},
	{"claude-sonnet-5", 2, 10, 0.2, 2.5, 0, 0, 0, 0},
	{"claude-sonnet-4-6", 3, 15, 0.3, 3.75, 0, 0, 0, 0},
	{"claude-sonnet-4-5", 3, 15, 0.3, 3.75, 200000, 200, 150, 0},
	{"claude-sonnet-4-0", 3, 15, 0.3, 3.75, 200000, 200, 150, 0},
	{"claude-sonnet-4", 3, 15, 0.3, 3.75, 200000, 200, 150, 0},
	{"claude-3-7-sonnet", 3, 15, 0.3, 3.75, 0, 0, 0, 0},
	{"claude-haiku-5-5", 0.1, 0.5, 0.01, 0.125, 100000, 500, 500, 0},
	{"claude-haiku-4-5", 1, 5, 0.1, 1.25, 0, 0, 0, 0},
	{"claude-3-5-haiku", 0.8, 4, 0.08, 1, 0, 0, 0, 0},
	{"gpt-6-astra", 10, 50, 1, 12.5, 272000, 200, 150, 200},
	{"gpt-6.1-sol", 2, 10, 0.1, 2.5, 272000, 200, 150, 200},
	{"gpt-6-sol", 2, 10, 0.2, 2.5, 272000, 200, 150, 200},
	{"gpt-6-luna", 0.1, 0.5, 0.01, 0.125, 272000, 200, 150, 200},
	{"gpt-5.6-sol", 4, 20, 0.4, 5, 272000, 200, 150, 200},
	{"gpt-5.6-terra", 2, 12, 0.2, 2.5, 272000, 200, 150, 200},
	{"gpt-5.6-luna", 0.2, 1.2, 0.02, 0.25, 272000, 200, 150, 200},
	{"gpt-5.5", 5, 30, 0.5, 5, 272000, 200, 150, 250},
	{"gpt-5.5-pro", 30, 180, 30, 30, 0, 0, 0, 0},
	{"gpt-5.4", 2.5, 15, 0.25, 2.5, 272000, 200, 150, 200},
	{"gpt-5.4-pro", 30, 180, 30, 30, 0, 0, 0, 0},
	{"gpt-5.4-mini", 0.75, 4.5, 0.075, 0.75, 0, 0, 0, 0},
	{"gpt-5.4-nano", 0.2, 1.25, 0.02, 0.2, 0, 0, 0, 0},
	{"gpt-5.3-codex", 1.75, 14, 0.175, 1.75, 0, 0, 0, 0},
	{"gpt-5.2", 1.75, 14, 0.175, 1.75, 0, 0, 0, 0},
	{"gpt-5.2-codex", 1.75, 14, 0.175, 1.75, 0, 0, 0, 0},
	{"gpt-5.1", 1.25, 10, 0.125, 1.25, 0, 0, 0, 200},
	{"gpt-5.1-codex", 1.25, 10, 0.125, 1.25, 0, 0, 0, 0},
	{"gpt-5.1-codex-max", 1.25, 10, 0.125, 1.25, 0, 0, 0, 0},
	{"gpt-5.1-codex-mini", 0.25, 2, 0.025, 0.25, 0, 0, 0, 0},
	{"gpt-5", 1.25, 10, 0.125, 1.25, 0, 0, 0, 200},
	{"gpt-5-codex", 1.25, 10, 0.125, 1.25, 0, 0, 0, 0},
	{"gpt-5-mini", 0.25, 2, 0.025, 0.25, 0, 0, 0, 0},
	{"gpt-5-nano", 0.05, 0.4, 0.005, 0.05, 0, 0, 0, 0},
	{"gpt-4.1", 2, 8, 0.5, 2, 0, 0, 0, 0},
	{"gpt-4.1-mini", 0.4, 1.6, 0.1, 0.4, 0, 0, 0, 0},
	{"gpt-4o", 2.5, 10, 1.25, 2.5, 0, 0, 0, 0},
	{"gpt-4o-mini", 0.15, 0.6, 0.075, 0.15, 0, 0, 0, 0},
	{"o3", 2, 8, 0.5, 2, 0, 0, 0, 0},
	{"o4-mini", 1.1, 4.4, 0.275, 1.1, 0, 0, 0, 0},
	{"gemini-3.8-flash", 0.75, 3.75, 0.075, 0.75, 0, 0, 0, 0},
	{"gemini-3.5-flash", 1.5, 9, 0.15, 1.5, 0, 0, 0, 0},
	{"gemini-3.5-flash-lite", 0.3, 2.5, 0.03, 0.3, 0, 0, 0, 0},
	{"gemini-3.1-pro", 2, 12, 0.2, 2, 200000, 200, 150, 0},
	{"gemini-3.1-flash-lite", 0.25, 1.5, 0.025, 0.25, 0, 0, 0, 0},
	{"gemini-3-pro", 2, 12, 0.2, 2, 200000, 200, 150, 0},
	{"gemini-3-flash", 0.5, 3, 0.05, 0.5, 0, 0, 0, 0},
	{"gemini-2.5-pro", 1.25, 10, 0.125, 1.25, 200000, 200, 150, 0},
	{"gemini-2.5-flash", 0.3, 2.5, 0.03, 0.3, 0, 0, 0, 0},
	{"gemini-2.5-flash-lite", 0.1, 0.4, 0.01, 0.1, 0, 0, 0, 0},
}

package agent

import (
	_ "embed"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

func fold(events ...Event) *Collector {
	c := NewCollector()
	for _, e := range events {
		c.Add(e)
	}
	return c
}

func TestFinalMessage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		events []Event
		want   string
	}{
		{"nothing", nil, ""},
		{"after the last tool", []Event{{Kind: Text, Text: "first"}, {Kind: ToolStart}, {Kind: ToolEnd}, {Kind: Text, Text: "last"}}, "last"},
		{"a tool at the end", []Event{{Kind: Text, Text: "first"}, {Kind: ToolStart}}, ""},
		{"two texts are two lines", []Event{{Kind: Text, Text: "a"}, {Kind: Text, Text: "b"}}, "a\nb"},
		{"the program's word beats ours", []Event{{Kind: Text, Text: "a"}, {Kind: End, Text: "b"}}, "b"},
		{"an end without a message", []Event{{Kind: Text, Text: "a"}, {Kind: End}}, "a"},
		{"an end with an empty message", []Event{{Kind: Text, Text: "a"}, {Kind: End, Final: true}}, ""},
		{"thoughts do not count", []Event{{Kind: Text, Text: "a"}, {Kind: Thinking, Text: "<promise>COMPLETE</promise>"}}, "a"},
		{"nor does a sub-agent", []Event{{Kind: Text, Text: "a"}, {Kind: ToolStart, Sub: true}, {Kind: Text, Text: "b", Sub: true}}, "a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := fold(test.events...).Outcome().Message; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	add := func(in, out int64) Event { return Event{Kind: UsageSeen, Usage: Usage{Input: in, Output: out}} }
	total := func(in, out int64) Event {
		return Event{Kind: UsageSeen, Usage: Usage{Input: in, Output: out}, Cumulative: true}
	}
	guess := func(out int64) Event { return Event{Kind: UsageSeen, Usage: Usage{Output: out}, Estimate: true} }
	for _, test := range []struct {
		name   string
		events []Event
		want   Usage
	}{
		{"sums", []Event{add(1, 2), add(10, 20)}, Usage{Input: 11, Output: 22}},
		{"a total replaces", []Event{add(1, 2), total(10, 20)}, Usage{Input: 10, Output: 20}},
		{"a total never falls", []Event{add(10, 20), total(1, 30)}, Usage{Input: 10, Output: 30}},
		{"an estimate counts", []Event{add(10, 0), guess(7), guess(7)}, Usage{Input: 10, Output: 14}},
		{"and gives way", []Event{add(10, 0), guess(700), total(10, 5)}, Usage{Input: 10, Output: 5}},
		{"negative is dropped", []Event{add(-5, 2)}, Usage{Output: 2}},
		{"absurd is dropped", []Event{add(math.MaxInt64, 2), add(1, 1)}, Usage{Input: 1, Output: 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := fold(test.events...).Outcome().Usage; got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestTotalsForLimits(t *testing.T) {
	t.Parallel()
	c := fold(
		Event{Kind: UsageSeen, Usage: Usage{Input: 1, Output: 2, CacheRead: 4, CacheWrite: 8}, Calls: 1, Turns: 1},
		Event{Kind: Retry, Calls: 1},
		Event{Kind: UsageSeen, Calls: -5, Turns: -5},
		Event{Kind: CostSeen, Cost: 100},
		Event{Kind: CostSeen, Cost: 50},
		Event{Kind: CostSeen, Cost: -1},
		Event{Kind: CostSeen, Cost: math.MaxInt64},
	)
	cost, known := c.Cost()
	if c.Tokens() != 15 || c.Calls() != 2 || c.Turns() != 1 || cost != 100 || !known {
		t.Errorf("tokens %d, calls %d, turns %d, cost %d %v", c.Tokens(), c.Calls(), c.Turns(), cost, known)
	}
}

func TestCostSource(t *testing.T) {
	t.Parallel()
	events := []Event{
		{Kind: Session, Model: "claude-sonnet-4-5-20250929"},
		{Kind: UsageSeen, Usage: Usage{Input: 2500, Output: 60, CacheRead: 600, CacheWrite: 400}},
	}
	c := fold(events...)
	if _, known := c.Cost(); known || c.Outcome().CostSource != CostNone {
		t.Error("a cost is known without prices")
	}
	c.SetPrices(ListPrices())
	if got := c.Outcome(); got.Cost != 10_080 || got.CostSource != CostEstimated {
		t.Errorf("cost is %d, %s", got.Cost, got.CostSource)
	}
	ended := fold(events[0], Event{Kind: Text, Text: "I begin.", Calls: 1})
	ended.SetPrices(ListPrices())
	if got := ended.Outcome(); got.CostSource != CostNone {
		t.Errorf("a call whose tokens nobody told costs %d, %s", got.Cost, got.CostSource)
	}
	c.Add(Event{Kind: CostSeen, Cost: 7})
	if got := c.Outcome(); got.Cost != 7 || got.CostSource != CostReported {
		t.Errorf("cost is %d, %s", got.Cost, got.CostSource)
	}
}

func TestPricesTakeTheLongestName(t *testing.T) {
	t.Parallel()
	p := Prices{"m": {Input: 1_000_000}, "m-large": {Input: 9_000_000}}
	for model, want := range map[string]loop.MicroUSD{"m-small": 1, "m-large-2": 9} {
		if got, ok := p.Cost(model, Usage{Input: 1}); got != want || !ok {
			t.Errorf("%s costs %d, want %d", model, got, want)
		}
	}
	if _, ok := p.Cost("other", Usage{Input: 1}); ok {
		t.Error("another model has a price")
	}
	if got, _ := p.Cost("m-large", Usage{Input: math.MaxInt64, Output: math.MaxInt64}); got <= 0 {
		t.Errorf("the cost overflows to %d", got)
	}
}

// A listed price is that of a model and its dated versions, wherever it is
// bought; another model of the family has none.
func TestListPrices(t *testing.T) {
	t.Parallel()
	all := ListPrices()
	if lines := strings.Count("\n"+priceList, "\n") - 1 - strings.Count("\n"+priceList, "\n#"); len(all) != lines || lines < 50 {
		t.Errorf("%d of %d lines are prices", len(all), lines)
	}
	all["own-"] = Price{Input: 1}
	all["openai/gpt-5"] = Price{Input: 2}
	for model, want := range map[string]loop.MicroUSD{
		"claude-sonnet-4-5": 3_000_000, "claude-sonnet-4-5-20250929": 3_000_000, "anthropic/claude-sonnet-4-5": 3_000_000,
		"claude-sonnet-4-5@20250929": 3_000_000, "claude-haiku-5-5[1m]": 100_000, "claude-opus-4-20250514": 15_000_000,
		"gpt-5.1-2025-11-13": 1_250_000, "gpt-5-mini": 250_000, "gemini-3.1-pro-preview": 2_000_000,
		"models/gemini-2.5-flash-preview-09-2025": 300_000, "gemini-2.5-pro-preview-05-06": 1_250_000,
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0": 3_000_000, "claude-sonnet-4-5-latest": 3_000_000,
		"own-model-7": 1, "openai/gpt-5": 2,
	} {
		if got, ok := all.Of(model); got.Input != want || !ok {
			t.Errorf("%s costs %d, %v, want %d", model, got.Input, ok, want)
		}
	}
	for _, model := range []string{"", "claude-opus-4-9", "claude-opus-6", "gpt-5.9", "gpt-5-ultra", "gemini-2.5-flash-image", "claude", "gpt-4o:free"} {
		if got, ok := all.Of(model); ok {
			t.Errorf("%q has the price %+v", model, got)
		}
	}
	for name, p := range all {
		if p.Listed && (p.Input <= 0 || p.Output <= p.Input || p.CacheRead <= 0 || p.CacheRead > p.Input || p.CacheWrite < p.Input) {
			t.Errorf("%s: the price is %+v", name, p)
		}
	}
}

// The field's common list is taken over: for what talks and has a price, by all its names. What is
// written of it is read again as it was.
func TestLiteLLM(t *testing.T) {
	t.Parallel()
	all, err := FromLiteLLM([]byte(`{
		"sample_spec": {"mode": "one of: chat, …", "input_cost_per_token": 0.0},
		"gpt-9": {"mode": "responses", "input_cost_per_token": 2e-06, "output_cost_per_token": 1e-05, "cache_read_input_token_cost": 2e-07,
			"input_cost_per_token_above_272k_tokens": 4e-06, "output_cost_per_token_above_272k_tokens": 1.5e-05, "input_cost_per_token_priority": 5e-06},
		"azure/gpt-9": {"mode": "chat", "input_cost_per_token": 9e-06, "output_cost_per_token": 9e-05},
		"a/one-2-20260102": {"mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06},
		"b/one-2": {"mode": "chat", "input_cost_per_token": 3e-06, "output_cost_per_token": 4e-06, "cache_creation_input_token_cost": 6e-06},
		"free/gpt-9": {"mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 0},
		"picture": {"mode": "image_generation", "input_cost_per_token": 1e-06},
		"words": {"mode": "chat", "input_cost_per_token": "cheap"}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	again, about := ParsePrices(all.Text("a list of 2026-11-28"))
	if !maps.Equal(all, again) || about != "a list of 2026-11-28" {
		t.Errorf("read again: %s: %+v, want %+v", about, again, all)
	}
	want := map[string]Price{
		"gpt-9":            {Input: 2e6, Output: 10e6, CacheRead: 200_000, CacheWrite: 2e6, LongFrom: 272_000, LongInput: 200, LongOutput: 150, Fast: 250, Listed: true},
		"openai/gpt-9":     {Input: 2e6, Output: 10e6, CacheRead: 200_000, CacheWrite: 2e6, LongFrom: 272_000, LongInput: 200, LongOutput: 150, Fast: 250, Listed: true},
		"azure/gpt-9":      {Input: 9e6, Output: 90e6, CacheRead: 9e6, CacheWrite: 9e6, Listed: true},
		"one-2":            {Input: 3e6, Output: 4e6, CacheRead: 3e6, CacheWrite: 6e6, Listed: true},
		"one-2-latest":     {Input: 3e6, Output: 4e6, CacheRead: 3e6, CacheWrite: 6e6, Listed: true},
		"a/one-2-20260102": {Input: 1e6, Output: 2e6, CacheRead: 1e6, CacheWrite: 1e6, Listed: true},
	}
	for model, price := range want {
		if got, _ := all.Of(model); got != price {
			t.Errorf("%s costs %+v, want %+v", model, got, price)
		}
	}
	for _, model := range []string{"picture", "words", "sample_spec", "free/gpt-8"} {
		if got, known := all.Of(model); known {
			t.Errorf("%s costs %+v", model, got)
		}
	}
	for _, bad := range []string{"", "[]", "{}", `{"m": {"mode": "chat"}}`} {
		if _, err := FromLiteLLM([]byte(bad)); err == nil {
			t.Errorf("%q is a list", bad)
		}
	}
}

// liteLLM is an excerpt of the list in the shape of late 2026, with models that are not.
//
//go:embed testdata/litellm.json
var liteLLM []byte

// Dated names, -latest, provider prefixes, tiers and prices of the cache of the real list come to a price under each
// name that a provider answers with.
func TestLiteLLMAsItIs(t *testing.T) {
	t.Parallel()
	all, err := FromLiteLLM(liteLLM)
	if err != nil {
		t.Fatal(err)
	}
	opus := Price{Input: 5e6, Output: 25e6, CacheRead: 500_000, CacheWrite: 6_250_000, Listed: true}
	usOpus := Price{Input: 5_500_000, Output: 27_500_000, CacheRead: 550_000, CacheWrite: 6_875_000, Listed: true}
	sonnet := Price{Input: 3e6, Output: 15e6, CacheRead: 300_000, CacheWrite: 3_750_000, LongFrom: 200_000, LongInput: 200, LongOutput: 150, Listed: true}
	haiku := Price{Input: 1e6, Output: 5e6, CacheRead: 100_000, CacheWrite: 1_250_000, Listed: true}
	gpt := Price{Input: 1_250_000, Output: 10e6, CacheRead: 125_000, CacheWrite: 1_250_000, Fast: 200, Listed: true}
	codex := gpt
	codex.Fast = 0
	gemini := Price{Input: 2e6, Output: 12e6, CacheRead: 200_000, CacheWrite: 2e6, LongFrom: 200_000, LongInput: 200, LongOutput: 150, Listed: true}
	grok := Price{Input: 200_000, Output: 500_000, CacheRead: 50_000, CacheWrite: 200_000, LongFrom: 128_000, LongInput: 200, LongOutput: 200, Listed: true}
	qwen := Price{Input: 6e6, Output: 60e6, CacheRead: 600_000, CacheWrite: 6e6, Listed: true}
	for model, want := range map[string]Price{
		"claude-sonnet-4-5": sonnet, "claude-sonnet-4-5-20250929": sonnet, "anthropic/claude-sonnet-4-5": sonnet, "claude-sonnet-4-5[1m]": sonnet,
		"claude-opus-9-20270210": opus, "claude-opus-9": opus, "claude-opus-9-latest": opus, "vertex_ai/claude-opus-9@20270210": opus,
		"us.anthropic.claude-opus-9-20270210-v1:0": usOpus,
		"claude-haiku-9": haiku, "claude-haiku-9-20270101": haiku,
		"gpt-9": gpt, "openai/gpt-9-2027-03-01": gpt, "gpt-9-codex": codex, "gpt-9-codex-2027-03-01": codex,
		"gemini-9-pro-preview": gemini, "gemini-9-pro": gemini, "models/gemini-9-pro-preview": gemini,
		"grok-9-fast": grok, "xai/grok-9-fast": grok,
		"qwen9-coder-plus": qwen,
	} {
		if got, _ := all.Of(model); got != want {
			t.Errorf("%s costs %+v, want %+v", model, got, want)
		}
	}
	for _, model := range []string{"text-embedding-9", "sample_spec", "github_copilot/gpt-8"} {
		if got, known := all.Of(model); known {
			t.Errorf("%s costs %+v", model, got)
		}
	}
}

// A long prompt makes all of the call dearer, and a faster tier too.
func TestPriceOfACall(t *testing.T) {
	t.Parallel()
	p := Price{Input: 100, Output: 1000, CacheRead: 10, CacheWrite: 120, LongFrom: 200, LongInput: 200, LongOutput: 150, Fast: 250}
	if got := p.For(200); got != p {
		t.Errorf("a prompt of 200 tokens costs %+v", got)
	}
	if got := p.For(201); got.Input != 200 || got.Output != 1500 || got.CacheRead != 20 || got.CacheWrite != 240 {
		t.Errorf("a prompt of 201 tokens costs %+v", got)
	}
	for tier, want := range map[string]loop.MicroUSD{"": 100, "default": 100, "flex": 50, "priority": 250, "fast": 250} {
		if got, ok := p.At(tier); got.Input != want || !ok {
			t.Errorf("tier %q costs %d, %v", tier, got.Input, ok)
		}
	}
	p.Fast = 0
	for _, tier := range []string{"priority", "committed", "turbo"} {
		if _, ok := p.At(tier); ok {
			t.Errorf("the price of tier %q is known", tier)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	overloaded := &failure.APIError{Status: 529, Type: "overloaded"}
	limit := &failure.APIError{Status: 429, Type: "rate_limit"}
	for _, test := range []struct {
		name   string
		events []Event
		want   []int // statuses
	}{
		{"a retry that worked is no evidence", []Event{{Kind: Retry, Error: overloaded}, {Kind: Text, Text: "a"}, {Kind: Error, Error: limit}}, []int{429}},
		{"one that nothing followed is", []Event{{Kind: Retry, Error: overloaded}, {Kind: End, Terminal: loop.TerminalMissing}}, []int{529}},
		{"the error after retries says it all", []Event{{Kind: Retry, Error: overloaded}, {Kind: Error, Error: overloaded}}, []int{529}},
		{"an end may carry one", []Event{{Kind: End, Error: limit}}, []int{429}},
		{"an event without one", []Event{{Kind: Error}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []int
			for _, e := range fold(test.events...).Outcome().Errors {
				got = append(got, e.Status)
			}
			if len(got) != len(test.want) || (len(got) > 0 && got[0] != test.want[0]) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestErrorsAreBounded(t *testing.T) {
	t.Parallel()
	c := NewCollector()
	for i := range 100 {
		c.Add(Event{Kind: Error, Error: &failure.APIError{Status: i * 100, RetryAfter: -time.Second,
			Type: strings.Repeat("t", 1000), Message: strings.Repeat("ä", 10_000)}})
	}
	errs := c.Outcome().Errors
	if len(errs) != maxErrors {
		t.Fatalf("%d errors are kept", len(errs))
	}
	for _, e := range errs {
		if len(e.Message) > maxErrorText || len(e.Type) > 200 || e.RetryAfter != 0 || e.Status != 0 {
			t.Errorf("kept %d bytes of message, type of %d, retry %v, status %d", len(e.Message), len(e.Type), e.RetryAfter, e.Status)
		}
	}
}

// What is cut off the start of a long message must not make a signal of what
// was none.
func TestLongMessages(t *testing.T) {
	t.Parallel()
	const sign = "<promise>COMPLETE</promise>"
	long := strings.Repeat("word ", 40)
	for _, test := range []struct{ name, in, want string }{
		{"fits", "a\nb", "a\nb"},
		{"by lines", long + "\nshort\n" + sign, "short\n" + sign},
		{"a line is marked where it is cut", long + sign, "…"},
		{"a fence stays open", "```text\n" + long + "\n" + sign, "```\n" + sign},
		{"a closed fence stays closed", "```\nx\n```\n" + long + "\n" + sign, sign},
		{"another marker closes nothing", "~~~\n```\n" + long + "\n" + sign, "~~~\n" + sign},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tail := NewTail(40)
			tail.Add(test.in)
			got := tail.Text()
			if test.want == "…" {
				if !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, sign) {
					t.Errorf("got %q", got)
				}
			} else if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if len(got) > 40+8 {
				t.Errorf("%d bytes are kept", len(got))
			}
		})
	}
}

// The end is never lost, however little is cut off.
func TestTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	for over := range 10 {
		tail := NewTail(40)
		tail.Add(strings.Repeat("x", 30+over) + " the end.")
		if got := tail.Text(); !strings.HasSuffix(got, "x the end.") || len(got) > 40+len(cutMark) {
			t.Errorf("%d over the limit: %q", over, got)
		}
	}
}

func TestTailStaysSmall(t *testing.T) {
	t.Parallel()
	tail := NewTail(1 << 10)
	for range 10_000 {
		tail.Add(strings.Repeat("x", 700))
		if cap(tail.buf) > 16<<10 {
			t.Fatalf("the tail holds %d bytes", cap(tail.buf))
		}
	}
	tail.Add(strings.Repeat("y", 1<<20))
	if got := tail.Text(); len(got) > 1<<10+8 || cap(tail.buf) > 16<<10 {
		t.Errorf("%d bytes, %d held", len(got), cap(tail.buf))
	}
}

func TestModelThatWasAskedFor(t *testing.T) {
	t.Parallel()
	price := Prices{"gpt": {Input: 1_000_000}, "claude": {Input: 5_000_000}}
	used := Event{Kind: UsageSeen, Usage: Usage{Input: 2}}
	for _, test := range []struct {
		events []Event
		want   loop.MicroUSD
	}{
		{[]Event{used}, 2},
		{[]Event{used, {Kind: Session, Model: "claude-x"}}, 10},
	} {
		c := NewCollector()
		c.SetPrices(price)
		c.SetModel("gpt-5")
		for _, e := range test.events {
			c.Add(e)
		}
		if cost, known := c.Cost(); cost != test.want || !known {
			t.Errorf("%d events cost %d, %v, want %d", len(test.events), cost, known, test.want)
		}
	}
}

func TestTailJoins(t *testing.T) {
	t.Parallel()
	tail := NewTail(100)
	tail.Add("a <pr")
	tail.Join("omise>")
	tail.Add("b")
	if got := tail.Text(); got != "a <promise>\nb" {
		t.Errorf("got %q", got)
	}
	tail.Reset()
	tail.Join("x")
	tail.Add("y")
	if got := tail.Text(); got != "x\ny" {
		t.Errorf("after a reset: %q", got)
	}
}

// Counts stop at a bound: no stream makes them negative again.
func TestCountsDoNotOverflow(t *testing.T) {
	t.Parallel()
	c := NewCollector()
	for range 100 {
		c.Add(Event{Kind: UsageSeen, Calls: absurdTokens - 1, Turns: absurdTokens - 1, Usage: Usage{Input: absurdTokens, Output: absurdTokens, CacheWrite: absurdTokens}})
		c.Add(Event{Kind: CostSeen, Cost: absurdCost})
	}
	c.Add(Event{Kind: CostSeen, Cost: math.MaxInt64})
	c.Add(Event{Kind: CostSeen, Cost: math.MinInt64})
	c.Add(Event{Kind: UsageSeen, Calls: math.MaxInt, Turns: math.MinInt})
	if cost, _ := c.Cost(); c.Calls() != absurdTokens || c.Turns() != absurdTokens || c.Tokens() != 3*absurdTokens || cost != absurdCost {
		t.Errorf("calls %d, turns %d, tokens %d, cost %d", c.Calls(), c.Turns(), c.Tokens(), cost)
	}
	huge := Prices{"m": {Input: math.MaxInt64, Output: math.MaxInt64, CacheRead: math.MaxInt64, CacheWrite: math.MaxInt64}}
	if cost, ok := huge.Cost("m", Usage{Input: absurdTokens, Output: absurdTokens, CacheRead: absurdTokens, CacheWrite: absurdTokens}); !ok || cost <= 0 {
		t.Errorf("an absurd price costs %d", cost)
	}
	if _, ok := huge.Cost("x", Usage{Input: 1}); ok {
		t.Error("a model that nobody knows has a price")
	}
}

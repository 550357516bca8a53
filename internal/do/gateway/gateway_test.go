package gateway

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// each runs a test for every kind of call, streamed and not.
func each(t *testing.T, test func(t *testing.T, path, header, body string, stream bool)) {
	t.Helper()
	for _, k := range kinds {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/stream=%v", k.name, stream), func(t *testing.T) {
				t.Parallel()
				path, body := k.path, k.stream
				if !stream && k.whole != "" {
					body = k.whole
				}
				if k.name == "generate" {
					path += map[bool]string{true: "streamGenerateContent?alt=sse", false: "generateContent"}[stream]
				}
				test(t, path, k.header, body, stream)
			})
		}
	}
}

// What a provider says reaches the agent as it is; the key reaches the provider,
// and the token does not. Every token is counted.
func TestPassesAndCounts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, path, header, body string, _ bool) {
		r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{
			Text: "good morning", Usage: modelserver.Usage{Input: 1000, Output: 200, CacheRead: 3000},
		}}}, nil)
		status, answer, _ := r.post(path, header, body)
		if status != http.StatusOK || !strings.Contains(answer, "good") {
			t.Fatalf("status %d, answer %s", status, answer)
		}
		seen := r.provider.Requests()
		if len(seen) != 1 || string(seen[0].Body) != body {
			t.Fatalf("the provider saw %+v", seen)
		}
		if got := seen[0].Header.Get(header); !strings.HasSuffix(got, testKey) {
			t.Errorf("the key is %q", got)
		}
		for name, values := range seen[0].Header {
			if strings.Contains(strings.Join(values, " "), testToken) {
				t.Errorf("the token leaves in %s", name)
			}
		}
		want := agent.Usage{Input: 1000, Output: 200, CacheRead: 3000}
		out := r.outcome()
		if out.Usage != want || out.Calls != 1 || out.Cost != 6900 {
			t.Errorf("usage %+v, %d calls, cost %d", out.Usage, out.Calls, out.Cost)
		}
		if models, cost, known := r.gateway.Totals(); models["m"].Usage != want || models["m"].Calls != 1 || models["m"].Cost != 6900 || cost != 6900 || !known {
			t.Errorf("totals are %v, %d, %v", models, cost, known)
		}
		if r.gateway.Flaw() != nil || len(r.ended) != 0 {
			t.Errorf("flaw %v, ended %v", r.gateway.Flaw(), r.ended)
		}
	})
}

// Only the run's own agent is served, and only at what a model is asked by.
func TestServesNothingElse(t *testing.T) {
	t.Parallel()
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi"}}}, nil)
	for _, test := range []struct {
		method, path, header, token string
		want                        int
	}{
		{"POST", "/anthropic/v1/messages", "X-Api-Key", "another-token-0000", 401},
		{"POST", "/anthropic/v1/messages", "X-Api-Key", "", 401},
		{"POST", "/anthropic/v1/messages", "X-Api-Key", testKey, 401},
		{"POST", "/anthropic/v1/messages", "Authorization", testToken + "x", 401},
		{"POST", "/other/v1/messages", "X-Api-Key", testToken, 404},
		{"POST", "/", "X-Api-Key", testToken, 404},
		{"GET", "/anthropic/v1/messages", "X-Api-Key", testToken, 403},
		{"DELETE", "/anthropic/v1/messages", "X-Api-Key", testToken, 403},
		{"GET", "/anthropic/v1/organizations/me", "X-Api-Key", testToken, 403},
		{"POST", "/anthropic/v1/organizations/api_keys", "X-Api-Key", testToken, 403},
		{"POST", "/anthropic/v1/files", "X-Api-Key", testToken, 403},
		{"POST", "/anthropic/v1/messages/batches", "X-Api-Key", testToken, 403},
		{"POST", "/anthropic/v1/../v1/messages", "X-Api-Key", testToken, 403},
		{"POST", "/anthropic/v1/messages/", "X-Api-Key", testToken, 403},
		{"POST", "/anthropic//v1/messages", "X-Api-Key", testToken, 403},
		{"POST", "/anthropic/v1%2fmessages", "X-Api-Key", testToken, 403},
		{"GET", "/anthropic/v1/models/..%2f..%2fadmin", "X-Api-Key", testToken, 403},
		{"GET", "/anthropic/v1/models/../organizations", "X-Api-Key", testToken, 403},
		{"GET", "/openai/models/a/b/c", "Authorization", testToken, 403},
		{"GET", "/openai/organization/admin_api_keys", "Authorization", testToken, 403},
		{"GET", "/openai/dashboard/billing/usage", "Authorization", testToken, 403},
		{"POST", "/openai/files", "Authorization", testToken, 403},
		{"POST", "/openai/responses/resp_1/cancel", "Authorization", testToken, 403},
		{"POST", "/gemini/v1beta/models/m:batchGenerateContent", "X-Goog-Api-Key", testToken, 403},
		{"POST", "/gemini/v1beta/cachedContents", "X-Goog-Api-Key", testToken, 403},
		{"POST", "/gemini/v1beta/tunedModels/m:generateContent", "X-Goog-Api-Key", testToken, 403},
	} {
		status, answer, _ := r.ask(test.method, test.path, test.header, test.token, `{"model":"m"}`)
		if status != test.want || !strings.Contains(answer, "pawl's gateway") {
			t.Errorf("%s %s: status %d, want %d: %s", test.method, test.path, status, test.want, answer)
		}
	}
	if n := len(r.provider.Requests()); n != 0 {
		t.Errorf("the provider saw %d requests", n)
	}
	// The control: the same client with the token is served.
	if status, answer, _ := r.post("/anthropic/v1/messages", "X-Api-Key", `{"model":"m"}`); status != 200 {
		t.Errorf("status %d: %s", status, answer)
	}
}

// Headers and parameters pass by a short list.
func TestHeaders(t *testing.T) {
	t.Parallel()
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi", Header: map[string]string{
		"request-id": "req_1", "set-cookie": "a=b", "anthropic-ratelimit-requests-remaining": "7", "x-internal": "1"}}}}, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/anthropic/v1/messages?beta=true&admin=1&key=x", strings.NewReader(`{"model":"m"}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"X-Api-Key": testToken, "Authorization": "Bearer other", "Anthropic-Beta": "b1", "Cookie": "c=d", "X-Forwarded-For": "1.2.3.4",
		"OpenAI-Organization": "org-of-another", "X-Stainless-Lang": "js", "Proxy-Authorization": "Basic x",
	} {
		req.Header.Set(name, value)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Request-Id") != "req_1" || resp.Header.Get("Anthropic-Ratelimit-Requests-Remaining") != "7" {
		t.Errorf("the answer's headers are %v", resp.Header)
	}
	for _, name := range []string{"Set-Cookie", "X-Internal"} {
		if resp.Header.Get(name) != "" {
			t.Errorf("%s reaches the agent", name)
		}
	}
	seen := r.provider.Requests()[0]
	if seen.Header.Get("Anthropic-Beta") != "b1" || seen.Header.Get("X-Stainless-Lang") != "js" {
		t.Errorf("the provider saw %s with %v", seen.Path, seen.Header)
	}
	for _, name := range []string{"Authorization", "Cookie", "X-Forwarded-For", "Openai-Organization", "Proxy-Authorization"} {
		if v := seen.Header.Get(name); v != "" {
			t.Errorf("%s reaches the provider: %q", name, v)
		}
	}
}

// A limit of calls is none that is noticed one call later.
func TestCallsAreLimited(t *testing.T) {
	t.Parallel()
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi"}}}, func(c *Config) { c.Limits.Calls = 2 })
	for i := range 4 {
		status, answer, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].stream)
		if want := map[bool]int{true: 200, false: 400}[i < 2]; status != want {
			t.Errorf("call %d: status %d: %s", i+1, status, answer)
		}
	}
	if n := len(r.provider.Requests()); n != 2 {
		t.Errorf("the provider saw %d calls", n)
	}
	if !slices.Equal(r.ended, []loop.Ended{loop.EndedCalls, loop.EndedCalls}) || !strings.Contains(r.why, "limit of 2 model calls") {
		t.Errorf("ended %v: %s", r.ended, r.why)
	}
}

// Money that does not exist is not spent: not by the next call, and not by an
// answer that nobody can cut.
func TestCostIsLimited(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, path, header, body string, _ bool) {
		r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi", Usage: modelserver.Usage{Input: 100_000, Output: 1000}}}},
			func(c *Config) { c.Limits.Cost = 500_000 })
		for range 5 {
			_, _, _ = r.post(path, header, body)
		}
		// A call costs $0.315: the second passes the limit, or has no room.
		if n := len(r.provider.Requests()); n > 2 || n < 1 {
			t.Errorf("the provider saw %d calls", n)
		}
		if len(r.ended) == 0 || r.ended[0] != loop.EndedCost {
			t.Errorf("ended %v: %s", r.ended, r.why)
		}
	})
}

// Calls that are made at once share what is left: each is counted from its
// beginning by what it may cost. Where nobody knows what one in flight will come to,
// the others wait for it.
func TestCallsAtOnceShareTheLimit(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	s := provider(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
		_, _ = io.WriteString(w, `{"type":"message","model":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"output_tokens":90}}`)
	})
	for name, test := range map[string]struct {
		limits Limits
		passed int
		wait   bool
	}{
		"cost":   {Limits{Cost: 5000}, 3, false}, // of one: $0.0015 for the answer, and $0.00007 for the question
		"tokens": {Limits{Tokens: 60}, 1, true},  // of one: 23 for the question, and 90 for the answer
	} {
		r := before(t, s.URL, func(c *Config) { c.Limits = test.limits })
		statuses := make(chan int, 10)
		next := func() int {
			select {
			case status := <-statuses:
				return status
			case <-time.After(30 * time.Second):
				t.Fatalf("%s: more calls than the limit allows are on their way", name)
				return 0
			}
		}
		for range 10 {
			go func() {
				status, _, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].whole)
				statuses <- status
			}()
		}
		counts := map[int]int{}
		if !test.wait {
			for range 10 - test.passed {
				counts[next()]++
			}
			if counts[400] != 10-test.passed {
				t.Errorf("%s: statuses %v before any call has ended", name, counts)
			}
		}
		for range test.passed {
			release <- struct{}{}
		}
		for counts[200]+counts[400] < 10 {
			counts[next()]++
		}
		if counts[200] != test.passed {
			t.Errorf("%s: statuses %v", name, counts)
		}
	}
}

func TestLongestAnswerIsAfforded(t *testing.T) {
	t.Parallel()
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi"}}}, func(c *Config) { c.Limits.Cost = 100_000 })
	long := `{"model":"m","max_tokens":8000,"messages":[]}` // up to $0.12
	status, answer, _ := r.post(kinds[0].path, kinds[0].header, long)
	if status != 400 || !strings.Contains(answer, "does not allow this call") || len(r.provider.Requests()) != 0 {
		t.Errorf("status %d: %s", status, answer)
	}
	short := `{"model":"m","max_tokens":800,"messages":[]}`
	if status, answer, _ := r.post(kinds[0].path, kinds[0].header, short); status != 200 {
		t.Errorf("status %d: %s", status, answer)
	}
}

// An answer that passes the limit while it comes is cut.
func TestStreamIsCut(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			path := k.path
			if k.name == "generate" {
				path += "streamGenerateContent?alt=sse"
			}
			// Its text alone is 50,000 tokens, $0.75; it says so at its end only.
			r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: strings.Repeat("word", 50_000)}}},
				func(c *Config) { c.Limits.Cost = 100_000 })
			_, answer, _ := r.post(path, k.header, k.stream)
			if !strings.Contains(answer, "pawl: the limit of $0.10 was passed") {
				t.Errorf("the answer ends with %s", answer[max(0, len(answer)-300):])
			}
			if len(r.ended) == 0 || r.ended[0] != loop.EndedCost {
				t.Errorf("ended %v", r.ended)
			}
		})
	}
}

func TestTokensAreLimited(t *testing.T) {
	t.Parallel()
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi", Usage: modelserver.Usage{Input: 900, Output: 100}}}},
		func(c *Config) { c.Limits.Tokens = 1000 })
	for range 3 {
		_, _, _ = r.post(kinds[0].path, kinds[0].header, kinds[0].whole)
	}
	if n := len(r.provider.Requests()); n != 1 {
		t.Errorf("the provider saw %d calls", n)
	}
	if len(r.ended) == 0 || r.ended[0] != loop.EndedTokens {
		t.Errorf("ended %v", r.ended)
	}
}

// What all runs of a user may spend in a day holds across gateways: neither next
// call has room when the other one's cost fills the day, and an answer that passes
// it is cut. What a call did not use is given back.
func TestDayIsLimited(t *testing.T) {
	t.Parallel()
	dir, limit := t.TempDir(), loop.MicroUSD(500_000)
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.Local)
	day := func(c *Config) {
		c.Limits.Day.Cost = &limit
		c.Spend = func(add loop.Use) (loop.Use, error) { return ratelimit.Spend(dir, add, now) }
	}
	spent := func(want loop.MicroUSD) {
		t.Helper()
		if got, err := ratelimit.Spend(dir, loop.Use{}, now); got.Cost != want || err != nil {
			t.Errorf("the day costs %d, %v, want %d", got.Cost, err, want)
		}
	}
	usage := modelserver.Usage{Input: 60_000, Output: 4000} // $0.24
	replies := modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi", Usage: usage}}}
	one, two := with(t, replies, day), with(t, replies, day)
	for _, k := range []int{0, 2} {
		if status, answer, _ := one.post(kinds[k].path, kinds[k].header, kinds[k].stream); status != 200 {
			t.Fatalf("status %d: %s", status, answer)
		}
	}
	spent(480_000)
	// By the last call, the next one's input alone is $0.18.
	if status, answer, _ := one.post(kinds[0].path, kinds[0].header, kinds[0].stream); status != 400 ||
		!strings.Contains(answer, "limits.per_day of $0.50 has no room for this call: all runs have spent $0.48 today") {
		t.Errorf("status %d: %s", status, answer)
	}
	long := `{"model":"m","max_tokens":8000,"messages":[]}` // up to $0.12
	if status, _, _ := two.post(kinds[0].path, kinds[0].header, long); status != 400 {
		t.Errorf("status %d", status)
	}
	spent(480_000)
	for _, r := range []*rig{one, two} {
		if len(r.ended) != 1 || r.ended[0] != loop.EndedDay {
			t.Errorf("ended %v", r.ended)
		}
	}
	cut := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: strings.Repeat("word", 50_000)}}}, day)
	_, answer, _ := cut.post(kinds[0].path, kinds[0].header, kinds[0].stream)
	if !strings.Contains(answer, "pawl: a limit of the day was passed") || cut.ended[0] != loop.EndedDay {
		t.Errorf("ended %v: %s", cut.ended, answer[max(0, len(answer)-200):])
	}
	_, cost, _ := cut.gateway.Totals()
	spent(480_000 + cost)
	if cost >= 750_000 { // what all of it costs
		t.Errorf("it was cut at %d", cost)
	}
	gone := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Status: 400, Message: "no"}}}, func(c *Config) { day(c); limit = 1_000_000 })
	_, _, _ = gone.post(kinds[0].path, kinds[0].header, long)
	spent(480_000 + cost)
}

// The tokens and calls of a day are limited as its money is. A call that fails is one, and
// has no tokens.
func TestTokensAndCallsOfADay(t *testing.T) {
	t.Parallel()
	dir, tokens, calls := t.TempDir(), int64(5000), int64(4)
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.Local)
	gateway := func(limits loop.DayLimits, replies ...modelserver.Reply) *rig {
		return with(t, modelserver.Scenario{Replies: replies}, func(c *Config) {
			c.Limits.Day = limits
			c.Spend = func(add loop.Use) (loop.Use, error) { return ratelimit.Spend(dir, add, now) }
		})
	}
	ask := func(r *rig, status int, says string) {
		t.Helper()
		if got, answer, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].stream); got != status || !strings.Contains(answer, says) {
			t.Errorf("status %d: %s", got, answer)
		}
	}
	used := func(tokens, calls int64) {
		t.Helper()
		if got, err := ratelimit.Spend(dir, loop.Use{}, now); got.Tokens != tokens || got.Calls != calls || err != nil {
			t.Errorf("the day has used %+v, %v", got, err)
		}
	}
	r := gateway(loop.DayLimits{Tokens: &tokens}, modelserver.Reply{Text: "hi", Usage: modelserver.Usage{Input: 1000, CacheRead: 1900, Output: 100}})
	ask(r, 200, "message_stop")
	ask(r, 400, "limits.tokens.per_day of 5000 has no room for this call: all runs have used 3000 today") // by the last call it takes 2,900
	used(3000, 1)
	ask(gateway(loop.DayLimits{}, modelserver.Reply{Status: 503}, modelserver.Reply{Text: "hi"}), 200, "message_stop")
	used(3110, 3)
	long := gateway(loop.DayLimits{Tokens: &tokens}, modelserver.Reply{Text: strings.Repeat("word", 50_000)})
	ask(long, 200, "pawl: a limit of the day was passed")
	r = gateway(loop.DayLimits{Calls: &calls}, modelserver.Reply{Text: "hi"})
	ask(r, 400, "limits.calls.per_day of 4 has no room for this call: all runs have made 4 today")
	if len(r.ended) != 1 || r.ended[0] != loop.EndedDay {
		t.Errorf("ended %v", r.ended)
	}
	calls = 6
	r = gateway(loop.DayLimits{Calls: &calls}, modelserver.Reply{Status: 503})
	ask(r, 400, "limits.calls.per_day of 6 has no room") // for a third try
	if n := len(r.provider.Requests()); n != 2 {
		t.Errorf("%d calls were made", n)
	}
}

// A day that cannot be counted is not spent.
func TestDayThatCannotBeCounted(t *testing.T) {
	t.Parallel()
	limit := loop.MicroUSD(500_000)
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi"}}}, func(c *Config) {
		c.Limits.Day.Cost = &limit
		c.Spend = func(loop.Use) (loop.Use, error) { return loop.Use{}, errors.New("the disk is full") }
	})
	status, answer, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].stream)
	if status != 400 || !strings.Contains(answer, "cannot check limits.per_day: the disk is full") || len(r.provider.Requests()) != 0 {
		t.Errorf("status %d: %s", status, answer)
	}
}

// A model without a price costs nobody knows what, and that is said.
func TestUnknownPrice(t *testing.T) {
	t.Parallel()
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi"}}}, func(c *Config) { c.Prices = agent.Prices{"other": {Input: 1}} })
	_, _, _ = r.post(kinds[0].path, kinds[0].header, kinds[0].stream)
	if _, _, known := r.gateway.Totals(); known {
		t.Error("the cost is known")
	}
	if out := r.outcome(); out.CostSource != agent.CostNone || out.Usage.Input == 0 {
		t.Errorf("outcome is %+v", out)
	}
}

// Under a limit of money a model, or a tier of one, is not called of which nobody knows
// what it costs: no limit would hold.
func TestUnknownPriceUnderALimit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, path, header, body string, _ bool) {
		r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi"}}}, func(c *Config) {
			c.Limits.Priced, c.Prices = true, agent.Prices{"other": {Input: 1}}
		})
		_, answer, _ := r.post(path, header, body)
		if n := len(r.provider.Requests()); n != 0 {
			t.Errorf("the provider saw %d calls", n)
		}
		if !slices.Contains(r.ended, loop.EndedPrice) || !strings.Contains(r.why, `prices: {"m": {input: 3, output: 15}}`) {
			t.Errorf("ended %v: %s", r.ended, r.why)
		}
		if !strings.Contains(answer, "the price of") {
			t.Errorf("the agent is answered %s", answer)
		}
	})
	for body, calls := range map[string]int{
		`{"model":"m","max_tokens":9,"tools":[{}]}`:                    1,
		`{"model":"m","max_tokens":9,"tools":[{}],"speed":"fast"}`:     0,
		`{"model":"m","max_tokens":9,"tools":[{}],"speed":"standard"}`: 1,
	} {
		r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi"}}}, func(c *Config) { c.Limits.Priced = true })
		_, _, _ = r.post(kinds[0].path, kinds[0].header, body)
		if n := len(r.provider.Requests()); n != calls {
			t.Errorf("%s: the provider saw %d calls: %s", body, n, r.why)
		}
	}
}

func TestHourOfCacheCostsMore(t *testing.T) {
	t.Parallel()
	answer := `{"type":"message","model":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":0,` +
		`"cache_creation_input_tokens":1000,"cache_creation":{"ephemeral_5m_input_tokens":400,"ephemeral_1h_input_tokens":600},"output_tokens":0}}`
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Body: answer, BodyType: "application/json"}}}, nil)
	_, _, _ = r.post(kinds[0].path, kinds[0].header, kinds[0].whole)
	if _, cost, _ := r.gateway.Totals(); cost != 400*375/100+600*6 {
		t.Errorf("cost is %d", cost)
	}
}

// A long prompt, a faster tier and the provider's own tools have prices of their
// own. What has none makes the cost unknown, and is counted as far as it is known.
func TestWhatCostsMore(t *testing.T) {
	t.Parallel()
	message := func(usage string) string {
		return `{"type":"message","model":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{` + usage + `}}`
	}
	response := func(item, more string) string {
		return `{"model":"m","status":"completed","output":[{"type":"` + item + `"}],"usage":{"input_tokens":1000,"output_tokens":0}` + more + `}`
	}
	for name, test := range map[string]struct {
		kind   int
		answer string
		cost   loop.MicroUSD
		known  bool
	}{
		"a short prompt":    {0, message(`"input_tokens":1000,"output_tokens":100`), 4500, true},
		"a long prompt":     {0, message(`"input_tokens":1001,"output_tokens":100`), 2*3003 + 1500*150/100, true},
		"a cached one":      {0, message(`"input_tokens":1,"cache_read_input_tokens":1000,"output_tokens":0`), 2*3 + 2*300, true},
		"fast":              {0, message(`"input_tokens":1000,"output_tokens":100,"service_tier":"standard","speed":"fast"`), 3 * 4500, true},
		"bought before":     {0, message(`"input_tokens":1000,"output_tokens":100,"service_tier":"priority"`), 4500, false},
		"two searches":      {0, message(`"input_tokens":1000,"output_tokens":100,"server_tool_use":{"web_search_requests":2}`), 24500, true},
		"priority":          {2, response("message", `,"service_tier":"priority"`), 3 * 3000, true},
		"flex":              {2, response("message", `,"service_tier":"flex"`), 1500, true},
		"default":           {2, response("message", `,"service_tier":"default"`), 3000, true},
		"another tier":      {2, response("message", `,"service_tier":"turbo"`), 3000, false},
		"a search":          {2, response("web_search_call", ""), 13000, true},
		"a container":       {2, response("code_interpreter_call", ""), 3000, false},
		"a name of its own": {2, `{"model":"/srv/x.gguf","output":[],"usage":{"input_tokens":1000,"output_tokens":0}}`, 3000, true},
	} {
		price := agent.Price{Input: 3_000_000, Output: 15_000_000, CacheRead: 300_000,
			LongFrom: 1000, LongInput: 200, LongOutput: 150, Fast: 300}
		reply := modelserver.Reply{Body: test.answer, BodyType: "application/json"}
		r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{reply}}, func(c *Config) { c.Prices = agent.Prices{"m": price} })
		_, _, _ = r.post(kinds[test.kind].path, kinds[test.kind].header, kinds[test.kind].whole)
		if _, cost, known := r.gateway.Totals(); cost != test.cost || known != test.known {
			t.Errorf("%s: cost %d, known %v, want %d", name, cost, known, test.cost)
		}
	}
	found := `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["go"]}}],"modelVersion":"m"}`
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Body: found, BodyType: "application/json"}}}, nil)
	_, _, _ = r.post(kinds[3].path+"generateContent", kinds[3].header, kinds[3].stream)
	if _, _, known := r.gateway.Totals(); known {
		t.Error("the cost of Google's search is known")
	}
}

// A price of zero is a price: nothing is spent, and no limit of money ends it.
func TestPriceOfZero(t *testing.T) {
	t.Parallel()
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi"}}}, func(c *Config) {
		c.Prices, c.Limits.Cost = agent.Prices{"m": {}}, 1
	})
	if status, _, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].whole); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if _, cost, known := r.gateway.Totals(); cost != 0 || !known {
		t.Errorf("cost %d, %v", cost, known)
	}
}

// A tier that costs more needs room for that.
func TestFastTierNeedsRoom(t *testing.T) {
	t.Parallel()
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi"}}}, func(c *Config) {
		c.Prices = agent.Prices{"m": {Input: 1_000_000, Output: 10_000_000, Fast: 600}}
		c.Limits.Cost = 15_000
	})
	body := `{"model":"m","max_tokens":1000,"messages":[]`
	if status, answer, _ := r.post(kinds[0].path, kinds[0].header, body+`,"speed":"fast"}`); status != 400 {
		t.Errorf("status %d: %s", status, answer)
	}
	if status, answer, _ := r.post(kinds[0].path, kinds[0].header, body+`}`); status != 200 {
		t.Errorf("status %d: %s", status, answer)
	}
}

// What an answer says of its own end is known, whatever the program makes of it.
func TestFlaws(t *testing.T) {
	t.Parallel()
	words := map[string]map[failure.Class]string{
		"messages":  {failure.RefusedByModel: "refusal", failure.OutputLimit: "max_tokens"},
		"chat":      {failure.RefusedByModel: "content_filter", failure.OutputLimit: "length"},
		"responses": {failure.OutputLimit: "max_output_tokens"},
		"generate":  {failure.RefusedByModel: "SAFETY", failure.OutputLimit: "MAX_TOKENS", failure.MalformedAnswer: "MALFORMED_FUNCTION_CALL"},
	}
	each(t, func(t *testing.T, path, header, body string, _ bool) {
		kind := strings.Split(t.Name(), "/")[1]
		for want, stop := range words[kind] {
			r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "well", StopReason: stop}, {Text: "fine"}}}, nil)
			_, _, _ = r.post(path, header, body)
			if flaw := r.gateway.Flaw(); flaw == nil || flaw.Type != string(want) {
				t.Errorf("%s: flaw is %+v", stop, flaw)
			}
			_, _, _ = r.post(path, header, body)
			if flaw := r.gateway.Flaw(); flaw != nil {
				t.Errorf("after a good answer the flaw is %+v", flaw)
			}
		}
		r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{}}}, nil)
		_, _, _ = r.post(path, header, body)
		if flaw := r.gateway.Flaw(); flaw == nil || flaw.Type != string(failure.EmptyAnswer) {
			t.Errorf("an empty answer: flaw is %+v", flaw)
		}
		r = with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Body: "<html>sign in</html>", BodyType: "text/html"}}}, nil)
		if _, answer, _ := r.post(path, header, body); answer != "<html>sign in</html>" {
			t.Errorf("the answer is %s", answer)
		}
		if flaw := r.gateway.Flaw(); flaw == nil || flaw.Type != BrokenStream {
			t.Errorf("a page for people: flaw is %+v", flaw)
		}
		if out := r.outcome(); out.Calls != 1 || out.Usage != (agent.Usage{}) || out.Cost != 0 {
			t.Errorf("a page for people is counted as %+v for %s in %d calls", out.Usage, out.Cost, out.Calls)
		}
	})
}

// An agent that has the last word of an answer, and leaves before the stream's own end, does
// not hide what the word was.
func TestFlawOfAnAnswerThatIsLeft(t *testing.T) {
	t.Parallel()
	for kind, stop := range map[string]string{"messages": "refusal", "chat": "content_filter", "responses": "max_output_tokens", "generate": "SAFETY"} {
		i := slices.IndexFunc(kinds, func(k struct{ name, path, stream, whole, header string }) bool { return k.name == kind })
		k, served := kinds[i], make(chan bool)
		r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "well", StopReason: stop}}}, func(c *Config) { c.Transport = holding{c.Transport} })
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			defer close(served)
			r.gateway.ServeHTTP(w, q)
		}))
		ctx, leave := context.WithCancel(t.Context())
		path := k.path
		if kind == "generate" {
			path += "streamGenerateContent?alt=sse"
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, strings.NewReader(k.stream))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+testToken)
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		lines, last := bufio.NewScanner(resp.Body), false
		for !last && lines.Scan() {
			last = strings.Contains(lines.Text(), stop)
		}
		leave()
		_ = resp.Body.Close()
		<-served
		server.Close()
		if flaw := r.gateway.Flaw(); flaw == nil {
			t.Errorf("%s: no flaw", kind)
		}
	}
}

// holding is a way to the provider whose answers do not end before the agent leaves.
type holding struct{ http.RoundTripper }

func (h holding) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := h.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = &held{resp.Body, r.Context()}
	}
	return resp, err
}

type held struct {
	io.ReadCloser
	ctx context.Context
}

func (h *held) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	switch {
	case n > 0:
		return n, nil
	case errors.Is(err, io.EOF):
		<-h.ctx.Done()
		return n, h.ctx.Err()
	}
	return n, err
}

// What a program asks beside its work, with few tools, has no say in how that ended.
func TestFlawOfACallBeside(t *testing.T) {
	t.Parallel()
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "no", StopReason: "refusal"}, {Text: "noted"}}}, nil)
	ask := func(tools string) {
		t.Helper()
		body := `{"model":"m","stream":true,"max_tokens":100,"tools":[` + tools + `],"messages":[]}`
		if status, answer, _ := r.post(kinds[0].path, kinds[0].header, body); status != 200 {
			t.Fatal(answer)
		}
	}
	ask(`{"name":"read"},{"name":"write"},{"name":"shell"}`)
	ask(`{"name":"remember"}`)
	if flaw := r.gateway.Flaw(); flaw == nil || flaw.Type != string(failure.RefusedByModel) {
		t.Errorf("flaw is %+v", flaw)
	}
	ask(`{"name":"read"},{"name":"write"}`)
	ask(`{"name":"read"},{"name":"write"},{"name":"shell"}`)
	if flaw := r.gateway.Flaw(); flaw != nil {
		t.Errorf("after a good answer the flaw is %+v", flaw)
	}
}

// A tool call without a word is an answer.
func TestToolCallIsNoEmptyAnswer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, path, header, body string, _ bool) {
		r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Tools: []modelserver.Tool{{Name: "ls", Input: map[string]any{"a": 1}}}}}}, nil)
		_, _, _ = r.post(path, header, body)
		if flaw := r.gateway.Flaw(); flaw != nil {
			t.Errorf("flaw is %+v", flaw)
		}
	})
}

// An answer that breaks off is broken for the agent too, and counted.
func TestBrokenStream(t *testing.T) {
	t.Parallel()
	for _, k := range kinds[:3] {
		r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: strings.Repeat("many words ", 100), Cut: 3}}}, nil)
		_, answer, _ := r.post(k.path, k.header, k.stream)
		if !strings.Contains(answer, "EOF") {
			t.Errorf("%s: the agent sees a whole answer: %s", k.name, answer)
		}
		if flaw := r.gateway.Flaw(); flaw == nil || flaw.Type != BrokenStream {
			t.Errorf("%s: flaw is %+v", k.name, flaw)
		}
		if out := r.outcome(); out.Calls != 1 || out.Usage.Input == 0 {
			t.Errorf("%s: outcome is %+v", k.name, out)
		}
	}
}

var later = time.Now().Add(3 * time.Hour).UTC().Format(http.TimeFormat)

// Trouble that passes is not the agent's: it never hears of it.
func TestShortTroubleIsHeld(t *testing.T) {
	t.Parallel()
	fail := func(status int, header map[string]string) modelserver.Reply {
		return modelserver.Reply{Status: status, Type: "rate_limit_error", Message: "slow down", Header: header}
	}
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{
		fail(429, map[string]string{"retry-after": "2"}), fail(529, nil), fail(503, map[string]string{"retry-after-ms": "1500"}), {Text: "hi"},
	}}, nil)
	status, answer, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].stream)
	if status != 200 || !strings.Contains(answer, "message_stop") {
		t.Errorf("status %d: %s", status, answer)
	}
	if want := []time.Duration{2 * time.Second, 2 * time.Second, 1500 * time.Millisecond}; !slices.Equal(r.slept, want) {
		t.Errorf("it waits %v", r.slept)
	}
	if out := r.outcome(); out.Calls != 4 || out.Retries != 3 || len(r.ended) != 0 {
		t.Errorf("outcome is %+v, ended %v", out, r.ended)
	}
}

// Trouble that lasts ends the attempt at once, with the provider's own words.
func TestLongTroubleEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reply   modelserver.Reply
		retries int
		says    string
	}{
		"a key that is wrong": {modelserver.Reply{Status: 401, Type: "authentication_error", Message: "invalid x-api-key"}, 0, "the provider refuses the key: 401 invalid x-api-key; set another in ANTHROPIC_API_KEY or"},
		"out of credit":       {modelserver.Reply{Status: 429, Type: "insufficient_quota", Message: "exceeded your quota"}, 0, "429 exceeded"},
		"out for the day": {modelserver.Reply{Status: 429, Message: "exceeded your daily quota", Details: map[string]any{"details": []any{
			map[string]any{"@type": "QuotaFailure", "violations": []any{map[string]any{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}}},
			map[string]any{"@type": "RetryInfo", "retryDelay": "34s"},
		}}}, 0, "429 exceeded your daily"},
		"a limit for hours":    {modelserver.Reply{Status: 429, Type: "rate_limit_error", Message: "plan", Header: map[string]string{"retry-after": later}}, 0, "429 plan"},
		"overloaded for hours": {modelserver.Reply{Status: 529, Type: "overloaded_error", Message: "busy"}, 6, "the provider answers: 529 busy"},
	} {
		r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{test.reply}}, nil)
		status, answer, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].stream)
		if status != test.reply.Status || !strings.Contains(answer, test.reply.Message) {
			t.Errorf("%s: status %d: %s", name, status, answer)
		}
		if len(r.ended) != 1 || r.ended[0] != loop.EndedRetries || !strings.Contains(r.why, test.says) {
			t.Errorf("%s: ended %v: %s", name, r.ended, r.why)
		}
		out := r.outcome()
		if len(r.slept) != test.retries || out.Calls != test.retries+1 || len(out.Errors) != 1 || out.Errors[0].Status != test.reply.Status {
			t.Errorf("%s: %d waits, outcome %+v", name, len(r.slept), out)
		}
		if name == "a limit for hours" && time.Until(out.Errors[0].ResetAt) < 2*time.Hour {
			t.Errorf("the time of the reset is %v", out.Errors[0].ResetAt)
		}
	}
}

// When a provider does not answer, the endpoint that stands in for it does, with
// its own key, for the rest of the attempt. When that does not answer either, the
// attempt ends.
func TestFallback(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]modelserver.Reply{
		"out of credit": {Status: 402, Type: "billing_error", Message: "no credit"}, "a wrong key": {Status: 401, Message: "key"},
		"down": {Status: 503, Message: "down"}, "a limit for hours": {Status: 429, Header: map[string]string{"retry-after": "7200"}},
	} {
		other := modelserver.New(modelserver.Scenario{Replies: []modelserver.Reply{{Text: "from the other"}}})
		t.Cleanup(other.Close)
		r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{reply}}, func(c *Config) {
			c.Routes[0].Next = c.Routes[0].Other(other.URL()+"/", "key-of-the-other")
		})
		before := 0
		for range 2 {
			status, answer, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].whole)
			if status != 200 || !strings.Contains(answer, "from the other") {
				t.Errorf("%s: status %d: %s", name, status, answer)
			}
			if before == 0 {
				before = len(r.provider.Requests())
			}
		}
		if n := len(r.provider.Requests()); n != before || len(r.ended) != 0 {
			t.Errorf("%s: the provider was asked %d times, then %d; ended %v", name, before, n, r.ended)
		}
		for _, one := range other.Requests() {
			if one.Path != "/v1/messages" || one.Header.Get("X-Api-Key") != "key-of-the-other" {
				t.Errorf("%s: the other saw %s with %v", name, one.Path, one.Header)
			}
		}
		// Another provider's calls go on to its own address.
		if status, _, _ := r.post(kinds[1].path, kinds[1].header, kinds[1].whole); status == 200 {
			t.Errorf("%s: status %d of a route without a fallback", name, status)
		}
	}
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Status: 401, Type: "authentication_error", Message: "invalid key"}}}, func(c *Config) {
		c.Routes[0].Next = c.Routes[0].Other(nobody, "")
	})
	status, answer, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].whole)
	if status != http.StatusBadGateway || len(r.ended) != 1 || r.ended[0] != loop.EndedRetries || len(r.provider.Requests()) != 1 {
		t.Errorf("status %d: %s, ended %v", status, answer, r.ended)
	}
}

// What stands in takes the call at once: nothing is waited for first.
func TestFallbackAtOnce(t *testing.T) {
	t.Parallel()
	other := modelserver.New(modelserver.Scenario{Replies: []modelserver.Reply{{Text: "from the other"}}})
	t.Cleanup(other.Close)
	for _, base := range []string{"", nobody} {
		r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Status: 503, Message: "down", Header: map[string]string{"retry-after": "3"}}}},
			func(c *Config) {
				c.Routes[0].Next = c.Routes[0].Other(other.URL(), "key-of-the-other")
				c.Routes[0].Base = cmp.Or(base, c.Routes[0].Base)
			})
		if status, answer, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].whole); status != 200 || len(r.slept) > 0 {
			t.Errorf("status %d after %v: %s", status, r.slept, answer)
		}
		if flaw := r.gateway.Flaw(); flaw != nil {
			t.Errorf("flaw %+v", flaw)
		}
	}
}

// What the provider said last of a step of the work is kept with its time, whatever the program says
// of it; an answer to the next step takes it back.
func TestTroubleIsKept(t *testing.T) {
	t.Parallel()
	alive := 0
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{
		{Status: 429, Type: "rate_limit_error", Message: "slow down", Header: map[string]string{"retry-after": "120"}}, {Text: "hi"},
	}}, func(c *Config) { c.Alive = func() { alive++ } })
	_, _, _ = r.post(kinds[0].path, kinds[0].header, kinds[0].whole)
	if flaw := r.gateway.Flaw(); flaw == nil || flaw.Status != 429 || flaw.RetryAfter != 2*time.Minute || flaw.ResetAt.IsZero() {
		t.Errorf("flaw %+v", flaw)
	}
	_, _, _ = r.post(kinds[0].path, kinds[0].header, kinds[0].whole)
	if flaw := r.gateway.Flaw(); flaw != nil || alive < 3 {
		t.Errorf("flaw %+v, %d signs of life", flaw, alive)
	}
}

// A question that is wrong is the agent's to correct: it may ask another one.
func TestWrongQuestionIsTheAgents(t *testing.T) {
	t.Parallel()
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Status: 400, Type: "invalid_request_error", Message: "prompt is too long"}}}, nil)
	status, answer, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].stream)
	if status != 400 || !strings.Contains(answer, "too long") || len(r.ended) != 0 || len(r.slept) != 0 {
		t.Errorf("status %d: %s, ended %v", status, answer, r.ended)
	}
	if out := r.outcome(); len(out.Errors) != 1 || out.Errors[0].Status != 400 {
		t.Errorf("errors are %+v", out.Errors)
	}
}

// A query passes by a list; the token in it does not.
func TestParameters(t *testing.T) {
	t.Parallel()
	var query string
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { query = r.URL.RawQuery }))
	t.Cleanup(provider.Close)
	r := before(t, provider.URL, nil)
	_, _, _ = r.ask("GET", "/gemini/v1beta/models?pageSize=5&admin=1&key="+testToken, "X-None", "", "")
	if query != "pageSize=5" {
		t.Errorf("the query is %q", query)
	}
}

// provider is a server whose every answer is made by hand.
func provider(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s
}

// A redirect would carry the key to somebody else.
func TestNoRedirect(t *testing.T) {
	t.Parallel()
	other := provider(t, func(http.ResponseWriter, *http.Request) { t.Error("the other server is asked") })
	s := provider(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	r := before(t, s.URL, nil)
	status, _, header := r.post(kinds[0].path, kinds[0].header, kinds[0].whole)
	if status != http.StatusBadGateway || header.Get("Location") != "" || len(r.ended) != 1 {
		t.Errorf("status %d, %v, ended %v", status, header, r.ended)
	}
}

// nobody is an address where no server is: the port is the system's. One that a server
// has left would soon be another test's.
const nobody = "http://127.0.0.1:1"

// A provider that cannot be reached was not called: no call is counted.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	r := before(t, nobody, nil)
	status, answer, _ := r.post(kinds[1].path, kinds[1].header, kinds[1].stream)
	if status != http.StatusBadGateway || !strings.Contains(answer, "cannot reach the provider") {
		t.Errorf("status %d: %s", status, answer)
	}
	if out := r.outcome(); out.Calls != 0 || len(r.slept) != 6 || len(r.ended) != 1 || r.ended[0] != loop.EndedRetries {
		t.Errorf("outcome %+v, %d waits, ended %v", out, len(r.slept), r.ended)
	}
}

// A compression that nobody asked for is undone; one that is not known is an error.
func TestCompressedAnswer(t *testing.T) {
	t.Parallel()
	s := provider(t, func(w http.ResponseWriter, r *http.Request) {
		if v := r.Header.Get("Accept-Encoding"); v != "identity" {
			t.Errorf("it accepts %q", v)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":7}}}\n\n")
		_ = z.Close()
	})
	r := before(t, s.URL, nil)
	if _, answer, header := r.post(kinds[0].path, kinds[0].header, kinds[0].stream); !strings.HasPrefix(answer, "data: ") || header.Get("Content-Encoding") != "" {
		t.Errorf("answer %q, %v", answer, header)
	}
	if out := r.outcome(); out.Usage.Input != 7 {
		t.Errorf("usage is %+v", out.Usage)
	}
	strange := provider(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") })
	r = before(t, strange.URL, nil)
	if status, _, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].stream); status != http.StatusBadGateway {
		t.Errorf("status %d", status)
	}
}

// A request that is too large, or compressed, is refused and not sent.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	r := with(t, modelserver.Scenario{}, nil)
	if status, answer, _ := r.post(kinds[0].path, kinds[0].header, strings.Repeat("x", maxRequest+1)); status != http.StatusRequestEntityTooLarge && status != 0 {
		t.Errorf("status %d: %s", status, answer)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+kinds[0].path, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", testToken)
	req.Header.Set("Content-Encoding", "zstd")
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge || len(r.provider.Requests()) != 0 {
		t.Errorf("status %d", resp.StatusCode)
	}
	// What goes on after the call would be counted by nobody.
	if status, answer, _ := r.post("/openai/responses", "Authorization", `{"model":"m","background":true}`); status != http.StatusBadRequest || len(r.provider.Requests()) != 0 {
		t.Errorf("status %d: %s", status, answer)
	}
	// Of two fields of one name the provider could read the other one.
	for _, twice := range []string{
		`{"model":"m","max_tokens":32000,"MAX_TOKENS":1}`, `{"model":"m","model":"other"}`, `{"model":"m","\u006dodel":"other"}`,
		`{"generationConfig":{"maxOutputTokens":32000,"maxoutputtokens":1}}`, `{"background":true,"Background":false}`,
	} {
		if status, answer, _ := r.post(kinds[0].path, kinds[0].header, twice); status != http.StatusBadRequest || len(r.provider.Requests()) != 0 {
			t.Errorf("%s: status %d: %s", twice, status, answer)
		}
	}
	// What is no JSON goes to the provider, who says what is wrong.
	if status, _, _ := r.post(kinds[0].path, kinds[0].header, "rubbish"); status != http.StatusBadRequest {
		t.Errorf("status %d", status)
	}
}

// An agent that goes away takes its call with it.
func TestAgentGoesAway(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	s := provider(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server looks for the client's end after that only
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":7}}}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	r := before(t, s.URL, nil)
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+kinds[0].path, strings.NewReader(kinds[0].stream))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", testToken)
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	leave()
	<-gone
}

// Answers over HTTP/2 pass as well.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	var proto string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proto = r.Proto
		_, _ = io.WriteString(w, "{}")
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	r := before(t, s.URL, func(c *Config) { c.Transport = s.Client().Transport })
	if status, _, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].whole); status != http.StatusOK || proto != "HTTP/2.0" {
		t.Errorf("status %d over %s", status, proto)
	}
}

// Serve ends with its context, also while an answer is on its way.
func TestServeEnds(t *testing.T) {
	t.Parallel()
	s := provider(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // it has gone already
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	r := before(t, s.URL, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.gateway.Serve(ctx, l) }()
	r.url = "http://" + l.Addr().String()
	go func() {
		for len(r.flights()) == 0 {
			runtime.Gosched()
		}
		stop()
	}()
	_, _, _ = r.post(kinds[0].path, kinds[0].header, kinds[0].stream)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	// The call was in flight: the provider may count it, and so does pawl.
	if out := r.outcome(); out.Calls != 1 || out.Usage.Input == 0 {
		t.Errorf("outcome is %+v", out)
	}
}

func (r *rig) flights() map[*flight]bool {
	r.gateway.account.mu.Lock()
	defer r.gateway.account.mu.Unlock()
	return maps.Clone(r.gateway.account.flying)
}

// Rubbish from a provider neither breaks a reader nor makes it count backwards.
func FuzzReaders(f *testing.F) {
	for _, seed := range []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":-5}}}`, `{"choices":[{"delta":{"tool_calls":[{}]}}],"usage":{"prompt_tokens":1}}`,
		`{"type":"response.completed","response":{"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":9}}}}`,
		`[{"candidates":[{"content":{"parts":[{"functionCall":{}}]},"finishReason":"STOP"}]}]`, `{"error":"x"}`, `null`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, of := range []func() reader{newMessages, newChatReader, newResponses, newGenerate} {
			var a, b reading
			of().readWhole(body, &a)
			var l lines
			l.feedLines(append([]byte("data: "), append(body, '\n')...), func(line []byte) {
				if d := eventData(line); len(d) > 0 {
					of().readEvent(d, &b)
				}
			})
			for _, r := range []*reading{&a, &b} {
				u := r.estimatedUsage(usage{Usage: agent.Usage{Input: 10}})
				if r.said < 0 || r.calls < 0 || min(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.writtenHour, u.CacheWrite-u.writtenHour) < 0 {
					t.Errorf("%+v counts as %+v", r, u)
				}
				_ = r.flawInAnswer(true)
			}
		}
	})
}

// What a request asks for is read by the exact names of its fields.
func TestAsk(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int64{
		`{"max_tokens":5}`: 5, `{"MAX_TOKENS":5}`: 0, `{"max_tokens":"5"}`: 0, `{"max_completion_tokens":7,"n":3}`: 21, `{"max_output_tokens":9,"n":-3}`: 9,
		`{"generationConfig":{"maxOutputTokens":2,"candidateCount":4}}`: 8, `{"generationConfig":3,"max_tokens":1}`: 1,
		`{"generation_config":{"max_output_tokens":2,"candidate_count":4}}`: 8, `[]`: 0, `{"max_tokens":`: 0, ``: 0,
	} {
		q, err := readQuestion(nil, "/v1/messages", []byte(body))
		if err != nil || q.mostTokens() != want {
			t.Errorf("%s: %d, %v", body, q.mostTokens(), err)
		}
	}
}

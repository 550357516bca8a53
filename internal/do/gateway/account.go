package gateway

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// Limits bound the use of an attempt. Zero is no limit.
type Limits struct {
	Cost   loop.MicroUSD `json:"cost_micro_usd,omitempty"`
	Tokens int64         `json:"tokens,omitempty"` // those from a cache included
	Calls  int           `json:"calls,omitempty"`
	// Priced: a model without a price is not called.
	Priced bool `json:"priced,omitempty"`
	// Day is for all runs of the user.
	Day loop.DayLimits `json:"day,omitzero"`
}

// Error is the words.
func (o *over) Error() string { return o.why }

// account has the use of an attempt, with that of its calls in flight.
type account struct {
	limits Limits
	prices agent.Prices
	// spend adds to what all runs of the user used today, and returns all of it;
	// nil counts nothing.
	spend func(loop.Use) (loop.Use, error)

	mu     sync.Mutex
	calls  int // that went out, answered or not yet
	tokens int64
	cost   loop.MicroUSD
	// unpriced: a call went to a model without a known price.
	unpriced bool
	models   map[string]agent.ModelUse
	flying   map[*flight]bool
	landed   chan struct{} // is closed when one of them ends
	// counted is the last step of the work of each model whose input the provider counted.
	counted map[string]counted
}

// flight is a call that was let through and has not ended.
type flight struct {
	model string
	tier  string // that was asked for
	asked int64  // length of the request: see [requestLength]
	input usage  // that it has in all likelihood
	works bool   // it is a step of the work
	cost  loop.MicroUSD
	used  int64 // tokens
	// mostCost and mostUsed are what it may come to.
	mostCost loop.MicroUSD
	mostUsed int64
	calls    int64 // that went out for it
	// reserved of it is in what the day has used already.
	reserved loop.Use
}

// over is a limit that is reached, and the words for it.
type over struct {
	ended loop.Ended
	why   string
}

// admitCall lets a call in, or returns the limit that stands against it. A call that can
// be cut needs room for its input only, any other for the longest answer that
// it asks for. It waits while those in flight may leave it no room: a limit is passed
// by one call at most. It returns nothing when ctx ended.
func (a *account) admitCall(ctx context.Context, q question, asked int64) (*flight, *over) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		f, over := a.findRoom(q, asked)
		if over != nil || f != nil {
			return f, over
		}
		landed := a.landed
		a.mu.Unlock()
		select {
		case <-landed:
		case <-ctx.Done():
		}
		a.mu.Lock()
		if ctx.Err() != nil {
			return nil, nil
		}
	}
}

// findRoom is a call that is let in, a limit that stands against it, or nothing: those in
// flight have to land first.
func (a *account) findRoom(q question, asked int64) (*flight, *over) {
	f := &flight{model: q.model, tier: q.serviceTier(), asked: asked, works: q.isAgentStep()}
	f.input = a.likelyInput(q.model, asked)
	if _, known := a.priceOfCall(f, &reading{}, usage{}); a.limits.Priced && !known {
		return nil, &over{loop.EndedPrice, agent.NoPrice(f.model, f.tier)}
	}
	cost, tokens := a.totalsNow()
	if l := a.limits.Tokens; l > 0 && tokens >= l {
		return nil, &over{loop.EndedTokens, fmt.Sprintf("the limit of %d tokens is reached: %d are used", l, tokens)}
	}
	if l := a.limits.Cost; l > 0 {
		if next := a.leastCost(q, f.input); cost >= l || cost+next > l {
			const why = "the limit of %s does not allow this call: %s is spent, and the call may cost %s"
			return nil, &over{loop.EndedCost, fmt.Sprintf(why, dollarText(l), dollarText(cost), dollarText(next))}
		}
	}
	f.cost, f.used = a.leastCost(q, f.input), f.input.Tokens() // until more is known
	if !a.fitsBeside(f, cost, tokens) {
		return nil, nil
	}
	f.setMostUse(a, q)
	if over := a.reserveDay(f, loop.Use{Cost: f.cost, Tokens: f.used, Calls: 1}); over != nil {
		return nil, over
	}
	a.flying[f] = true
	return f, nil
}

// setMostUse sets the most that a call may use: what is not seen of it, such as thoughts, is in it.
func (f *flight) setMostUse(a *account, q question) {
	longest := f.input
	longest.Output = cmp.Or(q.mostTokens(), unsaid)
	f.mostCost, _ = a.priceOfCall(f, &reading{}, longest)
	f.mostUsed = longest.Tokens()
}

// unsaid is how long an answer may be that has no limit of its own.
const unsaid = 32_000

// fitsBeside reports whether there is room for a call beside the longest answers of those in
// flight.
func (a *account) fitsBeside(f *flight, cost loop.MicroUSD, tokens int64) bool {
	for g := range a.flying {
		cost += max(0, g.mostCost-g.cost)
		tokens += max(0, g.mostUsed-g.used)
	}
	l := a.limits
	overCost, overTokens := l.Cost != 0 && cost+f.cost > l.Cost, l.Tokens != 0 && tokens+f.used > l.Tokens
	passesLimit := overCost || overTokens
	return len(a.flying) == 0 || !passesLimit
}

// reserveDay lets a call use more of the day, before it does: other runs see it.
func (a *account) reserveDay(f *flight, more loop.Use) *over {
	if a.limits.Day.None() || a.spend == nil {
		return nil
	}
	today, err := a.spend(more)
	if err != nil {
		return &over{loop.EndedDay, fmt.Sprintf("cannot check limits.per_day: %v", err)}
	}
	f.reserved = f.reserved.Plus(more)
	if limit, used := a.limits.Day.Over(today.Minus(more), more); limit != "" {
		a.bookActualUse(f, loop.Use{})
		return &over{loop.EndedDay, limit + " has no room for this call: " + used}
	}
	return nil
}

// bookActualUse books what a call did use in place of what was reserved.
func (a *account) bookActualUse(f *flight, did loop.Use) {
	if a.spend != nil && did != f.reserved {
		_, _ = a.spend(did.Minus(f.reserved)) // the call is over, even if this cannot be stored
	}
	f.reserved = loop.Use{}
}

// dayStep and tokenStep are how much of a day an answer takes at a time while it grows.
const (
	dayStep   = loop.MicroUSD(10_000)
	tokenStep = 1_000
)

// countTry counts one more call that goes out, or returns the limit that forbids it.
func (a *account) countTry(f *flight) *over {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.limits.Calls; l > 0 && a.calls >= l {
		return &over{loop.EndedCalls, fmt.Sprintf("the limit of %d model calls is reached", l)}
	}
	if f.calls > 0 {
		if over := a.reserveDay(f, loop.Use{Calls: 1}); over != nil {
			return over
		}
	}
	a.calls++
	f.calls++
	return nil
}

// takeTryBack takes back a call that did not reach the provider.
func (a *account) takeTryBack(f *flight) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls--
	f.calls--
}

// leastCost of a call before it can be cut; 0 when the model's price is not known.
func (a *account) leastCost(q question, input usage) loop.MicroUSD {
	if !q.stream {
		input.Output = q.mostTokens()
	}
	cost, _ := a.priceOfCall(&flight{model: q.model, tier: q.serviceTier()}, &reading{}, input)
	return cost
}

// totalsNow include what the calls in flight used so far.
func (a *account) totalsNow() (cost loop.MicroUSD, tokens int64) {
	cost, tokens = a.cost, a.tokens
	for f := range a.flying {
		cost += f.cost
		tokens += f.used
	}
	return cost, tokens
}

const passedWhile = "%s was passed in the middle of an answer, which was cut"

// checkProgress takes how far a call has come. It returns the limit that is passed, if
// one is: then the call has to be cut.
func (a *account) checkProgress(f *flight, r *reading) *over {
	u := r.estimatedUsage(f.input)
	a.mu.Lock()
	defer a.mu.Unlock()
	f.cost, _ = a.priceOfCall(f, r, u)
	f.used = u.Tokens()
	cost, tokens := a.totalsNow()
	if l := a.limits.Cost; l > 0 && cost > l {
		return &over{loop.EndedCost, fmt.Sprintf(passedWhile, "the limit of "+dollarText(l))}
	}
	if l := a.limits.Tokens; l > 0 && tokens > l {
		return &over{loop.EndedTokens, fmt.Sprintf(passedWhile, fmt.Sprint("the limit of ", l, " tokens"))}
	}
	var more loop.Use
	if c := f.cost - f.reserved.Cost; c > 0 {
		more.Cost = c + dayStep
	}
	if t := f.used - f.reserved.Tokens; t > 0 {
		more.Tokens = t + tokenStep
	}
	if more == (loop.Use{}) {
		return nil
	}
	if over := a.reserveDay(f, more); over != nil {
		over.why = fmt.Sprintf(passedWhile, "a limit of the day")
		return over
	}
	return nil
}

// used is the use of one call.
type used struct {
	model string
	usage usage
	// total is what the attempt has cost so far; priced is false when a part of it is
	// not known.
	total  loop.MicroUSD
	priced bool
}

// bookAnsweredCall takes the end of a call that was answered.
func (a *account) bookAnsweredCall(f *flight, r *reading) used {
	u := used{model: f.answeringModel(r), usage: r.estimatedUsage(f.input)}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.endFlight(f)
	cost, priced := a.priceOfCall(f, r, u.usage)
	a.cost += cost
	a.bookActualUse(f, loop.Use{Cost: cost, Tokens: u.usage.Tokens(), Calls: f.calls})
	a.unpriced = a.unpriced || !priced
	a.tokens += u.usage.Tokens()
	m := a.models[u.model]
	m.Usage, m.Calls, m.Cost, m.Unpriced = m.Plus(u.usage.Usage), m.Calls+1, m.Cost+cost, m.Unpriced || !priced
	a.models[u.model] = m
	if input := u.usage; f.works && r.inputKnown() {
		input.Output = 0
		a.counted[f.model] = counted{input, f.asked}
	}
	u.total, u.priced = a.cost, !a.unpriced
	return u
}

// dropCall takes a call back that the provider did not answer: it costs nothing.
func (a *account) dropCall(f *flight) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.endFlight(f)
	a.bookActualUse(f, loop.Use{Calls: f.calls})
}

// endFlight takes a call out of those in flight; others may have waited for it.
func (a *account) endFlight(f *flight) {
	delete(a.flying, f)
	close(a.landed)
	a.landed = make(chan struct{})
}

// answeringModel is the model that answered, or else the one that was asked.
func (f *flight) answeringModel(r *reading) string { return cmp.Or(r.model, f.model) }

// priceOfCall a call that used u; false when that is not all, or not known. What is kept for an
// hour in Anthropic's cache costs twice the input.
func (a *account) priceOfCall(f *flight, r *reading, u usage) (loop.MicroUSD, bool) {
	p, known := a.prices.Of(f.answeringModel(r))
	if !known { // a server may have a name of its own for what it was asked for
		p, known = a.prices.Of(f.model)
	}
	if !known {
		return r.tools, false
	}
	p, known = p.For(u.Input + u.CacheRead + u.CacheWrite).At(cmp.Or(r.tier, f.tier))
	u.CacheWrite -= u.writtenHour
	cost := p.Cost(u.Usage) + p.Cost(agent.Usage{Input: 2 * u.writtenHour})
	return cost + r.tools, known && !r.unpriced
}

func dollarText(m loop.MicroUSD) string { return fmt.Sprintf("$%.2f", float64(m)/1e6) }

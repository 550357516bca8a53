package run

import (
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// usage is what agents used. What is stored outlives the code: names must not
// change.
type usage struct {
	Cost      loop.MicroUSD `json:"cost_micro_usd,omitempty"`
	Source    string        `json:"cost_source,omitempty"` // as in loop.Record
	TokensIn  int64         `json:"tokens_in,omitempty"`
	TokensOut int64         `json:"tokens_out,omitempty"`
	Calls     int           `json:"calls,omitempty"`
	Output    int64         `json:"output_bytes,omitempty"`
}

func usageOfRecord(r *loop.Record) usage {
	return usage{r.Cost, r.CostSource, r.TokensIn, r.TokensOut, r.Calls, r.Output}
}

func (u *usage) allTokens() int64 { return u.TokensIn + u.TokensOut }

func (u *usage) addUsage(v usage) {
	unpriced := func(of *usage) bool { return !loop.CostKnown(of.Source) && of.allTokens() > 0 }
	partial := unpriced(u) != unpriced(&v) && loop.CostKnown(u.Source) != loop.CostKnown(v.Source)
	u.Cost += v.Cost
	u.TokensIn += v.TokensIn
	u.TokensOut += v.TokensOut
	u.Calls += v.Calls
	u.Output += v.Output
	switch {
	case partial || u.Source == loop.CostPartial:
		u.Source = loop.CostPartial
	case !loop.CostKnown(v.Source):
	case !loop.CostKnown(u.Source) || v.Source == "estimated" || v.Source == loop.CostPartial:
		u.Source = v.Source
	}
}

func (u *usage) copyInto(r *loop.Record) {
	r.Cost, r.TokensIn, r.TokensOut, r.Calls, r.Output = u.Cost, u.TokensIn, u.TokensOut, u.Calls, u.Output
	if u.Source != "" {
		r.CostSource = u.Source
	}
}

// budget is what the agents of an iteration may use together. Each is given
// what is left when it starts; what those that run side by side use is added up
// while they run.
type budget struct {
	limits loop.CommandLimits

	mu    sync.Mutex
	spent usage                       // of those that ended
	live  map[string]*agent.Collector // of those that run
}

func newBudget(l loop.CommandLimits, spent usage) *budget {
	return &budget{limits: l, spent: spent, live: map[string]*agent.Collector{}}
}

// limitsLeft for an agent that starts. ended is the limit that leaves it nothing.
func (b *budget) limitsLeft() (l loop.CommandLimits, ended loop.Ended) {
	b.mu.Lock()
	defer b.mu.Unlock()
	total := b.totalUsed()
	l.Cost, l.Calls = b.limits.Cost, b.limits.Calls
	if l.Cost >= 0 {
		l.Cost = max(0, l.Cost-total.Cost)
	}
	if l.Calls >= 0 {
		l.Calls = max(0, l.Calls-total.Calls)
	}
	if most := b.limits.Tokens; most != nil {
		l.Tokens = new(max(0, *most-total.allTokens()))
	}
	switch {
	case l.Cost == 0:
		ended = loop.EndedCost
	case l.Calls == 0:
		ended = loop.EndedCalls
	case l.Tokens != nil && *l.Tokens == 0:
		ended = loop.EndedTokens
	}
	return l, ended
}

// totalUsed by all agents of the iteration so far.
func (b *budget) totalUsed() usage {
	total := b.spent
	for _, c := range b.live { // order does not show: a sum
		cost, _ := c.Cost()
		total.Cost += cost
		total.Calls += c.Calls()
		total.TokensIn += c.Tokens()
	}
	return total
}

// countEvent takes an event of a step's agent, and returns the limit that all agents
// together have passed; NotEnded while they have not.
func (b *budget) countEvent(step string, e agent.Event) loop.Ended {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.live[step]
	if c == nil {
		return loop.NotEnded
	}
	c.Add(e)
	counts := e.Kind == agent.UsageSeen || e.Kind == agent.CostSeen
	if len(b.live) < 2 || !counts {
		return loop.NotEnded // the limits of one alone are its supervisor's
	}
	return b.passedLimit()
}

// passedLimit is the limit that all agents together have passed.
func (b *budget) passedLimit() loop.Ended {
	total := b.totalUsed()
	switch {
	case b.limits.Cost >= 0 && total.Cost > b.limits.Cost:
		return loop.EndedCost
	case b.limits.Calls >= 0 && total.Calls > b.limits.Calls:
		return loop.EndedCalls
	case b.limits.Tokens != nil && total.allTokens() > *b.limits.Tokens:
		return loop.EndedTokens
	}
	return loop.NotEnded
}

// beginAgent notes that a step's agent runs, end what it used: one that ends in time by
// itself may have passed a limit, too.
func (b *budget) beginAgent(step string, c *agent.Collector) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live[step] = c
}

func (b *budget) endAgent(step string, u usage) loop.Ended {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.live, step)
	b.spent.addUsage(u)
	return b.passedLimit()
}

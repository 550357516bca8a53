package loop_test

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// A person is told while an agent works: at 80 % of what the iteration, or the run, may cost or call.
func TestUseNear(t *testing.T) {
	t.Parallel()
	const dollar = loop.MicroUSD(1_000_000)
	run := loop.State{Policy: loop.Policy{Costs: loop.Costs{MaxCost: 2 * dollar, MaxIterationCost: dollar, MaxIterationCalls: 10}},
		Spent: loop.Spent{Cost: dollar}, Command: loop.Command{Iteration: 2}}
	warned := run
	warned.Warned = true
	for _, c := range []struct {
		name  string
		state loop.State
		cost  loop.MicroUSD
		calls int
		said  string
	}{
		{"the run's cost comes first", run, 600_000, 8, "cost $1.60 is over 80 % of the limit $2"},
		{"a person knows of that", warned, 800_000, 8, "iteration 2 cost $0.80, over 80 % of the limit $1 for one; iteration 2 made 8 model calls, over 80 % of the limit 10 for one"},
		{"no limit", loop.State{Policy: loop.Policy{Costs: loop.Costs{MaxCost: loop.NoLimit, MaxIterationCost: loop.NoLimit, MaxIterationCalls: loop.NoLimit}}}, 0, 0, ""},
	} {
		cost, calls := c.state.UseNear()
		said, _ := c.state.NearUse(cost, calls)
		if cost != c.cost || calls != c.calls || said != c.said {
			t.Errorf("%s: from %d and %d calls on %q, want %d, %d, %q", c.name, cost, calls, said, c.cost, c.calls, c.said)
		}
	}
}

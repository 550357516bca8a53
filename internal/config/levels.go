package config

import (
	"fmt"

	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/safety"
)

// levelDefault is the default of a level's limits, as a user would write it.
func levelDefault(l safety.Level) string {
	limits := safety.LimitsOf(l)
	return fmt.Sprintf("{max_cost_per_iteration: %s, max_total_cost: %s, max_duration_per_iteration: %s, "+
		"max_total_duration: %s, max_api_calls_per_iteration: %d}",
		usd(loop.MicroUSD(limits.IterationCost)), usd(loop.MicroUSD(limits.TotalCost)),
		Duration(limits.IterationDuration), Duration(limits.TotalDuration), limits.IterationCalls)
}

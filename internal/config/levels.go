package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/safety"
)

// levelDefault is the default of a level's limits, as a user would write it.
func levelDefault(l safety.Level) string {
	limits := safety.LimitsOf(l)
	return fmt.Sprintf("{max_cost_per_iteration: %s, max_total_cost: %s, max_duration_per_iteration: %s, max_total_duration: %s, max_api_calls_per_iteration: %d}",
		dollars(limits.IterationCost), dollars(limits.TotalCost), unit(limits.IterationDuration), unit(limits.TotalDuration), limits.IterationCalls)
}

func dollars(micro int64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%06d", micro/1e6, micro%1e6), "0"), ".")
}

// unit writes a duration of whole hours or minutes without what is zero.
func unit(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	case d%time.Minute == 0:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	}
	return d.String()
}

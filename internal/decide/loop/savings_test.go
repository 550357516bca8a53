package loop

import (
	"strings"
	"testing"
	"time"
)

// What iterations would have cost is said where somebody feels it.
func TestSavings(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]State{
		"":            {Limit: 4, Iteration: 3, Spent: Spent{Active: 3 * time.Second}},
		"saves 2m30s": {Limit: 10, Iteration: 5, Spent: Spent{Active: 150 * time.Second}},
		"and $0.40":   {Limit: 4, Iteration: 3, Spent: Spent{Active: time.Second, Cost: 1_200_000}},
	} {
		if got := s.savingsText(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

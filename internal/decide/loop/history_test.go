package loop_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// TestCheckHistory asks about histories in a notation: + passed, - failed, and
// in brackets the messages of what was flagged, with "a" for "file: a".
func TestCheckHistory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		next    int
		limits  loop.Thresholds
		history string
		guard   string
		message string
	}{
		{"all pass", 4, loop.Thresholds{Max: 10, Breaker: 3, Thrashing: 5}, "+ + +", "", ""},
		{"no history", 1, loop.Thresholds{Max: 10, Breaker: 3, Thrashing: 5}, "", "", ""},
		{"within the maximum", 9, loop.Thresholds{Max: 10}, "", "", ""},
		{"at the maximum", 10, loop.Thresholds{Max: 10}, "", "", ""},
		{"over the maximum", 6, loop.Thresholds{Max: 5}, "", "max_iterations", "Iteration 6 exceeds maximum of 5. Circuit breaker triggered."},
		{"a maximum of nothing", 1, loop.Thresholds{}, "", "max_iterations", "Iteration 1 exceeds maximum of 0. Circuit breaker triggered."},
		{"the maximum comes first", 11, loop.Thresholds{Max: 10, Breaker: 3}, "- - -", "max_iterations", "Iteration 11 exceeds maximum of 10. Circuit breaker triggered."},

		{"three failures", 4, loop.Thresholds{Max: 10, Breaker: 3}, "- - -", "circuit_breaker",
			"Circuit breaker OPEN: 3 consecutive validation failures (threshold: 3). Manual intervention required."},
		{"two failures", 3, loop.Thresholds{Max: 10, Breaker: 3}, "- -", "", ""},
		{"own threshold", 3, loop.Thresholds{Max: 10, Breaker: 2}, "- -", "circuit_breaker",
			"Circuit breaker OPEN: 2 consecutive validation failures (threshold: 2). Manual intervention required."},
		{"the streak is broken", 5, loop.Thresholds{Max: 10, Breaker: 3}, "- - + -", "", ""},
		{"the breaker is off", 9, loop.Thresholds{Max: 10}, "- - - - -", "", ""},
		{"the breaker before regression", 5, loop.Thresholds{Max: 10, Breaker: 3}, "+ - - -", "circuit_breaker",
			"Circuit breaker OPEN: 3 consecutive validation failures (threshold: 3). Manual intervention required."},

		{"regression", 5, loop.Thresholds{Max: 10, Breaker: 4}, "+ - - -", "quality_regression",
			"Quality regression detected: Validation scores declined 2 consecutive times. Consider changing approach."},
		{"a second regression", 7, loop.Thresholds{Max: 10, Breaker: 4}, "+ - + - - -", "quality_regression",
			"Quality regression detected: Validation scores declined 2 consecutive times. Consider changing approach."},
		{"never passed is no regression", 6, loop.Thresholds{Max: 10, Breaker: 9}, "- - - - -", "", ""},
		{"too little for regression", 3, loop.Thresholds{Max: 10, Breaker: 4}, "+ -", "", ""},
		{"two declines", 4, loop.Thresholds{Max: 10, Breaker: 4}, "+ - -", "", ""},
		{"reset by a pass", 6, loop.Thresholds{Max: 10, Breaker: 4}, "+ - - + -", "", ""},
		{"regression before thrashing", 7, loop.Thresholds{Max: 10, Breaker: 9, Thrashing: 3}, "+[a] -[a] -[a] -[a]", "quality_regression",
			"Quality regression detected: Validation scores declined 2 consecutive times. Consider changing approach."},

		{"thrashing", 6, loop.Thresholds{Max: 10, Breaker: 6, Thrashing: 5}, "-[/src/api.ts] -[/src/api.ts] -[/src/api.ts] -[/src/api.ts] -[/src/api.ts]", "thrashing",
			"Thrashing detected: 1 file(s) modified 5+ times without progress: /src/api.ts"},
		{"too few iterations", 5, loop.Thresholds{Max: 10, Breaker: 6, Thrashing: 5}, "-[a] -[a] -[a] -[a]", "", ""},
		{"different files", 6, loop.Thresholds{Max: 10, Breaker: 6, Thrashing: 5}, "-[a] -[b] -[c] -[d] -[e]", "", ""},
		{"twice in one iteration", 4, loop.Thresholds{Max: 10, Breaker: 6, Thrashing: 5}, "-[a,a] -[a,a] -[a,a]", "", ""},
		{"own threshold of thrashing", 3, loop.Thresholds{Max: 10, Breaker: 6, Thrashing: 2}, "-[b,a] -[c,a]", "thrashing",
			"Thrashing detected: 1 file(s) modified 2+ times without progress: a"},
		{"a success is progress", 8, loop.Thresholds{Max: 10, Breaker: 6, Thrashing: 5}, "-[a] -[a] -[a] + -[a] -[a]", "", ""},
		{"no flags", 7, loop.Thresholds{Max: 10, Breaker: 9, Thrashing: 5}, "- - - - - -", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var history []loop.Entry
			for _, word := range strings.Fields(c.history) {
				e := loop.Entry{Passed: word[0] == '+'}
				if flags := strings.Trim(word[1:], "[]"); flags != "" {
					for _, f := range strings.Split(flags, ",") {
						e.Messages = append(e.Messages, "Error in FILE: "+f+".")
					}
				}
				history = append(history, e)
			}
			trip, tripped := loop.CheckHistory(c.next, c.limits, history)
			if tripped != (c.guard != "") || trip.Guard != c.guard || trip.Message != c.message {
				t.Errorf("%v %q: %q", tripped, trip.Guard, trip.Message)
			}
		})
	}
}

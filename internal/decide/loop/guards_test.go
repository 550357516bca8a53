package loop_test

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// history folds scores, in per mille, into armed guards; below 1000 is failed.
func history(scores ...int) loop.Guards {
	var g loop.Guards
	for _, score := range scores {
		outcome := loop.Failed
		if score == 1000 {
			outcome = loop.Success
		}
		g.Observe(&loop.Sight{Outcome: outcome, Score: score, Progress: -1})
	}
	return g
}

const pass, fail = 1000, 0

func TestQualityRegression(t *testing.T) {
	for _, c := range []struct {
		name     string
		scores   []int
		trips    bool
		declines int
	}{
		{"the document's example", []int{pass, fail, fail, fail}, true, 2},
		{"all pass", []int{pass, pass, pass}, false, 0},
		{"better at last", []int{fail, fail, pass}, false, 0},
		{"never passed", []int{fail, fail, fail, fail, fail}, false, 0},
		{"two declines", []int{pass, fail, fail}, false, 2},
		{"reset by a pass", []int{pass, fail, fail, pass, fail}, false, 1},
		{"strictly falling", []int{900, 600, 300}, true, 2},
		{"a second fall", []int{pass, fail, pass, fail, fail, fail}, true, 2},
		{"too few", []int{pass, fail}, false, 0},
		{"none", nil, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := history(c.scores...)
			trip, trips := g.Regression()
			if trips != c.trips || g.ConsecutiveDeclines() != c.declines {
				t.Errorf("regression %v, declines %d; want %v, %d", trips, g.ConsecutiveDeclines(), c.trips, c.declines)
			}
			const want = "Quality regression detected: Validation scores declined 2 consecutive times. Consider changing approach."
			if trips && trip.Message != want {
				t.Errorf("message %q", trip.Message)
			}
		})
	}
}

func TestBreaker(t *testing.T) {
	for _, c := range []struct {
		name      string
		scores    []int
		threshold int
		trips     bool
	}{
		{"no history", nil, 3, false},
		{"all passing", []int{pass, pass, pass}, 3, false},
		{"three in a row", []int{fail, fail, fail}, 3, true},
		{"streak broken", []int{fail, fail, pass, fail}, 3, false},
		{"own threshold", []int{fail, fail}, 2, true},
		{"off", []int{fail, fail, fail, fail}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := history(c.scores...)
			trip, trips := g.Breaker(c.threshold)
			if trips != c.trips {
				t.Fatalf("trips: %v", trips)
			}
			const want = "Circuit breaker OPEN: 3 consecutive validation failures (threshold: 3). Manual intervention required."
			if trips && c.threshold == 3 && trip.Message != want {
				t.Errorf("message %q", trip.Message)
			}
		})
	}
}

func TestMaxIterations(t *testing.T) {
	for _, next := range []int{1, 4, 5} {
		if _, trips := loop.CheckMax(next, 5); trips {
			t.Errorf("iteration %d of 5 is not allowed", next)
		}
	}
	trip, trips := loop.CheckMax(11, 10)
	if !trips || trip.Message != "Iteration 11 exceeds maximum of 10. Circuit breaker triggered." {
		t.Errorf("11 of 10: %v %q", trips, trip.Message)
	}
}

func TestThrashing(t *testing.T) {
	failed := func(g loop.Guards, files ...string) loop.Guards {
		g.Observe(&loop.Sight{Outcome: loop.Failed, Score: -1, Progress: -1, Files: files})
		return g
	}
	var g loop.Guards
	for range 4 {
		g = failed(g, "/src/api.ts", "/src/api.ts") // twice in one iteration counts once
	}
	if _, trips := g.Thrash(5); trips {
		t.Error("trips after four iterations")
	}
	g = failed(g, "/src/api.ts")
	trip, trips := g.Thrash(5)
	if !trips || trip.Message != "Thrashing detected: 1 file(s) modified 5+ times without progress: /src/api.ts" {
		t.Errorf("after five: %v %q", trips, trip.Message)
	}
	for range 5 {
		g = failed(g, "a", "b", "c")
	}
	trip, _ = g.Thrash(5)
	if trip.Message != "Thrashing detected: 4 file(s) modified 5+ times without progress: /src/api.ts, a, b..." {
		t.Errorf("four files: %q", trip.Message)
	}
	var twice loop.Guards // what failed names the whole path
	for range 5 {
		twice = failed(twice, "/src/api.ts", "src/api.ts")
	}
	trip, _ = twice.Thrash(5)
	if trip.Message != "Thrashing detected: 1 file(s) modified 5+ times without progress: src/api.ts" {
		t.Errorf("a file by two names: %q", trip.Message)
	}
	var spread loop.Guards
	for _, f := range []string{"a", "b", "c", "d", "e", "f"} {
		spread = failed(spread, f)
	}
	if _, trips := spread.Thrash(5); trips {
		t.Error("different files trip")
	}
	if _, trips := spread.Thrash(1); !trips {
		t.Error("a threshold of 1 does not trip")
	}
}

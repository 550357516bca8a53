package loop

import "testing"

// Thresholds follow what guards came to, within bounds.
func TestAdapt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ was, runs, completed, want int }{
		{5, 4, 4, 5}, // too few to learn from
		{5, 5, 2, 5}, // mostly right
		{5, 10, 5, 7},
		{5, 5, 5, 10}, // always wrong: at most doubled
		{0, 9, 9, 0},  // off stays off
		{5, 9, 0, 5},
		{5, 10, 0, 4},
		{2, 50, 0, 2}, // the lowest
		{1, 50, 0, 1},
	} {
		p := Policy{Thrashing: c.was, FailureThreshold: 3}
		said := Adapt(&p, []Tripped{{GuardThrashing, c.runs, c.completed}, {GuardRegression, 50, 50}})
		if p.Thrashing != c.want || p.FailureThreshold != 3 || (len(said) > 0) != (c.want != c.was) {
			t.Errorf("%+v: %d, breaker %d, said %q", c, p.Thrashing, p.FailureThreshold, said)
		}
	}
}

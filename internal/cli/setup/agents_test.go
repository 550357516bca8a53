package setup

import "testing"

// How an installed version stands to those that pawl was tried with.
func TestStanding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ found, tried, want string }{
		{"2.1.3 (Claude Code)", "2.0.1, 2.1.3", "tried"}, {"2.2.0", "2.0.1, 2.1.3", "newer"}, {"1.9.9", "2.0.1", "older"},
		{"2.1.0", "2.0.1, 2.1.3", "between"}, {"2.10.0", "2.9.0", "newer"}, {"", "2.0.1", "unknown"}, {"2.0", "none", "unknown"},
		{"2.0.1", "not run: 2.0.1", "unknown"},
	} {
		if got := standing(c.found, c.tried); got != c.want {
			t.Errorf("%s, tried %s: %s, want %s", c.found, c.tried, got, c.want)
		}
	}
}

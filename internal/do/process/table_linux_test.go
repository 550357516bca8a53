package process

import (
	"fmt"
	"testing"
)

// What is about to end has no memory any more; a thread that outlives the
// first one has it still.
func TestParseStatOfOneThatEnds(t *testing.T) {
	const line = "7 (a b) c) %s 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 %d 0 55 %d 0 0"
	for _, c := range []struct {
		state           string
		threads, memory int
		leaving, zombie bool
	}{
		{"S", 1, 4096, false, false},
		{"R", 1, 0, true, false},
		{"Z", 1, 0, true, true},
		{"Z", 3, 0, false, false},
	} {
		p, ok := parseStat(7, fmt.Appendf(nil, line, c.state, c.threads, c.memory))
		if !ok || p.Name != "a b) c" || p.Start != 55 || p.leaving != c.leaving || p.Zombie != c.zombie {
			t.Errorf("%+v: got %+v, %v", c, p, ok)
		}
	}
}

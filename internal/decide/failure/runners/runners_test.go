package runners

import (
	"testing"
)

// Each expression of runners.json can be compiled, and each runner can be read.
func TestRunnersCanBeRead(t *testing.T) {
	t.Parallel()
	for _, r := range runners() {
		for _, e := range []Expression{r.Fails, r.Files, r.Names, r.Says, r.At, r.Calls, r.Noise, r.Drops, r.Ends, r.Sum, r.None} {
			if e.Compiled != nil {
				e.Compiled()
			}
		}
		if r.Sum.Compiled == nil && readers[r.Name] == nil {
			t.Errorf("%s has no counts, and no reader", r.Name)
		}
	}
}

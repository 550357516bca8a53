//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// These tests are pawl with each of the programs: a run that succeeds, and
// one that fails.

func TestGateGoesFromRedToGreen(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			u, model := scene(t, p, "")
			model.set(append(u.writes("wrong.txt"), u.writes("done.txt")...)...)
			r, s := u.run(nil)
			if r.code != 0 || s.Status != "completed" || !s.Success || len(s.Iterations) != 2 {
				t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
			}
			first, second := s.Iterations[0], s.Iterations[1]
			if first.Gates[0].Status != "failed" || first.Complete || first.Failure == nil || second.Gates[0].Status != "passed" || !second.Complete {
				t.Errorf("iterations are %+v and %+v", first, second)
			}
			for _, it := range s.Iterations {
				if it.TokensIn != 200 || it.TokensOut != 20 || !p.costs(it.CostUSD, 1) {
					t.Errorf("iteration %d used %d in, %d out, cost %v", it.Number, it.TokensIn, it.TokensOut, it.CostUSD)
				}
			}
			if s.TokensIn != 400 || s.TokensOut != 40 || !p.costs(s.CostUSD, 2) {
				t.Errorf("the run used %d in, %d out, cost %v", s.TokensIn, s.TokensOut, s.CostUSD)
			}
			calls := u.model.Calls()
			if got := calls[len(calls)-1].Prompt(); !strings.Contains(got, "done.txt is missing") {
				t.Errorf("the second prompt does not say what failed: %s", got)
			}
		})
	}
}

func TestBadKeyStopsAtOnce(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			u, model := scene(t, p, "")
			model.set(p.badKey)
			r, s := u.run(nil)
			if (r.code != 1 && r.code != 4) || s.Success || len(s.Iterations) != 1 {
				t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
			}
			if f := s.Iterations[0].Failure; f == nil || f.Class != "auth" || f.Kind != "permanent" {
				t.Errorf("the failure is %+v", f)
			}
			if said := strings.ToLower(r.stderr); !strings.Contains(said, "key") && !strings.Contains(said, "auth") {
				t.Errorf("the message does not say what to do: %s", r.stderr)
			}
			if calls := len(u.model.Calls()); calls > 4 {
				t.Errorf("%d calls were made with a bad key", calls)
			}
		})
	}
}

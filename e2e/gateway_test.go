//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// metered are the programs that go through the gateway.
var metered = slices.Concat(programs, keyedOnly)

// withKey is the program as a person with a key has it: pawl's gateway is between
// it and its model.
func (p program) withKey() program {
	p.setUp = nil
	if p.asks != "" {
		p.model = p.asks
	}
	return p
}

// Each program works through the gateway, and pawl counts what the model saw.
func TestGateway(t *testing.T) {
	t.Parallel()
	for _, p := range metered {
		for _, level := range []string{"normal", "paranoid"} {
			t.Run(p.name+"/"+level, func(t *testing.T) {
				t.Parallel()
				u, model := scene(t, p.withKey(), "")
				model.set(u.writes("done.txt")...)
				r, s := u.run(nil, "--safety", level)
				if r.code != 0 || s.Status != "completed" || !s.Success {
					t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
				}
				calls := u.model.Calls()
				if s.TokensIn < int64(100*len(calls)) || s.CostUSD == nil || *s.CostUSD == 0 {
					t.Errorf("%d calls, %d tokens in, cost %v\n%s", len(calls), s.TokensIn, s.CostUSD, r.stderr)
				}
				for _, c := range calls {
					if got := fmt.Sprint(c.Header); !strings.Contains(got, key) || strings.Contains(got, "sk-pawl-") {
						t.Errorf("%s %s comes with %s", c.Method, c.Path, got)
					}
				}
			})
		}
	}
}

// An agent that looks for the key everywhere finds the token.
func TestKeyIsNotInTheBox(t *testing.T) {
	t.Parallel()
	const look = `(env; cat /proc/*/environ /proc/*/cmdline | tr '\0' '\n'; cat .git/config "$HOME"/.*rc; ` +
		`grep -rs dummy-key-of "$HOME" /tmp /run /dev/shm . --include=* --exclude=found.txt) > found.txt 2>&1; true`
	for _, p := range metered {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			u, model := scene(t, p.withKey(), "")
			model.set(append([]modelserver.Reply{{Text: "I look.", Tools: []modelserver.Tool{u.agent.shell(look)}}}, u.writes("done.txt")...)...)
			if r, s := u.run(nil); r.code != 0 || !s.Success {
				t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
			}
			found := u.read("found.txt")
			if strings.Contains(found, key) {
				t.Errorf("the key is in the box:\n%s", found)
			}
			if !strings.Contains(found, "sk-pawl-") {
				t.Errorf("the agent did not look: %s", found)
			}
		})
	}
}

// A limit of money holds: the call that passes it is the last one.
func TestCostLimitHoldsForEveryProgram(t *testing.T) {
	t.Parallel()
	for _, p := range metered {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			u, model := scene(t, p.withKey(), "")
			again := modelserver.Reply{Text: "Once more.", Tools: []modelserver.Tool{u.agent.shell("date >> log.txt")}, Usage: expensive}
			model.set(again, again, again, again, again, again, again, again, again)
			// A call has 100,000 tokens in and 10,000 out.
			price := map[string]float64{"gpt-5": 0.225, "gemini-2.5-flash": 0.055}[cmp.Or(p.asks, p.model, "gpt-5")]
			if price == 0 {
				price = 0.45 // Claude Sonnet
			}
			limit := 1.2 * price
			r, s := u.run(nil, "--max-cost", fmt.Sprint(limit), "-n", "1")
			if len(s.Iterations) != 1 || s.Iterations[0].Ended != "cost" {
				t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
			}
			spent := float64(len(u.model.Calls())) * price
			if spent > limit+price {
				t.Errorf("%d calls cost $%.2f", len(u.model.Calls()), spent)
			}
			if s.CostUSD == nil || math.Abs(*s.CostUSD-spent) > spent/100 {
				t.Errorf("pawl says %v, the model saw $%.3f", s.CostUSD, spent)
			}
		})
	}
}

// Codex's stream tells its tokens at the end only. Without the gateway the file of its
// session tells them before, and a limit of money holds.
func TestCostLimitHoldsByTheSessionsFile(t *testing.T) {
	t.Parallel()
	u, model := scene(t, codexProgram, "prices: {scripted-model: {input: 3, output: 15}}\n")
	again := modelserver.Reply{Text: "Once more.", Tools: []modelserver.Tool{u.agent.shell("date >> log.txt")}, Usage: expensive}
	model.set(slices.Repeat([]modelserver.Reply{again}, 40)...)
	r, s := u.run(nil, "--max-cost", "0.5", "-n", "1") // a call is 0.45
	if len(s.Iterations) != 1 || s.Iterations[0].Ended != "cost" {
		t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
	}
	if calls := len(u.model.Calls()); calls >= 40 {
		t.Errorf("%d calls were made", calls)
	}
	if s.CostUSD == nil || *s.CostUSD < 0.9 {
		t.Errorf("pawl says %v", s.CostUSD)
	}
}

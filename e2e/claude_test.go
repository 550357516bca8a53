//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// These tests are pawl with Claude Code: the ways in which a run goes on or
// ends. With the other programs, most of them are among all scenarios only.

// The program gives up after three refusals; pawl waits, and does the same
// iteration again.
func TestRateLimitIsWaitedOut(t *testing.T) {
	t.Parallel()
	u, model := scene(t, claudeProgram, "")
	model.set(append([]modelserver.Reply{u.agent.limited, u.agent.limited, u.agent.limited}, u.writes("done.txt")...)...)
	r, s := u.run(nil)
	if r.code != 0 || s.Status != "completed" {
		t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
	}
	// The gateway waits as long as the provider says: the program never hears of it.
	if len(s.Iterations) != 1 || s.Iterations[0].Attempt != 1 || !s.Iterations[0].Complete {
		t.Fatalf("attempts are %+v", s.Iterations)
	}
	if calls := len(u.model.Calls()); calls != 5 {
		t.Errorf("the model was asked %d times", calls)
	}
}

// Without the gateway the program's own word for a limit is waited out.
func TestRateLimitIsWaitedOutWithoutTheGateway(t *testing.T) {
	t.Parallel()
	u, model := scene(t, claudeProgram, "gateway: {enabled: never}")
	model.set(append([]modelserver.Reply{u.agent.limited, u.agent.limited, u.agent.limited}, u.writes("done.txt")...)...)
	r, s := u.run(nil)
	if r.code != 0 || s.Status != "completed" {
		t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
	}
	if len(s.Iterations) != 2 {
		t.Fatalf("attempts are %+v", s.Iterations)
	}
	if first := s.Iterations[0]; first.Number != 1 || first.Outcome != "waited" || first.Failure == nil || first.Failure.Class != "rate_limit" {
		t.Errorf("the first attempt is %+v", first)
	}
	if second := s.Iterations[1]; second.Number != 1 || second.Attempt != 2 || !second.Complete {
		t.Errorf("the second attempt is %+v", second)
	}
}

func TestOverloadIsGotOver(t *testing.T) {
	t.Parallel()
	u, model := scene(t, claudeProgram, "")
	model.set(append([]modelserver.Reply{u.agent.overloaded, u.agent.overloaded}, u.writes("done.txt")...)...)
	r, s := u.run(nil)
	if r.code != 0 || len(s.Iterations) != 1 || s.Iterations[0].Attempt != 1 || !s.Iterations[0].Complete {
		t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
	}
}

func TestHangIsTimedOut(t *testing.T) {
	t.Parallel()
	u, model := scene(t, claudeProgram, "loop: {iteration_timeout: 6s}")
	model.set(modelserver.Reply{Hang: true})
	r, s := u.run(nil, "--max-iterations", "1")
	if len(s.Iterations) != 1 || s.Iterations[0].Ended != "timeout" || s.Iterations[0].Complete {
		t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
	}
	if f := s.Iterations[0].Failure; f == nil || f.Class != "timeout" {
		t.Errorf("the failure is %+v", f)
	}
}

// A model that never comes to an end spends until the limit, and no call more
// than the one that crosses it.
func TestCostLimitEndsAnIteration(t *testing.T) {
	t.Parallel()
	u, model := scene(t, claudeProgram, "")
	model.set(modelserver.Reply{Text: "More.", Tools: []modelserver.Tool{u.agent.shell("echo again")}, Usage: expensive})
	r, s := u.run(nil, "--max-cost", "1")
	if r.code != 3 || s.Success || len(s.Iterations) != 1 {
		t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
	}
	// One call is 0.45 dollars.
	if s.CostUSD == nil || *s.CostUSD < 0.9 || *s.CostUSD > 0.91 {
		t.Errorf("the run cost %v", s.CostUSD)
	}
	if calls := len(u.model.Calls()); calls > 2 {
		t.Errorf("%d calls were made", calls)
	}
}

// Ctrl+C while the program works, with a child that does not want to end.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	u, model := scene(t, claudeProgram, "")
	started := filepath.Join(u.repo, "started")
	model.set(
		modelserver.Reply{Tools: []modelserver.Tool{u.agent.shell("trap '' TERM HUP; nohup setsid tail -f /dev/null >/dev/null 2>&1 & echo ok >" + strconv.Quote(started))}},
		modelserver.Reply{Hang: true})
	r, s := u.run(func(p *os.Process) {
		<-model.asked
		<-model.asked // the second call comes after the shell command
		if err := p.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
	})
	if r.code != 130 || s.Success {
		t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
	}
	home := u.env[slices.IndexFunc(u.env, func(kv string) bool { return strings.HasPrefix(kv, "HOME=") })][len("HOME="):]
	made, err := filepath.Glob(filepath.Join(home, ".local", "state", "pawl", "*", "workspaces", "*", "started"))
	if err != nil || len(made) != 1 {
		t.Errorf("the shell command did not run: %q, %v", made, err)
	}
}

// What a person says reaches the program between two of its tools, and its prompt has it
// only once.
func TestAMessageReachesTheAgentAtWork(t *testing.T) {
	t.Parallel()
	const word = "use the name of the ship"
	asked := make(chan struct{}, 1000)
	var mu sync.Mutex
	var u *user
	heard := 0
	decide := func(r modelserver.Request) modelserver.Reply {
		asked <- struct{}{}
		mu.Lock()
		defer mu.Unlock()
		if !bytes.Contains(r.Body, []byte(word)) {
			return modelserver.Reply{Text: "More.", Tools: []modelserver.Tool{claudeProgram.shell("date +%N >> log.txt; sleep 0.2")}}
		}
		heard++
		return u.writes("done.txt")[min(heard, 2)-1]
	}
	model := serve(t, modelserver.Scenario{Decide: decide, Asides: true})
	mu.Lock()
	u = newUser(t, claudeProgram, model, "loop: {iteration_timeout: 30s}")
	mu.Unlock()
	r, s := u.run(func(*os.Process) {
		<-asked
		if said := u.do(nil, "message", "fix", word); said.code != 0 {
			t.Errorf("pawl message: exit %d: %s", said.code, said.stderr)
		}
	})
	if r.code != 0 || len(s.Iterations) != 1 || !s.Iterations[0].Complete {
		t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
	}
	if strings.Contains(r.stderr, "reached no agent") {
		t.Errorf("the message is said to be lost: %s", r.stderr)
	}
}

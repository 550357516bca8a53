//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/modelserver"
)

// These tests drive pawl itself, as a user does: a repository, a pawl.yaml,
// `pawl run`, and then what `pawl show` says about it.

// buildPawl makes the program under test once.
var buildPawl = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pawl-e2e-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "pawl")
	out, err := exec.CommandContext(context.Background(), "go", "build", "-o", path, "../cmd/pawl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%v: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := buildPawl(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path)) // in a folder for temporary files anyway
	}
	os.Exit(code)
}

// user is a person with a repository and pawl.
type user struct {
	t     *testing.T
	pawl  string
	repo  string
	env   []string
	model *modelserver.Server
}

// settings are what a test adds to pawl.yaml.
const settings = `
agent: claude
agents:
  claude: {command: [%q], model: claude-sonnet-4-5}
procedures:
  fix:
    act: [{content: "Make the check pass: write done.txt."}]
    max_iterations: 3
verification:
  commands:
    - {name: check, command: "test -f done.txt || { echo done.txt is missing; exit 1; }", timeout: 20s}
%s
`

func newUser(t *testing.T, model *modelserver.Server, more string) *user {
	t.Helper()
	program := claudeBinary(t)
	pawl, err := buildPawl()
	if err != nil {
		t.Fatalf("pawl does not build: %v", err)
	}
	u := &user{t: t, pawl: pawl, repo: t.TempDir(), env: world(t, model), model: model}
	yaml := fmt.Sprintf(settings, program, more)
	if err := os.WriteFile(filepath.Join(u.repo, "pawl.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"add", "pawl.yaml"},
		{"-c", "user.name=A Person", "-c", "user.email=person@example.com", "commit", "-q", "-m", "first"},
	} {
		u.git(args...)
	}
	return u
}

func (u *user) git(args ...string) {
	u.t.Helper()
	c := exec.CommandContext(u.t.Context(), "git", args...)
	c.Dir, c.Env = u.repo, u.env
	if out, err := c.CombinedOutput(); err != nil {
		u.t.Fatalf("git %q: %v: %s", args, err, out)
	}
}

// ran is what one command of pawl came to.
type ran struct {
	code           int
	stdout, stderr string
}

// do runs pawl to its end. meanwhile, if set, is called with the process.
func (u *user) do(meanwhile func(*os.Process), args ...string) ran {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, u.pawl, args...)
	c.Dir, c.Env = u.repo, u.env
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	c.WaitDelay = 20 * time.Second
	if err := c.Start(); err != nil {
		u.t.Fatal(err)
	}
	if meanwhile != nil {
		meanwhile(c.Process)
	}
	err := c.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		u.t.Fatalf("pawl %q: %v\n%s", args, err, errs.String())
	}
	if ctx.Err() != nil {
		u.t.Fatalf("pawl %q did not end\n%s\n%s", args, out.String(), errs.String())
	}
	return ran{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// shown is what the tests read of `pawl show RUN --json`.
type shown struct {
	Run        string
	Status     string
	Why        string
	Success    bool
	TokensIn   int64    `json:"tokens_in"`
	TokensOut  int64    `json:"tokens_out"`
	CostUSD    *float64 `json:"cost_usd"`
	Iterations []struct {
		Number    int
		Attempt   int
		Outcome   string
		Ended     string
		Signals   []string
		Complete  bool
		ExitCode  int      `json:"exit_code"`
		TokensIn  int64    `json:"tokens_in"`
		TokensOut int64    `json:"tokens_out"`
		CostUSD   *float64 `json:"cost_usd"`
		Gates     []struct{ Name, Status string }
		Failure   *struct {
			Class, Kind, Summary string
			Transient            bool
		}
	}
}

// run is `pawl run fix`, and what is known of it afterwards. Nothing that
// it started may be left.
func (u *user) run(meanwhile func(*os.Process), flags ...string) (ran, shown) {
	u.t.Helper()
	r := u.do(meanwhile, append([]string{"run", "fix", "--json"}, flags...)...)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	var end struct{ Event, Run string }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil || end.Event != "end" || end.Run == "" {
		u.t.Fatalf("the last event of the run is %q, %v\nexit %d, stderr:\n%s", lines[len(lines)-1], err, r.code, r.stderr)
	}
	u.nothingLeft(end.Run)
	show := u.do(nil, "show", end.Run, "--json")
	var s shown
	if err := json.Unmarshal([]byte(show.stdout), &s); err != nil || show.code != 0 {
		u.t.Fatalf("pawl show: exit %d, %v: %s%s", show.code, err, show.stdout, show.stderr)
	}
	return r, s
}

// nothingLeft looks for processes with the run's mark.
func (u *user) nothingLeft(run string) {
	u.t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(environs) == 0 {
		return // not Linux
	}
	for _, file := range environs {
		b, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(b, []byte("\x00PAWL_RUN="+run+"\x00")) {
			continue // gone, or somebody else's
		}
		cmdline, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err == nil && len(cmdline) > 0 {
			u.t.Errorf("process %s is left: %q", filepath.Base(filepath.Dir(file)), cmdline)
		}
	}
}

func near(got *float64, want float64) bool { return got != nil && math.Abs(*got-want) < 1e-6 }

// writes is one iteration of the model: a file, then a claim.
func (u *user) writes(name string) []modelserver.Reply {
	return []modelserver.Reply{
		{Text: "I write it.", Tools: []modelserver.Tool{edit(filepath.Join(u.repo, name), "x\n")}},
		{Text: complete},
	}
}

// script is a model that answers from a list which is made after the
// repository is known.
type script struct {
	mu      sync.Mutex
	replies []modelserver.Reply
	asked   chan struct{} // a value for each call, as long as there is room
}

func (s *script) decide(r modelserver.Request) modelserver.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.asked <- struct{}{}:
	default:
	}
	if len(s.replies) == 0 {
		return modelserver.Reply{Text: "Nothing more to say."}
	}
	return s.replies[min(r.Call, len(s.replies))-1]
}

func (s *script) set(replies ...modelserver.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = replies
}

// scene is a user whose model plays what set is called with.
func scene(t *testing.T, more string) (*user, *script) {
	t.Helper()
	s := &script{asked: make(chan struct{}, 1000)}
	return newUser(t, serve(t, modelserver.Scenario{Decide: s.decide}), more), s
}

func TestGateGoesFromRedToGreen(t *testing.T) {
	t.Parallel()
	u, model := scene(t, "")
	model.set(append(u.writes("wrong.txt"), u.writes("done.txt")...)...)
	r, s := u.run(nil)
	if r.code != 0 || s.Status != "completed" || !s.Success || len(s.Iterations) != 2 {
		t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
	}
	first, second := s.Iterations[0], s.Iterations[1]
	if first.Gates[0].Status != "failed" || first.Complete || first.Failure == nil || second.Gates[0].Status != "passed" || !second.Complete {
		t.Errorf("iterations are %+v and %+v", first, second)
	}
	// 200 in at 3 and 20 out at 15 dollars a million.
	for _, it := range s.Iterations {
		if it.TokensIn != 200 || it.TokensOut != 20 || !near(it.CostUSD, 0.0009) {
			t.Errorf("iteration %d used %d in, %d out, cost %v", it.Number, it.TokensIn, it.TokensOut, it.CostUSD)
		}
	}
	if s.TokensIn != 400 || s.TokensOut != 40 || !near(s.CostUSD, 0.0018) {
		t.Errorf("the run used %d in, %d out, cost %v", s.TokensIn, s.TokensOut, s.CostUSD)
	}
	calls := u.model.Calls()
	if got := calls[len(calls)-1].Prompt(); !strings.Contains(got, "done.txt is missing") {
		t.Errorf("the second prompt does not say what failed: %s", got)
	}
}

// The program gives up after three refusals; pawl waits, and does the same
// iteration again.
func TestRateLimitIsWaitedOut(t *testing.T) {
	t.Parallel()
	u, model := scene(t, "")
	model.set(append([]modelserver.Reply{rateLimited, rateLimited, rateLimited}, u.writes("done.txt")...)...)
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

func TestBadKeyStopsAtOnce(t *testing.T) {
	t.Parallel()
	u, model := scene(t, "")
	model.set(badKey)
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
	if calls := len(u.model.Calls()); calls > 3 {
		t.Errorf("%d calls were made with a bad key", calls)
	}
}

func TestOverloadIsGotOver(t *testing.T) {
	t.Parallel()
	u, model := scene(t, "")
	model.set(append([]modelserver.Reply{overloaded, overloaded}, u.writes("done.txt")...)...)
	r, s := u.run(nil)
	if r.code != 0 || len(s.Iterations) != 1 || s.Iterations[0].Attempt != 1 || !s.Iterations[0].Complete {
		t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
	}
}

func TestHangIsTimedOut(t *testing.T) {
	t.Parallel()
	u, model := scene(t, "loop: {iteration_timeout: 6s}")
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
	u, model := scene(t, "")
	model.set(modelserver.Reply{Text: "More.", Tools: []modelserver.Tool{bash("echo again")}, Usage: expensive})
	r, s := u.run(nil, "--max-cost", "1")
	if r.code != 3 || s.Success || len(s.Iterations) != 1 {
		t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
	}
	// One call is 0.45 dollars.
	if s.CostUSD == nil || *s.CostUSD < 0.9 || *s.CostUSD > 1.36 {
		t.Errorf("the run cost %v", s.CostUSD)
	}
	if calls := len(u.model.Calls()); calls > 4 {
		t.Errorf("%d calls were made", calls)
	}
}

// Ctrl+C while the program works, with a child that does not want to end.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	u, model := scene(t, "")
	started := filepath.Join(u.repo, "started")
	model.set(
		modelserver.Reply{Tools: []modelserver.Tool{bash("trap '' TERM HUP; nohup setsid tail -f /dev/null >/dev/null 2>&1 & echo ok >" + strconv.Quote(started))}},
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
	if _, err := os.Stat(started); err != nil {
		t.Errorf("the shell command did not run: %v", err)
	}
}

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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/test/modelserver"
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

// user is a person with a repository and pawl.
type user struct {
	t     *testing.T
	pawl  string
	repo  string
	env   []string
	model *modelserver.Server
	agent program
}

// settings are what a test adds to pawl.yaml.
const settings = `
agent: %s
agents:
  %[1]s: {command: [%q], model: %q, env: %s, endpoints: [%q], isolate: %v}
procedures:
  fix:
    act: [{content: "Make the check pass: write done.txt."}]
    max_iterations: 3
verification:
  commands:
    - {name: check, command: "test -f done.txt || { echo done.txt is missing; exit 1; }", timeout: 20s}
%s
`

func newUser(t *testing.T, p program, model *modelserver.Server, more string) *user {
	t.Helper()
	binary := installed(t, p.name)
	pawl, err := buildPawl()
	if err != nil {
		t.Fatalf("pawl does not build: %v", err)
	}
	u := &user{t: t, pawl: pawl, repo: t.TempDir(), env: world(t, model), model: model, agent: p}
	own := map[string]string{}
	if p.setUp != nil {
		own = p.setUp(t, t.TempDir(), model.URL())
	} else {
		for name, value := range p.keyed(t, t.TempDir(), model.URL()) {
			u.env = append(u.env, name+"="+value)
		}
	}
	env, err := json.Marshal(own) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	yaml := fmt.Sprintf(settings, p.name, binary, p.model, env, model.URL(), p.isolate, more)
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
	ctx, cancel := context.WithTimeout(u.t.Context(), 6*time.Minute)
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
	CostSource string   `json:"cost_source"`
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
		Calls     int      `json:"api_calls"`
		Gates     []struct{ Name, Status string }
		Review    *struct {
			Verdict, Reviewer string
			Items             []struct{ File string }
			TokensIn          int64 `json:"tokens_in"`
		}
		Failure *struct {
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
	path := filepath.Join(u.repo, name)
	tool := u.agent.shell("echo x > " + quoted(path))
	if u.agent.write != nil {
		tool = u.agent.write(path, "x\n")
	}
	return []modelserver.Reply{
		{Text: "I write it.", Tools: []modelserver.Tool{tool}},
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
func scene(t *testing.T, p program, more string) (*user, *script) {
	t.Helper()
	s := &script{asked: make(chan struct{}, 1000)}
	return newUser(t, p, serve(t, modelserver.Scenario{Decide: s.decide, Asides: true}), more), s
}

// read is a file of the repository.
func (u *user) read(name string) string {
	u.t.Helper()
	b, err := os.ReadFile(filepath.Join(u.repo, name))
	if err != nil {
		u.t.Fatal(err)
	}
	return string(b)
}

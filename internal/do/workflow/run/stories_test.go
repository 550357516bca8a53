package run_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent/script"
	"github.com/pawl-dev/pawl/internal/do/boxnet"
	"github.com/pawl-dev/pawl/internal/do/egress"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/netstack"
	"github.com/pawl-dev/pawl/internal/do/reexec"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/do/workflow/run"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// The test binary is the supervisor and the scripted agent too.
func TestMain(m *testing.M) {
	if code, ok := reexec.Finish(supervisor.Rest{Ways: boxnet.Ways{Proxy: egress.Out(os.Getenv), Stack: netstack.Serve}}); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// story is a workflow that runs in a folder of its own.
type story struct {
	t      *testing.T
	dir    string
	policy loop.Policy
	agent  string // the turns of the scripted agent
	store  *store.Store
	run    string
}

func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{t: t, dir: t.TempDir(), policy: loop.Policy{
		Kind: loop.Workflow, Once: true, MaxIterations: 1, FailureThreshold: 9, MaxWaits: 1, Workers: loop.Workers{Agent: "script"},
		Costs: loop.Costs{MaxCost: loop.NoLimit, MaxIterationCost: loop.NoLimit, MaxIterationCalls: loop.NoLimit},
	}}
	db, err := store.Open(t.Context(), filepath.Join(s.dir, "state", "pawl.db"))
	s.must(err)
	t.Cleanup(func() { s.must(db.Close()) })
	s.store = db
	return s
}

func (s *story) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) options(steps string) engine.Options {
	s.t.Helper()
	root := filepath.Join(s.dir, "root")
	s.must(os.MkdirAll(root, 0o700))
	s.must(os.WriteFile(filepath.Join(root, "flow.yaml"), []byte("config: {parallelism: 1}\nsteps:"+steps+"\n"), 0o600))
	flow, err := load(root, "flow.yaml")
	s.must(err)
	scenario := filepath.Join(s.dir, "scenario.yaml")
	s.must(os.WriteFile(scenario, []byte("turns:"+s.agent+"\n"), 0o600))
	return engine.Options{
		Plan: runplan.Plan{
			Kind: "workflow", Name: "flow", Root: root, Policy: s.policy, Safety: "permissive", Bounds: runplan.Bounds{Lease: time.Minute},
			Environ: os.Environ(), Exe: os.Args[0], Args: []string{reexec.Supervise},
			Agents: map[string]runplan.Agent{"script": {Adapter: script.Adapter{Executable: os.Executable}, Command: []string{scenario}, Account: "script"}},
		},
		Work: run.New(run.Options{Flow: flow, Load: load}), StateDir: filepath.Join(s.dir, "state"), Store: s.store,
	}
}

func load(dir, name string) (*run.Flow, error) {
	w, err := config.LoadWorkflow(dir, name)
	if err != nil {
		return nil, err
	}
	return &run.Flow{Path: w.Path, Plan: w.Plan}, nil
}

// plays runs a workflow and tells how it ended, and each execution of a step in
// the order of its name.
func (s *story) plays(steps string) string {
	s.t.Helper()
	d, err := engine.Start(s.t.Context(), s.options(steps))
	s.must(err)
	s.run = d.ID()
	return s.told(d.State())
}

// resumes goes on with the run, with the file as it is now and with an event.
func (s *story) resumes(steps string, e loop.Event) string {
	s.t.Helper()
	e.Policy = &s.policy
	d, err := engine.Resume(s.t.Context(), s.options(steps), s.run, e)
	s.must(err)
	return s.told(d.State())
}

func (s *story) told(state loop.State) string {
	s.t.Helper()
	list, err := s.store.StepsWithOutput(s.t.Context(), s.run)
	s.must(err)
	words := []string{string(state.Status) + ":"}
	slices.SortStableFunc(list, func(a, b store.StepRun) int { return strings.Compare(a.Step, b.Step) })
	for _, st := range list {
		word := st.Step + " " + st.Status
		if out := strings.TrimSpace(st.Output); out != "" {
			word += fmt.Sprintf(" (%s)", out)
		}
		words = append(words, word)
	}
	return strings.Replace(strings.Join(words, ", "), ":,", ":", 1)
}

func TestOnePass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, steps, want string }{
		{"outputs are given to who needs them", `
  - {id: a, run: 'echo 41; echo "x=$((41 + 1))" >> "$PAWL_OUTPUT"'}
  - {id: b, needs: a, run: 'echo {{steps.a.output}} ${{ steps.a.outputs.x }}'}`,
			"completed: a success (41), b success (41 42)"},
		{"a declared output is made of what the step printed", `
  - {id: a, run: 'echo 41', outputs: {x: '<${{ output }}>'}}
  - {id: b, needs: a, run: "echo '${{ steps.a.outputs.x }}'"}`,
			"completed: a success (41), b success (<41>)"},
		{"who needs what failed does not run", `
  - {id: a, run: 'exit 3'}
  - {id: b, needs: a, run: 'echo b'}`,
			"failed: a failure"},
		{"after a failure nothing more starts", `
  - {id: a, run: 'exit 3'}
  - {id: b, run: 'echo b'}`,
			"failed: a failure"},
		{"who asks for a failure runs after one", `
  - {id: a, run: 'exit 3'}
  - {id: b, needs: a, if: failure(), run: 'echo ${{ steps.a.outcome }}'}
  - {id: c, needs: a, if: always(), run: 'echo always'}`,
			"failed: a failure, b success (failure), c success (always)"},
		{"a condition that does not hold skips the step and who needs it", `
  - {id: a, run: 'echo a'}
  - {id: b, needs: a, if: "steps.a.output == 'b'", run: 'echo b'}
  - {id: c, needs: b, run: 'echo c'}
  - {id: d, needs: a, if: "steps.a.output == 'a'", run: 'echo d'}`,
			"completed: a success (a), d success (d)"},
		{"a skipped optional step does not block who needs it", `
  - {id: a, optional: true, if: "'a' == 'b'", run: 'echo a'}
  - {id: b, needs: a, run: 'echo b'}`,
			"completed: b success (b)"},
		{"an optional step may fail", `
  - {id: a, optional: true, run: 'exit 3'}
  - {id: b, needs: a, run: 'echo b'}`,
			"completed: a failure, b success (b)"},
		{"a step is tried again", `
  - {id: a, retry: {max: 2, backoff: none}, run: 'echo x >> tries; test $(wc -l < tries) = 3'}`,
			"completed: a failure, a failure, a success"},
		{"no more often than it may be", `
  - {id: a, retry: {max: 1, backoff: none}, run: 'echo x >> tries; test $(wc -l < tries) = 3'}`,
			"failed: a failure, a failure"},
		{"alternatives are tried in turn", `
  - {id: a, run: 'exit 3', alternatives: ['exit 4', 'echo third', 'echo fourth']}`,
			"completed: a failure, a failure, a success (third)"},
		{"a check that fails fails its step", `
  - {id: a, run: 'echo a > a.txt', verify: ['test -s a.txt']}
  - {id: b, needs: a, run: 'echo b', verify: ['test -s b.txt']}`,
			"failed: a success, b failure (b)"},
		{"a step has its time", `
  - {id: a, timeout: 100ms, run: 'sleep 60'}`,
			"failed: a failure"},
		{"a matrix makes steps", `
  - {id: a, matrix: {n: [1, 2]}, run: 'echo ${{ matrix.n }} $PAWL_STEP'}`,
			"completed: a (1) success (1 a (1)), a (2) success (2 a (2))"},
		{"a matrix leaves out and adds", `
  - {id: a, matrix: {n: [1, 2], m: [x, y], exclude: [{n: 1, m: y}], include: [{n: 3, m: z}]}, run: 'echo ${{ matrix.n }}${{ matrix.m }}'}`,
			"completed: a (1, x) success (1x), a (2, x) success (2x), a (2, y) success (2y), a (3, z) success (3z)"},
		{"a person is asked, and nothing that needs the answer runs", `
  - {id: a, run: 'echo a'}
  - {id: b, ask: 'is {{steps.a.output}} right?', needs: a}
  - {id: c, run: 'echo c', needs: b}`,
			"pending: a success (a), b asking"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := newStory(t).plays(c.steps); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A workflow whose step names it while it runs comes to an end.
func TestNestedInItself(t *testing.T) {
	t.Parallel()
	got := newStory(t).plays(`
  - {id: a, run: 'echo flow.yaml'}
  - {id: b, needs: a, workflow: '{{steps.a.output}}'}`)
	if n := strings.Count(got, "a success"); n != 8 || !strings.HasPrefix(got, "failed:") {
		t.Errorf("%d levels: %s", n, got)
	}
}

// What is done stays done as long as the step and what it is given are the same.
func TestWhatALaterPassRepeats(t *testing.T) {
	t.Parallel()
	const first = `
  - {id: a, run: 'echo a'}
  - {id: b, needs: a, run: 'echo {{steps.a.output}}b'}
  - {id: c, needs: b, run: 'test -e allowed && echo {{steps.b.output}}c'}`
	const done = "a success (a), b success (ab), c failure"
	for _, c := range []struct{ name, steps, want string }{
		{"nothing that is done", first, "completed: " + done + ", c success (abc)"},
		{"a step that has changed, and who is given another result", strings.Replace(first, "echo a'", "echo A'", 1),
			"completed: a success (a), a success (A), b success (ab), b success (Ab), c failure, c success (Abc)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			if got := s.plays(first); got != "failed: "+done {
				t.Fatalf("got %s", got)
			}
			s.must(os.WriteFile(filepath.Join(s.dir, "root", "allowed"), nil, 0o600))
			if got := s.resumes(c.steps, loop.Event{Kind: loop.Resumed}); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAnAnswerIsTheStepsOutput(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	const steps = `
  - {id: a, ask: 'which one?'}
  - {id: b, needs: a, run: 'echo {{steps.a.output}}'}`
	if got := s.plays(steps); got != "pending: a asking" {
		t.Fatalf("got %s", got)
	}
	if got := s.resumes(steps, loop.Event{Kind: loop.Answered, Text: "blue"}); got != "completed: a success (blue), b success (blue)" {
		t.Errorf("got %s", got)
	}
}

func TestStepsOfAgents(t *testing.T) {
	t.Parallel()
	const one = `
  - {id: a, prompt: 'make it', retry: {max: 1, backoff: none}}
  - {id: b, needs: a, prompt: 'look at {{steps.a.output}}'}`
	for _, c := range []struct {
		name, steps, agent, want string // no steps are those above
		change                   func(*loop.Policy)
	}{
		{name: "an agent's last words are its output", agent: `
  - {expect_prompt: make it, say: made}
  - {expect_prompt: look at made, say: seen}`,
			want: "completed: a success (made), b success (seen)"},
		{name: "an agent is told what failed before", agent: `
  - [{say: cannot find the door}, {exit: 1}]
  - {expect_prompt: [make it, 'This was tried before, and failed'], say: made}
  - {say: seen}`,
			want: "completed: a failure, a success (made), b success (seen)"},
		{name: "an agent is told what was found, item by item", steps: `
  - {id: a, prompt: 'make it', verify: ['echo "a.go:3:1: undefined: door"; exit 1'], retry: {max: 1, backoff: none}}`, agent: `
  - {say: made}
  - {expect_prompt: ['- a.go:3: undefined: door'], say: made again}`,
			want: "failed: a failure (made), a failure (made again)"},
		{name: "an agent that asks leaves the step to a person", agent: `
  - {say: "<promise>PENDING: which door?</promise>"}`,
			want: "pending: a asking (<promise>PENDING: which door?</promise>)"},
		{name: "agents share the money of the iteration", agent: `
  - [{say: made}, {usage: {input: 1, output: 1, cost: 0.5}}]
  - {say: seen}`,
			want:   "timeout: a success (made), b failure",
			change: func(p *loop.Policy) { p.MaxCost, p.MaxIterationCost = 500_000, 500_000 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			s.agent = c.agent
			if c.change != nil {
				c.change(&s.policy)
			}
			if got := s.plays(cmp.Or(c.steps, one)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

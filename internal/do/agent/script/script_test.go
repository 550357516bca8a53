package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// TestMain lets the test binary be the scripted agent.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		os.Exit(Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}
	os.Exit(m.Run())
}

// stage is a scenario with a folder to work in and a folder for its state.
type stage struct {
	t                *testing.T
	dir, file, state string
	env              []string
	prompt           string
}

func newStage(t *testing.T, scenario string) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir(), state: t.TempDir(), prompt: "the prompt\n"}
	s.file = filepath.Join(t.TempDir(), "scenario.yaml")
	if err := os.WriteFile(s.file, []byte(scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stage) command() *exec.Cmd {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	s.t.Cleanup(cancel)
	prompt := filepath.Join(s.t.TempDir(), "prompt.md")
	if err := os.WriteFile(prompt, []byte(s.prompt), 0o600); err != nil {
		s.t.Fatal(err)
	}
	start, err := Adapter{Executable: os.Executable}.Start(agent.Invocation{
		PromptFile: prompt, Dir: s.dir, StateDir: s.state, Command: []string{s.file}, Env: s.env})
	if err != nil {
		s.t.Fatal(err)
	}
	stdin, err := os.Open(start.Stdin)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { stdin.Close() })
	c := exec.CommandContext(ctx, start.Args[0], start.Args[1:]...)
	// The race detector would wait a second at the end of every agent.
	c.Dir, c.Env, c.Stdin = s.dir, append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), start.Env...), stdin
	return c
}

// played is what one start of the agent came to.
type played struct {
	outcome        agent.Outcome
	code           int
	stdout, stderr string
}

func (s *stage) play() played {
	s.t.Helper()
	c := s.command()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return played{collect(out.Bytes()), c.ProcessState.ExitCode(), out.String(), errs.String()}
}

func collect(stream []byte) agent.Outcome {
	p, c := NewParser(), agent.NewCollector()
	lines := agent.NewLines(0, func(b []byte, cut bool) { p.Line(b, cut, c.Add) })
	fmt.Fprintf(lines, "%s", stream)
	lines.Flush()
	p.Close(c.Add)
	return c.Outcome()
}

func (s *stage) read(path string) string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, path))
	if err != nil {
		s.t.Error(err)
	}
	return string(b)
}

func TestTurns(t *testing.T) {
	t.Parallel()
	s := newStage(t, `
name: turns
turns:
  - say: one
  - say: one
  - - say: two
    - say: [three, four]
`)
	for i, want := range []string{"one", "one", "two\nthree\nfour", "two\nthree\nfour"} {
		got := s.play()
		if got.code != 0 || got.outcome.Message != want || got.outcome.Terminal != loop.TerminalOK {
			t.Errorf("turn %d is %+v", i+1, got)
		}
	}
	s.env = []string{"PAWL_RUN=another"}
	if got := s.play(); got.outcome.Message != "one" {
		t.Errorf("another run starts with %q", got.outcome.Message)
	}
}

func TestTurnWithoutState(t *testing.T) {
	t.Parallel()
	s := newStage(t, "turns: [{say: one}, {say: two}]")
	s.state = ""
	for iteration, want := range map[string]string{"": "one", "2": "two", "9": "two", "x": "one"} {
		s.env = []string{"PAWL_ITERATION=" + iteration}
		if got := s.play(); got.outcome.Message != want {
			t.Errorf("in iteration %q it says %q", iteration, got.outcome.Message)
		}
	}
}

func TestCounterIsAtomic(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "n")
	const n = 50
	var mu sync.Mutex
	seen := map[int]bool{}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			v, err := incrementFile(path)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || seen[v] {
				t.Errorf("got %d twice, or %v", v, err)
			}
			seen[v] = true
		})
	}
	all.Wait()
	if b, err := os.ReadFile(path); err != nil || string(b) != strconv.Itoa(n) {
		t.Errorf("the counter is %q, %v", b, err)
	}
}

func TestWork(t *testing.T) {
	t.Parallel()
	s := newStage(t, `
turns:
  - write: {path: sub/a.sh, content: "echo old", mode: "755"}
    edit: {path: sub/a.sh, old: old, new: new}
    append: {path: sub/a.sh, content: " # more"}
    run: ./sub/a.sh > out.txt
    tool: {name: look, command: cat, files: [a, b]}
    usage: {input: 10, output: 5, cache_read: 3, cache_write: 2, cost: 0.25}
  - - usage: {input: 1, cost: 0.25}
    - usage: {output: 1, cost: 0.50, calls: 3}
    - delete: [sub, nothing]
    - run: exit 3
`)
	got := s.play().outcome
	if s.read("out.txt") != "new\n" || s.read("sub/a.sh") != "echo new # more" {
		t.Errorf("the files are %q and %q", s.read("out.txt"), s.read("sub/a.sh"))
	}
	if got.Tools != 5 || got.Calls != 1 || got.Usage != (agent.Usage{Input: 10, Output: 5, CacheRead: 3, CacheWrite: 2}) || got.Cost != 250_000 {
		t.Errorf("outcome is %+v", got)
	}
	second := s.play()
	if second.code != 0 || second.outcome.Calls != 4 || second.outcome.Cost != 750_000 {
		t.Errorf("the second turn is %+v", second)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "sub")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestScenes(t *testing.T) {
	t.Parallel()
	s := newStage(t, `
turns: [{say: else}]
scenes:
  - {when: {prompt: red, case: c1}, turns: [{say: red c1}]}
  - {when: {prompt: red}, turns: [{say: red 1}, {say: red 2}]}
`)
	say := func(prompt, id, want string) {
		t.Helper()
		s.prompt, s.env = prompt, []string{"PAWL_CASE=" + id}
		if got := s.play().outcome.Message; got != want {
			t.Errorf("%s %s says %q, want %q", prompt, id, got, want)
		}
	}
	say("a red one", "c1", "red c1")
	say("a red one", "c2", "red 1")
	say("a blue one", "c2", "else")
	say("a red one", "c2", "red 2")
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, steps string
		code        int
		terminal    loop.Terminal
		status      int
		kind, errs  string
	}{
		{"exit", "exit: 3", 3, loop.TerminalFailed, 0, "", ""},
		{"exit without an end", "{no_end: true, exit: 3}", 3, loop.TerminalMissing, 0, "", ""},
		{"cut off", "{say: half, no_end: true}", 0, loop.TerminalMissing, 0, "", ""},
		{"rate limit", "rate_limit: {retry_after: 2s}", 1, loop.TerminalFailed, 429, "rate_limit", ""},
		{"api error", "api_error: {status: 401, type: authentication_error, message: bad key}", 1, loop.TerminalFailed, 401, "authentication_error", ""},
		{"a prompt that lacks it", "expect_prompt: [prompt, nowhere]", 97, loop.TerminalMissing, 0, "", "turn 1, line 2: expect_prompt: the prompt does not have the text \"nowhere\""},
		{"an edit that does not fit", "edit: {path: no, old: a, new: b}", 97, loop.TerminalMissing, 0, "", "no such file"},
		{"a command that must work", "run: {command: echo why; exit 4, must: true}", 97, loop.TerminalMissing, 0, "", "why"},
		{"what comes after the end is not done", "{exit: 0, edit: {path: no, old: a, new: b}}", 0, loop.TerminalOK, 0, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if !strings.HasPrefix(test.steps, "{") {
				test.steps = "{" + test.steps + "}"
			}
			got := newStage(t, "turns:\n  - "+test.steps+"\n").play()
			if got.code != test.code || got.outcome.Terminal != test.terminal || !strings.Contains(got.stderr, test.errs) {
				t.Errorf("got %+v", got)
			}
			errs := got.outcome.Errors
			if (test.kind != "") != (len(errs) == 1) || len(errs) == 1 && (errs[0].Status != test.status || errs[0].Type != test.kind) {
				t.Errorf("errors are %+v", errs)
			}
		})
	}
}

func TestRateLimitTimes(t *testing.T) {
	t.Parallel()
	before := time.Now()
	got := newStage(t, "turns: [{rate_limit: {retry_after: 90s, reset_in: 3h, type: usage_limit}}]").play().outcome
	if len(got.Errors) != 1 {
		t.Fatalf("outcome is %+v", got)
	}
	e := got.Errors[0]
	if e.RetryAfter != 90*time.Second || e.ResetAt.Before(before.Add(3*time.Hour-time.Second)) || e.Type != "usage_limit" {
		t.Errorf("error is %+v", e)
	}
}

func TestRawOutput(t *testing.T) {
	t.Parallel()
	got := newStage(t, `
turns:
  - raw: "head -c 1000000 /dev/zero; echo; echo aside >&2"
    say: end
  - raw: cat
  - raw: exit 4
`)
	first := got.play()
	if len(first.stdout) < 1_000_000 || first.stderr != "aside\n" || first.outcome.Message != "end" || first.outcome.Unknown != 1 {
		t.Errorf("%d bytes, %d unknown, message %q", len(first.stdout), first.outcome.Unknown, first.outcome.Message)
	}
	if second := got.play(); !strings.Contains(second.stdout, "\nthe prompt\n") || second.outcome.Message != "" {
		t.Errorf("the echo is %q", second.stdout)
	}
	if third := got.play(); third.code != 97 || !strings.Contains(third.stderr, "exit status 4") {
		t.Errorf("%+v", third)
	}
}

// One that ignores TERM is still there after it, and only KILL ends it.
func TestHang(t *testing.T) {
	t.Parallel()
	c := newStage(t, `
turns:
  - ignore_term: true
    raw: kill -TERM $PPID; echo " ready"
    hang: true
`).command()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c.Stdout = w
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	readUntil(t, r, " ready")
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it says that it was killed
	if st, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || st.Signal() != syscall.SIGKILL {
		t.Errorf("it ended by %v", c.ProcessState)
	}
}

func readUntil(t *testing.T, r io.Reader, want string) {
	t.Helper()
	var all []byte
	b := make([]byte, 4096)
	for !bytes.Contains(all, []byte(want)) {
		n, err := r.Read(b)
		if err != nil {
			t.Fatalf("%v after %q", err, all)
		}
		all = append(all, b[:n]...)
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	if code := Main(nil, nil, io.Discard, &errs, nil); code != 2 || !strings.Contains(errs.String(), "usage") {
		t.Errorf("exit %d, %s", code, errs.String())
	}
	errs.Reset()
	if code := Main([]string{filepath.Join(t.TempDir(), "no.yaml")}, nil, io.Discard, &errs, nil); code != 2 || !strings.Contains(errs.String(), "cannot read the scenario") {
		t.Errorf("exit %d, %s", code, errs.String())
	}
	if _, err := (Adapter{}).Start(agent.Invocation{}); err == nil || !strings.Contains(err.Error(), "agents.script.command") {
		t.Errorf("error is %v", err)
	}
}

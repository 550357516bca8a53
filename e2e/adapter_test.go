//go:build e2e

package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/agents"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/modelserver"
)

// These tests hold the adapter alone against the program: its command line
// and what the parser makes of a live stream.

// session is one run of the program.
type session struct {
	dir    string
	prompt string
	model  *modelserver.Server
	// watch sees every event; the program is ended by TERM when it returns true.
	watch func(agent.Event) bool
	cap   loop.MicroUSD
}

func (s session) run(t *testing.T) (agent.Outcome, int, string) {
	t.Helper()
	program := claudeBinary(t)
	if s.prompt == "" {
		s.prompt = "Write the file."
	}
	file := filepath.Join(t.TempDir(), "prompt.md")
	if err := os.WriteFile(file, []byte(s.prompt), 0o600); err != nil {
		t.Fatal(err)
	}
	env := world(t, s.model)
	adapter, _ := agents.Lookup("claude")
	start, err := adapter.Start(agent.Invocation{
		PromptFile: file, PromptSize: int64(len(s.prompt)), Dir: s.dir, StateDir: t.TempDir(),
		Model: "claude-sonnet-4-5", Safety: "normal", Command: []string{program}, Env: env, MaxCost: s.cap,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.play(t, start)
}

func (s session) play(t *testing.T, start agent.Start) (agent.Outcome, int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	stdin, err := os.Open(start.Stdin)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	c := exec.CommandContext(ctx, start.Args[0], start.Args[1:]...)
	c.Dir, c.Env, c.Stdin = s.dir, start.Env, stdin
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var stderr strings.Builder
	c.Stderr = &stderr
	parser, err := agents.Parser(start.Parser, agents.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	collector := agent.NewCollector()
	take := func(e agent.Event) {
		collector.Add(e)
		if s.watch != nil && s.watch(e) {
			_ = c.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		}
	}
	lines := agent.NewLines(0, func(b []byte, cut bool) { parser.Line(b, cut, take) })
	c.Stdout = lines
	err = c.Run()
	lines.Flush()
	parser.Close(take)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("the program did not end; stderr: %s", stderr.String())
	}
	return collector.Outcome(), c.ProcessState.ExitCode(), stderr.String()
}

// last is the last error of a run.
func last(t *testing.T, o agent.Outcome) (status int, kind, message string) {
	t.Helper()
	if len(o.Errors) == 0 {
		t.Fatalf("the run has no error: %+v", o)
	}
	e := o.Errors[len(o.Errors)-1]
	return e.Status, e.Type, e.Message
}

func TestAdapterEditsAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "hello.txt")
	model := serve(t, modelserver.Scenario{Replies: []modelserver.Reply{
		{Text: "I write the file.", Tools: []modelserver.Tool{edit(target, "hello\n")}, Usage: modelserver.Usage{Input: 1200, Output: 40, CacheRead: 300, CacheWrite: 200}},
		{Text: complete, Usage: modelserver.Usage{Input: 1300, Output: 20}},
	}})
	got, code, stderr := session{dir: dir, model: model, prompt: "Write hello.txt, please."}.run(t)
	if code != 0 || got.Terminal != loop.TerminalOK || got.Message != complete {
		t.Fatalf("exit %d, outcome %+v, stderr %s", code, got, stderr)
	}
	if b, err := os.ReadFile(target); err != nil || string(b) != "hello\n" {
		t.Errorf("the file is %q, %v", b, err)
	}
	want := agent.Usage{Input: 2500, Output: 60, CacheRead: 300, CacheWrite: 200}
	if got.Usage != want || got.Calls != 2 || got.Tools != 1 || got.CostSource != agent.CostReported {
		t.Errorf("usage %+v, calls %d, tools %d, cost %s", got.Usage, got.Calls, got.Tools, got.CostSource)
	}
	// 2500 at 3, 60 at 15, 300 at 0.30 and 200 at 3.75 dollars a million.
	if got.Cost != 7500+900+90+750 {
		t.Errorf("cost is %d", got.Cost)
	}
	if !strings.Contains(model.Calls()[0].Prompt(), "Write hello.txt, please.") {
		t.Error("the model did not get the prompt")
	}
}

func TestAdapterGetsOverARateLimit(t *testing.T) {
	t.Parallel()
	model := serve(t, modelserver.Scenario{Replies: []modelserver.Reply{rateLimited, {Text: complete}}})
	got, code, _ := session{dir: t.TempDir(), model: model}.run(t)
	if code != 0 || got.Terminal != loop.TerminalOK || got.Retries != 1 || got.Calls != 2 || len(got.Errors) != 0 {
		t.Errorf("exit %d, outcome %+v", code, got)
	}
}

func TestAdapterGivesUp(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		reply  modelserver.Reply
		status int
		kinds  []string
	}{
		{"rate limit", rateLimited, 429, []string{"rate_limit"}},
		{"bad key", badKey, 401, []string{"authentication_failed"}},
		{"overloaded", overloaded, 529, []string{"server_error", "unknown", "overloaded"}},
		{"context", modelserver.Reply{Status: 400, Type: "invalid_request_error", Message: "prompt is too long: 210000 tokens > 200000 maximum"},
			400, []string{"prompt_too_long", "invalid_request"}},
		{"page of a proxy", modelserver.Reply{Body: "<html>Log in</html>", BodyType: "text/html"}, 0, []string{"unknown"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			model := serve(t, modelserver.Scenario{Replies: []modelserver.Reply{test.reply}})
			got, code, stderr := session{dir: t.TempDir(), model: model}.run(t)
			if code != 1 || got.Terminal != loop.TerminalFailed {
				t.Fatalf("exit %d, outcome %+v, stderr %s", code, got, stderr)
			}
			status, kind, message := last(t, got)
			if status != test.status || !strings.Contains(strings.Join(test.kinds, " "), kind) || message == "" {
				t.Errorf("error is %d %q %q", status, kind, message)
			}
			if calls := len(model.Calls()); calls > 5 {
				t.Errorf("the program made %d calls", calls)
			}
		})
	}
}

func TestAdapterIsEndedWhileItHangs(t *testing.T) {
	t.Parallel()
	model := serve(t, modelserver.Scenario{Replies: []modelserver.Reply{{Hang: true}}})
	watch := func(e agent.Event) bool { return e.Kind == agent.Session }
	got, code, _ := session{dir: t.TempDir(), model: model, watch: watch}.run(t)
	if code != 143 || got.Terminal != loop.TerminalMissing || got.Message != "" {
		t.Errorf("exit %d, outcome %+v", code, got)
	}
}

func TestAdapterBudget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model := serve(t, modelserver.Scenario{Replies: []modelserver.Reply{
		{Text: "More.", Tools: []modelserver.Tool{bash("echo again")}, Usage: expensive},
	}})
	got, code, _ := session{dir: dir, model: model, cap: 1_000_000}.run(t)
	if _, kind, _ := last(t, got); code != 1 || kind != "error_max_budget_usd" {
		t.Fatalf("exit %d, outcome %+v", code, got)
	}
	// One call is 0.45 dollars: the third one crosses the limit of one.
	if got.Cost != 1_350_000 || got.Calls != 3 {
		t.Errorf("cost %d after %d calls", got.Cost, got.Calls)
	}
}

func TestAdapterBrokenStream(t *testing.T) {
	t.Parallel()
	model := serve(t, modelserver.Scenario{Replies: []modelserver.Reply{
		{Text: "this stream breaks", Cut: 3},
		{Text: complete},
	}})
	got, code, _ := session{dir: t.TempDir(), model: model}.run(t)
	if code != 0 || got.Terminal != loop.TerminalOK || !strings.HasSuffix(got.Message, complete) {
		t.Errorf("exit %d, outcome %+v", code, got)
	}
}

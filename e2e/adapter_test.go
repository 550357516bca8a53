//go:build e2e

package e2e

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// These tests hold the adapter alone against the program: its command line
// and what the parser makes of a live stream.

// session is one run of the program.
type session struct {
	program
	dir    string
	prompt string
	server *modelserver.Server
	// watch sees every event; the program is ended by TERM when it returns true.
	watch func(agent.Event) bool
	cap   loop.MicroUSD
	raw   io.Writer // gets the stream as it is; nil is nobody
}

func (s session) run(t *testing.T) (agent.Outcome, int, string) {
	t.Helper()
	binary := installed(t, s.name)
	if s.prompt == "" {
		s.prompt = "Write the file."
	}
	file := filepath.Join(t.TempDir(), "prompt.md")
	if err := os.WriteFile(file, []byte(s.prompt), 0o600); err != nil {
		t.Fatal(err)
	}
	env := world(t, s.server)
	for name, value := range s.setUp(t, t.TempDir(), s.server.URL()) {
		env = append(env, name+"="+value)
	}
	adapter, _ := agents.Lookup(s.name)
	start, err := adapter.Start(agent.Invocation{
		PromptFile: file, PromptSize: int64(len(s.prompt)), Dir: s.dir, StateDir: t.TempDir(),
		Model: s.model, Safety: "normal", Command: []string{binary}, Env: env, MaxCost: s.cap,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range start.Files {
		keep(t, f.Path, f.Content)
	}
	got, code, said := s.play(t, start)
	got.Errors = agent.WithExit(adapter, code, got.Errors)
	return got, code, said
}

// stdin is what the program reads, until done is called: its prompt, or for one that
// takes messages a pipe that begins with it.
func (s session) stdin(t *testing.T, start agent.Start) (in *os.File, done func()) {
	t.Helper()
	if !start.Talks {
		in, err := os.Open(start.Stdin)
		if err != nil {
			t.Fatal(err)
		}
		return in, sync.OnceFunc(func() { _ = in.Close() })
	}
	in, out, err := os.Pipe()
	if err == nil {
		_, err = out.Write(agent.UserLine(s.prompt)) // shorter than what a pipe holds
	}
	if err != nil {
		t.Fatal(err)
	}
	return in, sync.OnceFunc(func() { _, _ = in.Close(), out.Close() })
}

func (s session) play(t *testing.T, start agent.Start) (agent.Outcome, int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	stdin, done := s.stdin(t, start)
	defer done()
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
		if e.Kind == agent.End {
			done()
		}
		if s.watch != nil && s.watch(e) {
			_ = c.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		}
	}
	lines := agent.NewLines(0, func(b []byte, cut bool) { parser.Line(b, cut, take) })
	c.Stdout = lines
	if s.raw != nil {
		c.Stdout = io.MultiWriter(lines, s.raw)
	}
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

// Each program does its work, and what it did and used is read.
func TestAdapterEditsAFile(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			target := filepath.Join(dir, "hello.txt")
			server := serve(t, modelserver.Scenario{Asides: true, Replies: []modelserver.Reply{
				{Text: "I write the file.", Tools: []modelserver.Tool{p.write(target, "hello\n")}, Usage: modelserver.Usage{Input: 1200, Output: 40, CacheRead: 300}},
				{Text: complete, Usage: modelserver.Usage{Input: 1300, Output: 20}},
			}})
			got, code, stderr := session{program: p, dir: dir, server: server, prompt: "Write hello.txt, please."}.run(t)
			if code != 0 || got.Terminal != loop.TerminalOK || got.Message != complete || len(got.Errors) != 0 {
				t.Fatalf("exit %d, outcome %+v, stderr %s", code, got, stderr)
			}
			if b, err := os.ReadFile(target); err != nil || string(b) != "hello\n" {
				t.Errorf("the file is %q, %v", b, err)
			}
			want := agent.Usage{Input: 2500, Output: 60, CacheRead: 300}
			if got.Usage != want || got.Calls != 2 || got.Tools != 1 || got.Session == "" {
				t.Errorf("usage %+v, calls %d, tools %d, session %q", got.Usage, got.Calls, got.Tools, got.Session)
			}
			if source := map[bool]string{true: agent.CostReported, false: agent.CostNone}[p.cost > 0]; got.CostSource != source || got.Cost != p.cost {
				t.Errorf("cost is %s, %s", got.Cost, got.CostSource)
			}
			if !strings.Contains(server.Calls()[0].Prompt(), "Write hello.txt, please.") {
				t.Error("the model did not get the prompt")
			}
		})
	}
}

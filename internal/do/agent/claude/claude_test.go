package claude

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

func TestStart(t *testing.T) {
	t.Parallel()
	got, err := adapter(nil).Start(agent.Invocation{
		PromptFile: "/run/prompt.md", PromptSize: 5, StateDir: "/state", Model: "claude-opus-4-5", MaxCost: 1_250_000,
		Env: []string{"FOO=bar"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "claude -p --output-format stream-json --verbose --dangerously-skip-permissions --model claude-opus-4-5 --max-budget-usd 1.25"
	if strings.Join(got.Args, " ") != want {
		t.Errorf("args are %q", got.Args)
	}
	if got.Stdin != "/run/prompt.md" || got.Parser != "claude" || got.Grace <= 0 {
		t.Errorf("start is %+v", got)
	}
	for _, kv := range []string{"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_MAX_RETRIES=2", "FOO=bar"} {
		if !slices.Contains(got.Env, kv) {
			t.Errorf("%s is not in %q", kv, got.Env)
		}
	}
	if slices.Contains(got.Env, "IS_SANDBOX=1") || slices.Contains(got.Env, "CLAUDE_CONFIG_DIR=/state") {
		t.Errorf("env is %q", got.Env)
	}
	if !slices.Contains(got.Unset, "CLAUDECODE") {
		t.Errorf("unset is %q", got.Unset)
	}
}

// A reviewer changes nothing, but may run tests.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	got, err := adapter(nil).Start(agent.Invocation{PromptFile: "/run/prompt.md", ReadOnly: true})
	if args := strings.Join(got.Args, " "); err != nil || !strings.Contains(args, "--disallowedTools Edit,MultiEdit,Write,NotebookEdit") {
		t.Errorf("args are %q, %v", got.Args, err)
	}
}

func TestUsersCommand(t *testing.T) {
	t.Parallel()
	command := []string{"/opt/claude", "--mcp-config", "x.json"}
	got, err := adapter(nil).Start(agent.Invocation{Command: command})
	if err != nil || !slices.Equal(got.Args[:4], append(command, "-p")) {
		t.Errorf("args are %q, %v", got.Args, err)
	}
}

// The state is pawl's only where nothing of the user's own is needed.
func TestStateFolder(t *testing.T) {
	t.Parallel()
	key := func(name string) string {
		return map[string]string{"ANTHROPIC_API_KEY": "k"}[name]
	}
	for _, test := range []struct {
		name    string
		adapter program.Adapter
		in      agent.Invocation
		want    bool
	}{
		{"a login", adapter(nil), agent.Invocation{StateDir: "/state"}, false},
		{"a key", adapter(key), agent.Invocation{StateDir: "/state"}, true},
		{"a key in the configuration", adapter(nil), agent.Invocation{StateDir: "/state", Env: []string{"ANTHROPIC_API_KEY=k"}}, true},
		{"a key taken away", adapter(key), agent.Invocation{StateDir: "/state", Env: []string{"ANTHROPIC_API_KEY="}}, false},
		{"isolate", adapter(nil), agent.Invocation{StateDir: "/state", Isolate: true}, true},
		{"no folder", adapter(key), agent.Invocation{}, false},
	} {
		got, err := test.adapter.Start(test.in)
		if err != nil || slices.Contains(got.Env, "CLAUDE_CONFIG_DIR=/state") != test.want {
			t.Errorf("%s: env is %q, %v", test.name, got.Env, err)
		}
	}
}

func TestRoot(t *testing.T) {
	t.Parallel()
	got, err := (program.Adapter{Program: Program(true)}).Start(agent.Invocation{})
	if err != nil || !slices.Contains(got.Env, "IS_SANDBOX=1") {
		t.Errorf("env is %q, %v", got.Env, err)
	}
}

func TestPromptTooLong(t *testing.T) {
	t.Parallel()
	_, err := adapter(nil).Start(agent.Invocation{PromptSize: Program(false).Limit + 1})
	if err == nil || !strings.Contains(err.Error(), "shorten the prompt") {
		t.Errorf("error is %v", err)
	}
	if _, err := adapter(nil).Start(agent.Invocation{PromptSize: Program(false).Limit}); err != nil {
		t.Error(err)
	}
}

func adapter(getenv func(string) string) program.Adapter {
	return program.Adapter{Program: Program(false), Getenv: getenv}
}

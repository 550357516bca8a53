package agents

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

// A command that prints a known program's format is that program behind another
// name: it has pawl's flags, once, and is pointed at the gateway.
func TestCustomRunsAKnownProgram(t *testing.T) {
	t.Parallel()
	const key = "ANTHROPIC_API_KEY"
	for _, test := range []struct {
		name, output, command, want string
		routes                      int
	}{
		{"claude", "claude", "./wrapper", "./wrapper -p --output-format stream-json --verbose --dangerously-skip-permissions --model m", 1},
		{"mine", "claude", "nice claude", "nice claude -p --output-format stream-json --verbose --dangerously-skip-permissions --model m", 1},
		{"mine", "claude", "docker run -p 80:80 image claude", "docker run -p 80:80 image claude -p --output-format stream-json --verbose" +
			" --dangerously-skip-permissions --model m", 1},
		{"mine", "claude", "claude -p --verbose", "claude -p --verbose", 1},
		{"mine", "claude", "./wrapper --ask {prompt_file}", "./wrapper --ask /prompt", 1},
		{"kilo", "opencode", "./wrapper", "./wrapper run --format json --auto --model m", 1},
		{"mine", "codex", "codex exec --json", "codex exec --json", 0},
		{"mine", "text", "claude -p", "claude -p", 0},
	} {
		a, err := Custom(test.name, strings.Fields(test.command), test.output)
		if err != nil || a.About().Name != test.name {
			t.Errorf("%s: %v, %v", test.command, a, err)
			continue
		}
		var routes []agent.Route
		if p, ok := a.(agent.Pointed); ok {
			routes, _ = p.Routes(false, func(name string) string { return map[string]string{key: "secret"}[name] })
		}
		if len(routes) != test.routes {
			t.Errorf("%s has the routes %+v", test.command, routes)
		}
		got := start(t, a, agent.Invocation{PromptFile: "/prompt", Command: strings.Fields(test.command), Model: "m", Routes: routes})
		if line := strings.Join(got.Args, " "); line != test.want {
			t.Errorf("%s starts\n%s, want\n%s", test.command, line, test.want)
		}
		if test.routes > 0 && !slices.Contains(got.Env, key+"="+agent.GatewayToken) {
			t.Errorf("%s: the environment is %q", test.command, got.Env)
		}
	}
}

// Over ACP the command tells which program it is.
func TestCustomOverACPIsPointed(t *testing.T) {
	t.Parallel()
	a, err := Custom("mine", []string{"npx", "-y", "@agentclientprotocol/claude-agent-acp@0.100.0"}, "acp")
	if err != nil {
		t.Fatal(err)
	}
	p, ok := a.(agent.Pointed)
	if !ok {
		t.Fatal("it cannot be pointed")
	}
	routes, _ := p.Routes(false, func(name string) string { return map[string]string{"ANTHROPIC_API_KEY": "secret"}[name] })
	got := start(t, a, agent.Invocation{Routes: routes})
	if !slices.Contains(got.Env, "ANTHROPIC_BASE_URL="+agent.GatewayAddress+"/anthropic") || got.Program != "npx" {
		t.Errorf("start is %+v", got)
	}
	if a, _ = Custom("mine", []string{"prog"}, "acp"); func() bool { _, can := a.(agent.Pointed); return can }() {
		t.Error("a program that nobody knows can be pointed")
	}
}

// A program's folders are found by what the command runs, whatever the agent is called.
func TestProgramOfACommand(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"/opt/bin/codex exec": "codex", "npx -y @zed-industries/codex-acp@0.16.0": "codex", "pawl bridge -- claude-agent-acp": "claude",
		"claude-code-acp": "claude", "/x/cursor-agent": "cursor", "kiro-cli chat": "kiro", "gemini --acp": "gemini", "./agent.sh": "",
	} {
		if got := Program("mine", "acp", strings.Fields(command)); got != want {
			t.Errorf("%s is %q, want %q", command, got, want)
		}
	}
	if got := Program("claude", "codex", []string{"x"}); got != "claude" {
		t.Errorf("the name does not tell: %q", got)
	}
	if got := Program("mine", "codex", []string{"x"}); got != "codex" {
		t.Errorf("the format does not tell: %q", got)
	}
}

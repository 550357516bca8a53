package agents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

// The whole command line of each program, for the level normal and for
// paranoid where it differs, in a folder /state with a prompt in /prompt.
func TestCommandLines(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("COPILOT_GITHUB_TOKEN", "")
	t.Setenv("COPILOT_PROVIDER_API_KEY", "")
	t.Setenv("PATH", t.TempDir())
	lines := map[string]struct{ normal, paranoid, stdin, isolated string }{
		"aider": {normal: "aider --no-stream --no-pretty --no-fancy-input --no-auto-commits --no-dirty-commits --no-gitignore --no-suggest-shell-commands" +
			" --no-check-update --no-show-release-notes --no-analytics --yes-always --chat-history-file /state/chat.history.md" +
			" --input-history-file /state/input.history --model m --message-file PROMPT"},
		"cline":   {normal: "cline --json --auto-approve true -m m do it", isolated: "--data-dir /state"},
		"copilot": {"copilot --output-format json --no-auto-update --no-ask-user --disable-client-telemetry --allow-all --model m", "--allow-all-tools", "PROMPT", "COPILOT_HOME=/state"},
		"crush":   {"crush run -q --data-dir /state -m m", "", "PROMPT", "CRUSH_GLOBAL_CONFIG=/state"},
		"cursor":  {normal: "cursor-agent -p --output-format stream-json --trust --force --model m do it"},
		"droid":   {"droid exec --output-format stream-json --skip-permissions-unsafe -m m", "--auto medium", "PROMPT", "HOME=/state"},
		"goose":   {"goose run -i - --no-session --output-format stream-json --model m", "", "PROMPT", "GOOSE_PATH_ROOT=/state"},
		"kimi":    {normal: "kimi --output-format stream-json --model m -p do it", isolated: "KIMI_CODE_HOME=/state"},
		"kiro":    {normal: "kiro-cli chat --no-interactive --trust-all-tools --model m", stdin: "PROMPT"},
		"qwen":    {"qwen --output-format stream-json --approval-mode yolo --model m", "", "PROMPT", "QWEN_HOME=/state"},
	}
	elsewhere := []string{"amp", "claude", "codex", "gemini", "kilo", "opencode", "script"} // below, and in their own tests
	for _, name := range Names() {
		if _, ok := lines[name]; !ok && !slices.Contains(elsewhere, name) {
			t.Errorf("the command line of %s is not tested", name)
		}
	}
	for name, want := range lines {
		t.Run(name, func(t *testing.T) {
			prompt := filepath.Join(t.TempDir(), "prompt.md")
			if err := os.WriteFile(prompt, []byte("do it"), 0o600); err != nil {
				t.Fatal(err)
			}
			a, known := Lookup(name)
			if !known {
				t.Fatal("no such agent")
			}
			in := agent.Invocation{PromptFile: prompt, PromptSize: 5, StateDir: "/state", Model: "m", Safety: "normal"}
			got := start(t, a, in)
			if line := strings.ReplaceAll(strings.Join(got.Args, " "), prompt, "PROMPT"); line != want.normal {
				t.Errorf("normal: %s", line)
			}
			if stdin := strings.ReplaceAll(got.Stdin, prompt, "PROMPT"); stdin != want.stdin {
				t.Errorf("stdin is %q, want %q", stdin, want.stdin)
			}
			if got.Grace < 5*time.Second {
				t.Errorf("grace is %v", got.Grace)
			}
			in.Safety = "paranoid"
			if line := strings.Join(start(t, a, in).Args, " "); !strings.Contains(line, want.paranoid) {
				t.Errorf("paranoid: %s", line)
			}
			if all := strings.Join(append(got.Args, got.Env...), " "); want.isolated != "" && strings.Contains(all, want.isolated) {
				t.Errorf("the user's login is not used: %s", all)
			}
			in.Isolate = true
			got = start(t, a, in)
			if all := strings.Join(append(got.Args, got.Env...), " "); !strings.Contains(all, want.isolated) {
				t.Errorf("isolated: %s", all)
			}
		})
	}
}

func start(t *testing.T, a agent.Adapter, in agent.Invocation) agent.Start {
	t.Helper()
	got, err := a.Start(in)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Amp has no flag for a model.
func TestAmp(t *testing.T) {
	t.Parallel()
	a, _ := Lookup("amp")
	got := start(t, a, agent.Invocation{PromptFile: "/prompt"})
	if strings.Join(got.Args, " ") != "amp -x --stream-json --dangerously-allow-all" || got.Stdin != "/prompt" {
		t.Errorf("start is %+v", got)
	}
	if _, err := a.Start(agent.Invocation{Model: "m"}); err == nil {
		t.Error("a model is taken")
	}
}

// What a program cuts off in silence is refused before its start.
func TestPromptsOverTheLimit(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]int64{"qwen": 8 << 20, "cline": 128<<10 - 2, "cursor": 128<<10 - 2} {
		a, _ := Lookup(name)
		_, err := a.Start(agent.Invocation{PromptFile: os.DevNull, PromptSize: most + 1})
		if err == nil || !strings.Contains(err.Error(), "shorten the prompt") {
			t.Errorf("%s: error is %v", name, err)
		}
		if _, err := a.Start(agent.Invocation{PromptFile: os.DevNull, PromptSize: most}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if a.About().PromptLimit != most {
			t.Errorf("%s: the facts say otherwise", name)
		}
	}
}

// Exit statuses of a program's own say what no stream does.
func TestExitsOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		code int
		kind string
	}{{"qwen", 53, "max_turns"}, {"qwen", 55, "wall_timeout"}, {"qwen", 1, ""}, {"qwen", 0, ""}, {"gemini", 173, "rate_limit"}, {"droid", 53, ""}} {
		a, _ := Lookup(tt.name)
		errs := agent.WithExit(a, tt.code, nil)
		if tt.kind == "" && len(errs) != 0 || tt.kind != "" && (len(errs) != 1 || errs[0].Type != tt.kind || errs[0].Message == "") {
			t.Errorf("%s %d is %+v, want %q", tt.name, tt.code, errs, tt.kind)
		}
	}
}

// A program without a login is told from one with a login by each of its places alone.
func TestLoggedIn(t *testing.T) {
	t.Parallel()
	for _, name := range slices.DeleteFunc(Names(), func(name string) bool { return name == "script" }) {
		home := []string{"HOME=/home/me"}
		if sign, known := LoggedIn(name, "/home/me", home, func(string) bool { return false }); sign != "" || !known {
			t.Errorf("%s, not logged in: %q, %t", name, sign, known)
		}
		var places []string
		LoggedIn(name, "/home/me", home, func(path string) bool { places = append(places, path); return false })
		for _, place := range places {
			sign, _ := LoggedIn(name, "/home/me", home, func(path string) bool { return path == place })
			if sign != place || !strings.HasPrefix(place, "/home/me/.") {
				t.Errorf("%s, with %s: %q", name, place, sign)
			}
		}
		if len(places) == 0 {
			t.Errorf("%s: no place is looked at", name)
		}
	}
	env := []string{"OPENAI_API_KEY=", "ANTHROPIC_API_KEY=k"}
	never := func(string) bool { return false }
	if sign, _ := LoggedIn("claude", "/home/me", env, never); sign != "ANTHROPIC_API_KEY" {
		t.Errorf("a key is %q", sign)
	}
	env[0] = "OPENAI_API_KEY=k" // which codex reads for a provider of one's own only
	if sign, _ := LoggedIn("codex", "/home/me", []string{"CODEX_API_KEY=k"}, never); sign != "CODEX_API_KEY" {
		t.Errorf("codex is logged in by %q", sign)
	}
	if sign, _ := LoggedIn("codex", "/home/me", env, never); sign != "" {
		t.Errorf("an empty key and another's are %q", sign)
	}
}

// Where pawl isolates a program by a variable, a person may set the same: the program's
// folder is known there, before it exists too.
func TestFoldersWhereVariablesSay(t *testing.T) {
	t.Parallel()
	for name, p := range known() {
		for _, kv := range p.State.Env {
			variable, value, _ := strings.Cut(kv, "=")
			dir := strings.ReplaceAll(value, "{state}", "/elsewhere")
			getenv := func(asked string) string { return map[string]string{variable: dir}[asked] }
			home := "/home/ada"
			if variable == "HOME" {
				home = dir
			}
			moved := func(folder string) bool { return folder == dir || strings.HasPrefix(folder, dir+"/") }
			if folders := Folders(name, home, getenv); !slices.ContainsFunc(folders, moved) {
				t.Errorf("%s with %s=%s has its folders in %q", name, variable, dir, folders)
			}
		}
	}
}

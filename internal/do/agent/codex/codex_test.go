package codex

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

func TestStart(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"permissive", "normal", "paranoid", ""} {
		got, err := adapter(nil).Start(agent.Invocation{PromptFile: "/run/prompt.md", PromptSize: 5, StateDir: "/state", Model: "gpt-5", Safety: level, Env: []string{"A=1"}})
		if err != nil {
			t.Fatal(err)
		}
		want := "codex exec --json --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check --disable plugins --disable apps" +
			" -c analytics.enabled=false -c check_for_update_on_startup=false --model gpt-5 -"
		if level == "paranoid" { // the gateway refuses what it offers else
			want = strings.Replace(want, " --model", ` -c web_search="disabled" --model`, 1)
		}
		if strings.Join(got.Args, " ") != want {
			t.Errorf("%s: args are %q", level, got.Args)
		}
		if got.Stdin != "/run/prompt.md" || got.Parser != "codex" || got.Grace <= 0 || !slices.Equal(got.Env, []string{"A=1"}) {
			t.Errorf("%s: start is %+v", level, got)
		}
	}
}

// A reviewer changes nothing.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	got, err := adapter(nil).Start(agent.Invocation{PromptFile: "/run/prompt.md", ReadOnly: true})
	if args := strings.Join(got.Args, " "); err != nil || !strings.HasPrefix(args, "codex exec --json --sandbox read-only --skip-git-repo-check") || strings.Contains(args, "bypass") {
		t.Errorf("args are %q, %v", got.Args, err)
	}
}

func TestUsersCommand(t *testing.T) {
	t.Parallel()
	got, err := adapter(nil).Start(agent.Invocation{Command: []string{"/opt/codex", "--profile", "x"}})
	if err != nil || !slices.Equal(got.Args[:5], []string{"/opt/codex", "--profile", "x", "exec", "--json"}) || got.Args[len(got.Args)-1] != "-" {
		t.Errorf("args are %q, %v", got.Args, err)
	}
}

// The state is pawl's only where nothing of the user's own is needed.
func TestStateFolder(t *testing.T) {
	t.Parallel()
	key := func(name string) string { return map[string]string{"CODEX_API_KEY": "k", "OPENAI_API_KEY": "k"}[name] }
	login := func(name string) string { return map[string]string{"OPENAI_API_KEY": "k"}[name] }
	for _, test := range []struct {
		name    string
		adapter program.Adapter
		in      agent.Invocation
		want    bool
	}{
		{"a login", adapter(nil), agent.Invocation{StateDir: "/state"}, false},
		{"a key that it does not read", adapter(login), agent.Invocation{StateDir: "/state"}, false},
		{"a key", adapter(key), agent.Invocation{StateDir: "/state"}, true},
		{"a key taken away", adapter(key), agent.Invocation{StateDir: "/state", Env: []string{"CODEX_API_KEY="}}, false},
		{"isolate", adapter(nil), agent.Invocation{StateDir: "/state", Isolate: true}, true},
		{"no folder", adapter(key), agent.Invocation{Isolate: true}, false},
	} {
		got, err := test.adapter.Start(test.in)
		if err != nil || slices.Contains(got.Env, "CODEX_HOME=/state") != test.want {
			t.Errorf("%s: env is %q, %v", test.name, got.Env, err)
		}
	}
}

// limit is the longest prompt in characters.
const limit = 1 << 20

// The limit is in characters; bytes may be more.
func TestPromptLimit(t *testing.T) {
	t.Parallel()
	file := func(text string) agent.Invocation {
		path := filepath.Join(t.TempDir(), "prompt.md")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return agent.Invocation{PromptFile: path, PromptSize: int64(len(text))}
	}
	for _, test := range []struct {
		name string
		in   agent.Invocation
		want string
	}{
		{"at the limit", agent.Invocation{PromptSize: limit}, ""},
		{"more bytes, not more characters", file(strings.Repeat("ä", limit)), ""},
		{"one character more", file(strings.Repeat("ä", limit) + "x"), "1048577 characters and the program takes at most 1048576; shorten the prompt"},
		{"more than characters can be", agent.Invocation{PromptSize: 4*limit + 1}, "shorten the prompt"},
		{"no file", agent.Invocation{PromptFile: filepath.Join(t.TempDir(), "no"), PromptSize: limit + 1}, "cannot read the prompt for codex"},
	} {
		_, err := adapter(nil).Start(test.in)
		if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error is %v", test.name, err)
		}
	}
}

func adapter(getenv func(string) string) program.Adapter {
	return program.Adapter{Program: Program(), Getenv: getenv}
}

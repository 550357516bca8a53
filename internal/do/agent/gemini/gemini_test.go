package gemini

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

func TestStart(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"permissive", "normal", "paranoid"} {
		got, err := adapter(nil).Start(agent.Invocation{PromptFile: "/run/prompt.md", PromptSize: 5, StateDir: "/state", Model: "gemini-2.5-pro", Safety: level, Env: []string{"A=1"}})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Join(got.Args, " ") != "gemini --output-format stream-json --approval-mode yolo --skip-trust --model gemini-2.5-pro" {
			t.Errorf("%s: args are %q", level, got.Args)
		}
		if got.Stdin != "/run/prompt.md" || got.Parser != "gemini" || got.Grace <= 0 || got.Env[len(got.Env)-1] != "A=1" {
			t.Errorf("%s: start is %+v", level, got)
		}
		for _, kv := range []string{"GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_TELEMETRY_ENABLED=false", "GEMINI_CLI_SYSTEM_DEFAULTS_PATH=/state/pawl-defaults.json"} {
			if !slices.Contains(got.Env, kv) {
				t.Errorf("%s: %s is not in %q", level, kv, got.Env)
			}
		}
		if len(got.Files) != 1 || got.Files[0].Path != "/state/pawl-defaults.json" || !json.Valid([]byte(got.Files[0].Content)) {
			t.Errorf("%s: files are %+v", level, got.Files)
		}
	}
}

// A reviewer changes nothing.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	got, err := adapter(nil).Start(agent.Invocation{PromptFile: "/run/prompt.md", ReadOnly: true})
	if args := strings.Join(got.Args, " "); err != nil || !strings.Contains(args, "--approval-mode plan") || strings.Contains(args, "yolo") {
		t.Errorf("args are %q, %v", got.Args, err)
	}
}

func TestUsersOwn(t *testing.T) {
	t.Parallel()
	got, err := adapter(nil).Start(agent.Invocation{Command: []string{"/opt/gemini", "-d"}, StateDir: "/state", Env: []string{"GEMINI_CLI_SYSTEM_DEFAULTS_PATH=/mine"}})
	if err != nil || !slices.Equal(got.Args[:3], []string{"/opt/gemini", "-d", "--output-format"}) {
		t.Errorf("args are %q, %v", got.Args, err)
	}
	if len(got.Files) != 0 || got.Env[len(got.Env)-1] != "GEMINI_CLI_SYSTEM_DEFAULTS_PATH=/mine" {
		t.Errorf("files are %+v, env is %q", got.Files, got.Env)
	}
}

// With the gateway the program has settings of a user: it does not read those of a
// system where a folder on the way is not root's, or may be written by others.
func TestSettingsWithTheGateway(t *testing.T) {
	t.Parallel()
	route := agent.Route{Name: "gemini", Protocol: agent.Gemini, KeyIn: "GEMINI_API_KEY"}
	got, err := adapter(nil).Start(agent.Invocation{StateDir: "/state", Routes: []agent.Route{route}})
	if err != nil || !slices.Contains(got.Env, "GEMINI_CLI_HOME=/state") {
		t.Fatalf("env is %q, %v", got.Env, err)
	}
	if len(got.Files) != 1 || got.Files[0].Path != "/state/.gemini/settings.json" || !json.Valid([]byte(got.Files[0].Content)) ||
		!strings.Contains(got.Files[0].Content, `"selectedType": "gemini-api-key"`) {
		t.Errorf("files are %+v", got.Files)
	}
}

// The state is pawl's only where nothing of the user's own is needed.
func TestStateFolder(t *testing.T) {
	t.Parallel()
	key := func(name string) string { return map[string]string{"GEMINI_API_KEY": "k"}[name] }
	for _, test := range []struct {
		name    string
		adapter program.Adapter
		in      agent.Invocation
		want    bool
	}{
		{"a login", adapter(nil), agent.Invocation{StateDir: "/state"}, false},
		{"a key", adapter(key), agent.Invocation{StateDir: "/state"}, true},
		{"a key taken away", adapter(key), agent.Invocation{StateDir: "/state", Env: []string{"GEMINI_API_KEY="}}, false},
		{"a key for a server of one's own", adapter(key), agent.Invocation{StateDir: "/state", Env: []string{"GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:1"}}, false},
		{"isolate", adapter(nil), agent.Invocation{StateDir: "/state", Isolate: true}, true},
		{"no folder", adapter(key), agent.Invocation{Isolate: true}, false},
	} {
		got, err := test.adapter.Start(test.in)
		if err != nil || slices.Contains(got.Env, "GEMINI_CLI_HOME=/state") != test.want {
			t.Errorf("%s: env is %q, %v", test.name, got.Env, err)
		}
	}
}

// A longer prompt is cut off by the program without a word.
func TestPromptTooLong(t *testing.T) {
	t.Parallel()
	_, err := adapter(nil).Start(agent.Invocation{PromptSize: Program().Limit + 1})
	if err == nil || !strings.Contains(err.Error(), "shorten the prompt") {
		t.Errorf("error is %v", err)
	}
	if _, err := adapter(nil).Start(agent.Invocation{PromptSize: Program().Limit}); err != nil {
		t.Error(err)
	}
}

func TestExits(t *testing.T) {
	t.Parallel()
	exits := adapter(nil).About().Exits
	for code, want := range map[int]int{144: 400, 145: 401, 147: 403, 173: 429, 244: 500, 247: 503, 17: 529, 41: 0, 53: 0} {
		got, ok := exits[code]
		if !ok || got.Status != want || got.Type == "" || got.Message == "" {
			t.Errorf("exit status %d is %+v, want %d", code, got, want)
		}
	}
	for _, code := range []int{0, 1, 2, 130, 137, 143, -1, 255} {
		if got, ok := exits[code]; ok {
			t.Errorf("exit status %d is %+v", code, got)
		}
	}
}

func adapter(getenv func(string) string) program.Adapter {
	return program.Adapter{Program: Program(), Getenv: getenv}
}

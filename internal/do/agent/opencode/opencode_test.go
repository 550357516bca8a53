package opencode

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

func TestStart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		adapter      program.Adapter
		name, prefix string
	}{{adapter(Program()), "opencode", "OPENCODE_"}, {adapter(Kilo()), "kilo", "KILO_"}} {
		for _, level := range []string{"permissive", "normal", "paranoid"} {
			got, err := test.adapter.Start(agent.Invocation{PromptFile: "/run/prompt.md", PromptSize: 5, StateDir: "/state", Model: "p/m", Safety: level, Env: []string{"A=1"}})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Join(got.Args, " ") != test.name+" run --format json --auto --model p/m" {
				t.Errorf("%s: args are %q", test.name, got.Args)
			}
			if got.Stdin != "/run/prompt.md" || got.Parser != "opencode" || got.Grace <= 0 {
				t.Errorf("%s: start is %+v", test.name, got)
			}
			want := []string{test.prefix + "DISABLE_AUTOUPDATE=1", test.prefix + "DISABLE_MODELS_FETCH=1", test.prefix + "DISABLE_LSP_DOWNLOAD=1", "A=1"}
			if !slices.Equal(got.Env, want) {
				t.Errorf("%s: env is %q", test.name, got.Env)
			}
		}
		if of := test.adapter.About(); of.Name != test.name || !strings.Contains(of.Install, "npm") || of.Idle <= 0 {
			t.Errorf("adapter is %+v", test.adapter)
		}
	}
}

func TestUsersCommand(t *testing.T) {
	t.Parallel()
	got, err := adapter(Program()).Start(agent.Invocation{Command: []string{"/opt/opencode", "--pure"}})
	if err != nil || strings.Join(got.Args, " ") != "/opt/opencode --pure run --format json --auto" {
		t.Errorf("args are %q, %v", got.Args, err)
	}
}

func TestStateFolder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		in   agent.Invocation
		want int
	}{
		{"the user's", agent.Invocation{StateDir: "/state"}, 0},
		{"isolated", agent.Invocation{StateDir: "/state", Isolate: true}, 4},
		{"no folder", agent.Invocation{Isolate: true}, 0},
	} {
		got, err := adapter(Kilo()).Start(test.in)
		if err != nil {
			t.Fatal(err)
		}
		xdg := 0
		for _, kv := range got.Env {
			if strings.HasPrefix(kv, "XDG_") && strings.Contains(kv, "_HOME=/state/") {
				xdg++
			}
		}
		if xdg != test.want {
			t.Errorf("%s: env is %q", test.name, got.Env)
		}
	}
	got, _ := adapter(Program()).Start(agent.Invocation{StateDir: "/state", Isolate: true, Env: []string{"XDG_CACHE_HOME=/mine"}})
	if !slices.Contains(got.Env, "XDG_DATA_HOME=/state/data") || got.Env[len(got.Env)-1] != "XDG_CACHE_HOME=/mine" {
		t.Errorf("env is %q", got.Env)
	}
}

func adapter(p program.Program) program.Adapter { return program.Adapter{Program: p} }

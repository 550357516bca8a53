package program

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

func looker(env ...string) func(string) string {
	return func(name string) string {
		for _, kv := range env {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v
			}
		}
		return ""
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	a := Adapter{Program: Program{
		Gateway: Gateway{
			Doors: []Door{like("anthropic"), like("openai")}, Closed: []string{"USE_CLOUD"},
		},
	}}
	if got, can := a.Routes(false, looker("HOME=/h")); got != nil || !can {
		t.Errorf("without a key: %+v", got)
	}
	if _, can := (Adapter{}).Routes(false, looker("ANTHROPIC_API_KEY=k")); can {
		t.Error("a program without a door can be pointed")
	}
	if got, _ := a.Routes(false, looker("ANTHROPIC_API_KEY=k", "USE_CLOUD=1")); got != nil {
		t.Errorf("in a cloud: %+v", got)
	}
	if got, _ := a.Routes(false, looker("ANTHROPIC_AUTH_TOKEN=k", "gateway.keys.anthropic=kept")); len(got) != 1 || got[0].Key != "kept" ||
		got[0].KeyIn != "ANTHROPIC_API_KEY" || got[0].Header != "X-Api-Key" || !slices.Contains(got[0].Own, "ANTHROPIC_AUTH_TOKEN") {
		t.Errorf("with a key that is kept elsewhere: %+v", got)
	}
	got, _ := a.Routes(false, looker("ANTHROPIC_AUTH_TOKEN=k", "ANTHROPIC_BASE_URL=http://proxy/x", "OPENAI_API_KEY=o", "OPENAI_PROJECT_ID=p"))
	if len(got) != 2 {
		t.Fatalf("routes are %+v", got)
	}
	if r := got[0]; r.Base != "http://proxy/x" || r.Key != "k" || r.Header != "Authorization" ||
		r.KeyIn != "ANTHROPIC_AUTH_TOKEN" {
		t.Errorf("the first is %+v", r)
	}
	if r := got[1]; r.Base != "https://api.openai.com/v1" || r.Key != "o" || r.Extra["OpenAI-Project"] != "p" {
		t.Errorf("the second is %+v", r)
	}
}

// A program that is pointed has the token in place of every key, also of one that
// the user's own configuration adds.
func TestPointed(t *testing.T) {
	t.Parallel()
	anthropic := like("anthropic")
	anthropic.Env = []string{"ANTHROPIC_BASE_URL={url}"}
	a := Adapter{Program: Program{Binary: "x",
		Gateway: Gateway{
			Doors:   []Door{anthropic, {Name: "openai", Args: []string{"-c", "url={url}"}, Part: "p={url}"}},
			Pointer: "CONFIG=[{parts}]",
		},
	}}
	env := []string{"ANTHROPIC_API_KEY=secret", "OPENAI_API_KEY=secret", "FOO=bar", "ANTHROPIC_BASE_URL=http://proxy"}
	routes, _ := a.Routes(false, looker(env...))
	in := agent.Invocation{Env: env, Routes: append(routes, agent.Route{Name: "openai", KeyIn: "OPENAI_API_KEY", Own: []string{"OPENAI_API_KEY"}})}
	start, err := a.Start(in)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(slices.Concat(start.Args, start.Env), " ")
	if strings.Contains(all, "secret") || strings.Contains(all, "http://proxy") {
		t.Errorf("the key is in %s", all)
	}
	for _, want := range []string{"FOO=bar", "ANTHROPIC_API_KEY={pawl-token}", "ANTHROPIC_BASE_URL={pawl-gateway}/anthropic", "OPENAI_API_KEY={pawl-token}",
		"CONFIG=[p={pawl-gateway}/openai]"} {
		if !slices.Contains(start.Env, want) {
			t.Errorf("%s is not in %q", want, start.Env)
		}
	}
	if !slices.Contains(start.Args, "url={pawl-gateway}/openai") {
		t.Errorf("args are %q", start.Args)
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY"} {
		if !slices.Contains(start.Unset, name) {
			t.Errorf("%s is inherited", name)
		}
	}
}

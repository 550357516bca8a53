package program

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

// A program that only a file can point is pointed where nothing but a key can be
// meant: with a folder of its own. The provider is the one of the model.
func TestPointedByAFile(t *testing.T) {
	t.Parallel()
	anthropic, openai := like("anthropic"), like("openai")
	anthropic.Part, anthropic.Env = `{"model":"{model}","url":"{url}/v1"}`, []string{"SETTINGS={state}/models.json"}
	openai.Part = `{"model":"{model}","url":"{url}","other":1}`
	a := Adapter{Program: Program{Binary: "x",
		Flags: Flags{Model: "-m"},
		Gateway: Gateway{
			Doors: []Door{anthropic, openai}, Prefix: "custom:",
			Pointing: agent.File{Path: "models.json", Content: `[{parts}]`},
		},
		State: State{Env: []string{"HOME={state}"}}}}
	see := looker("ANTHROPIC_API_KEY=secret", "OPENAI_API_KEY=secret")
	if routes, can := a.Routes(false, see); routes != nil || !can {
		t.Errorf("without isolation the routes are %+v", routes)
	}
	routes, _ := a.Routes(true, see)
	for model, want := range map[string]string{
		"custom:claude-sonnet-4-5": `[{"model":"claude-sonnet-4-5","url":"{pawl-gateway}/anthropic/v1"}]`,
		"custom:gpt-5":             `[{"model":"gpt-5","url":"{pawl-gateway}/openai","other":1}]`,
	} {
		got, err := a.Start(agent.Invocation{StateDir: "/state", Isolate: true, Routes: routes, Model: model, PromptFile: "/p"})
		if err != nil || len(got.Files) != 1 || got.Files[0].Path != "/state/models.json" || got.Files[0].Content != want {
			t.Errorf("%s: the files are %+v, %v", model, got.Files, err)
		}
		if !slices.Contains(got.Args, model) || !slices.Contains(got.Env, "HOME=/state") {
			t.Errorf("%s: start is %+v", model, got)
		}
		if strings.Contains(model, "claude") != slices.Contains(got.Env, "SETTINGS=/state/models.json") {
			t.Errorf("%s: the environment is %q", model, got.Env)
		}
		if all := strings.Join(got.Env, " "); strings.Contains(all, "secret") {
			t.Errorf("the key is in %s", all)
		}
	}
}

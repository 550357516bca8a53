package prompt

import (
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	in := Input{
		Procedure: "build", Iteration: 2, MaxIterations: 9, Run: "01J", Agent: "codex", Strategy: "calm", Gates: []string{"tests"},
		Case: Case{ID: "task-7", Title: "A <b> & c", Tags: []string{"x", "y"}}, Feedback: hard(),
	}
	for text, want := range map[string]string{
		"no template }}": "no template }}",
		"{{.Iteration}}/{{.MaxIterations}} {{.Procedure}} {{.Run}} {{.Agent}} {{.Strategy}}": "2/9 build 01J codex calm",
		"{{.Case.ID}}: {{.Case.Title}}":                             "task-7: A <b> & c",
		"{{range .Case.Tags}}[{{.}}]{{end}}":                        "[x][y]",
		"{{range $i, $t := $.Case.Tags}}{{$i}}{{$t}}{{end}}":        "0x1y",
		"{{join \", \" .Case.Tags}}":                                "x, y",
		"{{if gt .Iteration 1}}again{{else}}first{{end}}":           "again",
		"{{if .Feedback}}{{len .Gates}} {{index .Gates 0}}{{end}}":  "1 tests",
		"{{printf \"%02d\" .Iteration}} {{print .Agent .Strategy}}": "02 codexcalm",
		"{{with .Case}}{{.ID}}{{end}}":                              "task-7",
		"{{/* nothing */}}":                                         "",
	} {
		if err := CheckTemplate("f.md", text); err != nil {
			t.Errorf("CheckTemplate(%q): %v", text, err)
		}
		got, err := Expand(Fragment{"f.md", text}, in)
		if err != nil || got != want {
			t.Errorf("Expand(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestCheckTemplateFindsMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\nb {{.Iteration":           "f.md:2: unclosed action",
		"{{if .Iteration}}":           "f.md:1: unexpected EOF",
		"a\n{{.Iterations}}":          "f.md:2:2: executing \"f.md\" at <.Iterations>: can't evaluate field Iterations in a prompt; there are .Procedure, .Iteration,",
		"{{.Case.Name}}":              "can't evaluate field Name in a case; there are .ID, .Title,",
		"{{.Run.ID}}":                 "can't evaluate field ID in type string",
		"{{nosuch .Run}}":             `function "nosuch" not defined`,
		"{{with .Case}}{{.X}}{{end}}": "can't evaluate field X in a case",
		"{{.Gates.Nope}}":             "can't evaluate field Nope in type []string",
	} {
		err := CheckTemplate("f.md", text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "cannot use the template in f.md") {
			t.Errorf("CheckTemplate(%.60q) = %v, want %q", text, err, want)
		}
	}
}

// An output over the bound is an error, wherever it comes from.
func TestExpandIsBounded(t *testing.T) {
	t.Parallel()
	text := "{{if .Feedback}}" + strings.Repeat("x", 1000) + "{{range .Case.Acceptance}}{{range $.Case.Acceptance}}{{range $.Case.Acceptance}}" +
		strings.Repeat("y", 1000) + "{{end}}{{end}}{{end}}{{end}}"
	in := Input{Case: Case{Acceptance: make([]string, 100)}, Feedback: hard()}
	if _, err := Expand(Fragment{"f.md", text}, in); err == nil || !strings.Contains(err.Error(), "over 1 MiB") {
		t.Errorf("got %v, want an error about its size", err)
	}
}

func TestComposeNamesTheFragmentThatFails(t *testing.T) {
	t.Parallel()
	in := small()
	in.Decide = []Fragment{{"prompts/decide.md", "ok\n{{index .Gates 7}}"}}
	_, err := Compose(in)
	if err == nil || !strings.Contains(err.Error(), "prompts/decide.md:2:") {
		t.Errorf("got %v", err)
	}
}

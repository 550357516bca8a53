package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
)

const (
	workflowSchemaFile = "../../../docs/workflow.schema.json"
	workflowPage       = "../../../docs/workflows.md"
	workflowExamples   = "../../../examples/workflows/*.yaml"
)

// The shipped schema of workflows is the one that the code prints: run with -update.
func TestWorkflowSchemaIsCurrent(t *testing.T) {
	t.Parallel()
	golden(t, workflowSchemaFile, string(WorkflowSchema()))
}

// The table in docs/workflows.md is current, and every key has a meaning.
func TestWorkflowReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(workflowPage)
	if err != nil {
		t.Fatal(err)
	}
	const start, end = "<!-- keys: written by the test of internal/ask/config -->\n", "<!-- end of keys -->"
	head, rest, ok := strings.Cut(string(data), start)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("the markers are gone")
	}
	golden(t, workflowPage, head+start+"\n"+workflowReference()+"\n"+end+tail)
	for _, line := range strings.Split(workflowReference(), "\n") {
		if strings.HasSuffix(line, "|  |") {
			t.Errorf("no meaning: %s", line)
		}
	}
}

// The examples are read and planned; together they show every kind of step
// that needs nothing but the file itself.
func TestWorkflowExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(workflowExamples)
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		w, err := LoadWorkflow("", file)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if w.Plan.Name+".yaml" != filepath.Base(file) || len(w.Plan.Layers) < 2 || len(w.Notes) > 0 {
			t.Errorf("%s: %q, %d layers, %v", file, w.Plan.Name, len(w.Plan.Layers), w.Notes)
		}
	}
}

// Both dialects mean what their own keys say.
func TestWorkflowDialects(t *testing.T) {
	t.Parallel()
	w, err := LoadWorkflow("testdata/workflow", "keys.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := w.Plan
	if p.Parallelism != 3 || p.Timeout != 10*time.Minute || !p.ContinueOnError || !reflect.DeepEqual(p.Context, []string{"release"}) {
		t.Errorf("%+v", p)
	}
	collect, write := p.Steps[0], p.Steps[1]
	if collect.ID != "collect" || collect.Agent != "claude" || collect.Timeout != 90*time.Second || collect.Retry.Max != 1 {
		t.Errorf("%+v", collect)
	}
	want := workflow.Retry{Max: 4, Backoff: "exponential", Delay: 250 * time.Millisecond, Factor: 1500}
	if write.Retry != want || !write.Optional || !reflect.DeepEqual(write.Needs, []string{"collect"}) {
		t.Errorf("%+v", write)
	}
	got, err := write.Content.Fill(workflow.Values{Steps: map[string]workflow.Result{"collect": {Output: "X"}}})
	if err != nil || got != "Write the notes: X" {
		t.Errorf("%q, %v", got, err)
	}

	if w, err = LoadWorkflow("testdata/workflow", "names.yaml"); err != nil {
		t.Fatal(err)
	}
	p = w.Plan
	read, check := p.Steps[0], p.Steps[1]
	if !reflect.DeepEqual(p.Agents, []string{"claude", "gemini", "codex"}) || len(w.Notes) != 2 || !strings.Contains(w.Notes[0], "names.yaml:9: monitoring") {
		t.Errorf("%v %v", p.Agents, w.Notes)
	}
	if read.ID != "read" || read.Optional || read.Timeout != time.Minute || read.Retry.Max != 2 || read.Step.Title != "Read the feed" {
		t.Errorf("%+v", read)
	}
	if !check.Optional || check.Retry.Max != 0 || check.Timeout != 2*time.Minute || !reflect.DeepEqual(check.Needs, []string{"read"}) {
		t.Errorf("%+v", check)
	}
}

// Each fault has its line, its column and a message that helps.
func TestWorkflowFaults(t *testing.T) {
	t.Parallel()
	const head = "steps:\n  - {id: a, run: x}\n"
	for _, c := range []struct {
		text, want string
		line       int
		under      string // what the caret stands under
	}{
		{"", "empty", 0, ""},
		{"steps: []", "at least one step", 1, "[]"},
		{"- a\n- b", "must be a map", 1, "- a"},
		{"steps: {a: 1}", "must be a list", 1, "{a"},
		{"steps: [5]", "must be a map", 1, "5"},
		{"steps:\n  - {id: a, run: x, needs: b}\n  - {id: b, run: x, needs: [a]}", "a → b → a", 2, "b}"},
		{head + "  - {id: a, run: y}", "is taken; the first is in line 2", 3, "a,"},
		{head + "  - {id: b, run: y, needs: [aa]}", `needs "aa"`, 3, "aa]"},
		{head + "  - {key: b, run: y, dependencies: [zz]}", `needs "zz"`, 3, "zz]"},
		{head + "  - {run: y}", "needs an id", 3, "{run"},
		{head + "  - {id: b}", "needs one of", 3, "{id"},
		{head + "  - {id: b, run: ''}", "is empty", 3, "''"},
		{head + "  - {id: b, run: x, ask: y}", "not both", 3, "y}"},
		{head + "  - {id: b, run: x, agent: y}", "belongs to prompt", 3, "y}"},
		{head + "  - {id: b, provider: y}", "needs a prompt", 3, "y}"},
		{head + "  - {id: b, run: x, id2: y}", `unknown key "id2"`, 3, "id2"},
		{head + "  - {id: b, run: x, timeout: 60}", "write 60s", 3, "60}"},
		{head + "  - {id: b, run: x, timeout: -5s}", "cannot be negative", 3, "-5s"},
		{head + "  - {id: b, run: x, timeout: 5s, timeoutMs: 5}", "mean the same", 3, "5}"},
		{head + "  - {id: b, run: x, retry: many}", "whole number", 3, "many"},
		{head + "  - {id: b, run: x, retryPolicy: {retryBackoffMultiplier: .nan}}", "from 1 to 100", 3, ".nan"},
		{head + "  - {id: b, run: x, matrix: {os: []}}", "has no values", 3, "[]"},
		{head + "  - {id: b, run: x, matrix: {os: [[]]}}", "must be text", 3, "[]]"},
		{head + "  - {id: b, run: x, matrix: {}}", "no instance", 3, ""},
		{head + "  - id: b\n    run: |\n      one\n      echo ${{ steps.a.output }}", "does not need", 6, "steps.a"},
		{head + "  - id: b\n    needs: a\n    run: \"${{ steps.a.outptu }}\"", "has no field outptu", 5, "outptu"},
		{head + "  - id: b\n    if: ( true", "unexpected token", 4, ""},
		{head + "  - id: b\n    run: echo '${{ env.HOME }}'", "in a command write $HOME", 4, "env.HOME"},
		{"env: {A: '${{ steps.a.output }}'}\n" + head, "cannot use results", 1, "steps"},
		{"steps:\n  - id: a\n    run: echo a: b", "needs quotes: 'echo a: b'", 3, ": b"},
		{"steps:\n  - id: a\n    run: it's a: b", "needs quotes: 'it''s a: b'", 3, ": b"},
		{"steps:\n  - id: a\n    run: echo a:", "needs quotes: 'echo a:'", 3, ":"},
		{"steps:\n  - id: a\n    run: x\n    verify:\n      - echo a: b", "not a map; a text with a colon and a blank in it needs quotes", 5, "echo a: b"},
		{"config: {parallelism: 0}\n" + head, "1 or more", 1, "0"},
		{"policy: task\n" + head, "must be workflow or controlled", 1, "task"},
		{"iteration_control: {max_iterations: 0}\n" + head, "1 or more", 1, "0"},
		{"iteration_control: {max_iteration: 2}\n" + head, `unknown key "max_iteration"`, 1, "max_iteration"},
	} {
		if strings.Contains(c.text, "if: ( true") {
			c.text += "\n    run: x"
		}
		_, err := parseWorkflow("w.yaml", []byte(c.text))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Message, c.want) || e.Line != c.line {
			t.Errorf("%q: %v; want line %d: %s", c.text, err, c.line, c.want)
			continue
		}
		if c.line == 0 {
			continue
		}
		if line := strings.Split(c.text, "\n")[e.Line-1]; !strings.HasPrefix(line[e.Column-1:], c.under) && c.under != "[]" {
			t.Errorf("%q: the caret stands under %q", c.text, line[e.Column-1:])
		}
	}
}

// What a workflow says of iteration control goes over what holds in general. What is not
// acted on is said, also of a workflow below.
func TestWorkflowIterationControl(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	load := func(text string) *Workflow {
		write(t, dir, map[string]string{"w.yaml": text})
		w, err := LoadWorkflow(dir, "w.yaml")
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	general := IterationControl{MaxIterations: 9, AutoRetryOnTestFail: true, FeedbackMaxLength: 300}
	const steps = "steps: [{id: a, run: x}]\n"
	w := load("policy: controlled\niteration_control: {max_iterations: 2, escalation_includes_diff: true}\n" + steps)
	want := IterationControl{MaxIterations: 2, AutoRetryOnTestFail: true, EscalationIncludesDiff: true, FeedbackMaxLength: 300}
	if got := w.IterationControl(general); got != want || !w.Controlled || len(w.Notes) > 0 {
		t.Errorf("%+v, controlled %t, notes %q; want %+v", got, w.Controlled, w.Notes, want)
	}
	if w = load(steps); w.IterationControl(general) != general || w.Controlled || len(w.Notes) > 0 {
		t.Errorf("without keys: %+v", w)
	}
	write(t, dir, map[string]string{"below.yaml": "policy: controlled\n" + steps})
	w = load("iteration_control: {max_iterations: 2}\nsteps: [{id: a, workflow: below.yaml}, {id: b, workflow: below.yaml}]\n")
	notes := []string{"w.yaml:1: iteration_control holds with policy: controlled only",
		"below.yaml:1: policy holds for a workflow that is started itself, not for a step"}
	if !reflect.DeepEqual(w.Notes, notes) || w.Controlled {
		t.Errorf("notes %q, want %q", w.Notes, notes)
	}
}

// Workflows in workflows are read too, their cycles found, and their content
// is part of the hash.
func TestNestedWorkflows(t *testing.T) {
	t.Parallel()
	dir := write(t, tempDir(t), map[string]string{
		"top.yaml":      "steps:\n  - {id: a, workflow: sub/low.yaml}\n  - {id: b, workflow: sub/low.yaml, needs: a}\n",
		"sub/low.yaml":  "steps:\n  - {id: x, run: echo}\n",
		"loop.yaml":     "steps:\n  - {id: a, workflow: sub/back.yaml}\n",
		"sub/back.yaml": "steps:\n  - id: b\n    workflow: ../loop.yaml\n",
		"gone.yaml":     "steps:\n  - {id: a, workflow: nowhere.yaml}\n",
	})
	w, err := LoadWorkflow(dir, "top.yaml")
	if err != nil || w.Nested["a"] == nil || w.Nested["a"] != w.Nested["b"] {
		t.Fatalf("%+v, %v", w, err)
	}
	before := w.Plan.Hash
	write(t, dir, map[string]string{"sub/low.yaml": "steps:\n  - {id: x, run: echo other}\n"})
	if w, err = LoadWorkflow(dir, "top.yaml"); err != nil || w.Plan.Hash == before {
		t.Errorf("a changed nested workflow does not show: %v", err)
	}
	if _, err = LoadWorkflow(dir, "loop.yaml"); err == nil || !strings.Contains(err.Error(), "sub/back.yaml:3:15: Dependency cycle detected: loop.yaml → back.yaml → loop.yaml") {
		t.Errorf("%v", err)
	}
	if _, err = LoadWorkflow(dir, "gone.yaml"); err == nil || !strings.Contains(err.Error(), "gone.yaml:2:23: there is no workflow file nowhere.yaml") {
		t.Errorf("%v", err)
	}
	if _, err = LoadWorkflow(dir, "none.yaml"); err == nil || !strings.Contains(err.Error(), "none.yaml: cannot read the workflow: no such file") {
		t.Errorf("%v", err)
	}
}

// Whatever a file holds, planning it does not panic, and each fault has a
// place in the text. What is planned is planned the same twice.
func FuzzWorkflow(f *testing.F) {
	for _, pattern := range []string{workflowExamples, "testdata/workflow/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	for _, s := range []string{"steps: [{id: a, run: x, needs: [a]}]", "steps: [{id: a, run: '${{', if: '}}'}]", "steps: [{id: a, run: x, matrix: {include: [{a: 1}, {}], a: [1]}}]", `{"steps":[{"id":"a","run":"{{a.b}}"}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		first, err := parseWorkflow(statedir.FileName, data)
		if err != nil {
			for _, e := range asErrors(err, "?") {
				if e.Line == 0 && strings.Contains(e.Message, "is empty") {
					return
				}
			}
			checkFuzzed(t, err, data)
			return
		}
		second, err := parseWorkflow(statedir.FileName, data)
		if err != nil || first.Hash != second.Hash {
			t.Errorf("a second reading differs: %v", err)
		}
	})
}

// parseWorkflow reads and plans a workflow without looking at other files, as
// LoadWorkflow does. name is what errors call it.
func parseWorkflow(name string, data []byte) (*workflow.Plan, error) {
	r, err := readWorkflow(name, data)
	if err != nil {
		return nil, err
	}
	return r.planWorkflow()
}

package workflow_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/workflow"
)

var values = workflow.Values{
	Steps: map[string]workflow.Result{
		"a":   {Outcome: "success", Conclusion: "success", Output: "Hello", Outputs: map[string]string{"n": "12", "my-out": "x", "json": `{"k":[1,2]}`}},
		"b-c": {Outcome: "failure", Conclusion: "success", Output: "no"},
	},
	Env: map[string]string{"CI": "true"}, Matrix: map[string]string{"go": "1.26"}, Context: map[string]string{"task": "it"},
}

// planned makes a plan of a last step that may use the results of all others.
func planned(t *testing.T, step workflow.Step) *workflow.Planned {
	t.Helper()
	step.Where, step.ID, step.Needs = "steps[3]", "last", []string{"a", "b-c", "gone"}
	step.Matrix = &workflow.Matrix{Axes: []workflow.Axis{{Name: "go", Values: []string{"1.26"}}}}
	f := workflow.File{Name: "w", Env: []workflow.Pair{{Name: "CI", Value: "true"}}, Steps: []workflow.Step{plain("a"), plain("b-c"), plain("gone"), step}}
	p, faults := workflow.New(f)
	if len(faults) > 0 {
		t.Fatalf("faults: %+v", faults)
	}
	return p.Steps[3]
}

func plain(id string, needs ...string) workflow.Step {
	return workflow.Step{Where: "steps[?]", ID: id, Needs: needs, Work: workflow.Work{Kind: workflow.Run, Content: "true"}}
}

// Texts are filled in as users of GitHub Actions expect, and what is no
// placeholder stays as it is.
func TestFill(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain":                                                       "plain",
		"{{steps.a.output}}!":                                         "Hello!",
		"{{ a.result }} {{b-c.result}}":                               "Hello no",
		"${{ steps.a.outputs.n }}":                                    "12",
		"${{ steps.a.outputs.my-out }}":                               "x",
		"${{ steps['a'].outputs['my-out'] }}":                         "x",
		"${{ steps.a.outputs.n > 9 }}":                                "true", // texts beside numbers are numbers
		"${{ steps.a.output == 'HELLO' }}":                            "true", // whatever the case
		"${{ steps.a.output != 'hello' || 'it''s' }}":                 "it's",
		"${{ steps.b-c.outcome }} ${{ needs.b-c.result }}":            "failure success",
		"${{ matrix.go == 1.26 && 'yes' || 'no' }}":                   "yes",
		"${{ env.CI }}${{ !env.CI }}":                                 "truefalse",
		"${{ steps.gone.output }}|${{ steps.gone.outputs.x }}":        "|",
		"${{ format('{0}-{1} {{}}', matrix.go, steps.a.outputs.n) }}": "1.26-12 {}",
		"${{ fromJSON(steps.a.outputs.json).k[1] + 1 }}":              "3",
		"${{ join(fromJSON(steps.a.outputs.json).k, ' ') }}":          "1 2",
		"${{ contains(fromJson('[\"x\",\"Y\"]'), 'y') }}":             "true",
		"${{ startsWith(steps.a.output, 'he') }}":                     "true",
		"${{ steps.a.output contains 'ell' }}":                        "true", // the library's own operator
		"${{ null == '' }} ${{ '}}' }}":                               "true }}",
		"docker inspect -f '{{.State}}' {{range .X}}{{end}} {{word}}": "docker inspect -f '{{.State}}' {{range .X}}{{end}} {{word}}",
		"{{steps.a.output}} {{ unfinished":                            "Hello {{ unfinished",
		"${{ toJSON(steps.a.outputs.n) }}":                            `"12"`,
	} {
		p := planned(t, workflow.Step{Work: workflow.Work{Kind: workflow.Run, Content: text}})
		if got, err := p.Content.Fill(values); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	p := planned(t, workflow.Step{Work: workflow.Work{Kind: workflow.Agent, Content: "do {{task}} {{ a }}"}})
	if got, err := p.Content.Fill(values); err != nil || got != "do it Hello" {
		t.Errorf("a prompt: %q, %v", got, err)
	}
}

// An evaluation that fails says which placeholder it was.
func TestFillFails(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"${{ fromJSON(steps.a.output) }}": "not JSON",
		"${{ format('{3}', 1) }}":         "no argument for {3}",
		"${{ 1..100000000 }}":             "memory budget",
	} {
		p := planned(t, workflow.Step{Work: workflow.Work{Kind: workflow.Run, Content: text}})
		if _, err := p.Content.Fill(values); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text[:8]) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A text has a bound, whatever it is filled in with.
func TestFillBound(t *testing.T) {
	t.Parallel()
	p := planned(t, workflow.Step{Work: workflow.Work{Kind: workflow.Run, Content: "{{steps.a.output}}{{steps.a.output}}ends"}})
	for size, want := range map[int]bool{8<<20 - 2: true, 8<<20 - 1: false} {
		v := values
		v.Steps = map[string]workflow.Result{"a": {Output: strings.Repeat("x", size)}}
		if got, err := p.Content.Fill(v); (err == nil) != want || want && len(got) != 2*size+4 {
			t.Errorf("twice %d and 4: %d bytes, %v", size, len(got), err)
		}
	}
}

// Without a status function a condition also asks success().
func TestHolds(t *testing.T) {
	t.Parallel()
	failed, cancelled := values, values
	failed.Failed, cancelled.Cancelled = true, true
	for _, c := range []struct {
		text                      string
		good, afterFailure, ended bool
	}{
		{"", true, false, false},
		{"true", true, false, false},
		{"always()", true, true, true},
		{"failure()", false, true, false},
		{"success() || failure()", true, true, false},
		{"cancelled()", false, false, true},
		{"!cancelled()", true, true, false},
		{"${{ steps.a.output == 'hello' }}", true, false, false},
		{"Failure() && steps.a.outcome == 'success'", false, true, false},
		{"steps.gone.output", false, false, false},
		{"'false'", true, false, false}, // a text that is not empty
	} {
		p := planned(t, workflow.Step{If: c.text, Work: workflow.Work{Kind: workflow.Run, Content: "x"}})
		for _, x := range []struct {
			v    workflow.Values
			want bool
		}{{values, c.good}, {failed, c.afterFailure}, {cancelled, c.ended}} {
			if got, err := p.Condition.Holds(x.v); err != nil || got != x.want {
				t.Errorf("%q failed=%v cancelled=%v: %v, %v", c.text, x.v.Failed, x.v.Cancelled, got, err)
			}
		}
	}
}

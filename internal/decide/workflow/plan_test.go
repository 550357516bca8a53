package workflow_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/workflow"
)

func mustPlan(t testing.TB, f workflow.File) *workflow.Plan {
	t.Helper()
	p, faults := workflow.New(f)
	if len(faults) > 0 {
		t.Fatalf("faults: %+v", faults)
	}
	return p
}

func ids(p *workflow.Plan) [][]string {
	var out [][]string
	for _, l := range p.Layers {
		var layer []string
		for _, n := range l {
			layer = append(layer, p.Instances[n].ID)
		}
		out = append(out, layer)
	}
	return out
}

// Steps may stand in any order; a layer holds what may run side by side.
func TestLayers(t *testing.T) {
	t.Parallel()
	p := mustPlan(t, workflow.File{Steps: []workflow.Step{plain("d", "b", "c"), plain("b", "a"), plain("c", "a"), plain("a"), plain("free")}})
	want := [][]string{{"a", "free"}, {"b", "c"}, {"d"}}
	if got := ids(p); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for i, in := range p.Instances {
		for _, n := range in.Needs {
			if n >= i {
				t.Errorf("%s comes before what it needs", in.ID)
			}
		}
	}
}

// A matrix is expanded as GitHub Actions documents it.
func TestMatrix(t *testing.T) {
	t.Parallel()
	m := &workflow.Matrix{
		Axes: []workflow.Axis{{Name: "fruit", Values: []string{"apple", "pear"}}, {Name: "animal", Values: []string{"cat", "dog"}}},
		Include: [][]workflow.Pair{
			{{Name: "color", Value: "green"}},
			{{Name: "color", Value: "pink"}, {Name: "animal", Value: "cat"}},
			{{Name: "fruit", Value: "apple"}, {Name: "shape", Value: "circle"}},
			{{Name: "fruit", Value: "banana"}},
			{{Name: "fruit", Value: "banana"}, {Name: "animal", Value: "cat"}},
		},
	}
	s := plain("m")
	s.Matrix = m
	last := plain("last", "m")
	p := mustPlan(t, workflow.File{Steps: []workflow.Step{last, s}})
	want := [][]string{{"m (apple, cat, pink, circle)", "m (apple, dog, green, circle)", "m (pear, cat, pink)", "m (pear, dog, green)", "m (banana)", "m (banana, cat)"}, {"last"}}
	if got := ids(p); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if n := len(p.Instances[6].Needs); n != 6 {
		t.Errorf("the last step needs %d instances", n)
	}
}

// A hash changes with what a step does and with what it builds on, not with
// how it is run. The value is stored by runs, so it is part of the contract.
func TestHash(t *testing.T) {
	t.Parallel()
	file := func() workflow.File {
		return workflow.File{Steps: []workflow.Step{plain("a"), plain("b", "a"), plain("c")}}
	}
	base := mustPlan(t, file())
	if got, want := base.Instances[0].Hash, "de9f95f656be76aa9713d8779d0996d0"; got != want {
		t.Errorf("the hash of a plain step is %s, was %s", got, want)
	}
	hash := func(p *workflow.Plan, id string) string {
		for _, in := range p.Instances {
			if in.ID == id {
				return in.Hash
			}
		}
		t.Fatalf("no %s", id)
		return ""
	}
	changed := func(change func(*workflow.File)) (out string) {
		f := file()
		change(&f)
		p := mustPlan(t, f)
		for _, id := range []string{"a", "b", "c"} {
			if hash(p, id) != hash(base, id) {
				out += id
			}
		}
		if (out == "") != (p.Hash == base.Hash) {
			t.Errorf("the plan's hash does not follow its steps'")
		}
		return out
	}
	for _, c := range []struct {
		what, want string
		change     func(*workflow.File)
	}{
		{"command of a", "ab", func(f *workflow.File) { f.Steps[0].Content = "false" }},
		{"verify of b", "b", func(f *workflow.File) { f.Steps[1].Verify = []string{"x"} }},
		{"environment", "abc", func(f *workflow.File) { f.Env = []workflow.Pair{{Name: "A", Value: "1"}} }},
		{"nested plan", "ab", func(f *workflow.File) { f.Steps[0].Digest = "other" }},
		{"how", "", func(f *workflow.File) {
			f.Steps[0].Timeout, f.Steps[0].Optional, f.Steps[0].Title, f.Config.Parallelism = 1, true, "x", 9
		}},
	} {
		if got := changed(c.change); got != c.want {
			t.Errorf("%s changes %q, want %q", c.what, got, c.want)
		}
	}
	a := base.Instances[0]
	if a.InputHash([]string{"x"}) == a.InputHash([]string{"y"}) || a.InputHash(nil) == a.Hash {
		t.Error("what a step was given does not show in its hash")
	}
}

// Faults say what is wrong and where.
func TestFaults(t *testing.T) {
	t.Parallel()
	many := make([]workflow.Step, workflow.MaxSteps+1)
	for i := range many {
		many[i] = plain(fmt.Sprint("s", i))
	}
	matrix := plain("m")
	matrix.Matrix = &workflow.Matrix{Include: make([][]workflow.Pair, workflow.MaxMatrix+1)}
	with := func(s workflow.Step, change func(*workflow.Step)) workflow.Step {
		change(&s)
		return s
	}
	for _, c := range []struct {
		want  string
		steps []workflow.Step
	}{
		{"at least one step", nil},
		{"at most 1000 steps", many},
		{"needs an id", []workflow.Step{plain("")}},
		{`"a" is taken`, []workflow.Step{plain("a"), plain("a")}},
		{"a → a", []workflow.Step{plain("a", "a")}},
		{"b → c → b", []workflow.Step{plain("a", "b"), plain("b", "c"), plain("c", "b")}},
		{`step "b" needs "c", which no step has as its id`, []workflow.Step{plain("b", "c")}},
		{"twice", []workflow.Step{plain("a"), plain("b", "a", "a")}},
		{"more than 256", []workflow.Step{matrix}},
		{"does not need", []workflow.Step{plain("a"), with(plain("b"), func(s *workflow.Step) { s.Content = "{{steps.a.output}}" })}},
		{"own result", []workflow.Step{with(plain("b"), func(s *workflow.Step) { s.Content = "{{steps.b.output}}" })}},
		{"no output \"y\"", []workflow.Step{
			with(plain("a"), func(s *workflow.Step) { s.Outputs = []workflow.Pair{{Name: "x", Value: "${{ output }}"}} }),
			with(plain("b", "a"), func(s *workflow.Step) { s.Content = "{{steps.a.outputs.y}}" }),
		}},
		{"for if:", []workflow.Step{with(plain("b"), func(s *workflow.Step) { s.Content = "${{ always() }}" })}},
		{"not closed", []workflow.Step{with(plain("b"), func(s *workflow.Step) { s.Content = "${{ 'a }}" })}},
		{"is empty", []workflow.Step{with(plain("b"), func(s *workflow.Step) { s.Content = "${{  }}" })}},
		{"unknown name", []workflow.Step{with(plain("b"), func(s *workflow.Step) { s.If = "nope" })}},
		{"too long", []workflow.Step{with(plain("b"), func(s *workflow.Step) { s.If = strings.Repeat("(", 5000) })}},
	} {
		p, faults := workflow.New(workflow.File{Steps: c.steps})
		if p != nil || len(faults) == 0 || !strings.Contains(faults[0].Message, c.want) {
			t.Errorf("%s: %+v", c.want, faults)
		}
	}
}

// A workflow of as many steps as there may be is none too many.
func TestMostSteps(t *testing.T) {
	t.Parallel()
	var f workflow.File
	for i := range workflow.MaxSteps {
		f.Steps = append(f.Steps, plain(fmt.Sprint("s", i)))
	}
	if p, faults := workflow.New(f); p == nil {
		t.Error(faults)
	}
}

// Whatever an expression is, it does not panic, and a fault's place is in it.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{"steps.a.output", "a-b.c", "'x''y'", "1e5", "((", "contains('a','b')", "a.b['c'].d", "!x", "let x = 1; x", "{1:2}", "..", "\x00", "é.ü", "#", "all([1], # > 0)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		step := plain("b", "a")
		step.If, step.Content = s, "x ${{"+s+"}} {{"+s+"}}"
		p, faults := workflow.New(workflow.File{Steps: []workflow.Step{plain("a"), step}})
		for _, fault := range faults {
			if fault.Message == "" || fault.Offset < 0 || fault.Offset > len(step.Content)+1 {
				t.Errorf("%+v", fault)
			}
		}
		if p == nil {
			return
		}
		first, err := p.Steps[1].Content.Fill(values)
		again, err2 := p.Steps[1].Content.Fill(values)
		if first != again || (err == nil) != (err2 == nil) {
			t.Errorf("evaluation differs: %q %v, %q %v", first, err, again, err2)
		}
		_, _ = p.Steps[1].Condition.Holds(values) // only that it returns
	})
}

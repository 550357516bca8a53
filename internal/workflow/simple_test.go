package workflow

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

// sameAsLibrary checks that an expression that is read without the library is one
// that the library accepts, with the same value whatever the results of steps are.
func sameAsLibrary(t *testing.T, c *compilation, source string) (isSimple bool) {
	t.Helper()
	e, err := c.compile(source)
	if err != nil || e.simple == nil {
		return false
	}
	r := rewriter{in: []rune(source), known: c.known}
	if err := r.all(); err != nil {
		t.Fatalf("%q: %v", source, err)
	}
	program, err := c.program(string(r.out))
	if err != nil {
		t.Fatalf("%q is read without the library, which refuses it: %v", source, err)
	}
	full := &expression{source: source, program: program}
	for i := range 8 {
		v := Values{
			Steps:  map[string]Result{"a": {Outcome: "failure", Conclusion: "success", Output: "Hello", Outputs: map[string]string{"n": "1", "my-out": ""}}},
			Env:    map[string]string{"CI": "true"},
			Matrix: map[string]string{"go": "1"}, Output: "out", Failed: i&1 > 0, Cancelled: i&2 > 0,
		}
		if i&4 > 0 {
			v.Steps["b-c"] = Result{Outcome: "skipped", Conclusion: "skipped"}
		}
		got, err := e.eval(&asked{Values: v})
		want, wantErr := full.eval(&asked{Values: v})
		if err != nil || wantErr != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %#v, %v; the library says %#v, %v", source, got, err, want, wantErr)
		}
	}
	return true
}

func oneCompilation() *compilation {
	return &compilation{known: map[string]bool{"a": true, "b-c": true}}
}

// Expressions made of the simple parts, put together in every way, with and
// without what makes them wrong.
func TestSimpleAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a seed that repeats
	operands := []string{
		"steps.a.output", "steps.a.outcome", "steps.b-c.conclusion", "steps['a'].outputs['my-out']", "steps.a.outputs.n", "needs.a.result",
		"a.result", "env.CI", "matrix.go", "context.x", "output", "'Hello'", `"a\"b\n"`, "'it''s'", "''", "true", "false", "success()", "Failure()",
		"always( )", "cancelled()", "1", "null", "steps.a", "env", "steps.a.wrong", "steps.gone.output", "contains('a', 'b')", "",
	}
	var expression func(depth int) string
	expression = func(depth int) string {
		switch n := random.IntN(12); {
		case depth == 0 || n < 3:
			return operands[random.IntN(len(operands))]
		case n < 5:
			return "!" + expression(depth-1)
		case n < 7:
			return " ( " + expression(depth-1) + ")"
		default:
			op := []string{"==", "!=", "&&", "||", " && ", " || ", " == ", "<", "+", "=", "|"}[random.IntN(11)]
			return expression(depth-1) + op + expression(depth-1)
		}
	}
	c, simple := oneCompilation(), 0
	for range 20_000 {
		if sameAsLibrary(t, c, expression(random.IntN(4))) {
			simple++
		}
	}
	if simple < 2000 {
		t.Errorf("only %d expressions were simple: the test tests little", simple)
	}
}

func FuzzSimple(f *testing.F) {
	for _, s := range []string{
		"steps.a.output == 'x' && !cancelled()", "a.output", "!(env.CI || 'x')", "success() == true", "a.output.x", "'a' 'b'", "((true))", "true false", "1==1", "a == b == c",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) { sameAsLibrary(t, oneCompilation(), source) })
}

// What workflows hold most is read without the library.
func TestSimpleIsUsed(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"steps.a.output", " needs.a.outputs.my-out ", "always()", "!cancelled() && steps.a.outcome == 'success'",
		"matrix.go == '1' || (env.CI && failure())",
	} {
		if !sameAsLibrary(t, oneCompilation(), source) {
			t.Errorf("%q needs the library", source)
		}
	}
	long := "true"
	for range 100 {
		long += " || true"
	}
	if sameAsLibrary(t, oneCompilation(), long) {
		t.Error("an expression of 100 parts is left to the library, which bounds them")
	}
}

// A program may be run by many goroutines while others are compiled.
func TestCompiledIsShared(t *testing.T) {
	t.Parallel()
	c := oneCompilation()
	e, err := c.compile("format('{0}', steps.a.output)")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for range 4 {
		go func() {
			value, err := e.eval(&asked{Values: Values{Steps: map[string]Result{"a": {Output: "x"}}}})
			if err == nil && value != "x" {
				err = fmt.Errorf("%v", value)
			}
			done <- err
		}()
	}
	if _, err := c.compile("contains(steps.a.output, 'y')"); err != nil {
		t.Error(err)
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

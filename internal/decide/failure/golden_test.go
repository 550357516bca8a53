package failure

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/runners"
)

// read returns an output in testdata, which the named tool really printed.
func read(tb testing.TB, name string) string {
	b, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// show writes an item as "file:line [test] message | expected | received", the
// message's first line only.
func show(i Item) string {
	msg, _, _ := strings.Cut(i.Message, "\n")
	s := fmt.Sprintf("%s:%d [%s] %s", i.File, i.Line, i.Test, msg)
	if i.Expected != "" || i.Received != "" {
		s += " | " + i.Expected + " | " + i.Received
	}
	return s
}

func showTests(t Tests) string {
	s := fmt.Sprintf("%s %d %d %d", t.Runner, t.Passed, t.Failed, t.Skipped)
	for _, i := range t.Items {
		s += "\n" + show(i)
	}
	return s
}

func TestParseTestsOfRealRuns(t *testing.T) {
	t.Parallel()
	const calc = "\ncalc_test.go:6 [TestAdd/1+2] Add = -1, want 3 | 3 | -1\ncalc_test.go:10 [TestTimeout] server says 503 Service Unavailable after 401"
	for name, want := range map[string]string{
		"gotest":       "go 0 2 0" + calc,
		"gotest-v":     "go 2 2 1" + calc,
		"gotest-json":  "go 2 2 1" + calc,
		"gotest-none":  "go 0 0 0",
		"gotest-panic": "go 0 1 0\n/repo/nil/n_test.go:3 [TestPut] panic: assignment to entry in nil map [recovered, repanicked] | no panic | assignment to entry in nil map",
		"node-spec":    "node 1 1 1\na.test.mjs:2 [adds] AssertionError [ERR_ASSERTION]: Expected values to be strictly equal: | 3 | 2",
		"node-tap":     "node 1 1 1\n/repo/n/a.test.mjs:2 [adds] Expected values to be strictly equal: | 3 | 2",
		"jest":         "jest 1 1 0\nsum.test.js:1 [cart › adds] expect(received).toBe(expected) // Object.is equality | 3 | 2",
		"vitest":       "vitest 1 1 0\nsum.test.mjs:2 [cart > adds] AssertionError: expected 2 to be 3 // Object.is equality | 3 | 2",
		"mocha":        "mocha 1 1 0\nm.cjs:2 [cart › adds] AssertionError [ERR_ASSERTION]: Expected values to be strictly equal: | 3 | 2",
		"unittest":     "unittest 1 1 0\n/repo/n/t.py:4 [test_timeout (__main__.T.test_timeout)] AssertionError: 30 != 60 | 60 | 30",
		"cargo":        "cargo 1 1 0\nsrc/lib.rs:2 [adds] assertion `left == right` failed | 3 | 2",
	} {
		got, ok := ParseTests(read(t, name))
		if !ok || showTests(got) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, ok, showTests(got), want)
		}
	}
}

// The formats of runners that are written down in their documentation.
func TestParseTestsOfFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ output, want string }{
		{"FAIL src/a.test.js\n  ● cart › adds\n\n    expect(received).toBe(expected)\n\n    Expected: 3\n    Received: 2\n\n      at Object.toBe (src/a.test.js:4:20)\n\nTest Suites: 1 failed, 1 total\nTests:       1 failed, 1 skipped, 2 passed, 4 total\n",
			"jest 2 1 1\nsrc/a.test.js:4 [cart › adds] expect(received).toBe(expected) | 3 | 2"},
		{" FAIL  src/a.test.ts > cart > adds\nAssertionError: expected 2 to be 3 // Object.is equality\n\n- Expected\n+ Received\n\n- 3\n+ 2\n\n ❯ src/a.test.ts:5:15\n\n Test Files  1 failed (1)\n      Tests  1 failed | 3 passed (4)\n",
			"vitest 3 1 0\nsrc/a.test.ts:5 [cart > adds] AssertionError: expected 2 to be 3 // Object.is equality | 3 | 2"},
		{" Test Files  1 failed (1)\n      Tests  no tests\n", "vitest 0 0 0"},
		{"____ test_adds ____\n\n    def test_adds():\n>       assert 1 + 1 == 3\nE       assert (1 + 1) == 3\n\ntests/test_a.py:2: AssertionError\n=== short test summary info ===\nFAILED tests/test_a.py::test_adds - assert (1 + 1) == 3\n=== 1 failed, 2 passed, 1 skipped in 0.11s ===\n",
			"pytest 2 1 1\ntests/test_a.py:2 [tests/test_a.py::test_adds] assert (1 + 1) == 3"},
		{"collected 0 items\n\n=== no tests ran in 0.01s ===\n", "pytest 0 0 0"},
		{"  cart\n    ✔ fine\n    1) adds\n\n\n  1 passing (4ms)\n  1 failing\n\n  1) cart\n       adds:\n\n      AssertionError: 2 == 3\n      at Context.<anonymous> (m.js:2:64)\n", "mocha 1 1 0\nm.js:2 [cart › adds] AssertionError: 2 == 3 | 3 | 2"},
		{"Failures:\n\n  1) Cart adds\n     Failure/Error: expect(2).to eq(3)\n\n       expected: 3\n            got: 2\n\n     # ./spec/cart_spec.rb:5:in `block'\n\nFinished in 0.1 seconds\n3 examples, 1 failure, 1 pending\n",
			"rspec 1 1 1\nspec/cart_spec.rb:5 [Cart adds] Failure/Error: expect(2).to eq(3) | 3 | 2"},
		{"There was 1 failure:\n\n1) CartTest::testAdds\nFailed asserting that 2 is identical to 3.\n\n/repo/CartTest.php:5\n\nFAILURES!\nTests: 4, Assertions: 4, Failures: 1.\n",
			"phpunit 3 1 0\n/repo/CartTest.php:5 [CartTest::testAdds] Failed asserting that 2 is identical to 3."},
		{"OK (4 tests, 9 assertions)\n", "phpunit 4 0 0"},
		{"No tests executed!\n", "phpunit 0 0 0"},
		{"[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 s\n[ERROR] Failures: \n[ERROR]   CartTest.adds:12 expected: <3> but was: <2>\n[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0\n",
			"surefire 1 1 0\nCartTest.adds:12 [CartTest.adds] expected: <3> but was: <2> | 3 | 2"},
		{"  Failed Cart.Adds [12 ms]\n  Error Message:\n   Assert.Equal() Failure\n   Expected: 3\n   Actual: 2\nFailed!  - Failed:     1, Passed:     2, Skipped:     3, Total:     6\n",
			"dotnet 2 1 3\n:0 [Cart.Adds] Assert.Equal() Failure | 3 | 2"},
		{"1..3\nok 1 - fine\nnot ok 2 - adds\n# (in test file a.bats, line 3)\n#   [ 1 = 2 ] failed\nok 3 later # SKIP\n", "tap 1 1 1\na.bats:3 [adds] [ 1 = 2 ] failed"},
		{"1..0\n", "tap 0 0 0"},
		{`<testsuite tests="3"><testcase classname="Cart" name="adds" file="c.py" line="3"><failure message="want 3, got 2">x</failure></testcase><testcase name="fine"/><testcase name="later"><skipped/></testcase></testsuite>`,
			"junit 1 1 1\nc.py:3 [Cart.adds] want 3, got 2 | 3 | 2"},
		{"  1) Failure:\nT#test_adds [cart_test.rb:4]:\nExpected: 3\n  Actual: 2\n\n2 runs, 2 assertions, 1 failures, 0 errors, 0 skips\n",
			"minitest 1 1 0\ncart_test.rb:4 [T#test_adds] Expected: 3 | 3 | 2"},
	} {
		got, ok := ParseTests(c.output)
		if !ok || showTests(got) != c.want {
			t.Errorf("%v for %q\n got %s\nwant %s", ok, c.output, showTests(got), c.want)
		}
	}
	for _, unknown := range []string{"", "all is well", "make: Nothing to be done", "ok", "3 passed the door", "0 failed of 5 in 0.45s"} {
		if got, ok := ParseTests(unknown); ok {
			t.Errorf("%q is taken for %+v", unknown, got)
		}
	}
}

func showProblems(output string) string {
	var lines []string
	for _, i := range parseProblems(printed.Make(output)) {
		lines = append(lines, show(i))
	}
	return strings.Join(lines, "\n")
}

func TestParseProblemsOfRealRuns(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"gobuild": "bad/b.go:3 [] undefined: x\nbad/b.go:4 [] declared and not used: y",
		"govet":   "empty/e.go:3 [] fmt.Printf format %d has arg \"x\" of wrong type string",
		"gcc":     "a.c:1 [] error: ‘y’ undeclared (first use in this function)\na.c:1 [] warning: implicit declaration of function ‘f’ [-Wimplicit-function-declaration]",
		"tsc":     "a.ts:1 [] error TS2304: Cannot find name 'c'.\na.ts:2 [] error TS2322: Type 'string' is not assignable to type 'number'. | 'number' | 'string'",
		"eslint":  "/repo/bad.js:1 [] error 'x' is assigned a value but never used no-unused-vars\n/repo/bad.js:2 [] error 'f' is defined but never used no-unused-vars\n/repo/bad.js:2 [] error 'y' is not defined no-undef\n/repo/bad.js:1 [] warning Unexpected var, use let or const instead no-var",
		"rustc":   "src/lib.rs:1 [] error[E0425]: cannot find value `y` in this scope",
	} {
		if got := showProblems(read(t, name)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

func TestParseProblemsOfFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ output, want string }{
		{"src/a.ts(5,9): error TS2322: Type 'string' is not assignable to type 'number'.", "src/a.ts:5 [] error TS2322: Type 'string' is not assignable to type 'number'. | 'number' | 'string'"},
		{"src/a.ts:5:9 - error TS2322: Type 'string' is bad.", "src/a.ts:5 [] error TS2322: Type 'string' is bad."},
		{"/repo/a.js\n  3:8  error  'x' is defined but never used  no-unused-vars\n\n✖ 1 problem (1 error, 0 warnings)", "/repo/a.js:3 [] error 'x' is defined but never used no-unused-vars"},
		{"/repo/a.js: line 3, col 8, Error - 'x' is defined but never used. (no-unused-vars)", "/repo/a.js:3 [] Error - 'x' is defined but never used. (no-unused-vars)"},
		{"a.go:3:5: Error return value is not checked (errcheck)", "a.go:3 [] Error return value is not checked (errcheck)"},
		{"a.py:3: error: Incompatible types in assignment  [assignment]", "a.py:3 [] error: Incompatible types in assignment  [assignment]"},
		{"a.py:1:8: F401 [*] `os` imported but unused", "a.py:1 [] F401 [*] `os` imported but unused"},
		{"[ERROR] /repo/A.java:[71,65] cannot find symbol", "/repo/A.java:71 [] cannot find symbol"},
		{"main.tf:3:1: something is wrong", "main.tf:3 [] something is wrong"},
		{" ------ --------\n  Line   src/a.php\n ------ --------\n  14     Undefined variable: $x\n", "src/a.php:14 [] Undefined variable: $x"},
		{"at 10:20:30 it was 3:4", ""},
	} {
		if got := showProblems(c.output); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.output, got, c.want)
		}
	}
}

func TestClassesOfRealRuns(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Class{
		"gotest": TestFailure, "gotest-v": TestFailure, "gotest-json": TestFailure, "gotest-panic": TestFailure,
		"gobuild": CompileError, "gotest-mixed": TestFailure, "gcc": CompileError, "rustc": CompileError,
		"node-spec": TestFailure, "node-tap": TestFailure, "unittest": TestFailure, "cargo": TestFailure,
		"jest": TestFailure, "vitest": TestFailure, "mocha": TestFailure, "tsc": Lint, "eslint": Lint, "govet": Lint,
		"git": GitState, "bash": MissingCommand,
	} {
		a := Analyse(Evidence{Source: "gate", Name: name, ExitCode: 1, Output: read(t, name)})
		if a.Class != want {
			t.Errorf("%s: %s, want %s (%s)", name, a.Class, want, a.Summary)
		}
		if a.Severity == Low != (name == "eslint" || name == "govet") {
			t.Errorf("%s: severity %s", name, a.Severity)
		}
		if len(a.Items) == 0 || len(a.Items) > runners.MaxItems || a.Summary == "" || strings.Contains(a.Summary, "\n") || len(a.Summary) > maxSummary {
			t.Errorf("%s: summary %q, %d items", name, a.Summary, len(a.Items))
		}
	}
}

package failure

import (
	"strings"
	"testing"
)

// What was expected and what came, and where, as the runners really print it.
func TestValuesOfRealRuns(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"jest-color": "jest 0 6 0\n" +
			"a.test.js:2 [auth › token has the user id] expect(received).toBe(expected) // Object.is equality | 42 | \"42\"\n" +
			"a.test.js:3 [auth › objects] expect(received).toEqual(expected) // deep equality | \"c\": 3 | \"c\": 2\n" +
			"a.test.js:4 [auth › length] expect(received).toHaveLength(expected) | 3 | 2\n" +
			"a.test.js:5 [auth › contain] expect(received).toContain(expected) // indexOf | \"userId\" | \"token: x\"\n" +
			"a.test.js:6 [auth › throws] expect(received).toThrow(expected) | \"x\" | did not throw\n" +
			"a.test.js:7 [auth › defined] TypeError: Cannot read properties of undefined (reading 'name')",
		"node-deep": "node 0 3 0\n" +
			"/repo/js/n.test.mjs:2 [deep] Expected values to be strictly deep-equal: | c: 3 | c: 2\n" +
			"/repo/js/n.test.mjs:3 [plain] Expected values to be strictly equal: | 3 | 2\n" +
			"/repo/js/n.test.mjs:4 [len] Expected values to be strictly deep-equal: | 3 | ",
		"gotest-timeout": "go 0 1 0\n/repo/go/a_test.go:3 [TestDrain] test timed out",
		"gotest-index": "go 0 1 0\n/repo/go/p/p_test.go:3 [TestAt] panic: runtime error: index out of range [5] with length 3 " +
			"[recovered, repanicked] | no panic | runtime error: index out of range [5] with length 3",
	} {
		got, ok := ParseTests(read(t, name))
		if !ok || showTests(got) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, ok, showTests(got), want)
		}
	}
}

func TestValuesOfFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ output, want string }{
		{"____ test_status ____\n\n    def test_status():\n>       assert R().status_code == 401\nE       assert 200 == 401\n" +
			"E        +  where 200 = <R object>.status_code\n\nt_x.py:2: AssertionError\n=== 1 failed in 0.11s ===\n",
			"t_x.py:2 [test_status] assert 200 == 401 | 401 | 200"},
		{"____ test_dict ____\nE       AssertionError: assert {'a': 1} == {'a': 2}\n\nt_x.py:3: AssertionError\n=== 1 failed in 0.11s ===\n",
			"t_x.py:3 [test_dict] AssertionError: assert {'a': 1} == {'a': 2} | {'a': 2} | {'a': 1}"},
		{"--- FAIL: TestPay (0.00s)\n    pay_test.go:41: \n        \tError Trace:\t/x/pay_test.go:41\n        \tError:      \tNot equal: \n" +
			"        \t            \texpected: 200\n        \t            \tactual  : 503\n        \tTest:       \tTestPay\nFAIL\n",
			"pay_test.go:41 [TestPay] Error:      \tNot equal: | 200 | 503"},
		{"--- FAIL: TestLen (0.00s)\n    pay_test.go:42: \n        \tError Trace:\t/x/pay_test.go:42\n" +
			"        \tError:      \t\"[1 2]\" should have 3 item(s), but has 2\nFAIL\n",
			"pay_test.go:42 [TestLen] Error:      \t\"[1 2]\" should have 3 item(s), but has 2 | 3 item(s) | 2"},
	} {
		got, ok := ParseTests(c.output)
		if _, items, _ := strings.Cut(showTests(got), "\n"); !ok || items != c.want {
			t.Errorf("%v for %q\n got %s\nwant %s", ok, c.output, items, c.want)
		}
	}
}

// A problem is told with its place, also where only the summary is shown.
func TestPlacesOfProblems(t *testing.T) {
	t.Parallel()
	a := Analyse(Evidence{Source: "gate", ExitCode: 1, Output: "# example.com/shop\ncart/cart.go:17:3: undefined: total\n"})
	if a.Summary != "compile error: cart/cart.go:17: undefined: total" {
		t.Errorf("got %q", a.Summary)
	}
}

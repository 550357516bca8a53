package places

import "testing"

// A sentence that says what is and what should be ends its values where its clauses do.
func TestValuesOfSentences(t *testing.T) {
	t.Parallel()
	for said, values := range map[string][2]string{
		"total is 3 but should be 4 (see the price list)":                                       {"4", "3"},
		"low(I) is 'x', should be 'i'":                                                          {"'i'", "'x'"},
		"Expected [total(cart)] to [be 90]":                                                     {"90", "total(cart)"},
		`Expected /order \d+/ to match "no order".`:                                             {`/order \d+/`, `"no order"`},
		"Expected [1, 2] to include 3.":                                                         {"3", "[1, 2]"},
		"AssertionError: 'total' not found in '<p></p>'":                                        {"'total'", "'<p></p>'"},
		`3. cart.c:9 - CU_ASSERT_EQUAL(total()=4,want=5)`:                                       {"5", "4"},
		`error: Incompatible return value (expression has type "int", variable has type "str")`: {`"str"`, `"int"`},
		`error: Argument 1 to "f" has incompatible type "int"; expected "str"`:                  {`"str"`, `"int"`},
		`Invalid: lock file's semver@7.5.0 does not satisfy semver@7.6.3`:                       {"semver@7.6.3", "semver@7.5.0"},
		`the lock has ({"a":"1"}) doesn't match specs in package.json ({"a":"2"})`:              {`{"a":"2"}`, `{"a":"1"}`},
		"Failed asserting that 100 matches expected 90.":                                        {"90", "100"},
		"Parameter #1 $n of method Cart::add() expects int, string given.":                      {"int", "string"},
		`Argument of type "str" cannot be assigned to parameter "n" of type "int" in "add"`:     {`"int"`, `"str"`},
		"FAILURE: check 1 == 2: as the list says":                                               {"2", "1"},
		"assert {'a': 1} == {'a': 2}":                                                           {"{'a': 2}", "{'a': 1}"},
		"specified: sha256-AAAA":                                                                {"sha256-AAAA", ""},
		"the name does not match the pattern":                                                   {},
	} {
		if want, got := Values(said); want != values[0] || got != values[1] {
			t.Errorf("%q: want %q, got %q", said, want, got)
		}
	}
}

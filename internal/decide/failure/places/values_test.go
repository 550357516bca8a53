package places

import "testing"

// A sentence that says what is and what should be ends its values where its clauses do.
func TestValuesOfSentences(t *testing.T) {
	t.Parallel()
	for said, values := range map[string][2]string{
		"total is 3 but should be 4 (see the price list)": {"4", "3"},
		"low(I) is 'x', should be 'i'":                    {"'i'", "'x'"},
	} {
		if want, got := Values(said); want != values[0] || got != values[1] {
			t.Errorf("%q: want %q, got %q", said, want, got)
		}
	}
}

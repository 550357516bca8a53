package agent

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

// told is an adapter whose program exits with an HTTP status less 256.
type told struct{ Adapter }

func (told) About() About {
	return About{Exits: map[int]failure.APIError{173: {Status: 429, Type: "from_exit"}}}
}

// silent is an adapter whose program has no exit statuses of its own.
type silent struct{ Adapter }

func (silent) About() About { return About{} }

func TestWithExit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		adapter Adapter
		code    int
		errs    []failure.APIError
		want    failure.APIError
	}{
		{"no error was told", told{}, 173, nil, failure.APIError{Status: 429, Type: "from_exit"}},
		{"an error without a status", told{}, 173, []failure.APIError{{Status: 500}, {Message: "m"}}, failure.APIError{Status: 429, Type: "from_exit", Message: "m"}},
		{"the stream knows better", told{}, 173, []failure.APIError{{Status: 400, Type: "t"}}, failure.APIError{Status: 400, Type: "t"}},
		{"its word stays", told{}, 173, []failure.APIError{{Type: "t"}}, failure.APIError{Status: 429, Type: "t"}},
		{"a status that says nothing", told{}, 0, []failure.APIError{{Type: "t"}}, failure.APIError{Type: "t"}},
		{"another adapter", silent{}, 173, []failure.APIError{{Type: "t"}}, failure.APIError{Type: "t"}},
	} {
		before := append([]failure.APIError(nil), test.errs...)
		got := WithExit(test.adapter, test.code, test.errs)
		if len(got) == 0 || got[len(got)-1] != test.want || len(got) != max(1, len(before)) {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
		for i := range before {
			if test.errs[i] != before[i] {
				t.Errorf("%s: the errors that were handed in are changed to %+v", test.name, test.errs)
			}
		}
	}
}

package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/fault"
)

func TestError(t *testing.T) {
	err := fmt.Errorf("step build: %w", fault.Refuse("there is no file %q: %w", "a.yaml", fs.ErrNotExist).Hint("Make it: %s", "pawl init").Hint("Or name another"))
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.Refused {
		t.Fatalf("%v is no refusal", err)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v has lost its cause", err)
	}
	if want := `there is no file "a.yaml": file does not exist`; e.Error() != want {
		t.Errorf("it says %q, want %q: hints are told apart", e, want)
	}
	if want := []string{"Make it: pawl init", "Or name another"}; !slices.Equal(e.Hints, want) {
		t.Errorf("hints are %q, want %q", e.Hints, want)
	}
	if e := fault.Of(fault.Failed, fs.ErrPermission); e.Kind != fault.Failed || !errors.Is(e, fs.ErrPermission) {
		t.Errorf("%v is of kind %s", e, e.Kind)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"aää", 4, "aä…"}, {"ä", 1, "…"}} {
		if got := fault.Cut(c.text, c.most); got != c.want {
			t.Errorf("Cut(%q, %d) is %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

package web

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/web/view"
)

// Each field of a wish that is set is the flag of its name.
func TestFlagsOf(t *testing.T) {
	t.Parallel()
	no := false
	for _, c := range []struct {
		wish any
		want string
	}{
		{view.Raise{}, ""},
		{view.Raise{MaxIterations: "20", MaxCost: "2.50", Timeout: "90m"}, "--max-cost=2.50 --max-iterations=20 --timeout=90m"},
		{view.StartWish{Fresh: true, Context: []string{"a", "b"}, Raise: view.Raise{MaxCost: "1"}}, "--context=a --context=b --fresh=true --max-cost=1"},
		{view.StartWish{Agent: "careful", Safety: "paranoid"}, "--agent=careful --safety=paranoid"},
		{view.PilotWish{MaxParallel: 12, Keep: true}, "--keep=true --max-parallel=12"},
		{
			view.SprintWish{Count: "3", Operations: []string{"op-001"}, Tags: []string{"x"}, ExcludeTags: []string{"y"}, Checkpoint: &no, NoReady: true},
			"--checkpoint=false --count=3 --exclude-tag=y --no-ready=true --op=op-001 --tag=x",
		},
	} {
		if got := view.FlagsOf(c.wish); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%+v: %v, want %s", c.wish, got, c.want)
		}
	}
}

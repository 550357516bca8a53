package engine

import (
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
)

// A child inherits what it may, but not what its program must not see, and is
// marked as the run's whatever it inherits.
func TestEnviron(t *testing.T) {
	t.Parallel()
	w := newWorker(&session{id: "r1", plan: runplan.Plan{Marks: []string{"PAWL_CASE=task-001"}}})
	inherited := []string{"A=1", "SECRET=x=y", "SECRETS=2", "EMPTY=", "PAWL_RUN=other"}
	got := w.childEnvironment(inherited, 3, []string{"CACHE=/c"}, []string{"B=2"},
		[]string{"SECRET", "EMPTY", "SECRETS_OF_OTHERS"})
	want := []string{"A=1", "SECRETS=2", "PAWL_RUN=other", "CACHE=/c", "B=2", "PAWL_CASE=task-001", "PAWL_RUN=r1", "PAWL_ITERATION=3"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if inherited[1] != "SECRET=x=y" {
		t.Errorf("the plan's own list has changed: %q", inherited)
	}
}

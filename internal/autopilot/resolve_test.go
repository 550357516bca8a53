package autopilot

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/queue"
)

// An agent is told of each file what is in conflict there, and of one that a
// program makes, how it is made anew.
func TestConflictText(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	conflictText(&b, &queue.Conflict{Files: []queue.File{
		{Path: "a.go", Hunks: []queue.Hunk{{Ours: []string{"one"}, Theirs: []string{"two"}}}},
		{Path: "go.sum", Regenerate: "go mod tidy"},
	}})
	at := 0
	for _, want := range []string{"- a.go\n", "one", "two", "- go.sum\n", "go mod tidy"} {
		i := strings.Index(b.String()[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing, or not in its place:\n%s", want, &b)
		}
		at += i
	}
}

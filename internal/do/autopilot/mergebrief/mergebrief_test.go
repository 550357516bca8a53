package mergebrief

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
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
	inOrder(t, b.String(), "- a.go\n", "one", "two", "- go.sum\n", "go mod tidy")
}

// An agent that is to land what others were in the way of is told what is wrong, what
// the others did, and what the change was for.
func TestResolution(t *testing.T) {
	t.Parallel()
	p := merge.Problem{Entry: queue.Entry{ID: "task-007", Commit: "c0ffee"}, Landed: []git.Landing{{Message: "task-003: Cut\n"}}}
	p.Problem.Red, p.Problem.Said = "test: 2 of 40 tests fail", "> too slow\n"
	p.Problem.Conflict = &queue.Conflict{Files: []queue.File{{Path: "a.go"}}}
	inOrder(t, Write(p, pool.Workspace{Setup: []string{"make deps"}}, "Parse the header."),
		"task-007", "git merge c0ffee", "make deps", "test: 2 of 40 tests fail", "> too slow", "- a.go", "task-003: Cut",
		"Parse the header.")
}

// inOrder fails the test where a text does not have some others in their order.
func inOrder(t *testing.T, text string, wants ...string) {
	t.Helper()
	at := 0
	for _, want := range wants {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing, or not in its place:\n%s", want, text)
		}
		at += i
	}
}

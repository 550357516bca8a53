package hook

import (
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/queue"
)

func TestOfNote(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		note queue.Note
		name Name
		text string
	}{
		{queue.Note{Kind: queue.NoteLanded, ID: "task-1", Text: "landed", Commit: "0123456789abcdef"}, PostMerge, "task-1 landed on main as 0123456789ab"},
		{
			queue.Note{Kind: queue.NoteConflict, ID: "task-1", Text: "both changed it", Class: queue.Medium, Paths: []string{"a", "b"}}, Conflict,
			"task-1 conflicts (medium) in a, b: both changed it",
		},
		{
			queue.Note{Kind: queue.NoteEscalated, ID: "task-1", Text: "it is red"}, Escalation,
			"task-1 needs you: it is red\nAnswer with: pawl queue retry task-1 (with all attempts of an agent anew), or pawl queue drop task-1",
		},
		{
			queue.Note{Kind: queue.NoteStopped, Text: "main is red itself"}, Escalation,
			"the merge queue of main needs you: main is red itself\nAnswer with: pawl queue resume",
		},
		{queue.Note{Kind: queue.NoteFlaky, ID: "task-1", Text: "flaky"}, "", ""},
	} {
		e, ok := OfNote(c.note, "main")
		if ok != (c.name != "") {
			t.Errorf("%s is an event: %t", c.note.Kind, ok)
		}
		if ok && (e.Name != c.name || e.completeEvent(time.Now()).Text != c.text) {
			t.Errorf("%s: %s %q, want %s %q", c.note.Kind, e.Name, e.completeEvent(time.Now()).Text, c.name, c.text)
		}
	}
}

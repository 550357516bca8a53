package queue

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
)

// What is asked of entries names them, and what is asked of the queue names none.
func TestWishesNameEntries(t *testing.T) {
	t.Parallel()
	c := Command(&command.App{})
	for name, entries := range map[string]bool{
		"list": false, "hold": true, "release": true, "retry": true, "drop": true, "pause": false, "resume": false,
	} {
		sub, _, err := c.Find([]string{name})
		if err != nil || sub.Name() != name {
			t.Errorf("there is no queue %s: %v", name, err)
			continue
		}
		if alone := sub.Args(sub, nil) == nil; alone == entries {
			t.Errorf("queue %s is taken without an entry: %v", name, alone)
		}
		if with := sub.Args(sub, []string{"task-001"}) == nil; with != entries {
			t.Errorf("queue %s is taken with an entry: %v", name, with)
		}
	}
}

package cli

import (
	"strings"
	"testing"
)

// Each command that a group names is there, and in it.
func TestGroups(t *testing.T) {
	t.Parallel()
	root := Root()
	for _, g := range groups {
		for _, name := range strings.Fields(g[1]) {
			if c, _, err := root.Find([]string{name}); err != nil || c.GroupID != g[0] {
				t.Errorf("%s is not in %q: %v", name, g[0], err)
			}
		}
	}
}

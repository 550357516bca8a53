package dashboard

import (
	"strings"
	"testing"
)

// A narrow screen leaves out columns, the one that can be missed most first.
func TestColumnsByWidth(t *testing.T) {
	for _, c := range []struct {
		width       int
		cost, title bool
	}{{63, false, false}, {64, false, true}, {80, false, true}, {89, false, true}, {90, true, true}} {
		row := ""
		for line := range strings.Lines(newTable(t, busy(), c.width, 24).text()) {
			if strings.Contains(line, "▸ task-001") {
				row = line
			}
		}
		if !strings.Contains(row, "edit: login.go") {
			t.Errorf("%d columns: %q does not say what the agent does", c.width, row)
		}
		if strings.Contains(row, "$1.23") != c.cost || strings.Contains(row, "Add a login page") != c.title {
			t.Errorf("%d columns: %q; cost %v, title %v are expected", c.width, row, c.cost, c.title)
		}
	}
}

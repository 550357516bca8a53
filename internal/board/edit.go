package board

import (
	"fmt"
	"slices"
	"strings"
)

// CanEdit refuses to change what has landed. The error is a [*RefusalError].
func CanEdit(c *Case) error {
	if c.Status == Done {
		return &RefusalError{c.ID, fmt.Sprintf("cannot edit %s: it is done", c.ID), instead(c, Change{Action: Edit})}
	}
	return nil
}

// CanRemove refuses to remove what a loop works on, what others need, and
// what holds others. The error is a [*RefusalError].
func CanRemove(c *Case, dependents []string) error {
	switch {
	case c.Status == Active || c.Status == Review:
		why := fmt.Sprintf("cannot remove %s: it is %s", c.ID, c.Status)
		return &RefusalError{c.ID, why, instead(c, Change{Action: Remove})}
	case c.Children > 0:
		return &RefusalError{
			c.ID, fmt.Sprintf("cannot remove %s: it holds %d cases", c.ID, c.Children),
			"Remove those first, or move them: pawl case edit ID --parent ''",
		}
	case len(dependents) > 0:
		const most = 5
		list := strings.Join(dependents[:min(len(dependents), most)], ", ")
		if len(dependents) > most {
			list += fmt.Sprintf(" and %d more", len(dependents)-most)
		}
		return &RefusalError{
			c.ID, fmt.Sprintf("cannot remove %s: %s would lose what they need", c.ID, list),
			"Take the need away first: pawl case edit " + dependents[0] + " --unneed " + c.ID,
		}
	}
	return nil
}

// Changed names the fields that an edit changed.
func Changed(before, after *Case) []string {
	var names []string
	for _, f := range []struct {
		name string
		same bool
	}{
		{"title", before.Title == after.Title},
		{"description", before.Description == after.Description},
		{"acceptance", slices.Equal(before.Acceptance, after.Acceptance)},
		{"tags", slices.Equal(before.Tags, after.Tags)},
		{"priority", before.Priority == after.Priority},
		{"parent", before.Parent == after.Parent},
		{"needs", slices.Equal(before.Needs, after.Needs)},
	} {
		if !f.same {
			names = append(names, f.name)
		}
	}
	return names
}

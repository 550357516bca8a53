package board

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strings"
)

// kanbanHead begins the export of vibe-kanban: issues.csv, and relationships.csv, which
// may follow it in the same text.
const kanbanHead = "Issue ID,"

// kanbanPriorities are those of vibe-kanban.
var kanbanPriorities = map[string]int{"urgent": 2, "high": 1, "medium": 0, "low": -1}

// parseKanban reads the export of vibe-kanban. Issues that were cancelled are left out,
// with the links to them.
func parseKanban(text []byte, problems *ProblemsError) List {
	list := List{Format: Kanban}
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		problems.add(0, "the table cannot be read: %v", err)
		return list
	}
	left, at := map[string]bool{}, map[string]int{}
	var column map[string]int
	for n, row := range rows {
		if row[0] == strings.TrimSuffix(kanbanHead, ",") {
			column = map[string]int{}
			for i, name := range row {
				column[name] = i
			}
			continue
		}
		field := func(name string) string {
			if i, ok := column[name]; ok && i < len(row) {
				return strings.TrimSpace(row[i])
			}
			return ""
		}
		switch id, other := field("Issue ID"), field("Related Issue ID"); {
		case other != "":
			if i, ok := at[other]; ok && strings.EqualFold(field("Type"), "blocking") && !left[id] {
				list.Drafts[i].Case.Needs = append(list.Drafts[i].Case.Needs, id)
			}
		case strings.EqualFold(field("Status"), "cancelled"):
			left[id] = true
		default:
			at[id] = len(list.Drafts)
			list.Drafts = append(list.Drafts, Draft{Line: n + 1, Case: kanbanCase(field)})
		}
	}
	kanbanParents(list.Drafts, at)
	if len(left) > 0 {
		list.Notes = append(list.Notes, fmt.Sprintf("%d left out: cancelled", len(left)))
	}
	return list
}

func kanbanCase(field func(string) string) Case {
	c := Case{
		Type: Task, Ref: field("Issue ID"), Title: field("Title"), Description: field("Description"),
		Priority: kanbanPriorities[strings.ToLower(field("Priority"))], Parent: field("Parent Issue"),
	}
	if labels := field("Labels"); labels != "" {
		c.Tags = words(strings.Split(labels, ", "))
	}
	status := field("Status")
	switch {
	case strings.EqualFold(status, "done"), field("Completed") != "":
		c.Status, c.Why = Done, "done in vibe-kanban"
	case strings.EqualFold(status, "backlog"):
		c.Status, c.Why = Deferred, "in vibe-kanban's backlog"
	}
	return c
}

// kanbanParents makes operations of issues with children. A parent that is not in the
// list is none.
func kanbanParents(drafts []Draft, at map[string]int) {
	for i := range drafts {
		c := &drafts[i].Case
		if parent, ok := at[c.Parent]; ok {
			drafts[parent].Case.Type = Operation
		} else {
			c.Parent = ""
		}
	}
}

package board

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// tableColumns are the columns of a table that are read, by the names that trackers and
// people give them.
var tableColumns = map[string]string{
	"issue id": "ref", "issue key": "ref", "id": "ref", "key": "ref", "ref": "ref",
	"title": "title", "summary": "title", "name": "title", "description": "description",
	"status": "status", "state": "status", "completed": "completed", "priority": "priority",
	"labels": "tags", "label": "tags", "tags": "tags", "parent issue": "parent", "parent": "parent",
	"needs": "needs", "blocked by": "needs", "depends on": "needs", "related issue id": "related", "type": "type",
}

// tablePriorities are words for a priority; a number stands for itself.
var tablePriorities = map[string]int{
	"highest": 2, "urgent": 2, "critical": 2, "blocker": 2, "high": 1, "low": -1, "lowest": -2,
}

// columns finds where a table's first line names the columns that are read.
func columns(head []string) map[string]int {
	at := map[string]int{}
	for i, name := range head {
		known := tableColumns[strings.ToLower(strings.TrimSpace(name))]
		if _, twice := at[known]; known != "" && !twice {
			at[known] = i
		}
	}
	return at
}

// isTable says whether a text begins with the head of a table: a line that names a title
// and another column.
func isTable(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	names, err := csv.NewReader(bytes.NewReader(line)).Read()
	at := columns(names)
	_, title := at["title"]
	return err == nil && title && len(at) > 1
}

// parseTable reads a table of tasks (CSV), as trackers export it. In the export of
// vibe-kanban a second table follows, with the first column of the first one: what blocks
// what. Tasks that were cancelled are left out, with the links to them.
func parseTable(text []byte, problems *ProblemsError) List {
	list := List{Format: Table}
	text = bytes.TrimRight(text, " \t\r\n") // with its last row nothing is left
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = -1
	left, at := map[string]bool{}, map[string]int{}
	dropped := 0
	var head []string
	var column map[string]int
	for r.InputOffset() < int64(len(text)) {
		row, err := r.Read()
		if err != nil {
			problems.add(0, "the table cannot be read: %v", err)
			return list
		}
		if head == nil || row[0] == head[0] {
			head, column = row, columns(row)
			continue
		}
		field := func(name string) string {
			if i, ok := column[name]; ok && i < len(row) {
				return strings.TrimSpace(row[i])
			}
			return ""
		}
		switch id, other := field("ref"), field("related"); {
		case other != "":
			if i, ok := at[other]; ok && strings.EqualFold(field("type"), "blocking") && !left[id] {
				list.Drafts[i].Case.Needs = append(list.Drafts[i].Case.Needs, id)
			}
		case cancelled(field("status")):
			left[id] = true
			dropped++
		default:
			at[id] = len(list.Drafts)
			line, _ := r.FieldPos(0)
			list.Drafts = append(list.Drafts, Draft{Line: line, Case: tableCase(field)})
		}
	}
	tableLinks(list.Drafts, at, left)
	if dropped > 0 {
		list.Notes = append(list.Notes, fmt.Sprintf("%d left out: cancelled", dropped))
	}
	return list
}

// cancelled says whether a word of a tracker means that nobody is to do it.
func cancelled(status string) bool {
	switch strings.ToLower(status) {
	case "cancelled", "canceled", "duplicate", "won't do", "won't fix", "wontfix":
		return true
	}
	return false
}

func tableCase(field func(string) string) Case {
	c := Case{
		Type: Task, Ref: field("ref"), Title: field("title"), Description: field("description"), Parent: field("parent"),
		Tags: words(list(field("tags"))), Needs: list(field("needs")),
	}
	priority := field("priority")
	if n, err := strconv.Atoi(priority); err == nil {
		c.Priority = n
	} else {
		c.Priority = tablePriorities[strings.ToLower(priority)]
	}
	switch status := strings.ToLower(field("status")); {
	case slices.Contains([]string{"done", "closed", "resolved", "completed"}, status), field("completed") != "":
		c.Status, c.Why = Done, "done in the table"
	case status == "backlog", status == "deferred":
		c.Status, c.Why = Deferred, "put off in the table"
	}
	return c
}

// list are the words between commas.
func list(text string) []string {
	var found []string
	for _, word := range strings.Split(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			found = append(found, word)
		}
	}
	return found
}

// tableLinks makes operations of tasks with children, and drops needs that were
// cancelled. A parent that is not in the list is none.
func tableLinks(drafts []Draft, at map[string]int, left map[string]bool) {
	for i := range drafts {
		c := &drafts[i].Case
		if parent, ok := at[c.Parent]; ok && c.Parent != "" {
			drafts[parent].Case.Type = Operation
		} else {
			c.Parent = ""
		}
		c.Needs = slices.DeleteFunc(c.Needs, func(ref string) bool { return left[ref] })
	}
}

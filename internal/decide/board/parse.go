package board

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The limits of a list of tasks.
const (
	MaxList   = 64 << 20 // bytes
	MaxDrafts = 200_000
)

// Format is how a list of tasks is written.
type Format string

// The formats.
const (
	Markdown Format = "markdown" // a task list: - [ ] title
	Lines    Format = "jsonl"    // one JSON object a line, with pawl's fields
	Beads    Format = "beads"    // the JSONL export of beads
	Ralph    Format = "ralph"    // the prd.json of a ralph loop
	Table    Format = "csv"      // a table, as trackers export it
)

// List is what a file of tasks holds.
type List struct {
	Format Format
	Drafts []Draft
	Notes  []string // what was left out, and why
}

// Parse reads a list of tasks; which format it has it sees. The error is a
// [*ProblemsError] with the lines of what cannot be understood.
func Parse(text []byte) (List, error) {
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	problems := &ProblemsError{}
	var list List
	switch start := bytes.TrimLeft(text, " \t\r\n"); {
	case len(text) > MaxList:
		problems.add(0, "the list has %d bytes, at most %d", len(text), MaxList)
	case !utf8.Valid(text):
		problems.add(firstInvalidLine(text), "the text is not UTF-8")
	case len(start) == 0:
		problems.add(0, "the list is empty")
	case start[0] == '{', bytes.HasPrefix(start, []byte("[{")), bytes.HasPrefix(start, []byte("[\n")):
		list = parseJSON(text, problems)
	case openTable(start) != nil:
		list = parseTable(text, problems)
	default:
		list = List{Format: Markdown, Drafts: parseMarkdown(string(text), problems)}
	}
	if n := len(list.Drafts); n > MaxDrafts {
		problems.add(list.Drafts[MaxDrafts].Line, "more than %d tasks at once; add them in parts", MaxDrafts)
	} else if n == 0 && len(problems.Problems) == 0 && len(list.Notes) == 0 {
		problems.add(0, "it has no tasks: write '- [ ] title' lines, one JSON object a line, or a table (CSV) "+
			"whose first line names its columns: title, and id, description, status, priority, labels, parent or needs")
	}
	return list, problems.sortedOrNil()
}

// parseJSON reads JSON of any kind.
func parseJSON(text []byte, problems *ProblemsError) List {
	if list, ok := parseStories(bytes.TrimSpace(text), problems); ok {
		return list
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		problems.add(1, "this is a JSON list; write one object a line, without brackets and commas around them")
		return List{}
	}
	return parseLines(text, problems)
}

// firstInvalidLine is the first line that is not UTF-8.
func firstInvalidLine(text []byte) int {
	for i, line := range bytes.Split(text, []byte("\n")) {
		if !utf8.Valid(line) {
			return i + 1
		}
	}
	return 0
}

// parseLines reads JSON lines. An object with an id and without a ref is one
// of beads'; a list is of one kind.
func parseLines(text []byte, problems *ProblemsError) List {
	var list List
	var issues beads
	for i, line := range bytes.Split(text, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(line, &keys); err != nil {
			problems.add(i+1, "not a JSON object: %s", jsonError(err))
			continue
		}
		format := Lines
		if _, has := keys["id"]; has && keys["ref"] == nil {
			format = Beads
		}
		list.Format = cmp.Or(list.Format, format)
		switch {
		case format != list.Format:
			problems.add(i+1, "a different kind of object than the first: "+
				"with pawl's fields there is a ref and no id, in an export of beads an id and no ref")
		case format == Beads:
			issues.readIssue(i+1, line, problems)
		default:
			if d, ok := parseLine(i+1, line, keys, problems); ok {
				list.Drafts = append(list.Drafts, d)
			}
		}
	}
	if list.Format == Beads {
		list.Drafts, list.Notes = issues.draftsOfIssues()
	}
	return list
}

// jsonError is a decoder's message without its package's name.
func jsonError(err error) string {
	return cutForMessage(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "json: "), "cannot unmarshal "))
}

// texts is a list of texts, or one text.
type texts []string

func (t *texts) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = texts{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("write a text or a list of texts")
	}
	*t = list
	return nil
}

// line is one object with pawl's fields.
type line struct {
	Ref         string `json:"ref"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Acceptance  texts  `json:"acceptance"`
	Needs       texts  `json:"needs"`
	Tags        texts  `json:"tags"`
	Priority    int    `json:"priority"`
	Parent      string `json:"parent"`
	Type        Type   `json:"type"`
	Status      Status `json:"status"`
	Policy      string `json:"policy"`

	Verify  checkList       `json:"verify"`
	Sealed  checkList       `json:"sealed"`
	Control json.RawMessage `json:"iteration_control"`
}

var lineKeys = []string{
	"ref", "title", "description", "acceptance", "needs", "tags", "priority", "parent", "type", "status", "policy",
	"iteration_control", "verify", "sealed",
}

func parseLine(n int, text []byte, keys map[string]json.RawMessage, problems *ProblemsError) (Draft, bool) {
	var unknown []string
	// order does not show: the list is sorted below
	for key := range keys {
		if !slices.Contains(lineKeys, key) {
			unknown = append(unknown, fmt.Sprintf("%q", cutForMessage(key)))
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		first := unknown[:min(len(unknown), 5)]
		problems.add(n, "unknown field %s; known are %s", strings.Join(first, ", "), strings.Join(lineKeys, ", "))
		return Draft{}, false
	}
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		problems.add(n, "%s", jsonError(err))
		return Draft{}, false
	}
	switch l.Policy {
	case "":
	case "task", "controlled":
		l.Tags = append(l.Tags, PolicyTag+l.Policy)
	default:
		problems.add(n, "policy must be task or controlled, not %q", cutForMessage(l.Policy))
	}
	var control *Control
	if len(l.Control) > 0 {
		control = &Control{}
		if err := control.readObject(l.Control); err != nil {
			problems.add(n, "%v", err)
		}
	}
	return Draft{Line: n, Case: Case{
		Ref: l.Ref, Title: l.Title, Description: l.Description, Acceptance: l.Acceptance, Needs: l.Needs, Tags: l.Tags,
		Priority: l.Priority, Parent: l.Parent, Type: l.Type, Status: l.Status,
		Checks: Checks{l.Verify, l.Sealed}, Control: control,
	}}, true
}

// tableColumns are the columns of a table that are read, by the names that trackers and
// people give them.
var tableColumns = map[string]string{
	"issue id": "ref", "issue key": "ref", "identifier": "ref", "id": "ref", "key": "ref", "ref": "ref",
	"title": "title", "summary": "title", "name": "title", "description": "description",
	"status": "status", "state": "status", "completed": "completed", "priority": "priority",
	"labels": "tags", "label": "tags", "tags": "tags", "parent issue": "parent", "parent": "parent",
	"needs": "needs", "blocked by": "needs", "depends on": "needs", "related issue id": "related", "type": "type",
}

// tablePriorities are words for a priority; a number stands for itself.
var tablePriorities = map[string]int{
	"highest": 2, "urgent": 2, "critical": 2, "blocker": 2, "high": 1, "low": -1, "lowest": -2,
}

// findColumns finds where a table's first line names the columns that are read. Some trackers
// have a column for each label.
func findColumns(head []string) map[string][]int {
	at := map[string][]int{}
	for i, name := range head {
		if known := tableColumns[strings.ToLower(strings.TrimSpace(name))]; known != "" {
			at[known] = append(at[known], i)
		}
	}
	return at
}

// openTable opens a text that begins with the head of a table: a line that names a title and
// another column, with commas, semicolons or tabs between. Else it is nil.
func openTable(text []byte) *csv.Reader {
	line, _, _ := bytes.Cut(bytes.TrimLeft(text, " \t\r\n"), []byte("\n"))
	for _, comma := range ",;\t" {
		head := csv.NewReader(bytes.NewReader(line))
		head.Comma = comma
		names, err := head.Read()
		if at := findColumns(names); err == nil && at["title"] != nil && len(at) > 1 {
			r := csv.NewReader(bytes.NewReader(text))
			r.Comma, r.FieldsPerRecord = comma, -1
			return r
		}
	}
	return nil
}

// parseTable reads a table of tasks (CSV), as trackers export it. In the export of
// vibe-kanban a second table follows, with the first column of the first one: what blocks
// what. Tasks that were cancelled are left out, with the links to them.
func parseTable(text []byte, problems *ProblemsError) List {
	list := List{Format: Table}
	text = bytes.TrimRight(text, " \t\r\n") // with its last row nothing is left
	r := openTable(text)
	left, at := map[string]bool{}, map[string]int{}
	dropped := 0
	var head []string
	var column map[string][]int
	for r.InputOffset() < int64(len(text)) {
		row, err := r.Read()
		if err != nil {
			problems.add(0, "the table cannot be read: %v", err)
			return list
		}
		if len(head) == 0 || row[0] == head[0] {
			head, column = row, findColumns(row)
			continue
		}
		field := func(name string) string {
			var all []string
			for _, i := range column[name] {
				if i < len(row) && strings.TrimSpace(row[i]) != "" {
					all = append(all, strings.TrimSpace(row[i]))
				}
			}
			if name == "tags" || name == "needs" || len(all) == 0 {
				return strings.Join(all, ",")
			}
			return all[0]
		}
		switch id, other := field("ref"), field("related"); {
		case other != "":
			if i, ok := at[other]; ok && strings.EqualFold(field("type"), "blocking") && !left[id] {
				list.Drafts[i].Case.Needs = append(list.Drafts[i].Case.Needs, id)
			}
		case isCancelled(field("status")):
			left[id] = true
			dropped++
		default:
			at[id] = len(list.Drafts)
			line, _ := r.FieldPos(0)
			if p := field("priority"); isFraction(p) {
				problems.add(line, "the priority %s is not a whole number", p)
			}
			list.Drafts = append(list.Drafts, Draft{Line: line, Case: tableCase(field)})
		}
	}
	tableLinks(list.Drafts, at, left)
	if dropped > 0 {
		list.Notes = append(list.Notes, fmt.Sprintf("%d left out: cancelled", dropped))
	}
	return list
}

// isCancelled reports whether the word of a tracker means that the work is not to be done.
func isCancelled(status string) bool {
	switch strings.ToLower(status) {
	case "cancelled", "canceled", "duplicate", "won't do", "won't fix", "wontfix":
		return true
	}
	return false
}

// isFraction reports whether a priority is a number, but no whole one. An unknown word is no number.
func isFraction(priority string) bool {
	_, err := strconv.ParseFloat(priority, 64)
	_, whole := strconv.Atoi(priority)
	return !errors.Is(err, strconv.ErrSyntax) && whole != nil
}

func tableCase(field func(string) string) Case {
	c := Case{
		Type: Task, Ref: field("ref"), Title: field("title"), Description: field("description"),
		Parent: field("parent"),
		Tags:   tagsOfLabels(wordsBetweenCommas(field("tags"))), Needs: wordsBetweenCommas(field("needs")),
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
		c.Status, c.Why = Deferred, "deferred in the table"
	}
	return c
}

// wordsBetweenCommas leaves empty ones out.
func wordsBetweenCommas(text string) []string {
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

package board

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
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
		problems.add(badLine(text), "the text is not UTF-8")
	case len(start) == 0:
		problems.add(0, "the list is empty")
	case start[0] == '{', bytes.HasPrefix(start, []byte("[{")), bytes.HasPrefix(start, []byte("[\n")):
		list = parseJSON(text, problems)
	case isTable(start):
		list = parseTable(text, problems)
	default:
		list = List{Format: Markdown, Drafts: parseMarkdown(string(text), problems)}
	}
	if n := len(list.Drafts); n > MaxDrafts {
		problems.add(list.Drafts[MaxDrafts].Line, "more than %d cases at once; add them in parts", MaxDrafts)
	} else if n == 0 && len(problems.Problems) == 0 && len(list.Notes) == 0 {
		problems.add(0, "no tasks are in it: write '- [ ] title' lines, one JSON object a line, or a table (CSV) "+
			"whose first line names its columns: title, and id, description, status, priority, labels, parent or needs")
	}
	return list, problems.orNil()
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

// badLine is the first line that is not UTF-8.
func badLine(text []byte) int {
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
			problems.add(i+1, "no JSON object: %s", jsonError(err))
			continue
		}
		format := Lines
		if _, has := keys["id"]; has && keys["ref"] == nil {
			format = Beads
		}
		if list.Format == "" {
			list.Format = format
		}
		switch {
		case format != list.Format:
			problems.add(i+1, "an object of another kind than the first: "+
				"with pawl's fields there is a ref and no id, in an export of beads an id and no ref")
		case format == Beads:
			issues.read(i+1, line, problems)
		default:
			if d, ok := parseLine(i+1, line, keys, problems); ok {
				list.Drafts = append(list.Drafts, d)
			}
		}
	}
	if list.Format == Beads {
		list.Drafts, list.Notes = issues.drafts()
	}
	return list
}

// jsonError is a decoder's message without its package's name.
func jsonError(err error) string {
	return short(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "json: "), "cannot unmarshal "))
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
}

var lineKeys = []string{
	"ref", "title", "description", "acceptance", "needs", "tags", "priority", "parent", "type", "status",
}

func parseLine(n int, text []byte, keys map[string]json.RawMessage, problems *ProblemsError) (Draft, bool) {
	var unknown []string
	// order does not show: the list is sorted below
	for key := range keys {
		if !slices.Contains(lineKeys, key) {
			unknown = append(unknown, fmt.Sprintf("%q", short(key)))
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
	return Draft{Line: n, Case: Case{
		Ref: l.Ref, Title: l.Title, Description: l.Description, Acceptance: l.Acceptance, Needs: l.Needs, Tags: l.Tags,
		Priority: l.Priority, Parent: l.Parent, Type: l.Type, Status: l.Status,
	}}, true
}

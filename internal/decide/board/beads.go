package board

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// issue has the fields of a line of beads' export that pawl reads.
type issue struct {
	ID           string   `json:"id"`
	Title        string   `json:"title"`
	Description  string   `json:"description"`
	Design       string   `json:"design"`
	Acceptance   string   `json:"acceptance_criteria"`
	Notes        string   `json:"notes"`
	Status       string   `json:"status"`
	Priority     *int     `json:"priority"`
	Type         string   `json:"issue_type"`
	Labels       []string `json:"labels"`
	CloseReason  string   `json:"close_reason"`
	Dependencies []struct {
		On   string `json:"depends_on_id"`
		Type string `json:"type"`
	} `json:"dependencies"`
	line int
}

// beads collects issues: what they mean is known when all are read.
type beads struct{ issues []issue }

func (b *beads) readIssue(n int, text []byte, problems *ProblemsError) {
	var i issue
	if err := json.Unmarshal(text, &i); err != nil {
		problems.add(n, "%s", jsonError(err))
		return
	}
	if i.ID == "" {
		problems.add(n, "the issue has no id")
		return
	}
	i.line = n
	b.issues = append(b.issues, i)
}

// notWork are types of issues that are no work.
var notWork = []string{"message", "merge-request", "gate", "event", "molecule", "agent", "role", "convoy"}

// draftsOfIssues makes cases of issues. What is deleted or no work is left out, with
// the links to it.
func (b *beads) draftsOfIssues() ([]Draft, []string) {
	left := map[string]bool{}
	why := map[string]int{}
	parents := map[string]bool{}
	for _, i := range b.issues {
		switch {
		case i.Status == "tombstone":
			left[i.ID] = true
			why["deleted"]++
		case slices.Contains(notWork, i.Type):
			left[i.ID] = true
			why["no work ("+i.Type+")"]++
		case i.Status == "pinned":
			left[i.ID] = true
			why["no work (pinned)"]++
		default:
			parents[i.parentID()] = true
		}
	}
	list := make([]Draft, 0, len(b.issues))
	for _, i := range b.issues {
		if left[i.ID] {
			continue
		}
		d := i.draftOfIssue(left)
		if parents[i.ID] || i.Type == "epic" {
			d.Case.Type = Operation
		}
		list = append(list, d)
	}
	var notes []string
	// order does not show: the list is sorted below
	for reason, n := range why {
		notes = append(notes, fmt.Sprintf("%d left out: %s", n, reason))
	}
	slices.Sort(notes)
	return list, notes
}

// parentID is the first that the issue is a child of; "" for none. An id such
// as bd-1.2 says nothing by itself: the export has the link too.
func (i *issue) parentID() string {
	for _, d := range i.Dependencies {
		if d.Type == "parent-child" {
			return d.On
		}
	}
	return ""
}

func (i *issue) draftOfIssue(left map[string]bool) Draft {
	c := Case{
		Ref: i.ID, Type: Task, Title: i.Title, Tags: tagsOfLabels(i.Labels), Acceptance: readCriteria(i.Acceptance),
	}
	for _, part := range []struct{ head, text string }{
		{"", i.Description}, {"Design:\n\n", i.Design}, {"Notes:\n\n", i.Notes},
	} {
		if text := strings.TrimSpace(part.text); text != "" {
			c.Description = strings.TrimLeft(c.Description+"\n\n"+part.head+text, "\n")
		}
	}
	if i.Priority != nil {
		c.Priority = 2 - *i.Priority // 0 is the highest there, and 2 the usual one
	}
	if parent := i.parentID(); !left[parent] {
		c.Parent = parent
	}
	for _, d := range i.Dependencies {
		switch d.Type {
		case "blocks", "conditional-blocks", "waits-for", "":
			if !left[d.On] {
				c.Needs = append(c.Needs, d.On)
			}
		}
	}
	switch i.Status {
	case "closed":
		c.Status, c.Why = Done, "closed in beads"
		if reason := tidyReason(i.CloseReason); reason != "" {
			c.Why += ": " + reason
		}
	case "blocked":
		c.Status, c.Why = Blocked, "blocked in beads"
	case "deferred":
		c.Status, c.Why = Deferred, "deferred in beads"
	}
	return Draft{Line: i.line, Case: c}
}

// tagsOfLabels makes tags of labels: without blanks and commas.
func tagsOfLabels(labels []string) []string {
	separates := func(r rune) bool { return r == ' ' || r == '\t' || r == ',' }
	return lists.Each(labels, func(l string) string { return strings.Join(strings.FieldsFunc(l, separates), "-") })
}

// readCriteria gives the lines of a list, or a text as a whole.
func readCriteria(text string) []string {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	var list []string
	for _, l := range strings.Split(text, "\n") {
		item, ok := cutBullet(strings.TrimSpace(l))
		if !ok {
			return []string{text}
		}
		if _, title, box := readCheckbox(item); box {
			item = title
		}
		list = append(list, item)
	}
	return list
}

// story has the fields of a story in a prd.json, as loops called ralph have it, that pawl reads.
type story struct {
	ID          json.RawMessage `json:"id"` // a text or a number
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Acceptance  texts           `json:"acceptanceCriteria"`
	Steps       texts           `json:"steps"`
	Notes       texts           `json:"notes"`
	Tags        texts           `json:"tags"`
	Category    string          `json:"category"`
	Priority    json.RawMessage `json:"priority"` // 1 is first; a word says nothing of the order
	Passes      *bool           `json:"passes"`
	Needs       texts           `json:"dependencies"`
	DependsOn   texts           `json:"dependsOn"`
}

// parseStories reads a prd.json: an object with userStories, or a list of stories.
// ok is false when the text is none.
func parseStories(text []byte, problems *ProblemsError) (list List, ok bool) {
	var file struct {
		Stories []json.RawMessage `json:"userStories"`
	}
	var into any = &file
	if text[0] == '[' {
		into = &file.Stories
	}
	if err := json.Unmarshal(text, into); err != nil || len(file.Stories) == 0 {
		return List{}, false
	}
	stories, from := make([]story, len(file.Stories)), 0
	lines := make([]int, len(file.Stories))
	for i, raw := range file.Stories {
		// A story is where its own text is: what is decoded is what was written.
		at := from + bytes.Index(text[from:], raw)
		lines[i], from = 1+bytes.Count(text[:at], []byte("\n")), at+len(raw)
		if err := json.Unmarshal(raw, &stories[i]); err != nil {
			problems.add(lines[i], "%s", jsonError(err))
		} else if stories[i].Passes == nil && text[0] == '[' {
			return List{}, false // a list of something else
		}
	}
	list.Format = Ralph
	for i := range stories {
		list.Drafts = append(list.Drafts, Draft{Line: lines[i], Case: stories[i].caseOfStory(i)})
	}
	if chainStories(list.Drafts, stories) {
		list.Notes = []string{
			"each story needs the one before it, as a loop does them; 'pawl case edit ID --unneed OTHER' drops a need",
		}
	}
	return list, true
}

func (s *story) caseOfStory(i int) Case {
	c := Case{
		Type: Task, Ref: cmp.Or(textOfID(s.ID), fmt.Sprintf("story-%d", i+1)), Title: s.Title,
		Description: s.Description, Acceptance: append(s.Acceptance, s.Steps...),
		Tags: tagsOfLabels(s.Tags), Needs: append(s.Needs, s.DependsOn...),
	}
	if s.Category != "" {
		c.Tags = append(c.Tags, tagsOfLabels([]string{s.Category})...)
	}
	if c.Title == "" {
		c.Title, _, _ = strings.Cut(s.Description, "\n")
	}
	if notes := strings.TrimSpace(strings.Join(s.Notes, "\n")); notes != "" {
		c.Description = strings.TrimLeft(c.Description+"\n\nNotes:\n\n"+notes, "\n")
	}
	if s.Passes != nil && *s.Passes {
		c.Status, c.Why = Done, "passes in the list"
	}
	return c
}

// textOfID gives an id that is a text or a number as text.
func textOfID(raw json.RawMessage) string { return strings.Trim(string(raw), `" `) }

// chainStories makes each story need the one before it, where the list does not say what needs
// what: a loop does them one after another, and they are written for that.
func chainStories(drafts []Draft, stories []story) bool {
	order := make([]int, len(drafts))
	for i := range drafts {
		order[i] = i
		if len(drafts[i].Case.Needs) > 0 {
			return false
		}
	}
	rank := func(i int) (n int) {
		_ = json.Unmarshal(stories[i].Priority, &n) // a word is as good as none
		return n
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(a) - rank(b) })
	for i := 1; i < len(order); i++ {
		drafts[order[i]].Case.Needs = []string{drafts[order[i-1]].Case.Ref}
	}
	return len(order) > 1
}

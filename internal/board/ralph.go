package board

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// story is what is read of one story of a prd.json, as loops called ralph have it.
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
		list.Drafts = append(list.Drafts, Draft{Line: lines[i], Case: stories[i].draft(i)})
	}
	if chain(list.Drafts, stories) {
		list.Notes = []string{
			"each story needs the one before it, as a loop does them; 'pawl case edit ID --unneed' frees one",
		}
	}
	return list, true
}

func (s *story) draft(i int) Case {
	c := Case{
		Type: Task, Ref: cmp.Or(plain(s.ID), fmt.Sprintf("story-%d", i+1)), Title: s.Title, Description: s.Description,
		Acceptance: append(s.Acceptance, s.Steps...), Tags: words(s.Tags), Needs: append(s.Needs, s.DependsOn...),
	}
	if s.Category != "" {
		c.Tags = append(c.Tags, words([]string{s.Category})...)
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

// plain is a text or a number as text.
func plain(raw json.RawMessage) string { return strings.Trim(string(raw), `" `) }

// chain makes each story need the one before it, where the list does not say what needs
// what: a loop does them one after another, and they are written for that.
func chain(drafts []Draft, stories []story) bool {
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

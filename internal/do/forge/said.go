package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
)

// Mark is in every comment that pawl writes: its own words are no answer.
const Mark = "<!-- pawl -->"

// Remark is what a person said: of a line, of a pull request, or of an issue.
type Remark struct {
	Key    string // its name among all of the request's
	ID     int64  // rises
	Author string
	May    bool   // the author may write, as far as the forge says with it; see [Client.Writers]
	Path   string // with Line, where it is about one
	Line   int
	Body   string
}

// comment is a comment or a review in the words of both kinds.
type comment struct {
	ID     int64 `json:"id"`
	Author struct {
		Login string `json:"login"`
	} `json:"user"`
	Standing  string     `json:"author_association"` // GitHub
	Body      string     `json:"body"`
	State     string     `json:"state"`
	Submitted *time.Time `json:"submitted_at"`
	Path      string     `json:"path"`
	Line      int        `json:"line"`              // GitHub; null when the line is gone
	Was       int        `json:"original_line"`     // GitHub
	Position  int        `json:"position"`          // Gitea's line
	Old       int        `json:"original_position"` // Gitea's, of a line that is taken away
	Count     int        `json:"comments_count"`    // of a review of Gitea's
}

func (m *comment) asRemark(kind string, gitea bool) Remark {
	r := Remark{Key: fmt.Sprint(kind, m.ID), ID: m.ID, Author: m.Author.Login, Path: m.Path, Body: m.Body,
		Line: max(m.Line, 0)}
	switch m.Standing {
	case "", "OWNER", "MEMBER", "COLLABORATOR":
		r.May = true
	}
	switch {
	case gitea && m.Position > 0:
		r.Line = m.Position
	case gitea:
		r.Line = m.Old
	case r.Line == 0:
		r.Line = m.Was
	}
	return r
}

// Said lists the remarks of others about a pull request: reviews, comments on lines, and
// the conversation, the oldest first in each. Those with a key in heard are left out.
func (c *Client) Said(ctx context.Context, number int64, heard map[string]bool) ([]Remark, error) {
	var all []Remark
	add := func(kind string, list []comment) {
		for i := range list {
			r := list[i].asRemark(kind, c.isGitea())
			if r.May && strings.TrimSpace(r.Body) != "" && !strings.Contains(r.Body, Mark) && !heard[r.Key] {
				all = append(all, r)
			}
		}
	}
	reviews, err := listAll[comment](ctx, c, c.repoPath("/pulls/%d/reviews", number), url.Values{})
	if err != nil {
		return nil, err
	}
	add("review", reviews)
	lines := []string{c.repoPath("/pulls/%d/comments", number)}
	if c.isGitea() { // which lists them by review
		lines = nil
		for _, r := range reviews {
			if r.Count > 0 {
				lines = append(lines, c.repoPath("/pulls/%d/reviews/%d/comments", number, r.ID))
			}
		}
	}
	for _, path := range append(lines, c.repoPath("/issues/%d/comments", number)) {
		list, err := listAll[comment](ctx, c, path, url.Values{})
		if err != nil {
			return nil, err
		}
		kind := "line"
		if strings.HasPrefix(path, c.repoPath("/issues/")) {
			kind = "comment"
		}
		add(kind, list)
	}
	return all, nil
}

// WritersOf is [Client.Writers] for the authors of remarks. Where GitHub does not say who may
// write, since the token's user may not, its word about each author counts.
func (c *Client) WritersOf(ctx context.Context, said []Remark) (map[string]bool, error) {
	var logins []string
	standing := map[string]bool{}
	for _, m := range said {
		logins, standing[m.Author] = append(logins, m.Author), m.May
	}
	may, err := c.Writers(ctx, logins)
	if !c.isGitea() && Is(err, http.StatusForbidden) {
		return standing, nil
	}
	return may, err
}

// Writers reports for each of some logins whether the person may write.
func (c *Client) Writers(ctx context.Context, logins []string) (map[string]bool, error) {
	may := map[string]bool{}
	if c.isGitea() && len(logins) > 0 { // only administrators may read a permission, but all may read to whom work can be assigned
		people, err := listAll[struct {
			Login string `json:"login"`
		}](ctx, c, c.repoPath("/assignees"), url.Values{})
		for _, p := range people {
			may[p.Login] = true
		}
		return may, err
	}
	for _, login := range logins {
		if _, known := may[login]; known {
			continue
		}
		var p struct {
			Permission string `json:"permission"`
		}
		err := c.getInto(ctx, c.repoPath("/collaborators/%s/permission", url.PathEscape(login)), &p)
		if err != nil && !Is(err, NotFound) {
			return nil, err
		}
		may[login] = p.Permission == "write" || p.Permission == "admin"
	}
	return may, nil
}

// cleanTexts takes out of what a forge said all that could steer a terminal or is not seen, in each
// text of a decoded answer. A text is one line, unless it is the body of an issue or a comment.
func cleanTexts(v reflect.Value, lines bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			cleanTexts(v.Elem(), lines)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				cleanTexts(v.Field(i), field.Tag.Get("json") == "body")
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				cleanTexts(v.Index(i), lines)
			}
		}
	case reflect.String:
		v.SetString(visibleText(v.String(), lines))
	}
}

func visibleText(text string, lines bool) string {
	text = board.Seen(text)
	if lines {
		return text
	}
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(text)
}

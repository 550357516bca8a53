package forge

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/board"
)

// Mark is in every comment that pawl writes: its own words are no answer.
const Mark = "<!-- pawl -->"

// Remark is a person's comment on a line, on a pull request, or on an issue.
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
	Standing string `json:"author_association"` // GitHub
	Body     string `json:"body"`
	Path     string `json:"path"`
	Line     int    `json:"line"`              // GitHub; null when the line is gone
	Was      int    `json:"original_line"`     // GitHub
	Position int    `json:"position"`          // Gitea's line
	Old      int    `json:"original_position"` // Gitea's, of a line that is taken away
	Count    int    `json:"comments_count"`    // of a review of Gitea's
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

// Remarks lists the remarks of others about a pull request: reviews, comments on lines, and the
// conversation, the oldest first in each. Those with a key in known are left out.
func (c *Client) Remarks(ctx context.Context, number int64, known map[string]bool) ([]Remark, error) {
	var all []Remark
	add := func(kind string, list []comment) {
		for i := range list {
			r := list[i].asRemark(kind, c.speaksGitea())
			if r.May && strings.TrimSpace(r.Body) != "" && !strings.Contains(r.Body, Mark) && !known[r.Key] {
				all = append(all, r)
			}
		}
	}
	reviews, err := listAllPages[comment](ctx, c, c.repoPath("/pulls/%d/reviews", number), url.Values{})
	if err != nil {
		return nil, err
	}
	add("review", reviews)
	lines := []string{c.repoPath("/pulls/%d/comments", number)}
	if c.speaksGitea() { // which lists them by review
		lines = nil
		for _, r := range reviews {
			if r.Count > 0 {
				lines = append(lines, c.repoPath("/pulls/%d/reviews/%d/comments", number, r.ID))
			}
		}
	}
	for _, path := range append(lines, c.repoPath("/issues/%d/comments", number)) {
		list, err := listAllPages[comment](ctx, c, path, url.Values{})
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
	if !c.speaksGitea() && Is(err, http.StatusForbidden) {
		return standing, nil
	}
	return may, err
}

// Writers reports for each of some logins whether the person may write.
func (c *Client) Writers(ctx context.Context, logins []string) (map[string]bool, error) {
	may := map[string]bool{}
	// Only administrators may read a permission there, but all may read to whom work can be assigned.
	if c.speaksGitea() && len(logins) > 0 {
		people, err := listAllPages[struct {
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
		err := c.getDecoded(ctx, c.repoPath("/collaborators/%s/permission", url.PathEscape(login)), &p)
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

// Issue is one of the repository's.
type Issue struct {
	Number  int64
	URL     string
	Title   string
	Body    string
	Author  string
	Labels  []string
	Open    bool
	Said    int    // comments
	Updated string // changes with whatever is done or said there
}

// HasLabel is true when the issue has a label, in any case of letters.
func (i *Issue) HasLabel(label string) bool {
	return slices.ContainsFunc(i.Labels, func(l string) bool { return strings.EqualFold(l, label) })
}

// filed is an issue in the words of both kinds.
type filed struct {
	Number int64  `json:"number"`
	URL    string `json:"html_url"`
	Title  string `json:"title"`
	Body   string `json:"body"`
	State  string `json:"state"`
	Author struct {
		Login string `json:"login"`
	} `json:"user"`
	Labels []struct {
		Name string `json:"name"`
	} `json:"labels"`
	Said   int    `json:"comments"`
	Update string `json:"updated_at"`
	Pull   any    `json:"pull_request"` // for which a forge has issues too
}

func (f *filed) toIssue() Issue {
	i := Issue{Number: f.Number, URL: f.URL, Title: f.Title, Body: f.Body, Author: f.Author.Login, Said: f.Said,
		Open: f.State == "open", Updated: f.Update}
	for _, l := range f.Labels {
		i.Labels = append(i.Labels, l.Name)
	}
	return i
}

// Issues are the open issues with a label, the oldest first.
func (c *Client) Issues(ctx context.Context, label string) ([]Issue, error) {
	query := url.Values{"state": {"open"}, "labels": {label}}
	if c.speaksGitea() {
		query.Set("type", "issues") // at GitHub that is the name of a kind of issue
	}
	all, err := listAllPages[filed](ctx, c, c.repoPath("/issues"), query)
	var issues []Issue
	for _, f := range all {
		// Gitea lists all for a label that it does not know.
		if i := f.toIssue(); i.Number > 0 && i.Open && f.Pull == nil && i.HasLabel(label) {
			issues = append(issues, i)
		}
	}
	slices.SortFunc(issues, func(a, b Issue) int { return cmp.Compare(a.Number, b.Number) })
	// One that moves to the next page while the pages are read is there twice.
	return slices.CompactFunc(issues, func(a, b Issue) bool { return a.Number == b.Number }), err
}

// Issue is one of them. One that was deleted, or moved to another repository, is
// [NotFound].
func (c *Client) Issue(ctx context.Context, number int64) (Issue, error) {
	var f filed
	err := c.getDecoded(ctx, c.repoPath("/issues/%d", number), &f)
	if isSame := err != nil || f.Number == number; !isSame || Is(err, http.StatusGone) {
		err = &Error{Status: NotFound, Why: "the issue is elsewhere now"}
	}
	return f.toIssue(), err
}

// Talk are the comments of an issue since a time in the forge's words, "" for
// all; the oldest first.
func (c *Client) Talk(ctx context.Context, number int64, since string) ([]Remark, error) {
	query := url.Values{}
	if since != "" {
		query.Set("since", since)
	}
	said, err := listAllPages[comment](ctx, c, c.repoPath("/issues/%d/comments", number), query)
	all := make([]Remark, 0, len(said))
	for i := range said {
		all = append(all, said[i].asRemark("", c.speaksGitea()))
	}
	slices.SortFunc(all, func(a, b Remark) int { return cmp.Compare(a.ID, b.ID) })
	return all, err
}

// Comment writes a comment, or with the id of one writes that anew. It returns
// its id.
func (c *Client) Comment(ctx context.Context, number, id int64, body string) (int64, error) {
	method, path := http.MethodPost, c.repoPath("/issues/%d/comments", number)
	if id > 0 {
		method, path = http.MethodPatch, c.repoPath("/issues/comments/%d", id)
	}
	var written comment
	err := c.sendJSON(ctx, method, path, map[string]string{"body": body}, &written)
	if id > 0 && Is(err, NotFound) { // somebody deleted it
		return c.Comment(ctx, number, 0, body)
	}
	return written.ID, err
}

// SetIssueOpen opens an issue again, or closes it.
func (c *Client) SetIssueOpen(ctx context.Context, number int64, open bool) error {
	state := map[string]string{"state": "closed"}
	if open {
		state["state"] = "open"
	}
	return c.sendJSON(ctx, http.MethodPatch, c.repoPath("/issues/%d", number), state, nil)
}

package forge

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

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

func (f *filed) asIssue() Issue {
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
	if c.isGitea() {
		query.Set("type", "issues") // at GitHub that is the name of a kind of issue
	}
	all, err := listAll[filed](ctx, c, c.repoPath("/issues"), query)
	var issues []Issue
	for _, f := range all {
		// Gitea lists all for a label that it does not know.
		if i := f.asIssue(); i.Number > 0 && i.Open && f.Pull == nil && i.HasLabel(label) {
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
	err := c.getInto(ctx, c.repoPath("/issues/%d", number), &f)
	if isSame := err != nil || f.Number == number; !isSame || Is(err, http.StatusGone) {
		err = &Error{Status: NotFound, Why: "the issue is elsewhere now"}
	}
	return f.asIssue(), err
}

// Talk are the comments of an issue since a time in the forge's words, "" for
// all; the oldest first.
func (c *Client) Talk(ctx context.Context, number int64, since string) ([]Remark, error) {
	query := url.Values{}
	if since != "" {
		query.Set("since", since)
	}
	said, err := listAll[comment](ctx, c, c.repoPath("/issues/%d/comments", number), query)
	all := make([]Remark, 0, len(said))
	for i := range said {
		all = append(all, said[i].asRemark("", c.isGitea()))
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

// CloseIssue closes an issue.
func (c *Client) CloseIssue(ctx context.Context, number int64) error {
	closed := map[string]string{"state": "closed"}
	return c.sendJSON(ctx, http.MethodPatch, c.repoPath("/issues/%d", number), closed, nil)
}

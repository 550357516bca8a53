package forge

import (
	"context"
	"errors"
	"net/http"
)

// Repository is what the forge says of the repository.
type Repository struct {
	Name     string // owner/name, as it is called now
	Private  bool
	Archived bool
	Push     bool   // the token's user may
	Method   string // the first way of merging that is allowed: merge, squash or rebase
}

// About is what the forge says of the repository.
func (c *Client) About(ctx context.Context) (Repository, error) {
	var r struct {
		Name        string `json:"full_name"`
		Private     bool   `json:"private"`
		Archived    bool   `json:"archived"`
		Permissions struct {
			Push bool `json:"push"`
		} `json:"permissions"`
		Merge  *bool `json:"allow_merge_commit"`  // GitHub's word
		Merges *bool `json:"allow_merge_commits"` // Gitea's
		Squash bool  `json:"allow_squash_merge"`
	}
	if err := c.get(ctx, c.repo(""), &r); err != nil {
		return Repository{}, err
	}
	method := "rebase"
	switch not := func(b *bool) bool { return b != nil && !*b }; {
	case !not(r.Merge) && !not(r.Merges):
		method = "merge"
	case r.Squash:
		method = "squash"
	}
	return Repository{
		Name: r.Name, Private: r.Private, Archived: r.Archived, Push: r.Permissions.Push, Method: method,
	}, nil
}

// User is who the token belongs to.
func (c *Client) User(ctx context.Context) (string, error) {
	var u struct {
		Login string `json:"login"`
	}
	err := c.get(ctx, "/user", &u)
	return u.Login, err
}

// Able says whether the token may do something; Why is the forge's answer
// where it may not.
type Able struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Why  string `json:"why,omitempty"`
}

// Abilities is what the token may do in the repository. What is to be written is
// tried with nothing in it, which a forge refuses in other words than a token
// that may not write.
func (c *Client) Abilities(ctx context.Context) ([]Able, error) {
	tries := []struct{ what, method, path string }{
		{"read issues", http.MethodGet, "/issues?" + c.sizeWord() + "=1"},
		{"write issues and comments", http.MethodPost, "/issues"},
		{"read pull requests", http.MethodGet, "/pulls?" + c.sizeWord() + "=1"},
		{"open pull requests", http.MethodPost, "/pulls"},
	}
	var able []Able
	for _, t := range tries {
		var body []byte
		if t.method == http.MethodPost {
			body = []byte("{}")
		}
		_, err := c.call(ctx, t.method, c.api()+c.repo("%s", t.path), body)
		a := Able{What: t.what, OK: err == nil || Is(err, http.StatusUnprocessableEntity, http.StatusBadRequest)}
		var no *Error
		if !a.OK {
			if !errors.As(err, &no) {
				return nil, err
			}
			a.Why = no.Why
		}
		able = append(able, a)
	}
	repo, err := c.About(ctx)
	if err != nil {
		return nil, err
	}
	push := Able{What: "merge pull requests", OK: repo.Push && !repo.Archived}
	switch {
	case repo.Archived:
		push.Why = "the repository is archived"
	case !push.OK:
		push.Why = "the token's user may not push"
	}
	return append(able, push), nil
}
